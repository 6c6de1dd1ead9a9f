"""Random instances with prescribed gaps: features and a parameter with exactly the required mean losses."""

from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

LARGEST_MEAN = 0.9
LARGEST_GAP = 1.5
LARGEST_SIZE = 100_000
LARGEST_TABLE = 10**8
LARGEST_RARITY = 1e12
SMALLEST_GAP = 1e-6  # a difference of mean losses is exact to about 1e-15
LIFT = 1e-12  # added to gaps so that rounding does not push them below a tight limit


class Instance(NamedTuple):
    """A problem and its fixed parameter theta_0."""

    problem: Problem
    theta: Floats


def context_probabilities(rng: np.random.Generator, S: int, rarity: float | None) -> Floats:
    """Return g (S,): uniform without a rarity, else random with smallest probability 1/rarity."""
    if rarity is not None and not S <= rarity <= LARGEST_RARITY:
        raise ValueError(
            f"rarity L = 1/min g(x) must be at least the number of contexts and at most {LARGEST_RARITY:g}; "
            f"got {rarity!r} for {S} contexts"
        )
    if rarity is None or S == 1:
        return np.full(S, 1.0 / S)
    g = rng.dirichlet(np.full(S - 1, 2.0)) * (1.0 - 1.0 / rarity)
    # Mix with the uniform distribution just enough that no other context is rarer.
    even = (1.0 - 1.0 / rarity) / (S - 1)
    share = max(0.0, (1.0 / rarity - g.min()) / (even - g.min())) if even > g.min() else 0.0
    return np.concatenate([[1.0 / rarity], (1.0 - share) * g + share * even])


def _with_means(rng: np.random.Generator, means: Floats, d: int, probabilities: Floats) -> Instance:
    """Return random features in d dimensions and a theta with <phi(a, x), theta> equal to the given means (S, K).

    The component of each feature along theta is set, the others are random; the directions span all d dimensions.
    """
    S, K = means.shape
    theta = rng.normal(size=d)
    theta /= np.linalg.norm(theta)
    phi = rng.normal(size=(S, K, d)) / np.sqrt(d)
    phi += (means - phi @ theta)[:, :, None] * theta
    return Instance(Problem(features=phi, probabilities=probabilities), theta)


def random_means(rng: np.random.Generator, context_gaps: Floats, K: int) -> Floats:
    """Return mean losses (S, K) in [-0.9, 0.9] whose second-best arm is Delta(x) above the best, others higher."""
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
    """Draw an instance whose smallest gap is exactly ``gap``; other contexts have random larger gaps."""
    rng = _checked_generator(contexts, arms, dimension, gap, seed)
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
    """Draw an instance that satisfies Definition 2.5 for (beta, Delta_*) = (margin, gap), tight at its gaps.

    With F_i the probability of the i contexts of smallest gap, Delta_i = Delta_* (2 F_i)^(1/beta) gives
    P(Delta(X) <= Delta_i) = (1/2)(Delta_i/Delta_*)^beta. For beta = infinity all gaps are just above Delta_*.

    >>> instance = margin_instance(contexts=4, arms=2, dimension=2, gap=0.4, margin=1.0)
    >>> means = instance.problem.features @ instance.theta
    >>> np.sort(abs(means[:, 0] - means[:, 1])).round(6).tolist()
    [0.2, 0.4, 0.6, 0.8]
    """
    rng = _checked_generator(contexts, arms, dimension, gap, seed)
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
            f"margin {margin!r} requires a gap of {gaps.min():.3g} in context {int(gaps.argmin())}, which is too small "
            "for the rounding of mean losses; use a larger margin or gap, or fewer or less rare contexts"
        )
    # Limit gaps to the range of means, but keep them above Delta_*: contexts of gap Delta_* have probability <= 1/2.
    gaps = np.minimum(gaps + LIFT, max(LARGEST_GAP, gap + LIFT))
    return _with_means(rng, random_means(rng, gaps, arms), dimension, g)


def _checked_generator(contexts: int, arms: int, dimension: int, gap: float, seed: int) -> np.random.Generator:
    """Check sizes, gap and seed; return the random generator of the instance."""
    sizes = []
    for value, least, name in ((contexts, 1, "contexts"), (arms, 2, "arms"), (dimension, 1, "dimension")):
        sizes.append(whole(value, least, name))
        if sizes[-1] > LARGEST_SIZE:
            raise ValueError(f"{name} = {value} is too large to simulate; at most {LARGEST_SIZE}")
    if np.prod(sizes, dtype=object) > LARGEST_TABLE:
        raise ValueError(
            f"{contexts} contexts x {arms} arms x {dimension} dimensions are too many to simulate; "
            f"the product must be at most {LARGEST_TABLE:.0e}"
        )
    if not SMALLEST_GAP <= gap <= LARGEST_GAP:
        raise ValueError(
            f"gap must lie in [{SMALLEST_GAP:g}, {LARGEST_GAP:g}], because mean losses lie in [-0.9, 0.9]; got {gap!r}"
        )
    return np.random.default_rng(np.random.SeedSequence([whole(seed, 0, "seed"), *sizes]))
