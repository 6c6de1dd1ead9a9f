"""Reciprocals on a GPU without a branch: several at once, where one after the other would wait for each other.

The GPU's own division asks after every quotient whether it needs special care, and no other work is begun before the
answer is known. Here a gross reciprocal, with an error of 2^-20 at most, is refined by products alone; what is out of
their range is chosen, not branched to. The error is at most 0.51 units in the last place instead of 0.5.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from bothworlds.kernels.arithmetic import Number, absolute, fused, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.inverses import inverse_root, reciprocal
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.jit.wide import lower_function, on_cuda
from bothworlds.kernels.root_point import SHORT, Sums, moved_by, moved_sums, power_sums, with_powers
from bothworlds.kernels.stability import in_two_passes

GROSS = 2.0**20
LARGEST = 2.0**1013
LARGEST_HIGH = 1.5 * 2.0**127  # the high word of the largest, read as a float


def gross_reciprocal(number: float) -> float:
    """Return 1/number with an error of 2^-20: what a GPU has an instruction for."""
    return float(1.0 / number * (1.0 + 0.5 / GROSS))


def gross_inverse_root(number: float) -> float:
    """Return 1/sqrt(number) with an error of 2^-20."""
    return float(number**-0.5 * (1.0 + 0.5 / GROSS))


def is_moderate(number: float) -> bool:
    """Tell whether a number is neither huge nor infinite nor NaN, by one instruction on half of its bits."""
    return abs(number) < LARGEST


@on_gpu(reciprocal)
def straight_reciprocal(number: float) -> Number:
    """Return 1/number: with e = 1 - number r the series r (1 + e + e^2), whose next term is below 2^-60."""
    near = gross_reciprocal(number)
    error = fused(-number, near, 1.0)
    return where(is_moderate(number), fused(near, fused(error, error, error), near), near)


@on_gpu(inverse_root)
def straight_inverse_root(number: float) -> Number:
    """Return 1/sqrt(number): with e = 1 - number r^2 the series r (1 + e/2 + 3 e^2/8)."""
    near = gross_inverse_root(number)
    error = fused(-number * near, near, 1.0)
    return fused(near * error, fused(error, 0.375, 0.5), near)


@on_gpu(in_two_passes)
def in_one_pass() -> bool:
    """Do rare work at once: of 32 threads, which wait for each other, there is nearly always one that needs it."""
    return False


@kernel
def sums_of_powers(reciprocals: Floats) -> Sums:
    """Return the sums of r^2, r^3, r^4 and r^5."""
    sums = 0.0, 0.0, 0.0, 0.0
    for a in range(reciprocals.shape[0]):
        sums = with_powers(sums, reciprocals[a])
    return sums


@on_gpu(power_sums)
def power_sums_in_turn(losses: Floats, eta: float, y: float, reciprocals: Floats) -> Sums:
    """Write all r_a = 1/(eta l_a + y), then return the sums of their powers."""
    for a in range(losses.shape[0]):
        reciprocals[a] = reciprocal(fused(eta, losses[a], y))
    return sums_of_powers(reciprocals)


@on_gpu(moved_sums)
def moved_sums_in_turn(losses: Floats, eta: float, y: float, following: float, reciprocals: Floats) -> Sums:
    """Turn all r_a of y into those of the y that follows, by one branch, then return the sums of their powers."""
    x = following - y
    if absolute(x) <= SHORT * y:
        for a in range(losses.shape[0]):
            reciprocals[a] = moved_by(reciprocals[a], x)
    else:
        for a in range(losses.shape[0]):
            reciprocals[a] = reciprocal(fused(eta, losses[a], following))
    return sums_of_powers(reciprocals)


def _build_gross(name: str, plain: Any) -> Any:
    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not on_cuda(context):
            return plain(context, builder, args[0])
        kind = ir.DoubleType()
        instruction = ir.InlineAsm(ir.FunctionType(kind, [kind]), f"{name}.approx.ftz.f64 $0, $1;", "=d,d")
        return builder.call(instruction, args)

    return build


def _rough(builder: Any, number: Any) -> Any:
    return builder.fmul(number, ir.Constant(ir.DoubleType(), 1.0 + 0.5 / GROSS))


def _plain_reciprocal(context: Any, builder: Any, number: Any) -> Any:
    return _rough(builder, builder.fdiv(ir.Constant(ir.DoubleType(), 1.0), number))


def _plain_inverse_root(context: Any, builder: Any, number: Any) -> Any:
    kind = ir.DoubleType()
    own = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), "llvm.sqrt.f64")
    return _plain_reciprocal(context, builder, builder.call(own, [number]))


def _build_moderate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = builder.bitcast(args[0], ir.IntType(64))
    high = builder.trunc(builder.lshr(bits, bits.type(32)), ir.IntType(32))
    size = builder.bitcast(builder.and_(high, high.type(0x7FFFFFFF)), ir.FloatType())
    return builder.fcmp_ordered("<", size, ir.Constant(ir.FloatType(), LARGEST_HIGH))


lower_function(gross_reciprocal, types.float64, _build_gross("rcp", _plain_reciprocal))
lower_function(gross_inverse_root, types.float64, _build_gross("rsqrt", _plain_inverse_root))
lower_function(is_moderate, types.boolean, _build_moderate)
