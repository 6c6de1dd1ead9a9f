"""Special functions for the intervals, without SciPy: log gamma, the beta distribution, Riemann's zeta."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bothworlds.arrays import Floats

TINY = 1e-300
CLOSE = 1e-15
MOST_STEPS = 100_000
LARGE = 20.0
HALF_LOG = 0.5 * math.log(2.0 * math.pi)
HALVINGS = 200  # more than the bits of a double
_LOG_GAMMA = np.frompyfunc(math.lgamma, 1, 1)


def log_gamma(x: Any) -> Floats:
    """Return log Gamma(x) elementwise.

    >>> log_gamma([1.0, 2.0]).tolist()
    [0.0, 0.0]
    """
    return np.asarray(_LOG_GAMMA(x), dtype=np.float64)


def log_gamma_excess(x: Any) -> Floats:
    """Return log Gamma(x) - x log x + x elementwise, without cancellation for large x.

    >>> (log_gamma_excess([1.0, 2.0]) - [1.0, 2.0 - math.log(4.0)]).round(12).tolist()
    [0.0, 0.0]
    """
    given: Floats = np.asarray(x, dtype=np.float64)
    small, large = np.minimum(given, LARGE), np.maximum(given, LARGE)
    y = 1.0 / (large * large)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / large
    exact, stirling = log_gamma(small) - small * np.log(small) + small, HALF_LOG - 0.5 * np.log(large) + series
    return np.asarray(np.where(given < LARGE, exact, stirling))


def log_beta(a: float, b: float) -> float:
    """Return log B(a, b) = log Gamma(a) + log Gamma(b) - log Gamma(a + b).

    >>> round(math.exp(log_beta(2.0, 3.0)), 12) == round(1 / 12, 12)
    True
    """
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def log_rising_excess(a: float, n: float) -> float:
    """Return log Gamma(a + n)/Gamma(a) - n log a: for whole n, the sum of log(1 + i/a) over i < n.

    Uses Stirling's series for large a, which avoids cancellation.

    >>> round(math.exp(log_rising_excess(1.0, 3.0)), 12), abs(log_rising_excess(100.0, 2.0) - math.log(1.01)) < 1e-14
    (6.0, True)
    """
    if a < LARGE:
        return math.lgamma(a + n) - math.lgamma(a) - n * math.log(a)
    x, log = n / a, math.log1p(n / a)
    return (n - 0.5) * log - a * (x - log) + _stirling(a + n) - _stirling(a)


def _stirling(x: float) -> float:
    """Return the remainder of Stirling's formula for log Gamma(x), for x of at least 20."""
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return I_x(a, b), the distribution function of Beta(a, b), by its continued fraction (Lentz's method).

    >>> round(beta_cdf(0.25, 1.0, 1.0), 12), round(beta_cdf(0.5, 3.0, 3.0), 12)
    (0.25, 0.5)
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges fast only on the other side
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta(a, b)) / a
    return front / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of I_x(a, b): 1 + d_1/(1 + d_2/(1 + ...))."""
    value, c, d = 1.0, 1.0, 0.0
    for k in range(1, MOST_STEPS):
        m = k // 2
        if k % 2:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _not_zero(1.0 + step * d)
        c = _not_zero(1.0 + step / c)
        value *= c * d
        if abs(c * d - 1.0) < CLOSE:
            return value
    raise ArithmeticError(f"the continued fraction of I_x(a, b) has not converged at x = {x}, a = {a}, b = {b}")


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return x with I_x(a, b) = p, by bisection.

    >>> round(beta_quantile(0.25, 1.0, 1.0), 12)
    0.25
    """
    return crossing(lambda x: beta_cdf(x, a, b) - p, 0.0, 1.0)


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the sign change of an increasing function between low and high, by bisection.

    >>> crossing(lambda x: x - 0.5, 0.0, 1.0)
    0.5
    """
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if function(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high


def zeta(s: float) -> float:
    """Return Riemann's zeta(s) = sum_k k^-s for s > 1, by Euler and Maclaurin's formula.

    >>> round(zeta(2.0) * 6 / math.pi**2, 14)
    1.0
    """
    if s <= 1.0:
        raise ValueError(f"zeta(s) is a finite sum for s > 1 only; got {s}")
    n = 12
    total = math.fsum(math.pow(k, -s) for k in range(1, n))
    tail = math.pow(n, 1.0 - s) / (s - 1.0) + 0.5 * math.pow(n, -s)
    term, corrections = s * math.pow(n, -s - 1.0), 0.0
    for j, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6), start=1):
        corrections += bernoulli / math.factorial(2 * j) * term
        term *= (s + 2 * j - 1) * (s + 2 * j) / n**2
    return total + tail + corrections
