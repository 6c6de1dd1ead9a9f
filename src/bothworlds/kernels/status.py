"""Status codes that kernels return, and their messages."""

OK = 0
NOT_FINITE = 1
NOT_CONVERGED = 2
NOT_POSITIVE = 3
TRACE_BROKEN = 4
DAMAGED = 5
SENTENCES = {
    NOT_FINITE: "the cumulative estimate is no longer finite",
    NOT_CONVERGED: "Newton's method for the FTRL point reached its iteration cap",
    NOT_POSITIVE: "the covariance matrix is not positive definite",
    TRACE_BROKEN: "the covariance matrix is too ill-conditioned: the leverages no longer average to d",
    DAMAGED: "a number of the direction or baseline is not finite, or above 1e100 in absolute value",
}


def sentence(status: int) -> str:
    """Return the message of a status code.

    >>> sentence(NOT_POSITIVE)
    'the covariance matrix is not positive definite'
    """
    return SENTENCES[status]
