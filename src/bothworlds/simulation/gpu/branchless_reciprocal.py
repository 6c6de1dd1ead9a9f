"""Branch-free reciprocals on a GPU, so that several are computed at once.

The GPU's own division branches on special cases after every quotient, which delays the next one. Here an approximate
reciprocal, with a relative error of at most 2^-20, is refined by products; numbers out of their range are handled by a
select instead of a branch. The error is at most 0.51 units in the last place instead of 0.5.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from bothworlds.algorithms.lc_tsallis.step_cost import in_two_passes
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, absolute, fused, where
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.jit.simd_ops import lower_function, on_cuda
from bothworlds.kernels.linalg import inverse_root, reciprocal
from bothworlds.kernels.tsallis_half import SHORT_STEP, Sums, add_powers, power_sums, shifted_reciprocal, shifted_sums

PRECISION = 2.0**20
LARGEST = 2.0**1013
LARGEST_HIGH = 1.5 * 2.0**127  # the high word of the largest, read as a float


def approximate_reciprocal(number: float) -> float:
    """Return 1/number with a relative error of 2^-20, a single instruction on a GPU."""
    return float(1.0 / number * (1.0 + 0.5 / PRECISION))


def approximate_inverse_root(number: float) -> float:
    """Return 1/sqrt(number) with a relative error of 2^-20, a single instruction on a GPU."""
    return float(number**-0.5 * (1.0 + 0.5 / PRECISION))


def is_moderate(number: float) -> bool:
    """Whether a number is neither huge nor infinite nor NaN; one comparison of its high word."""
    return abs(number) < LARGEST


@on_gpu(reciprocal)
def branchless_reciprocal(number: float) -> Number:
    """Return 1/number: with e = 1 - number r the series r (1 + e + e^2), whose next term is below 2^-60."""
    near = approximate_reciprocal(number)
    error = fused(-number, near, 1.0)
    return where(is_moderate(number), fused(near, fused(error, error, error), near), near)


@on_gpu(inverse_root)
def branchless_inverse_root(number: float) -> Number:
    """Return 1/sqrt(number): with e = 1 - number r^2 the series r (1 + e/2 + 3 e^2/8)."""
    near = approximate_inverse_root(number)
    error = fused(-number * near, near, 1.0)
    return fused(near * error, fused(error, 0.375, 0.5), near)


@on_gpu(in_two_passes)
def single_pass() -> bool:
    """Compute rare terms in the first pass: of the 32 threads of a warp, nearly always one needs them."""
    return False


@kernel
def sums_of_powers(reciprocals: Floats) -> Sums:
    """Return the sums of r^2, r^3, r^4 and r^5."""
    sums = 0.0, 0.0, 0.0, 0.0
    for a in range(reciprocals.shape[0]):
        sums = add_powers(sums, reciprocals[a])
    return sums


@on_gpu(power_sums)
def power_sums_separately(losses: Floats, eta: float, y: float, reciprocals: Floats) -> Sums:
    """Write all r_a = 1/(eta l_a + y), then return the sums of their powers."""
    for a in range(losses.shape[0]):
        reciprocals[a] = reciprocal(fused(eta, losses[a], y))
    return sums_of_powers(reciprocals)


@on_gpu(shifted_sums)
def shifted_sums_separately(losses: Floats, eta: float, y: float, following: float, reciprocals: Floats) -> Sums:
    """Change all r_a of y into those of ``following``, with a single branch, then return the sums of their powers."""
    x = following - y
    if absolute(x) <= SHORT_STEP * y:
        for a in range(losses.shape[0]):
            reciprocals[a] = shifted_reciprocal(reciprocals[a], x)
    else:
        for a in range(losses.shape[0]):
            reciprocals[a] = reciprocal(fused(eta, losses[a], following))
    return sums_of_powers(reciprocals)


def _build_approximate(name: str, plain: Any) -> Any:
    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not on_cuda(context):
            return plain(context, builder, args[0])
        kind = ir.DoubleType()
        instruction = ir.InlineAsm(ir.FunctionType(kind, [kind]), f"{name}.approx.ftz.f64 $0, $1;", "=d,d")
        return builder.call(instruction, args)

    return build


def _with_error(builder: Any, number: Any) -> Any:
    return builder.fmul(number, ir.Constant(ir.DoubleType(), 1.0 + 0.5 / PRECISION))


def _plain_reciprocal(context: Any, builder: Any, number: Any) -> Any:
    return _with_error(builder, builder.fdiv(ir.Constant(ir.DoubleType(), 1.0), number))


def _plain_inverse_root(context: Any, builder: Any, number: Any) -> Any:
    kind = ir.DoubleType()
    square_root = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), "llvm.sqrt.f64")
    return _plain_reciprocal(context, builder, builder.call(square_root, [number]))


def _build_moderate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = builder.bitcast(args[0], ir.IntType(64))
    high = builder.trunc(builder.lshr(bits, bits.type(32)), ir.IntType(32))
    size = builder.bitcast(builder.and_(high, high.type(0x7FFFFFFF)), ir.FloatType())
    return builder.fcmp_ordered("<", size, ir.Constant(ir.FloatType(), LARGEST_HIGH))


lower_function(approximate_reciprocal, types.float64, _build_approximate("rcp", _plain_reciprocal))
lower_function(approximate_inverse_root, types.float64, _build_approximate("rsqrt", _plain_inverse_root))
lower_function(is_moderate, types.boolean, _build_moderate)
