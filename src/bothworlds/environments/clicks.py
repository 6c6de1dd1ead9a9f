"""Rare clicks: small rates, categorical attributes, a few contexts that come often and many that hardly ever come."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.environment import Environment
from bothworlds.environments.instances import LARGEST_RARITY, LARGEST_SIZE
from bothworlds.environments.making import make
from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number, whole

NAME = "rare clicks"
ATTRIBUTES = (2, 3, 4)
STEEPEST = 60.0  # an exponent of Zipf's law that no rarity below the largest needs, two levels being the fewest


def clicks(
    *,
    attributes: Sequence[int] = ATTRIBUTES,
    arms: int = 4,
    rates: Sequence[float] = (0.003, 0.05),
    rarity: float = 520.0,
    changes: Sequence[int] = (),
    seed: int = 0,
) -> Environment:
    """Make a world of rare clicks: a visitor is a combination of attributes, a click is reward 1, none is 0.

    Every arm has its own click rate, additive in the levels of the attributes, so the loss 1 - 2 click has a mean that
    is exactly linear in one-hot features: (arm x level of the first attribute), and (arm x level) but for the first
    level of every other attribute, which the rest tell. That makes d = K (1 + sum_i (n_i - 1)).

    Parameters
    ----------
    attributes
        How many levels each attribute has; contexts are all combinations, S = n_1 n_2 ...
    arms
        How many arms.
    rates
        The lowest and the highest click rate of all contexts and arms; both occur. Most rates are low: the effects of
        levels are drawn from an exponential distribution.
    rarity
        L, one over the probability of the rarest context. Attributes are independent, and the k-th level of each has a
        probability in proportion to k^-s; s is what makes L right.
    changes
        Rounds after which the favourites change: every arm passes its rates on to the next one. Without any, the world
        is stochastic.
    seed
        Of the rates.

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
    levels = _levels(attributes)
    K, rounds = whole(arms, 2, "arms"), _rounds(changes)
    visitors = list(product(*(range(n) for n in levels)))
    rows = np.array([_row(visitor, levels) for visitor in visitors])
    rng = np.random.default_rng(np.random.SeedSequence([whole(seed, 0, "seed"), K, *levels]))
    effects = _effects(rng, K, levels)
    effects = _into_range(effects, rows @ effects, levels[0], *_range(rates))
    problem = Problem(
        features=np.einsum("ab,xi->xabi", np.eye(K), rows).reshape(len(rows), K, -1),
        probabilities=_frequencies(visitors, levels, rarity),
        contexts=["-".join(str(level + 1) for level in visitor) for visitor in visitors],
        reward_range=(0.0, 1.0),
    )
    thetas = [_parameter(np.roll(effects, shift, axis=1), levels[0]) for shift in range(len(rounds) + 1)]
    name, kind = (f"{NAME}, changing favourite", nature.SWITCH) if rounds else (NAME, nature.FIXED)
    return make(name, problem, thetas, kind, constants=rounds, stochastic=not rounds)


def _levels(attributes: Sequence[int]) -> list[int]:
    """Return the numbers of levels; refuse none, and more combinations than can be simulated."""
    if not isinstance(attributes, Iterable):
        raise ValueError(f"attributes are numbers of levels, one each, (2, 3, 4) say; got {attributes!r}")
    levels = [whole(n, 2, "a number of levels") for n in attributes]
    if not levels or math.prod(levels) > LARGEST_SIZE:
        raise ValueError(f"attributes are at least one, with at most {LARGEST_SIZE} combinations; got {attributes!r}")
    return levels


def _row(visitor: Sequence[int], levels: Sequence[int]) -> list[float]:
    """Return the one-hot columns of a visitor; the first level of all attributes but the first has none.

    >>> _row((1, 0, 2), (2, 3, 4))
    [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    """
    columns = [np.eye(n)[level] for n, level in zip(levels, visitor, strict=True)]
    return [float(one) for one in np.concatenate([columns[0], *(column[1:] for column in columns[1:])])]


def _effects(rng: np.random.Generator, K: int, levels: Sequence[int]) -> Floats:
    """Draw the effect of every level for every arm, and return them by column of `_row` and arm."""
    first, *others = (rng.exponential(size=(n, K)) for n in levels)
    base = first + sum(other[0] for other in others)
    return np.concatenate([base, *(other[1:] - other[0] for other in others)])


def _into_range(effects: Floats, table: Floats, first: int, lowest: float, highest: float) -> Floats:
    """Scale and shift effects so that the sums in the table, one per visitor and arm, fill [lowest, highest]."""
    scale = (highest - lowest) / (table.max() - table.min())
    scaled: Floats = scale * effects
    scaled[:first] += lowest - scale * table.min()
    return scaled


def _parameter(effects: Floats, first: int) -> Floats:
    """Return theta, arm after arm, of the losses 1 - 2 rate."""
    theta = -2.0 * effects
    theta[:first] += 1.0
    return np.asarray(theta.T.reshape(-1))


def _frequencies(visitors: Sequence[Sequence[int]], levels: Sequence[int], rarity: float) -> Floats:
    """Return g: a product of Zipf's laws whose exponent, found by bisection, makes the smallest 1/rarity."""
    if not is_number(rarity) or not len(visitors) <= rarity <= LARGEST_RARITY:
        raise ValueError(
            f"rarity L = 1/min g(x) is at least the number of contexts and at most {LARGEST_RARITY:g}; "
            f"got {rarity!r} for {len(visitors)} contexts"
        )
    low, high = 0.0, STEEPEST
    for _ in range(100):
        middle = 0.5 * (low + high)
        rare = np.prod([_zipf(n, middle)[-1] for n in levels]) < 1.0 / rarity
        low, high = (low, middle) if rare else (middle, high)
    laws = [_zipf(n, low) for n in levels]
    g = np.array([np.prod([law[level] for law, level in zip(laws, visitor, strict=True)]) for visitor in visitors])
    return np.asarray(g / g.sum())


def _zipf(n: int, exponent: float) -> Floats:
    """Return probabilities of n levels in proportion to k^-exponent."""
    weights = np.arange(1.0, n + 1.0) ** -exponent
    return np.asarray(weights / weights.sum())


def _range(rates: Any) -> tuple[float, float]:
    """Return the lowest and the highest rate."""
    two = isinstance(rates, Collection) and len(rates) == 2 and all(is_number(rate) for rate in rates)
    if not two or not 0.0 <= rates[0] < rates[1] <= 1.0:
        raise ValueError(f"rates are the lowest and the highest click rate, 0 <= lowest < highest <= 1; got {rates!r}")
    return float(rates[0]), float(rates[1])


def _rounds(changes: Sequence[int]) -> list[int]:
    """Return the rounds of changes; refuse what does not grow."""
    if not isinstance(changes, Iterable):
        raise ValueError(f"changes are the rounds in which favourites change, [5000, 12000] say; got {changes!r}")
    rounds = [whole(t, 1, "a round of changes") for t in changes]
    if sorted(set(rounds)) != rounds:
        raise ValueError(f"changes are rounds in growing order; got {list(changes)!r}")
    return rounds
