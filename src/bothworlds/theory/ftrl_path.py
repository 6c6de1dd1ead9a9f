"""The FTRL inequality on one path (Proposition A.1), for estimated losses: stability plus penalty, term by term.

For every context x and every arm, with unit vector p*, psi(p*) = 0, 1/eta_0 = 0 and 1/eta_t not decreasing,

    sum_{t<=T} <l_hat_t(x), q_t(x) - p*>  <=  sum_{t<=T} stability_t(x) + sum_{t<=T+1} penalty_t(x)

    stability_t = <l_hat_t, q_t - q_{t+1}> - D(q_{t+1}, q_t)/eta_t,    penalty_t = -(1/eta_t - 1/eta_{t-1}) psi(q_t)

where q_{T+1} is the plan after the last update, with its own rate. (The paper ends the penalty at T, which is right
if q_{T+1} is computed with eta_T.) It holds on every path, whatever the losses are. For the true regret it holds in
expectation only, with 2 sum gamma_t added for exploration: losses lie in [-1, 1], so <loss, e* - q> can be 2.

FTRL on weighted losses W_t l_hat_t, W_t not decreasing, bounds the weighted regret of every prefix. Summation by parts
turns this into a bound without weights: stability_t, and penalty_t over W_t.
"""

from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.ftrl import ftrl_point


class PathTerms(NamedTuple):
    """Stability (T, S), penalty (T + 1, S), and the regret of the estimated losses against every arm (S, K)."""

    stability: Floats
    penalty: Floats
    regret: Floats

    @property
    def bound(self) -> Floats:
        """The right-hand side of the inequality, per context (S,)."""
        return np.asarray(self.stability.sum(axis=0) + self.penalty.sum(axis=0))

    @property
    def slack(self) -> Floats:
        """Bound less regret, (S, K): not negative, up to rounding, for every path of FTRL."""
        return np.asarray(self.bound[:, None] - self.regret)


def regulariser(q: Floats, alpha: float) -> Floats:
    """Return psi(q) over the last axis: (1 - sum q^alpha)/alpha, or sum q log q for alpha = 1 (Shannon).

    >>> regulariser(np.array([[1.0, 0.0], [0.5, 0.5]]), 1.0).round(3).tolist()
    [0.0, -0.693]
    """
    if alpha == 1.0:
        return np.asarray((q * np.log(np.where(q > 0.0, q, 1.0))).sum(axis=-1))
    return np.asarray((1.0 - (q**alpha).sum(axis=-1)) / alpha)


def divergence(p: Floats, q: Floats, alpha: float) -> Floats:
    """Return the Bregman divergence D(p, q) of psi over the last axis; arms with q = 0 are left out.

    >>> divergence(np.array([0.25, 0.75]), np.array([0.25, 0.75]), 0.5).item()
    0.0
    """
    offered = q > 0.0
    safe = np.where(offered, q, 1.0)
    if alpha == 1.0:
        terms = p * np.log(np.where(p > 0.0, p, 1.0) / safe) + safe - p
    else:
        terms = (safe**alpha - p**alpha) / alpha + (p - safe) * safe ** (alpha - 1.0)
    return np.asarray(np.where(offered, terms, 0.0).sum(axis=-1))


def path_terms(*, points: Floats, rates: Floats, estimates: Floats, alpha: float = 0.5) -> PathTerms:
    """Evaluate both sides of the FTRL inequality on a recorded path.

    Parameters
    ----------
    points
        q_1, ..., q_{T+1}, shape (T + 1, S, K): the plans before every round and after the last one.
    rates
        eta_1, ..., eta_{T+1}, shape (T + 1,), not increasing.
    estimates
        l_hat_1, ..., l_hat_T at all contexts and arms, shape (T, S, K).
    alpha
        Tsallis index, or 1 for Shannon entropy.

    >>> q = np.full((2, 1, 2), 0.5)
    >>> terms = path_terms(points=q, rates=np.array([1.0, 1.0]), estimates=np.zeros((1, 1, 2)))
    >>> terms.slack.round(3).tolist()
    [[0.828, 0.828]]
    """
    T = len(estimates)
    if points.shape != (T + 1, *estimates.shape[1:]) or rates.shape != (T + 1,):
        raise ValueError(
            f"a path of {T} rounds needs {T + 1} points and rates, before every round and after the last; "
            f"got shapes {points.shape}, {rates.shape} and {estimates.shape}"
        )
    if not (rates > 0.0).all() or (np.diff(rates) > 1e-12 * rates[:-1]).any():
        raise ValueError(
            "learning rates must be positive and must not increase; otherwise the inequality is not proved"
        )
    inverse = np.concatenate([[0.0], 1.0 / rates])
    shift = (estimates * (points[:-1] - points[1:])).sum(axis=-1)
    stability = shift - inverse[1:-1, None] * divergence(points[1:], points[:-1], alpha)
    penalty = -np.diff(inverse)[:, None] * regulariser(points, alpha)
    mean = (estimates * points[:-1]).sum(axis=(0, 2))
    return PathTerms(stability, penalty, mean[:, None] - estimates.sum(axis=0))


def prior_excess(prior: Floats, first: Floats) -> Floats:
    """Return <Lambda, p* - q_1>, the term that a prior sum of losses Lambda adds to the bound; shape (S, K).

    FTRL on Lambda + the estimates treats Lambda as a round 0 whose regret is not counted. The inequality holds with
    this term on its right-hand side, for every context and arm, whatever Lambda is. The term is at most
    Lambda(x, a) - min_b Lambda(x, b), the prior excess loss of the comparator, and may be negative.

    Parameters
    ----------
    prior
        Lambda(x, a), shape (S, K).
    first
        q_1, shape (S, K), the FTRL point of Lambda.

    >>> prior_excess(np.array([[0.0, 2.0]]), np.array([[0.75, 0.25]])).tolist()
    [[-0.5, 1.5]]
    """
    return np.asarray(prior - (np.where(first > 0.0, prior, 0.0) * first).sum(axis=-1, keepdims=True))


def optimistic_terms(*, points: Floats, rates: Floats, estimates: Floats, predicted: Floats) -> PathTerms:
    """Evaluate one round of optimistic FTRL, alpha = 1/2: stability of the prediction error, penalty of both plans.

    Parameters
    ----------
    points, rates
        q_t and q_{t+1}, shape (2, S, K); eta_t and eta_{t+1}.
    estimates, predicted
        l_hat_t and its prediction, at all contexts and arms, shape (S, K).

    >>> q = np.full((2, 1, 2), 0.5)
    >>> same = np.array([[0.3, 0.1]])
    >>> terms = optimistic_terms(points=q, rates=np.ones(2), estimates=same, predicted=same)
    >>> terms.stability.tolist(), terms.penalty.round(3).tolist()
    ([[0.0]], [[0.828], [0.0]])
    """
    q, beta, residual = points[0], 1.0 / rates[0], estimates - predicted
    offered = q > 0.0
    losses = 1.0 / np.sqrt(np.where(offered, q, 1.0)) + residual / beta
    p = np.zeros_like(q)
    for point, row, arms in zip(p, losses, offered, strict=True):
        point[arms] = ftrl_point(row[arms])
    stability = (residual * (q - p)).sum(axis=-1) - beta * divergence(p, q, 0.5)
    growth = np.diff(1.0 / rates, prepend=0.0)
    regret = (estimates * q).sum(axis=-1)[:, None] - estimates
    return PathTerms(stability[None], -growth[:, None] * regulariser(points, 0.5), regret)
