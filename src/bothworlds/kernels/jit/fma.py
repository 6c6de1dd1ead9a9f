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


@lru_cache(maxsize=2)
def fma_of(packs: bool) -> Any:
    """Return the function of three floats, or that of three floats or arrays."""
    signature = ["float64(float64, float64, float64)"]
    return numba.vectorize(signature)(_plain) if packs else numba.njit(signature)(_plain)
