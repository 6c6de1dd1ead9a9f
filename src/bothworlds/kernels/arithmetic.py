"""Arithmetic of kernels: the same code runs on one number or on many at once.

A *number* is a float or a pack. A pack holds eight contexts of one learner (a `Policy`), or eight or sixteen
replications of a simulation (lanes). Sums, products and comparisons are elementwise, and a float is broadcast to a
pack. All elements of a pack take the same branch, so kernel code selects with `where` and ends a loop with `every`.
Interpreted, a pack is a NumPy array whose last axis has its length; compiled, it is one register or two
(`jit.simd_ops`). No operation is reordered, so every element has the same bits as if it were computed alone.
"""

import math
from typing import Any

import numpy as np

from bothworlds.kernels.jit.fma import fma_of_arrays, fma_of_floats

WIDTH = 8
MAX_LANES = 16  # used where memory is small: two registers at a time hide the latency of one
Number = Any  # a float or a pack
Place = int  # index of a context or an arm, or one index per lane; to mypy an integer, because most code has no lanes


def value(number: Number) -> Number:
    """Return a copy of a number: later writes to the array that it was read from do not change it."""
    return number.copy() if isinstance(number, np.ndarray) else number


def fused(left: Number, right: Number, addend: Number) -> Number:
    """Return left * right + addend with a single rounding, as IEEE 754 defines it: the same on every processor.

    Compilers may not fuse products and sums on their own, because interpreted code would round twice. Explicit calls of
    `fused` round once everywhere and take half the time.

    >>> fused(1.0 + 2.0**-52, 1.0 - 2.0**-52, -1.0) == -(2.0**-104)
    True
    """
    if isinstance(left, float) and isinstance(right, float) and isinstance(addend, float):
        return fma_of_floats()(left, right, addend)
    return fma_of_arrays()(left, right, addend)


def where(mask: Any, yes: Number, no: Number) -> Number:
    """Return ``yes`` where the mask holds, else ``no``; both are computed.

    >>> where(1.0 < 2.0, 3.0, 4.0)
    3.0
    """
    if isinstance(mask, np.ndarray):
        return np.where(mask, yes, no)
    return yes if mask else no


def every(mask: Any) -> bool:
    """Return whether the mask holds for all elements."""
    return bool(mask.all() if isinstance(mask, np.ndarray) else mask)


def either(left: Any, right: Any) -> Any:
    """Return the elementwise or of two masks."""
    return left | right


def both(left: Any, right: Any) -> Any:
    """Return the elementwise and of two masks."""
    return left & right


def smaller(left: Number, right: Number) -> Number:
    """Return the smaller number; the left one where either is NaN."""
    return where(right < left, right, left)


def larger(left: Number, right: Number) -> Number:
    """Return the larger number; the left one where either is NaN."""
    return where(right > left, right, left)


def absolute(number: Number) -> Number:
    """Return |number|."""
    return abs(number)


def root(number: Number) -> Number:
    """Return the square root."""
    return np.sqrt(number) if isinstance(number, np.ndarray) else math.sqrt(number)


def exponential(number: Number) -> Number:
    """Return exp(number); bit for bit the same for a pack as for its elements one by one."""
    return np.array([math.exp(n) for n in number]) if isinstance(number, np.ndarray) else math.exp(number)


def logarithm(number: Number) -> Number:
    """Return log(number) of a positive number."""
    return np.array([math.log(n) for n in number]) if isinstance(number, np.ndarray) else math.log(number)


def exponential_less_one(number: Number) -> Number:
    """Return exp(number) - 1 without cancellation."""
    return np.array([math.expm1(n) for n in number]) if isinstance(number, np.ndarray) else math.expm1(number)


def each(function: Any, number: Number) -> Number:
    """Return function(number), element by element: for kernel functions that have no vector instruction.

    >>> each(math.floor, np.array([0.5, 2.5])).tolist()
    [0, 2]
    """
    return np.array([function(n) for n in number]) if isinstance(number, np.ndarray) else function(number)


