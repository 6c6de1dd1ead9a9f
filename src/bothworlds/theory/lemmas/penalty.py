"""Penalty terms: Lemma B.3 for Tsallis entropy, Proposition E.4 for Shannon entropy, and omega."""

import numpy as np

from bothworlds.arrays import Floats


def omega(q: Floats) -> float:
    """Return max_x (1 - max_a q(a|x)), as the sum of all but the largest: 1 - max would lose digits.

    >>> omega(np.array([[0.5, 0.5], [1.0, 1e-30]]))
    0.5
    >>> omega(np.array([[1.0, 1e-30]]))
    1e-30
    """
    return float(np.sort(q, axis=-1)[..., :-1].sum(axis=-1).max())


def tsallis_entropy(q: Floats) -> Floats:
    """Return -psi(q) = 2 (sum_a sqrt q_a - 1) over the last axis: the paper's -H.

    >>> tsallis_entropy(np.full(4, 0.25)).item()
    2.0
    """
    return np.asarray(2.0 * (np.sqrt(q).sum(axis=-1) - 1.0))


def penalty_bound(omega_value: float, n_arms: int) -> float:
    """Bound -psi(q) by 2 sqrt((K - 1) omega) (Lemma B.3; the paper has K instead of K - 1).

    >>> penalty_bound(0.75, 4)
    3.0
    """
    return float(2.0 * np.sqrt((n_arms - 1) * omega_value))


def entropy_sum_bound(misses: Floats, n_arms: int, horizon: Floats) -> Floats:
    """Bound sum_t H(q_t) by Q log(e (K-1) T/Q), Q = sum_t (1 - q_t(rho*)) <= T (Proposition E.4, K - 1 instead of K).

    H <= h(delta) + delta log(K - 1) with the binary entropy h(delta) <= delta log(e/delta); then Jensen's inequality.

    >>> entropy_sum_bound(np.array([0.0, 10.0]), 2, np.array([100.0, 100.0])).round(2).tolist()
    [0.0, 33.03]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = misses * np.log(np.e * (n_arms - 1) * horizon / misses)
    return np.asarray(np.where(misses > 0.0, value, 0.0))
