"""What the matched tuning needs of 1/2-Tsallis entropy: inequalities of our own, for one context.

Write r = sqrt q, + for the most likely arm, h = -psi(q) = 2 (sum r - 1), s for the mean of the losses l weighted by
q^(3/2), and y = (l - s) r/beta. A step is covered if |y| <= c < 1/2 for all arms; p is the FTRL point after it.

1. h >= 2 k sum_{a != +} r_a with k = 1/(1 + 1/sqrt 2), and h <= 2 sum_{a != +} r_a.
2. (l - s) r is at most C max |l| r, C the `centring` constant of K arms.
3. A covered step costs at most M beta h, M = c^2/(k (1 - c)): see `stability_share`.
4. Entropy cannot jump: h(q)/`entropy_fall` <= h(p) <= `entropy_growth` h(q) after a covered step; and losses in
   [-1, 1] move every r by a factor of at most 1 + 2/beta.
5. Multiplying beta by f >= 1 multiplies h by f at most.

Proofs in docs/theory.md.
"""

import math

import numpy as np

from bothworlds.kernels.arrays import Floats

SHARE = 1.0 / (1.0 + math.sqrt(0.5))  # k


def centred(q: Floats, losses: Floats) -> Floats:
    """Return l - s, s the mean weighted by q^(3/2): the shift that makes sum_a q^(3/2) (l - s)^2 smallest.

    >>> centred(np.array([0.25, 0.25, 0.5]), np.array([1.0, -1.0, 0.0])).tolist()
    [1.0, -1.0, 0.0]
    """
    weights = q**1.5
    return np.asarray(losses - (weights * losses).sum() / weights.sum())


def stability_cost(q: Floats, losses: Floats, *, beta: float, c: float) -> float:
    """Return sum_a beta r y^2 (1 - y + y^2/(1 - c)), which bounds stability where all |y| <= c; infinity elsewhere.

    >>> stability_cost(np.array([0.25, 0.25, 0.5]), np.array([1.0, -1.0, 0.0]), beta=4.0, c=0.25)
    0.06380208333333333
    """
    r = np.sqrt(q)
    y = centred(q, losses) * r / beta
    if np.abs(y).max() > c:
        return math.inf
    return float(beta * (r * y**2 * (1.0 - y + y**2 / (1.0 - c))).sum())


def linear_cost(q: Floats, losses: Floats) -> float:
    """Return max over both signs of <l, q> - min l, which bounds stability whatever beta is.

    >>> linear_cost(np.array([0.5, 0.5]), np.array([1.0, -1.0]))
    1.0
    """
    mean = float(q @ losses)
    offered = losses[q > 0.0]
    return max(mean - float(offered.min()), float(offered.max()) - mean)


def stability_share(c: float) -> float:
    """Return M = c^2/(k (1 - c)): a covered step costs at most M beta h.

    >>> round(stability_share(0.4), 3)
    0.455
    """
    return c * c / (SHARE * (1.0 - c))


def entropy_growth(c: float) -> float:
    """Return B(c) = min over u, m of max{1/(1 - c - u) + sqrt(m)/(1 - m), sqrt(2) c/(u m^(3/2))}/k.

    Every u < 1 - c and m < 1 will do, so a grid is enough.

    >>> round(entropy_growth(0.125), 1), round(entropy_growth(0.4), 1)
    (4.6, 8.2)
    """
    u = np.linspace(0.0, 1.0 - c, 201)[1:-1, None]
    m = np.linspace(0.0, 1.0, 201)[None, 1:-1]
    few = 1.0 / (1.0 - c - u) + np.sqrt(m) / (1.0 - m)
    return float(np.maximum(few, math.sqrt(2.0) * c / (u * m**1.5)).min() / SHARE)


def entropy_fall(c: float) -> float:
    """Return (2 + sqrt 2 + c + c/((1 - c) (1 - (2 - c)^-2)))/(1 - 1/sqrt 2), for c < 1/2.

    >>> round(entropy_fall(0.4), 1)
    16.8
    """
    lost = 1.0 - (2.0 - c) ** -2.0
    return float((2.0 + math.sqrt(2.0) + c + c / ((1.0 - c) * lost)) / (1.0 - math.sqrt(0.5)))


def centring(n_arms: int) -> float:
    """Return C = 1 + max sqrt(q_+)/sum q^(3/2): |l - s| r is at most C times the largest |l| r.

    For a given q_+ the sum is smallest if the others are equal, so a grid over q_+ is enough.

    >>> round(centring(2), 2), round(centring(10), 2)
    (2.12, 2.55)
    """
    p = np.linspace(1.0 / n_arms, 1.0, 20_001)
    others = (1.0 - p) ** 1.5 / math.sqrt(max(n_arms - 1, 1))
    return 1.0 + float((np.sqrt(p) / (p**1.5 + others)).max())
