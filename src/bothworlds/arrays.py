"""Aliases of array types, and arrays aligned to cache lines."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

CACHE_LINE = 8  # numbers


def aligned(*shape: int) -> Floats:
    """Return zeros that begin on a cache line: loading a pack that straddles two lines takes twice as long.

    >>> aligned(3, 8).ctypes.data % 64
    0
    """
    count = math.prod(shape)
    memory = np.zeros(count + CACHE_LINE)
    start = (-memory.ctypes.data // 8) % CACHE_LINE
    return memory[start : start + count].reshape(shape)
