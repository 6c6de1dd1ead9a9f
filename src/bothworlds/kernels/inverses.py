"""Reciprocals in kernel text: one division each, for which a GPU has its own text."""

from bothworlds.kernels.arithmetic import Number, root
from bothworlds.kernels.jit.compile import kernel


@kernel
def reciprocal(number: Number) -> Number:
    """Return 1/number, of a number that is not zero; zero for infinity."""
    return 1.0 / number


@kernel
def inverse_root(number: Number) -> Number:
    """Return 1/sqrt(number) of a positive number."""
    return 1.0 / root(number)
