"""Stability of FTRL: Lemmas C.1, C.3, B.1, B.2 (1/2-Tsallis) and E.1 (Shannon), with our own constants.

With psi(q) = 2 (1 - sum sqrt q) the Bregman divergence is D(p, q) = sum (sqrt p - sqrt q)^2/sqrt q, and for one arm

    max over p >= 0 of  l (q - p) - d(p, q) = q^(3/2) l^2/(1 + l sqrt q)      exactly, for l sqrt q > -1     (C.1)

On the simplex l may be shifted by any constant. Without a shift, |l| sqrt q <= c gives sum q^(3/2) l^2/(1 - c). With
the shift l_+ of the most likely arm a+ it gives sum over the others of q^(3/2) (l - l_+)^2/(1 - 2c), because
|l_+| sqrt q_a <= |l_+| sqrt q_+ <= c. With omega = 1 - q_+ and Young's inequality these become

    max{1, sqrt((1 - omega)/omega)}/(1 - c)   and   1/((1 - 2c)(1 - omega))   times   sqrt(omega) sum q l^2,

the smaller of which is at most `stability_factor(c)`: 1.85 for the proof's c = 1/8. The paper's proof gives 8/3 there
(it prints 8, and 1 in the next line).
"""

import math

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.ftrl import ftrl_point


def stability_step(q: Floats, losses: Floats, eta: float) -> float:
    """Return max eta |l(a, x)| sqrt(q(a|x)), which Lemma B.1 requires to be at most c = 1/8.

    >>> stability_step(np.array([0.25, 0.75]), np.array([1.0, 0.0]), 0.25)
    0.125
    """
    return float((eta * np.abs(losses) * np.sqrt(q)).max())


def stability_value(q: Floats, losses: Floats, eta: float) -> float:
    """Return max over p in the simplex of <l, q - p> - D(p, q)/eta, exactly; q (K,) has no zeros.

    The maximiser is the FTRL point of the losses 1/sqrt(q) + eta l at rate 1.

    >>> round(stability_value(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 1.0), 12)
    0.0
    """
    root = np.sqrt(q)
    p = ftrl_point(1.0 / root + eta * losses)
    return float((losses * (q - p)).sum() - ((np.sqrt(p) - root) ** 2 / root).sum() / eta)


def stability_bound_of_paper(q: Floats, losses: Floats, eta: float, *, c: float = 0.125) -> float:
    """Bound the stability as Lemma B.1 does, with the constant 2/(1 - 2c) of its proof (the paper prints 8).

    2 eta/(1 - 2c) [sum over a != a+ of q^(3/2) l^2 + min{q_+, 1 - q_+}^(3/2) l_+^2]

    >>> stability_bound_of_paper(np.array([0.75, 0.25]), np.array([0.0, 1.0]), 0.25)
    0.08333333333333333
    """
    top = int(q.argmax())
    weights = q**1.5
    weights[top] = min(q[top], np.delete(q, top).sum()) ** 1.5
    return float(2.0 * eta / (1.0 - 2.0 * c) * (weights * losses**2).sum())


def stability_factor(c: float = 0.125) -> float:
    """Return the constant of Lemma B.2: the maximum over omega of the smaller of the two factors above.

    >>> round(stability_factor(0.125), 3), round(stability_factor(1e-9), 3)
    (1.845, 1.466)
    """
    if not 0.0 < c < 0.5:
        raise ValueError(f"c must lie strictly between 0 and 1/2: from 1/2 on nothing is proved; got {c!r}")
    low, high = 0.0, 0.5  # the shifted factor increases in omega, the plain one decreases
    for _ in range(60):
        middle = 0.5 * (low + high)
        if 1.0 / ((1.0 - 2.0 * c) * (1.0 - middle)) < math.sqrt((1.0 - middle) / middle) / (1.0 - c):
            low = middle
        else:
            high = middle
    return 1.0 / ((1.0 - 2.0 * c) * (1.0 - high))


def stability_bound(q: Floats, losses: Floats, eta: float, *, c: float = 0.125) -> float:
    """Bound the stability by factor(c) eta sqrt(1 - max q) sum_a q l^2 (Lemma B.2, for one context).

    >>> q, l = np.array([0.75, 0.25]), np.array([0.0, 1.0])
    >>> stability_value(q, l, 0.25) <= stability_bound(q, l, 0.25)
    True
    """
    others = np.delete(q, int(q.argmax())).sum()
    return float(stability_factor(c) * eta * math.sqrt(others) * (q * losses**2).sum())


SHANNON_FACTOR = math.e - 2.0


def shannon_stability_value(q: Floats, losses: Floats, eta: float) -> float:
    """Return max over p in the simplex of <l, q - p> - KL(p, q)/eta, exactly: <l, q> + log(sum q exp(-eta l))/eta.

    >>> round(shannon_stability_value(np.array([0.5, 0.5]), np.array([1.0, 1.0]), 1.0), 12)
    0.0
    """
    least = float(losses.min())
    shifted = np.exp(-eta * (losses - least))
    return float((q * losses).sum() - least + math.log((q * shifted).sum()) / eta)


def shannon_stability_bound(q: Floats, losses: Floats, eta: float) -> float:
    """Bound the stability by (e - 2) eta sum_a q l^2 where eta l >= -1 (Proposition E.1; the paper uses 1 and 3).

    exp(-x) + x - 1 <= (e - 2) x^2 for x >= -1, with equality at -1.

    >>> shannon_stability_bound(np.array([0.5, 0.5]), np.array([1.0, 1.0]), 1.0) == math.e - 2.0
    True
    """
    return float(SHANNON_FACTOR * eta * (q * losses**2).sum())
