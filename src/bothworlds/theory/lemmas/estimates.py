"""Lemmas A.3 and A.4: bounds on estimated losses l_hat(a, x) = <phi(a, x), Sigma^-1 phi(A, X)> loss.

Arrays: z (S, K, d) features in any coordinates, g (S,) context probabilities, q and pi (S, K) policies.
"""

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.designs import covariance
from bothworlds.theory.designs.leverage import whitener


def largest_estimates(z: Floats, g: Floats, pi: Floats) -> Floats:
    """Return max |l_hat(a, x)| over all plays of positive probability and all |loss| <= 1, by enumeration, (S, K).

    >>> largest_estimates(np.eye(2)[None], np.ones(1), np.array([[0.25, 0.75]])).round(3).tolist()
    [[4.0, 1.333]]
    """
    white = z @ whitener(covariance(z, g, pi)).T
    flat = white.reshape(-1, z.shape[2])
    played = (g[:, None] * pi).reshape(-1) > 0.0
    return np.asarray(np.abs(flat @ flat[played].T).max(axis=1).reshape(pi.shape))


def estimate_bound(q: Floats, g: Floats, *, gamma: float, coverage: float) -> Floats:
    """Bound |l_hat(a, x)| for pi = (1 - gamma) q + gamma e*, e* of the given coverage lambda (Lemma A.3), (S, K).

    min{1/(lambda gamma), (1/2) sqrt(1/(lambda gamma (1 - gamma) q(a|x) g(x)))}

    The 1/2 is ours. With M = Sigma_t = A + B, A = (1 - gamma) Sigma(q), B = gamma Sigma(e*), the estimate is at most
    |A^(1/2) M^-1 B^(1/2)| sqrt(phi^T A^-1 phi phi'^T B^-1 phi'), and that norm is the largest sqrt(p (1 - p)) over the
    eigenvalues p of M^(-1/2) A M^(-1/2). The paper bounds each leverage on its own; both bounds
    cannot be attained at once.

    >>> estimate_bound(np.array([[1.0, 0.0]]), np.ones(1), gamma=0.5, coverage=0.5).tolist()
    [[1.4142135623730951, 4.0]]
    """
    first = 1.0 / (coverage * gamma)
    with np.errstate(divide="ignore"):
        second = 0.5 * np.sqrt(first / ((1.0 - gamma) * q * g[:, None]))
    return np.asarray(np.minimum(first, second))


def second_moments(z: Floats, g: Floats, pi: Floats, loss_squares: Floats) -> Floats:
    """Return E[l_hat(a, x)^2 | past] for given E[loss^2 | a, x], shape (S, K), by enumeration.

    For |loss| <= 1 it is at most the leverage phi^T Sigma^-1 phi, and its average sum_x g sum_a pi at most d
    (Lemma A.4), with equality for losses of +-1.

    >>> second_moments(np.eye(2)[None], np.ones(1), np.array([[0.25, 0.75]]), np.ones((1, 2))).round(3).tolist()
    [[4.0, 1.333]]
    """
    white = z @ whitener(covariance(z, g, pi)).T
    moment = covariance(white, g, pi * loss_squares)
    return np.asarray(np.einsum("xai,ij,xaj->xa", white, moment, white))
