"""The error of failed arithmetic, and kernel statuses in words."""

from bothworlds.kernels import status as codes

SENTENCES = {
    codes.NOT_FINITE: "the cumulative estimate is no longer finite",
    codes.NOT_CONVERGED: "Newton's method for the FTRL point reached its iteration cap",
    codes.NOT_POSITIVE: "the covariance matrix is not positive definite",
    codes.TRACE_BROKEN: "the covariance matrix is too ill-conditioned: the leverages no longer average to d",
    codes.DAMAGED: "the decision's direction or baseline is not finite",
}


class NumericalError(ArithmeticError):
    """Arithmetic failed: not converged, not finite, not positive definite. Nothing was changed or repaired."""


def sentence(status: int) -> str:
    """Return what a kernel's status means.

    >>> sentence(codes.NOT_POSITIVE)
    'the covariance matrix is not positive definite'
    """
    return SENTENCES[status]
