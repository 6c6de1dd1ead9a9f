"""Bias of loss estimates under a wrong context distribution: exact value and bounds.

The estimate theta_hat = m + Sigma_g^-1 phi(A, X) (loss - <phi(A, X), m>) divides by the second moment of the *stated*
distribution g, Sigma_g = sum_x g(x) sum_a pi(a|x) phi phi^T, while contexts come from g'. With predictions m that are
made before the round (0 without any) and losses linear in theta,

    E[theta_hat] - theta = (Sigma_g^-1 Sigma_g' - I)(theta - m),

because Sigma_g' (theta - m) is the mean of phi (loss - prediction). There is no bias if the distribution or the
predictions are right. Sigma_g' - Sigma_g = sum_x g (g'/g - 1) sum_a pi phi phi^T lies between -r Sigma_g and
r Sigma_g with r = max_x |g'(x)/g(x) - 1|, so in the norm |v|_S^2 = v^T S v of S = Sigma_g

    |E[theta_hat] - theta|_S <= r |theta - m|_S,

r times the root mean square residual under the stated distribution. The bias of the estimated loss of an arm in a
context is at most sqrt(phi^T S^-1 phi), the root of its leverage, times that (Cauchy-Schwarz).

Arrays: z (S, K, d) features in any coordinates, g (S,) context distributions, pi (S, K) a policy, vectors (d,).
"""

from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.confidence.checks import checked_alpha
from bothworlds.theory.confidence.rates import rate_interval
from bothworlds.theory.designs import covariance, leverages


def distribution_error(stated: Any, true: Any) -> float:
    """Return r = max_x |g'(x)/g(x) - 1|.

    >>> distribution_error([0.5, 0.5], [0.25, 0.75])
    0.5
    """
    return float(np.abs(np.asarray(true, dtype=np.float64) / np.asarray(stated, dtype=np.float64) - 1.0).max())


def expected_estimate(
    z: Floats, pi: Floats, losses: Floats, *, stated: Floats, true: Floats, predicted: Floats | None = None
) -> Floats:
    """Return E[theta_hat] by enumeration, for mean losses (S, K), linear or not, with the stated distribution in Sigma.

    >>> z, pi, losses = np.ones((2, 2, 1)), np.full((2, 2), 0.5), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> half = np.array([0.5, 0.5])
    >>> expected_estimate(z, pi, losses, stated=half, true=np.array([0.25, 0.75])).tolist()
    [0.75]
    """
    m = np.zeros(z.shape[2]) if predicted is None else predicted
    moment = np.einsum("x,xa,xai,xa->i", true, pi, z, losses - z @ m)
    return np.asarray(m + np.linalg.solve(covariance(z, stated, pi), moment))


def distribution_bias(z: Floats, pi: Floats, residual: Floats, *, stated: Floats, true: Floats) -> Floats:
    """Return (Sigma_g^-1 Sigma_g' - I)(theta - m), the bias of theta_hat for linear losses.

    >>> z, half = np.eye(2)[:, None], np.array([0.5, 0.5])
    >>> distribution_bias(z, np.ones((2, 1)), np.ones(2), stated=half, true=np.array([0.25, 0.75])).tolist()
    [-0.5, 0.5]
    """
    moment = covariance(z, true, pi) @ residual
    return np.asarray(np.linalg.solve(covariance(z, stated, pi), moment) - residual)


def distribution_bias_bound(z: Floats, pi: Floats, residual: Floats, *, stated: Floats, error: float) -> float:
    """Return r |theta - m|_S, a bound on the bias in the norm of S = Sigma_g, for distribution error r = ``error``."""
    return error * float(np.sqrt(residual @ covariance(z, stated, pi) @ residual))


def loss_bias_bound(z: Floats, pi: Floats, residual: Floats, *, stated: Floats, error: float) -> Floats:
    """Bound the bias of every estimated loss, (S, K): sqrt(phi^T S^-1 phi) r |theta - m|_S."""
    bound = distribution_bias_bound(z, pi, residual, stated=stated, error=error)
    return np.asarray(np.sqrt(leverages(z, covariance(z, stated, pi))) * bound)


def distribution_error_bound(counts: Any, stated: Any, *, alpha: float = 0.05) -> float:
    """Bound r = max_x |g'(x)/g(x) - 1| from counts of contexts, at any time, with probability 1 - alpha.

    Each g'(x) has its own interval with alpha divided by their number; ``stated`` may come from the same counts.

    >>> distribution_error_bound([5000, 5000], [0.5, 0.5]) < 0.05 < distribution_error_bound([50, 50], [0.5, 0.5])
    True
    """
    n, g = np.asarray(counts, dtype=np.float64), np.asarray(stated, dtype=np.float64)
    low, high = rate_interval(n.sum(), n, alpha=checked_alpha(alpha) / n.size)
    return float(np.maximum(high / g - 1.0, 1.0 - low / g).max())
