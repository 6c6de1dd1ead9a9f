"""Student's t interval for the mean of a few independent values, at one fixed time."""

import math
from statistics import NormalDist

LEVEL = 0.95


def student_quantile(p: float, freedom: int) -> float:
    """Return the p-quantile of Student's t: exact for one and two degrees of freedom, else by Hill's expansion.

    >>> round(student_quantile(0.975, 1), 2), round(student_quantile(0.975, 19), 3)
    (12.71, 2.093)
    """
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2.0 * p - 1.0) / math.sqrt(2.0 * p * (1.0 - p))
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    return z + math.fsum(term / freedom ** (i + 1) for i, term in enumerate(terms))


def factor(replications: int) -> float:
    """Return the half-width of the 95 % interval in standard errors; NaN for one replication."""
    return student_quantile(0.5 + LEVEL / 2.0, replications - 1) if replications > 1 else math.nan
