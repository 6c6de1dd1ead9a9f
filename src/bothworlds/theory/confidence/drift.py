"""Has the traffic changed? Counts of contexts against the stated law, tested at any time.

Against the law g stands a mixture of all laws, p ~ Dirichlet(k g) with k pseudo-observations:

    E_n = prod_x [Gamma(k g_x + n_x)/Gamma(k g_x) / g_x^(n_x)] Gamma(k)/Gamma(k + n).

While contexts are drawn from g this is a martingale of mean 1 (each factor is the predictive probability of the context
seen, divided by g), so it ever reaches 1/alpha with probability alpha at most (Ville 1939; Lindon and Malek 2022,
here with the prior centred at g). It depends on the counts only.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem.labelled import by_place
from bothworlds.theory.confidence.special import TINY, log_rising_excess


@dataclass(frozen=True)
class Drift:
    """Evidence against a stated law of contexts.

    ``log_evidence`` is log E_n. By Ville's inequality ``p_value`` = min(1, 1/E_n) may be looked at again and again.
    ``ratios`` has what was observed over what was stated, for each context.
    """

    log_evidence: float
    ratios: Floats

    @classmethod
    def of(cls, log_evidence: float, counts: Floats, law: Floats) -> Self:
        """Make it from evidence and the counts that gave it. Internal."""
        total = max(float(counts.sum()), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(law > 0.0, counts / (total * law), np.where(counts > 0.0, math.inf, 1.0))
        return cls(log_evidence, ratios)

    @property
    def evidence(self) -> float:
        """E_n: a fair bet of 1 against the law would now be worth that much."""
        return math.exp(self.log_evidence) if self.log_evidence < 700.0 else math.inf

    @property
    def p_value(self) -> float:
        """min(1, 1/E_n), valid at any time."""
        return math.exp(-max(self.log_evidence, 0.0))


def drift_of(counts: Any, law: Any, *, strength: float | None = None) -> Drift:
    """Weigh counts of contexts against the law they are said to follow.

    Parameters
    ----------
    counts
        How often each context came.
    law
        The stated probabilities. A context of probability zero that came is infinite evidence.
    strength
        k, how many observations the prior around the stated law is worth; the number of contexts if left out. Large
        values look for small changes.

    >>> drift_of([50, 50], [0.5, 0.5]).p_value
    1.0
    >>> drift_of([80, 20], [0.5, 0.5]).p_value < 1e-6
    True
    """
    g, k = checked_law(law, strength)
    n = checked_visits(counts, g)
    return Drift.of(log_evidence(n, g, k), n, g)


def checked_law(law: Any, strength: float | None) -> tuple[Floats, float]:
    """Return the stated law and the strength of the prior around it."""
    g = np.asarray(by_place(law, "probabilities"), dtype=np.float64)
    if g.ndim != 1 or not (g >= 0.0).all() or abs(float(g.sum()) - 1.0) > 1e-9:
        raise ValueError(
            f"the stated law must have no negative probability and sum to 1; it sums to {float(g.sum())!r}"
        )
    k = float(len(g)) if strength is None else float(strength)
    if not 0.0 < k < math.inf:
        raise ValueError(f"strength must be a positive number of observations; got {strength!r}")
    return g, k


def checked_visits(counts: Any, law: Floats) -> Floats:
    """Return counts of contexts as numbers."""
    n = np.asarray(by_place(counts, "counts"), dtype=np.float64)
    if n.shape != law.shape or not (np.isfinite(n) & (n >= 0.0)).all():
        raise ValueError(f"give one count, none negative, for each of {law.size} probabilities; got shape {n.shape}")
    return n


def log_evidence(n: Floats, g: Floats, k: float) -> float:
    """Return log E_n.

    With r(a, n) = log Gamma(a + n)/Gamma(a) - n log a it is the sum of r(k g_x, n_x) less r(k, n): the logarithms of k
    and g cancel on paper, and not in the last digits of numbers that are far larger than the rest.
    """
    if (n[g == 0.0] > 0.0).any():
        return math.inf
    parts = zip(n.tolist(), g.tolist(), strict=True)
    terms = [log_rising_excess(max(k * p, TINY), count) for count, p in parts if count > 0.0]
    return math.fsum([*terms, -log_rising_excess(k, float(n.sum()))])
