"""The worlds of the scoreboard: twenty regimes, four sizes, families of instances that have no seed in common.

Six regimes change, and are judged by dynamic regret: `CHANGING`. In two the feedback comes late: `FEEDBACK`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds import environments as en

SIZES = ((4, 3, 3), (10, 5, 5), (15, 8, 4), (25, 4, 8))  # S, K, d
FAMILIES = {  # seeds are family + number
    "tuning": 1_000,
    "held-out": 2_000,
    "second held-out": 3_000,
    "third held-out": 4_000,
    "fourth held-out": 5_000,
    "fifth held-out": 6_000,
    "sixth held-out": 7_000,
    "seventh held-out": 8_000,
    "eighth held-out": 9_000,
    "ninth held-out": 10_000,
    "tenth held-out": 11_000,
    "eleventh held-out": 12_000,
    "twelfth held-out": 13_000,
    "thirteenth held-out": 14_000,
    "fourteenth held-out": 15_000,
    "fifteenth held-out": 16_000,
    "sixteenth held-out": 17_000,
    "seventeenth held-out": 18_000,
    "eighteenth held-out": 19_000,
    "nineteenth held-out": 20_000,
}
LARGEST_MEAN = 0.9
LEVEL = 0.4
GAPS = (0.05, 0.4)  # the smallest gap of an instance, drawn evenly in its logarithm
CLICK_RATES = (0.02, 0.3)
RARE_RATES = (0.003, 0.05)
VISITORS = {  # by size: levels of the attributes, and arms; S, K, d = 12, 3, 18; 18, 3, 18; 16, 3, 21; 24, 4, 28
    (4, 3, 3): ((3, 4), 3),
    (10, 5, 5): ((2, 3, 3), 3),
    (15, 8, 4): ((4, 4), 3),
    (25, 4, 8): ((2, 3, 4), 4),
}
RARITIES = (500.0, 1_500.0)  # L of rare clicks, drawn evenly in its logarithm
FEEDBACK = {"batches of 50": (50, 0), "delay of 200": (1, 200)}  # batch and delay, with +-1 noise
LATE_FROM = 1_000  # rounds; in shorter games feedback comes at once


class Draw(NamedTuple):
    """A random instance, and a second parameter for adversaries that want two."""

    instance: en.Instance
    other: np.ndarray
    seed: int
    size: tuple[int, int, int]
    first: int  # rounds of the first phase: random over two periods, or the horizon's place in a phase would decide


def draw(size: tuple[int, int, int], seed: int) -> Draw:
    """Draw features, gaps, and probabilities of contexts: even for odd seeds, with a rare context for even ones."""
    S, K, d = size
    rng = np.random.default_rng([seed, *size])
    gap = float(np.exp(rng.uniform(*np.log(GAPS))))
    rarity = None if seed % 2 else 3.0 * S
    instance = en.random_instance(contexts=S, arms=K, dimension=d, gap=gap, rarity=rarity, seed=seed)
    other = rng.normal(size=d)
    other *= LARGEST_MEAN / np.abs(instance.problem.features @ other).max()
    first = round(100 * 1.6 ** rng.uniform(0.0, 2.0))
    return Draw(instance, other, seed, size, first)


def with_level(instance: en.Instance) -> en.Instance:
    """Add a constant feature and halve the losses, which leaves room for a moving level."""
    features = instance.problem.features
    ones = np.ones((*features.shape[:2], 1))
    problem = bw.Problem(
        features=np.concatenate([features, ones], axis=2), probabilities=instance.problem.probabilities
    )
    return en.Instance(problem, np.append(0.5 * instance.theta, 0.0))


def margin(made: Draw) -> en.Environment:
    """Stochastic, +-1 noise, gaps of all sizes (Definition 2.5 with beta = 1)."""
    S, K, d = made.instance.problem.features.shape
    return en.stochastic(en.margin_instance(contexts=S, arms=K, dimension=d, gap=0.3, margin=1.0, seed=made.seed))


def clicks(made: Draw) -> en.Environment:
    """Rare rewards, every cell on its own: at most three contexts and arms, unit features."""
    size = made.instance.problem.features.shape
    S, K = min(size[0], 3), min(size[1], 3)
    rates = np.random.default_rng([made.seed, *size]).uniform(*CLICK_RATES, size=S * K)
    features = np.eye(S * K).reshape(S, K, S * K)
    return en.stochastic(en.Instance(bw.Problem(features=features, probabilities=[1.0 / S] * S), 1.0 - 2.0 * rates))


def rare_clicks(made: Draw, *, changes: Sequence[int] = ()) -> en.Environment:
    """Rates of 0.3 to 5 %, one-hot attributes, Zipf contexts; the size is that of `VISITORS`."""
    attributes, arms = VISITORS[made.size]
    rarity = float(np.exp(np.random.default_rng([made.seed, *made.size]).uniform(*np.log(RARITIES))))
    return en.clicks(attributes=attributes, arms=arms, rates=RARE_RATES, rarity=rarity, changes=changes, seed=made.seed)


CHANGING: dict[str, Callable[[Draw, int], en.Environment]] = {  # of an instance and the horizon
    "changes at T/2": lambda m, T: en.change_point(m.instance, at=T // 2, seed=m.seed),
    "seasons": lambda m, T: en.seasons(m.instance, horizon=T, seed=m.seed),
    "jumps": lambda m, T: en.jumps(m.instance, horizon=T, seed=m.seed),
    "slow turn": lambda m, T: en.slow_turn(m.instance, horizon=T, seed=m.seed),
    "opposite, T/3 each": lambda m, T: followed(en.alternating(m.instance.problem, _pair(m), every=math.ceil(T / 3))),
    "first T/20 flipped, followed": lambda m, T: followed(en.flip(m.instance.problem, _pair(m)[::-1], at=T // 20)),
}


def followed(world: en.Environment) -> en.Environment:
    """Return the world of an adversary as one that learners should follow: judged by dynamic regret."""
    return replace(world, changing=True)


def makers(horizon: int) -> dict[str, Callable[[Draw], en.Environment]]:
    """Return the regimes by name; the last six are `CHANGING`."""
    return {**still(horizon), **{name: _of_horizon(make, horizon) for name, make in CHANGING.items()}}


def _of_horizon(make: Callable[[Draw, int], en.Environment], horizon: int) -> Callable[[Draw], en.Environment]:
    return lambda made: make(made, horizon)


def still(horizon: int) -> dict[str, Callable[[Draw], en.Environment]]:
    """Return the regimes that are judged by regret against the best fixed policy."""
    return {
        "low noise": lambda m: en.stochastic(m.instance, noise="normal", sigma=0.1),
        "+-1 noise": lambda m: en.stochastic(m.instance),
        "first T/20 flipped": lambda m: en.flip(m.instance.problem, _pair(m)[::-1], at=horizon // 20),
        "flip at T/2": lambda m: en.flip(m.instance.problem, _pair(m), at=horizon // 2),
        "alternating": lambda m: en.alternating(m.instance.problem, [m.instance.theta, m.other]),
        "adaptive adversary": lambda m: en.adaptive_adversary(
            m.instance.problem, np.concatenate([_pair(m), en.opposite(m.other)])
        ),
        "growing phases": lambda m: en.growing_phases(m.instance.problem, _pair(m), first=m.first),
        "margin": margin,
        "moving level": lambda m: en.moving_level(with_level(m.instance), level=LEVEL),
        "clicks": clicks,
        "rare clicks": rare_clicks,
        **dict.fromkeys(FEEDBACK, lambda m: en.stochastic(m.instance)),
        "rare clicks, changing favourite": lambda m: rare_clicks(m, changes=[max(1, horizon // 4)]),
    }


def _pair(made: Draw) -> np.ndarray:
    return en.opposite(made.instance.theta)


class Cell(NamedTuple):
    """One world: regime, size, and the number of the instance."""

    regime: str
    size: tuple[int, int, int]
    number: int


def cells(horizon: int, per_size: int, *, regimes: Iterable[str] | None = None) -> Iterator[Cell]:
    """Go through all cells, or those of some regimes, by instances, so that an interrupted run has whole ones."""
    known = list(makers(horizon))
    chosen = known if regimes is None else list(regimes)
    if not set(chosen) <= set(known):
        raise ValueError(f"there is no regime {min(set(chosen) - set(known))!r}; known are {'; '.join(known)}")
    for number in range(per_size):
        for size in SIZES:
            for regime in chosen:
                yield Cell(regime, size, number)


def world(cell: Cell, family: str, horizon: int) -> en.Environment:
    """Make the world of a cell."""
    return makers(horizon)[cell.regime](draw(cell.size, FAMILIES[family] + cell.number))
