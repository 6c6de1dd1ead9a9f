"""The fused multiply-add for text that is interpreted: one machine instruction, wrapped when it is first used.

Python has ``math.fma`` from 3.13 on, and NumPy has none.
"""

from functools import lru_cache
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def build_fma(builder: Any, left: Any, right: Any, more: Any) -> Any:
    """Return left * right + more, rounded once, of numbers or of vectors of numbers."""
    kind = left.type
    name = f"llvm.fma.v{kind.count}f64" if isinstance(kind, ir.VectorType) else "llvm.fma.f64"
    own = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(own, [left, right, more])


@intrinsic
def _fma(typing_context: Any, left: Any, right: Any, more: Any) -> Any:
    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return build_fma(builder, *args)

    return types.float64(types.float64, types.float64, types.float64), build


fma: Any = _fma


def _plain(left: float, right: float, more: float) -> float:
    return fma(left, right, more)  # type: ignore[no-any-return]


SIGNATURE = ["float64(float64, float64, float64)"]


@lru_cache(maxsize=1)
def fma_of_floats() -> Any:
    """Return the function of three floats: the machine code itself, for numba's way there takes three times as long."""
    made = numba.njit(SIGNATURE)(_plain)
    return made.get_overload(made.signatures[0])


@lru_cache(maxsize=1)
def fma_of_arrays() -> Any:
    """Return the function of three floats or arrays: NumPy's own, where numba has it inside one that is slower."""
    made = numba.vectorize(SIGNATURE)(_plain)
    return getattr(made, "ufunc", made)
