"""Rare clicks: low click rates, categorical attributes, a few frequent contexts and many rare ones."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.environments import dynamics
from bothworlds.environments.common import make
from bothworlds.environments.environment import Environment
from bothworlds.environments.instances import LARGEST_RARITY, LARGEST_SIZE
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number, whole

NAME = "rare clicks"
ATTRIBUTES = (2, 3, 4)
LARGEST_EXPONENT = 60.0  # of Zipf's distribution; enough for the largest rarity with two levels


def clicks(
    *,
    attributes: Sequence[int] = ATTRIBUTES,
    arms: int = 4,
    rates: Sequence[float] = (0.003, 0.05),
    rarity: float = 520.0,
    changes: Sequence[int] = (),
    seed: int = 0,
) -> Environment:
    """Make an environment of rare clicks: a visitor is a combination of attributes, the reward is 1 for a click.

    Every arm has its own click rate, additive in the levels of the attributes, so the mean of the loss 1 - 2 click is
    exactly linear in one-hot features. There is one feature per arm and level of the first attribute, and one per arm
    and level of the other attributes except their first level, which is redundant: d = K (1 + sum_i (n_i - 1)).

    Parameters
    ----------
    attributes
        Number of levels of each attribute; contexts are all combinations, S = n_1 n_2 ...
    arms
        Number of arms.
    rates
        Lowest and highest click rate over all contexts and arms; both occur. Most rates are low, because the effects of
        levels are drawn from an exponential distribution.
    rarity
        L, one over the probability of the rarest context. Attributes are independent, and the k-th level of each has a
        probability proportional to k^-s, with s determined by L.
    changes
        Rounds after which the best arms change: every arm passes its rates on to the next arm. Without changes the
        environment is stochastic.
    seed
        Seed of the rates.

    >>> world = clicks(rarity=1000)
    >>> world
    Environment('rare clicks', Problem(24 contexts, 4 arms, 28 features, rarity 1000), noise='bernoulli')
    >>> g = world.problem.probabilities
    >>> float(g.max().round(3)), round(1 / g.min())
    (0.379, 1000)
    >>> table = (1 - world.tables[0]) / 2
    >>> float(table.min().round(6)), float(table.max().round(6))
    (0.003, 0.05)
    """
    levels = _level_counts(attributes)
    K, rounds = whole(arms, 2, "arms"), _change_rounds(changes)
    visitors = list(product(*(range(n) for n in levels)))
    rows = np.array([_one_hot(visitor, levels) for visitor in visitors])
    rng = np.random.default_rng(np.random.SeedSequence([whole(seed, 0, "seed"), K, *levels]))
    effects = _effects(rng, K, levels)
    effects = _into_range(effects, rows @ effects, levels[0], *_rate_range(rates))
    problem = Problem(
        features=np.einsum("ab,xi->xabi", np.eye(K), rows).reshape(len(rows), K, -1),
        probabilities=_frequencies(visitors, levels, rarity),
        contexts=["-".join(str(level + 1) for level in visitor) for visitor in visitors],
        reward_range=(0.0, 1.0),
    )
    thetas = [_parameter(np.roll(effects, shift, axis=1), levels[0]) for shift in range(len(rounds) + 1)]
    name, kind = (f"{NAME}, changing favourite", dynamics.SWITCH) if rounds else (NAME, dynamics.FIXED)
    return make(name, problem, thetas, kind, constants=rounds, stochastic=not rounds)


def _level_counts(attributes: Sequence[int]) -> list[int]:
    """Return the number of levels of each attribute; refuse an empty list and too many combinations."""
    if not isinstance(attributes, Iterable):
        raise ValueError(f"attributes must be a list of numbers of levels, for example (2, 3, 4); got {attributes!r}")
    levels = [whole(n, 2, "a number of levels") for n in attributes]
    if not levels or math.prod(levels) > LARGEST_SIZE:
        raise ValueError(
            f"attributes must have at least one entry and at most {LARGEST_SIZE} combinations; got {attributes!r}"
        )
    return levels


def _one_hot(visitor: Sequence[int], levels: Sequence[int]) -> list[float]:
    """Return the one-hot features of a visitor; first levels have a column in the first attribute only.

    >>> _one_hot((1, 0, 2), (2, 3, 4))
    [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    """
    columns = [np.eye(n)[level] for n, level in zip(levels, visitor, strict=True)]
    return [float(entry) for entry in np.concatenate([columns[0], *(column[1:] for column in columns[1:])])]


def _effects(rng: np.random.Generator, K: int, levels: Sequence[int]) -> Floats:
    """Draw the effect of every level for every arm; return an array (columns of `_one_hot`, arms)."""
    first, *others = (rng.exponential(size=(n, K)) for n in levels)
    base = first + sum(other[0] for other in others)
    return np.concatenate([base, *(other[1:] - other[0] for other in others)])


def _into_range(effects: Floats, table: Floats, first: int, lowest: float, highest: float) -> Floats:
    """Scale and shift effects so that their sums ``table`` (visitors, arms) fill [lowest, highest]."""
    scale = (highest - lowest) / (table.max() - table.min())
    scaled: Floats = scale * effects
    scaled[:first] += lowest - scale * table.min()
    return scaled


def _parameter(effects: Floats, first: int) -> Floats:
    """Return theta of the losses 1 - 2 rate, one arm after the other."""
    theta = -2.0 * effects
    theta[:first] += 1.0
    return np.asarray(theta.T.reshape(-1))


def _frequencies(visitors: Sequence[Sequence[int]], levels: Sequence[int], rarity: float) -> Floats:
    """Return g: a product of Zipf distributions with smallest probability 1/rarity; bisection finds the exponent."""
    if not is_number(rarity) or not len(visitors) <= rarity <= LARGEST_RARITY:
        raise ValueError(
            f"rarity L = 1/min g(x) must be at least the number of contexts and at most {LARGEST_RARITY:g}; "
            f"got {rarity!r} for {len(visitors)} contexts"
        )
    low, high = 0.0, LARGEST_EXPONENT
    for _ in range(100):
        middle = 0.5 * (low + high)
        too_rare = np.prod([_zipf(n, middle)[-1] for n in levels]) < 1.0 / rarity
        low, high = (low, middle) if too_rare else (middle, high)
    zipfs = [_zipf(n, low) for n in levels]
    g = np.array([np.prod([zipf[level] for zipf, level in zip(zipfs, visitor, strict=True)]) for visitor in visitors])
    return np.asarray(g / g.sum())


def _zipf(n: int, exponent: float) -> Floats:
    """Return probabilities of n levels proportional to k^-exponent."""
    weights = np.arange(1.0, n + 1.0) ** -exponent
    return np.asarray(weights / weights.sum())


def _rate_range(rates: Any) -> tuple[float, float]:
    """Return the lowest and the highest rate; refuse anything else than 0 <= lowest < highest <= 1."""
    is_pair = isinstance(rates, Collection) and len(rates) == 2 and all(is_number(rate) for rate in rates)
    if not is_pair or not 0.0 <= rates[0] < rates[1] <= 1.0:
        raise ValueError(
            f"rates must be the lowest and the highest click rate, 0 <= lowest < highest <= 1; got {rates!r}"
        )
    return float(rates[0]), float(rates[1])


def _change_rounds(changes: Sequence[int]) -> list[int]:
    """Return the rounds of changes; refuse rounds that are not increasing."""
    if not isinstance(changes, Iterable):
        raise ValueError(f"changes must be a list of rounds, for example [5000, 12000]; got {changes!r}")
    rounds = [whole(t, 1, "a round of changes") for t in changes]
    if sorted(set(rounds)) != rounds:
        raise ValueError(f"changes must be rounds in increasing order; got {list(changes)!r}")
    return rounds
