"""Any-time test of drift: counts of contexts against the stated context distribution.

The alternative to the distribution g is a mixture of all distributions, p ~ Dirichlet(k g) with k pseudo-observations:

    E_n = prod_x [Gamma(k g_x + n_x)/Gamma(k g_x) / g_x^(n_x)] Gamma(k)/Gamma(k + n).

While contexts are drawn from g this is a martingale of mean 1 (each factor is the predictive probability of the
observed context, divided by g), so it ever reaches 1/alpha with probability at most alpha (Ville 1939; Lindon and
Malek 2022, here with the prior centred at g). It depends on the counts only.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.problem.lookup import by_position
from bothworlds.theory.confidence.special import TINY, log_rising_excess


@dataclass(frozen=True)
class Drift:
    """Evidence against a stated context distribution.

    ``log_evidence`` is log E_n. By Ville's inequality ``p_value`` = min(1, 1/E_n) may be checked as often as you like.
    ``ratios`` are observed over stated frequencies, one per context.
    """

    log_evidence: float
    ratios: Floats

    @classmethod
    @internal
    def of(cls, log_evidence: float, counts: Floats, probabilities: Floats) -> Self:
        """Compute the ratios from the counts behind the evidence."""
        total = max(float(counts.sum()), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            impossible = np.where(counts > 0.0, math.inf, 1.0)
            ratios = np.where(probabilities > 0.0, counts / (total * probabilities), impossible)
        return cls(log_evidence, ratios)

    @property
    def evidence(self) -> float:
        """E_n: the current value of a fair bet of 1 against the distribution."""
        return math.exp(self.log_evidence) if self.log_evidence < 700.0 else math.inf

    @property
    def p_value(self) -> float:
        """min(1, 1/E_n), valid at any time."""
        return math.exp(-max(self.log_evidence, 0.0))


def drift_of(counts: Any, probabilities: Any, *, strength: float | None = None) -> Drift:
    """Test counts of contexts against a stated context distribution.

    Parameters
    ----------
    counts
        How often each context occurred.
    probabilities
        The stated distribution. A context of probability zero that occurred is infinite evidence.
    strength
        k, how many observations the prior around the stated distribution is worth; the number of contexts by default.
        Large values make the test sensitive to small changes.

    >>> drift_of([50, 50], [0.5, 0.5]).p_value
    1.0
    >>> drift_of([80, 20], [0.5, 0.5]).p_value < 1e-6
    True
    """
    g, k = checked_distribution(probabilities, strength)
    n = checked_visits(counts, g)
    return Drift.of(log_evidence(n, g, k), n, g)


def checked_distribution(probabilities: Any, strength: float | None) -> tuple[Floats, float]:
    """Return the stated distribution and the strength of the prior around it; raise ValueError for invalid values."""
    g = np.asarray(by_position(probabilities, "probabilities"), dtype=np.float64)
    if g.ndim != 1 or not (g >= 0.0).all() or abs(float(g.sum()) - 1.0) > 1e-9:
        raise ValueError(
            f"the stated probabilities must not be negative and must sum to 1; they sum to {float(g.sum())!r}"
        )
    k = float(len(g)) if strength is None else float(strength)
    if not 0.0 < k < math.inf:
        raise ValueError(f"strength must be a positive number of observations; got {strength!r}")
    return g, k


def checked_visits(counts: Any, probabilities: Floats) -> Floats:
    """Return counts of contexts as floats; raise ValueError unless there is one per probability, none negative."""
    n = np.asarray(by_position(counts, "counts"), dtype=np.float64)
    if n.shape != probabilities.shape or not (np.isfinite(n) & (n >= 0.0)).all():
        raise ValueError(
            f"give one count, none negative, for each of {probabilities.size} probabilities; got shape {n.shape}"
        )
    return n


def log_evidence(n: Floats, g: Floats, k: float) -> float:
    """Return log E_n.

    With r(a, n) = log Gamma(a + n)/Gamma(a) - n log a it is the sum of r(k g_x, n_x) less r(k, n). The terms
    n log(k g) cancel exactly in this form; computed separately, their rounding errors would not.
    """
    if (n[g == 0.0] > 0.0).any():
        return math.inf
    parts = zip(n.tolist(), g.tolist(), strict=True)
    terms = [log_rising_excess(max(k * p, TINY), count) for count, p in parts if count > 0.0]
    return math.fsum([*terms, -log_rising_excess(k, float(n.sum()))])
