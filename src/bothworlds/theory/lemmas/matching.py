"""What the matched tuning needs of 1/2-Tsallis entropy: two inequalities of our own, for one context.

Write r = sqrt q, + for the most likely arm, h = -psi(q) = 2 (sum r - 1), and eta |l_hat| r <= c < 1/2 for all arms.

1. h >= 2 k sum_{a != +} r_a with k = 1/(1 + 1/sqrt 2). For 1 - r_+ = sum_{a != +} r_a^2/(1 + r_+) <= (m/(1 + m)) sum
   r_a, where m, the second largest r, is at most r_+ and at most 1/sqrt 2.
2. V = min sum q^(3/2) (l_hat - s)^2 over |s| <= c/(eta r_+) is at most (2 c^2/k) h/eta^2: take s = l_+, then
   |l_hat - l_+| r <= 2c/eta.
3. Let p be the FTRL point after l_hat, with 1/eta multiplied by a factor of at most 2. Then h(p) <= B(c) h(q): the
   entropy, and with it the penalty, cannot jump. Proof in docs/theory.md.
"""

import math

import numpy as np

from bothworlds.kernels.arrays import Floats

SHARE = 1.0 / (1.0 + math.sqrt(0.5))  # k


def spread(q: Floats, losses: Floats, *, limit: float) -> float:
    """Return V = min_s sum_a q^(3/2) (l - s)^2 over |s| <= limit/sqrt(max q), where limit = c/eta.

    >>> spread(np.array([0.25, 0.25, 0.5]), np.array([1.0, -1.0, 0.0]), limit=1.0)
    0.25
    """
    weights, most = q**1.5, limit / math.sqrt(q.max())
    s = float(np.clip((weights * losses).sum() / weights.sum(), -most, most))
    return float((weights * (losses - s) ** 2).sum())


def spread_bound(entropy: float, eta: float, *, c: float) -> float:
    """Bound V by (2 c^2/k) h/eta^2; below h/eta^2 for every c < 1/2."""
    return 2.0 * c * c / SHARE * entropy / (eta * eta)


def entropy_growth(c: float) -> float:
    """Return B(c) = min over u, m of max{2/(1 - c - u) + sqrt(m)/(1 - m), sqrt(2) c/(u m^(3/2))}/k.

    Every u < 1 - c and m < 1 will do, so a grid is enough. The largest growth ever found is 2/(1 - c).

    >>> round(entropy_growth(0.125), 1), round(entropy_growth(0.4), 1)
    (6.7, 11.5)
    """
    u = np.linspace(0.0, 1.0 - c, 201)[1:-1, None]
    m = np.linspace(0.0, 1.0, 201)[None, 1:-1]
    few = 2.0 / (1.0 - c - u) + np.sqrt(m) / (1.0 - m)
    return float(np.maximum(few, math.sqrt(2.0) * c / (u * m**1.5)).min() / SHARE)
