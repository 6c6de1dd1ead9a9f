"""Our inequalities for 1/2-Tsallis entropy in one context, which the proof for the matched tuning uses.

Write r = sqrt q, + for the most likely arm, h = -psi(q) = 2 (sum r - 1), s for the mean of the losses l weighted by
q^(3/2), and y = (l - s) r/beta. A step is covered if |y| <= c < 1/2 for all arms; p is the FTRL point after it.

1. h >= 2 k sum_{a != +} r_a with k = 1/(1 + 1/sqrt 2), and h <= 2 sum_{a != +} r_a.
2. The centred feature psi = phi - sum_a w_a phi_a, w in proportion to q^(3/2), has q psi^T Sigma(q)^-1 psi at most
   `CENTRED`^2 L: psi is at most slightly longer than phi can be.
3. A covered step costs at most M beta h, M = c^2/(k (1 - c)): see `stability_share`.
4. Entropy cannot jump up: after a covered step sqrt p <= r/(1 - c) for every arm, so h(p) <= `entropy_growth`
   h(q); and losses in [-1, 1] multiply every r by at most 1 + 2/beta.
5. Multiplying beta by f >= 1 multiplies every r, and h, by f at most.

Proofs in research/default-rule.md.
"""

import math

import numpy as np

from bothworlds.arrays import Floats

SHARE = 1.0 / (1.0 + math.sqrt(0.5))  # k
CENTRED = 1.01667  # tau^2 sqrt(tau^2 + 1)/(1 + tau^3) where tau^3 = 3 tau^2 + 2, rounded up


def centred(q: Floats, losses: Floats) -> Floats:
    """Return l - s, s the mean weighted by q^(3/2), which minimises sum_a q^(3/2) (l - s)^2.

    >>> centred(np.array([0.25, 0.25, 0.5]), np.array([1.0, -1.0, 0.0])).tolist()
    [1.0, -1.0, 0.0]
    """
    weights = q**1.5
    return np.asarray(losses - (weights * losses).sum() / weights.sum())


def stability_cost(q: Floats, losses: Floats, *, beta: float, c: float) -> float:
    """Return sum_a beta r y^2 (1 - y + y^2/(1 - c)), a bound on stability where all |y| <= c; infinity elsewhere.

    >>> stability_cost(np.array([0.25, 0.25, 0.5]), np.array([1.0, -1.0, 0.0]), beta=4.0, c=0.25)
    0.06380208333333333
    """
    r = np.sqrt(q)
    y = centred(q, losses) * r / beta
    if np.abs(y).max() > c:
        return math.inf
    return float(beta * (r * y**2 * (1.0 - y + y**2 / (1.0 - c))).sum())


def linear_cost(q: Floats, losses: Floats) -> float:
    """Return max over both signs of <l, q> - min l, a bound on stability for every beta.

    >>> linear_cost(np.array([0.5, 0.5]), np.array([1.0, -1.0]))
    1.0
    """
    mean = float(q @ losses)
    offered = losses[q > 0.0]
    return max(mean - float(offered.min()), float(offered.max()) - mean)


def largest_cost(q: Floats, losses: Floats, *, beta: float, c: float) -> float:
    """Return a bound on stability for all multiples of the losses up to 1, k of the price for a residual of 1.

    It is the linear cost, or sum_a q^(3/2) (l - s)^2/(beta - m) if that is less and m = max |l - s| sqrt q <= 2 c beta.

    >>> round(largest_cost(np.array([0.5, 0.5]), np.array([1.0, -1.0]), beta=4.0, c=0.25), 6)
    0.214737
    """
    step = centred(q, losses)
    reach = float(np.abs(step * np.sqrt(q)).max())
    linear = linear_cost(q, losses)
    return min(linear, float((q**1.5 * step**2).sum()) / (beta - reach)) if reach <= 2.0 * c * beta else linear


def step_cost(q: Floats, losses: Floats, *, beta: float, c: float) -> float:
    """Return a bound on the stability of one step, u for an uncovered play.

    It is <l, q> - min l, or beta sum_a r y^2/(1 - m) where that is less and m = max |y| <= 2 c.

    >>> round(step_cost(np.array([0.5, 0.5]), np.array([2.0, -2.0]), beta=4.0, c=0.25), 6)
    1.093836
    """
    y = centred(q, losses) * np.sqrt(q) / beta
    reach = float(np.abs(y).max())
    fall = float(q @ losses - losses[q > 0.0].min())
    return min(fall, beta * float((np.sqrt(q) * y**2).sum()) / (1.0 - reach)) if reach <= 2.0 * c else fall


def stability_share(c: float) -> float:
    """Return M = c^2/(k (1 - c)): a covered step costs at most M beta h.

    >>> round(stability_share(0.4), 3)
    0.455
    """
    return c * c / (SHARE * (1.0 - c))


def entropy_growth(c: float) -> float:
    """Return B(c) = 1/(k (1 - c)): after a covered step no sqrt p_a exceeds sqrt(q_a)/(1 - c).

    >>> round(entropy_growth(0.125), 2), round(entropy_growth(0.4), 2)
    (1.95, 2.85)
    """
    return 1.0 / (SHARE * (1.0 - c))


def centred_lengths(q: Floats) -> Floats:
    """Return sqrt(q_b sum_a v_a^2/q_a) for every arm b, v the weights of the features in its centred feature psi_b.

    By Cauchy-Schwarz it bounds sqrt(q_b psi_b^T Sigma(q)^-1 psi_b/L), whatever the features are. It is at most
    `CENTRED` for any number of arms.

    >>> centred_lengths(np.array([0.5, 0.5])).round(3).tolist()
    [0.707, 0.707]
    """
    weights = q**1.5 / (q**1.5).sum()
    v = np.eye(len(q)) - weights
    return np.asarray(np.sqrt(q * (v**2 / q).sum(axis=1)))
