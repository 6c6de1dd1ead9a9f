"""Random instances with prescribed gaps: features whose mean losses are exactly what was asked for."""

from typing import NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem

LARGEST_MEAN = 0.9


class Instance(NamedTuple):
    """A problem and the fixed parameter that goes with it."""

    problem: Problem
    theta: Floats


def context_probabilities(rng: np.random.Generator, S: int, rarity: float | None) -> Floats:
    """Return g: uniform without a rarity, else random with smallest probability 1/rarity."""
    if rarity is None or S == 1:
        return np.full(S, 1.0 / S)
    if rarity < S:
        raise ValueError(f"rarity L = 1/min g(x) is at least the number of contexts; got {rarity} for {S} contexts")
    g = rng.dirichlet(np.full(S - 1, 2.0)) * (1.0 - 1.0 / rarity)
    # The others must not be rarer still: mix with the uniform distribution just enough.
    even = (1.0 - 1.0 / rarity) / (S - 1)
    lift = max(0.0, (1.0 / rarity - g.min()) / (even - g.min())) if even > g.min() else 0.0
    return np.concatenate([[1.0 / rarity], (1.0 - lift) * g + lift * even])


def with_means(rng: np.random.Generator, means: Floats, d: int, probabilities: Floats) -> Instance:
    """Return random features in d dimensions and a theta with <phi(a, x), theta> equal to the given means.

    The component of a feature along theta is set, the others are random; their directions fill all d dimensions.
    """
    S, K = means.shape
    theta = rng.normal(size=d)
    theta /= np.linalg.norm(theta)
    phi = rng.normal(size=(S, K, d)) / np.sqrt(d)
    phi += (means - phi @ theta)[:, :, None] * theta
    return Instance(Problem(features=phi, probabilities=probabilities), theta)


def random_means(rng: np.random.Generator, context_gaps: Floats, K: int) -> Floats:
    """Return mean losses in [-0.9, 0.9] whose second best arm is Delta(x) above the best, others further up."""
    S = len(context_gaps)
    best = -LARGEST_MEAN + rng.random(S) * np.maximum(0.0, 2.0 * LARGEST_MEAN - context_gaps) * 0.5
    room = LARGEST_MEAN - best - context_gaps
    above = context_gaps[:, None] + room[:, None] * rng.random((S, K - 1))
    above[np.arange(S), rng.integers(K - 1, size=S)] = context_gaps
    means = np.concatenate([best[:, None], best[:, None] + above], axis=1)
    return np.asarray(rng.permuted(means, axis=1))


def random_instance(
    *, contexts: int, arms: int, dimension: int, gap: float, rarity: float | None = None, seed: int = 0
) -> Instance:
    """Draw an instance whose smallest gap is exactly ``gap``, with random larger gaps elsewhere."""
    _check_gap(gap)
    rng = np.random.default_rng(np.random.SeedSequence([seed, contexts, arms, dimension]))
    g = context_probabilities(rng, contexts, rarity)
    gaps = gap * (1.0 + rng.random(contexts))
    gaps[rng.integers(contexts)] = gap
    return with_means(rng, random_means(rng, np.minimum(gaps, 1.5), arms), dimension, g)


def margin_instance(
    *,
    contexts: int,
    arms: int,
    dimension: int,
    gap: float,
    margin: float,
    rarity: float | None = None,
    seed: int = 0,
) -> Instance:
    """Draw an instance that meets Definition 2.5 for (beta, Delta_*) = (margin, gap), tight at its support.

    With F_i the probability of the i contexts of smallest gap, Delta_i = Delta_* (2 F_i)^(1/beta) makes
    P(Delta(X) <= Delta_i) = (1/2)(Delta_i/Delta_*)^beta. For beta = infinity all gaps are just above Delta_*.
    """
    _check_gap(gap)
    if not margin > 0.0:
        raise ValueError(f"margin must be positive (infinity for a gap in every context); got {margin!r}")
    rng = np.random.default_rng(np.random.SeedSequence([seed, contexts, arms, dimension]))
    g = context_probabilities(rng, contexts, rarity)
    order = rng.permutation(contexts)
    below = np.empty(contexts)
    below[order] = np.cumsum(g[order])
    exponent = 0.0 if np.isinf(margin) else 1.0 / margin
    gaps = np.minimum(gap * (2.0 * below) ** exponent, 1.5) * (1.0 + 1e-9)
    return with_means(rng, random_means(rng, gaps, arms), dimension, g)


def _check_gap(gap: float) -> None:
    if not 0.0 < gap <= 1.5:
        raise ValueError(f"gap must lie in (0, 1.5], mean losses being in [-0.9, 0.9]; got {gap!r}")
