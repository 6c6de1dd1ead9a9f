"""Fused multiply-add for interpreted kernels: one machine instruction, wrapped on first use.

Python has ``math.fma`` only from 3.13 on, and NumPy has no such function.
"""

from functools import lru_cache
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def build_fma(builder: Any, left: Any, right: Any, addend: Any) -> Any:
    """Emit left * right + addend, rounded once, for floats or vectors of floats."""
    kind = left.type
    name = f"llvm.fma.v{kind.count}f64" if isinstance(kind, ir.VectorType) else "llvm.fma.f64"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, [left, right, addend])


@intrinsic
def _fma(typing_context: Any, left: Any, right: Any, addend: Any) -> Any:
    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return build_fma(builder, *args)

    return types.float64(types.float64, types.float64, types.float64), build


fma: Any = _fma


def _plain(left: float, right: float, addend: float) -> float:
    return fma(left, right, addend)  # type: ignore[no-any-return]


SIGNATURE = ["float64(float64, float64, float64)"]


@lru_cache(maxsize=1)
def fma_of_floats() -> Any:
    """Return the function of three floats as machine code: numba's dispatcher takes three times as long."""
    dispatcher = numba.njit(SIGNATURE)(_plain)
    return dispatcher.get_overload(dispatcher.signatures[0])


@lru_cache(maxsize=1)
def fma_of_arrays() -> Any:
    """Return the ufunc of three floats or arrays: NumPy's, where numba wraps it in a slower one."""
    vectorized = numba.vectorize(SIGNATURE)(_plain)
    return getattr(vectorized, "ufunc", vectorized)