def over_contexts(number: Number) -> Number:
    """Return the sum over the eight contexts of a block: the upper half is added to the lower until one number is left.

    A float is returned unchanged, and so are lanes, which are replications and not contexts.

    >>> float(over_contexts(np.arange(8.0)))
    28.0
    """
    while isinstance(number, np.ndarray) and number.size > 1:
        half = number.size // 2
        number = number[:half] + number[half:]
    return float(number[0]) if isinstance(number, np.ndarray) else number


def highest_of_contexts(number: Number) -> Number:
    """Return the maximum over the eight contexts of a block, by halves like `over_contexts`."""
    while isinstance(number, np.ndarray) and number.size > 1:
        half = number.size // 2
        number = larger(number[:half], number[half:])
    return float(number[0]) if isinstance(number, np.ndarray) else number


def at(table: Any, x: Place, a: Place) -> Number:
    """Return the entry of context x and arm a of a table: (blocks, arms) of packs, or (contexts, arms).

    In lanes, each lane has its own x, and its own table if the table holds packs.
    """
    if table.ndim == 3:
        return float(table[x // WIDTH, a, x % WIDTH])
    return float(table[x, a])


def add_at(table: Any, x: Place, a: Place, number: Number) -> None:
    """Add a number to the entry of context x and arm a; in lanes, each lane has its own x and a.

    >>> table = np.zeros((1, 2, 8))
    >>> add_at(table, 3, 1, 0.5)
    >>> float(table[0, 1, 3])
    0.5
    """
    if table.ndim == 3:
        table[x // WIDTH, a, x % WIDTH] += number
    else:
        table[x, a] += number


def count_of(column: Any) -> int:
    """Return the number of contexts of a column, including the padding of the last block."""
    return int(column.shape[0]) * (WIDTH if column.ndim == 2 else 1)


def feature(z: Any, x: Place, a: Place, i: int) -> Number:
    """Return feature i of context x and arm a; in lanes, each lane has its own x and a."""
    if z.ndim == 4:
        return float(z[x // WIDTH, a, i, x % WIDTH])
    return float(z[x, a, i])


def row_of(memory: Any, start: int, count: int) -> Any:
    """Return a view of ``count`` numbers, starting at a position of the memory."""
    return memory[start : start + count]


def matrix_of(memory: Any, start: int, rows: int, columns: int) -> Any:
    """Return a view of a matrix that starts at a position of the memory."""
    return memory[start : start + rows * columns].reshape((rows, columns, *memory.shape[1:]))


def cube_of(memory: Any, start: int, first: int, second: int, third: int) -> Any:
    """Return a view of a three-dimensional array that starts at a position of the memory."""
    return memory[start : start + first * second * third].reshape((first, second, third, *memory.shape[1:]))


def flat_of(rows: Any) -> Any:
    """Return a view with the first two axes joined: the entries of a matrix, or the vectors of a cube."""
    return rows.reshape((rows.shape[0] * rows.shape[1], *rows.shape[2:]))


def write_transposed(weight: Number, z: Any, j: int, out: Any, start: int) -> None:
    """Write eight features of eight contexts, times a weight, as eight packs of features, one per context.

    The features are those of the j-th pack of columns, with zeros beyond the last; they go to out[j, start:].
    """
    for k in range(WIDTH):
        i = WIDTH * j + k
        out[j, start : start + WIDTH, k] = weight * z[i] if i < len(z) else 0.0


def lane_of(memory: Any, lane: int) -> Any:
    """Return one replication of a memory whose last axis counts replications, or of an array of packs."""
    return memory[..., lane]


def contexts(memory: Any) -> Any:
    """View memory whose last axis has length eight as packs of eight contexts."""
    return memory


def lanes(memory: Any) -> Any:
    """View memory whose last axis has length eight as packs of eight replications; in compiled code only."""
    return memory


def sixteen_lanes(memory: Any) -> Any:
    """View memory whose last axis has length sixteen as packs of sixteen replications; in compiled code only."""
    return memory


def scalars(memory: Any) -> Any:
    """View memory as floats: one context and one replication at a time."""
    return memory
