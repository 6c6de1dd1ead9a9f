"""The margin condition (Definition 2.5), the lemma that uses it (A.5), and the bound on omega by regret (B.4)."""

import math

import numpy as np

from bothworlds.arrays import Floats


def margin_condition(context_gaps: Floats, g: Floats, *, gap: float, margin: float) -> bool:
    """Return whether P(Delta(X) <= h) <= (1/2)(h/Delta_*)^beta for all h in [0, Delta_*] (Definition 2.5).

    With finite support the left side is a step function, so it suffices to check its jumps Delta(x) <= Delta_*.

    >>> margin_condition(np.array([0.1, 0.3]), np.array([0.1, 0.9]), gap=0.2, margin=1.0)
    True
    >>> margin_condition(np.array([0.1, 0.3]), np.array([0.1, 0.9]), gap=0.2, margin=4.0)
    False
    """
    jumps = context_gaps[context_gaps <= gap]
    mass = (context_gaps[None, :] <= jumps[:, None]) @ g
    with np.errstate(divide="ignore"):
        allowed = 0.5 * np.where(jumps < gap, (jumps / gap) ** margin, 1.0)
    return bool((mass <= allowed * (1.0 + 1e-12)).all())


def largest_margin_gap(context_gaps: Floats, g: Floats, *, margin: float) -> float:
    """Return the supremum of the Delta_* for which Definition 2.5 holds with a given beta.

    It is attained, unless it is the gap Delta(x) of a context with P(Delta(X) <= Delta(x)) > 1/2.

    >>> round(largest_margin_gap(np.array([0.1, 0.3]), np.array([0.1, 0.9]), margin=2.0), 4)
    0.2236
    """
    mass = (context_gaps[None, :] <= context_gaps[:, None]) @ g
    exponent = 0.0 if math.isinf(margin) else 1.0 / margin
    return float((context_gaps * np.minimum(2.0 * mass, 1.0) ** -exponent).min())


def margin_value(mean: Floats | float, margin: float) -> Floats:
    """Return M(mu) with E[U V] >= Delta_* M(mu) for all U in [0, 1] of mean mu and V of margin beta (Lemma A.5).

    M(mu) = beta/(2 (1 + beta)) (2 mu)^((1 + beta)/beta) up to mu = 1/2, where the paper stops, and beyond it the
    tangent of slope 1, because there the quantiles of V are at least Delta_*. M is convex, and at least
    beta/(1 + beta) mu^((1 + beta)/beta) on all of [0, 1], as Lemma B.4 needs.

    >>> margin_value(0.25, 1.0).item(), margin_value(0.75, 1.0).item(), margin_value(0.3, math.inf).item()
    (0.0625, 0.5, 0.3)
    """
    mu = np.asarray(mean, dtype=np.float64)
    if math.isinf(margin):
        return mu
    share = margin / (2.0 * (1.0 + margin))
    below = share * (2.0 * np.minimum(mu, 0.5)) ** ((1.0 + margin) / margin)
    return np.asarray(below + np.maximum(mu - 0.5, 0.0))


def margin_mean(value: Floats | float, margin: float) -> Floats:
    """Return the mean mu with M(mu) = value: the inverse of `margin_value`.

    >>> margin_mean(margin_value(np.array([0.1, 0.9]), 2.0), 2.0).round(12).tolist()
    [0.1, 0.9]
    """
    v = np.asarray(value, dtype=np.float64)
    if math.isinf(margin):
        return v
    share = margin / (2.0 * (1.0 + margin))
    below = 0.5 * (np.minimum(v, share) / share) ** (margin / (1.0 + margin))
    return np.asarray(below + np.maximum(v - share, 0.0))


def omega_sum_bound(
    regret: float, *, horizon: int, rarity: float, gap: float, margin: float = math.inf, corruption: float = 0.0
) -> float:
    """Bound E[sum_t omega_t] by the regret (Lemma B.4, and the lower bound in the proof of Theorem 4.4).

    L T^(1/(1 + beta)) (2 (1 + beta) (R_T + C)/(beta Delta_*))^(beta/(1 + beta)); needs gamma_t <= 1/2.

    >>> omega_sum_bound(10.0, horizon=100, rarity=5.0, gap=0.5)
    200.0
    """
    inverse = 0.0 if math.isinf(margin) else 1.0 / margin
    scaled = 2.0 * (1.0 + inverse) * (regret + corruption) / gap
    return float(rarity * horizon ** (inverse / (1.0 + inverse)) * scaled ** (1.0 / (1.0 + inverse)))
