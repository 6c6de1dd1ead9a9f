"""Random instances with prescribed gaps: features whose mean losses are exactly what was asked for."""

from typing import NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

LARGEST_MEAN = 0.9
LARGEST_GAP = 1.5
LARGEST_SIZE = 100_000
LARGEST_TABLE = 10**8
LARGEST_RARITY = 1e12
SMALLEST_GAP = 1e-6  # a difference of mean losses is exact to about 1e-15
LIFT = 1e-12  # what keeps a gap that should be tight on the right side of rounding


class Instance(NamedTuple):
    """A problem and the fixed parameter that goes with it."""

    problem: Problem
    theta: Floats


def context_probabilities(rng: np.random.Generator, S: int, rarity: float | None) -> Floats:
    """Return g: uniform without a rarity, else random with smallest probability 1/rarity."""
    if rarity is not None and not S <= rarity <= LARGEST_RARITY:
        raise ValueError(
            f"rarity L = 1/min g(x) is at least the number of contexts and at most {LARGEST_RARITY:g}; "
            f"got {rarity!r} for {S} contexts"
        )
    if rarity is None or S == 1:
        return np.full(S, 1.0 / S)
    g = rng.dirichlet(np.full(S - 1, 2.0)) * (1.0 - 1.0 / rarity)
    # The others must not be rarer still: mix with the uniform distribution just enough.
    even = (1.0 - 1.0 / rarity) / (S - 1)
    lift = max(0.0, (1.0 / rarity - g.min()) / (even - g.min())) if even > g.min() else 0.0
    return np.concatenate([[1.0 / rarity], (1.0 - lift) * g + lift * even])


def _with_means(rng: np.random.Generator, means: Floats, d: int, probabilities: Floats) -> Instance:
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
    rng = _drawn(contexts, arms, dimension, gap, seed)
    g = context_probabilities(rng, contexts, rarity)
    gaps = gap * (1.0 + rng.random(contexts))
    gaps[rng.integers(contexts)] = gap
    return _with_means(rng, random_means(rng, np.minimum(gaps, LARGEST_GAP), arms), dimension, g)


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

    >>> made = margin_instance(contexts=4, arms=2, dimension=2, gap=0.4, margin=1.0)
    >>> means = made.problem.features @ made.theta
    >>> np.sort(abs(means[:, 0] - means[:, 1])).round(6).tolist()
    [0.2, 0.4, 0.6, 0.8]
    """
    rng = _drawn(contexts, arms, dimension, gap, seed)
    if not margin > 0.0:
        raise ValueError(f"margin must be positive (infinity for a gap in every context); got {margin!r}")
    g = context_probabilities(rng, contexts, rarity)
    order = rng.permutation(contexts)
    below = np.empty(contexts)
    below[order] = np.cumsum(g[order])
    exponent = 0.0 if np.isinf(margin) else 1.0 / margin
    gaps = np.minimum(gap * (2.0 * below) ** exponent, LARGEST_GAP)
    if gaps.min() < SMALLEST_GAP:
        raise ValueError(
            f"margin {margin!r} asks for a gap of {gaps.min():.3g} in the context {int(gaps.argmin())}, below the "
            f"rounding of mean losses; take a larger margin or gap, or fewer or less rare contexts"
        )
    # Cut where means end, but never down to Delta_* itself: half of the probability at most may have it.
    gaps = np.minimum(gaps + LIFT, max(LARGEST_GAP, gap + LIFT))
    return _with_means(rng, random_means(rng, gaps, arms), dimension, g)


def _drawn(contexts: int, arms: int, dimension: int, gap: float, seed: int) -> np.random.Generator:
    """Check sizes, gap and seed, and return the generator of the instance."""
    sizes = []
    for value, least, name in ((contexts, 1, "contexts"), (arms, 2, "arms"), (dimension, 1, "dimension")):
        sizes.append(whole(value, least, name))
        if sizes[-1] > LARGEST_SIZE:
            raise ValueError(f"{name} = {value} is too large to simulate; at most {LARGEST_SIZE}")
    if np.prod(sizes, dtype=object) > LARGEST_TABLE:
        raise ValueError(
            f"{contexts} contexts x {arms} arms x {dimension} dimensions are too large to simulate; "
            f"at most {LARGEST_TABLE:.0e} numbers"
        )
    if not SMALLEST_GAP <= gap <= LARGEST_GAP:
        raise ValueError(
            f"gap must lie in (0, {LARGEST_GAP:g}], mean losses being in [-0.9, 0.9], and not below {SMALLEST_GAP:g}; "
            f"got {gap!r}"
        )
    return np.random.default_rng(np.random.SeedSequence([whole(seed, 0, "seed"), *sizes]))
