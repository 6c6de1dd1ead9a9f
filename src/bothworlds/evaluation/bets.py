"""A lower bound for a value by betting, at any time, from summands that are bounded below only.

For a candidate v, component j bets lambda on each row that X is larger than v: its capital is

    K_j(v) = prod_t (1 + lambda_{j + e_t} (X_t - v)),

e_t and the predictions inside X_t being known before row t. If v is the value, every factor has mean 1 (at most 1
where support is missing) and is positive, since X_t >= -k - b and lambda (k + b + a) <= c < 1: no upper end of X_t, so
none of the weights, is needed. Capital in a fair game ever reaches 2/alpha with probability alpha/2 at most
(Ville 1939), so that

    L = the v at which sum_j prior_j K_j(v) = 2/alpha

is below the value at all times, with probability 1 - alpha/2; the sum falls in v because each factor does. The upper
bound is minus the lower bound of -v. References: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2024 (*Anytime-
valid off-policy inference for contextual bandits*, section 2), Karampatziakis, Mineiro and Ramdas 2021 (*Off-policy
confidence sequences*); the ladder of bets with its own cuts, and the table of places, are ours.

The value must be the same in all rows given the past; for averages of values that change see `averages`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bothworlds.evaluation.histogram import Places, gathered, places_for
from bothworlds.evaluation.ladder import COMPONENTS, Ladder, Steps, steps_down
from bothworlds.evaluation.logged import pieces
from bothworlds.evaluation.summands import Question, Rows
from bothworlds.kernels.arrays import Floats, Ints

SHARE, PEAK = 0.9, 3.0
EXACT = 1e-5  # of the reach: how far an end may be from the root, outwards
MOST_TURNS = 60
FEW = 10.0  # rows' worth of a guess of the variance
FAR = 30.0  # reaches: larger summands do not enter the guess


@dataclass(frozen=True, eq=False)
class Table:
    """How much lies where, shape (components, steps down, checkpoints, places); ``steps`` are the e that occur."""

    ladder: Ladder
    nodes: Floats
    steps: Ints
    counts: Floats
    log_prior: Floats

    @cached_property
    def _played(self) -> list[tuple[float, Floats, list[tuple[int, Floats]]]]:
        """For each step of the ladder that is played, what is bet, the places, and what lies there for whom."""
        found, components = [], len(self.log_prior)
        for step in range(int(self.steps[0]), int(self.steps[-1]) + components):
            players = [(step - e, i) for i, e in enumerate(self.steps.tolist())]
            parts = [(j, self.counts[j, i]) for j, i in players if 0 <= j < components]
            if parts:
                # Below the lowest summand of the step lies nothing; the logarithm must exist there all the same.
                floor = np.maximum(self.nodes, -self.ladder.b - float(self.ladder.cut(step)))
                found.append((float(self.ladder.bet(step)), floor, parts))
        return found

    def log_capital(self, v: Floats, at: Ints) -> Floats:
        """Return the logarithm of all capital at some checkpoints, each against a candidate of its own."""
        found = np.zeros((len(self.log_prior), len(at)))
        for bet, floor, parts in self._played:
            gains = np.log(1.0 + bet * (floor - v[:, None]))
            for j, counts in parts:
                found[j] += np.einsum("cb,cb->c", counts[at], gains)
        found += self.log_prior[:, None]
        most = found.max(axis=0)
        return np.asarray(most + np.log(np.exp(found - most).sum(axis=0)))


def both_bounds(question: Question, checkpoints: Ints, *, alpha: float, planned: bool = False) -> tuple[Floats, Floats]:
    """Return lower bounds for the value of a contrast, and for its negative, at checkpoints.

    Each is valid with alpha/2 at all times together. With ``planned`` the bets are chosen for the last checkpoint,
    and the bounds hold there alone.
    """
    b, a = question.contrast.reach
    if a + b == 0.0:
        return np.zeros(len(checkpoints)), np.zeros(len(checkpoints))
    depth, n = math.log(2.0 / alpha), question.logged.rows
    parts = pieces(n)
    most = max(float(np.abs(question.weights(where)).max()) for where in parts)
    ladders = [Ladder(b=one, a=other, share=SHARE, peak=PEAK) for one, other in ((b, a), (a, b))]
    if planned:
        x = np.concatenate([question.rows(where).whole for where in parts])
        down, at, components = planned_steps(x, ladders[0], depth), checkpoints[-1:], 1
    else:
        down = steps_down(question.spread, n, a + b)
        at, components = checkpoints, COMPONENTS
    setting = Setting(question, at, down, components)
    low, high = (np.maximum.accumulate(_roots(table, depth)) for table in _tables(setting, ladders, most))
    if planned:
        low, high = (np.append(np.full(len(checkpoints) - 1, -end), bound) for end, bound in ((b, low), (a, high)))
    return low, high


@dataclass(frozen=True, eq=False)
class Setting:
    """What is asked, where to look, and how many steps down each row is bet on by how many components."""

    question: Question
    checkpoints: Ints
    down: Steps
    components: int


def planned_steps(x: Floats, ladder: Ladder, depth: float) -> Steps:
    """Return the step for each row whose bet is the nearest to sqrt(2 log(2/alpha)/(N s^2)), s from earlier rows.

    Waudby-Smith and Ramdas 2024, section 4: bets for an interval at one time N.
    """
    n, seen = len(x), np.arange(len(x))
    near = np.clip(x, -ladder.b - FAR * ladder.reach, ladder.a + FAR * ladder.reach)
    sums, squares = (np.concatenate([[0.0], np.cumsum(near**power)[:-1]]) for power in (1, 2))
    around = np.maximum(squares - sums**2 / np.maximum(seen, 1), 0.0)
    variance = (FEW * ladder.reach**2 / 4.0 + around) / (FEW + seen)
    bet = np.sqrt(2.0 * depth / (n * variance))
    return np.asarray(np.clip(np.rint(np.log2(ladder.share / (ladder.reach * bet))), 0, 40), dtype=np.int8)


def _tables(setting: Setting, ladders: list[Ladder], most: float) -> list[Table]:
    """Gather the summands of all rows, of the contrast and of its negative, cumulated over checkpoints."""
    steps = np.unique(setting.down).astype(np.int64)
    C, components = len(setting.checkpoints), setting.components
    places = [places_for(ladder, most) for ladder in ladders]
    counts = [np.zeros((components, len(steps), C, one.count)) for one in places]
    for where in pieces(setting.question.logged.rows):
        rows = setting.question.rows(where)
        segment = np.searchsorted(setting.checkpoints, np.arange(where.start, where.stop), side="right")
        first, segments = int(segment[0]), int(segment[-1] - segment[0]) + 1
        down = setting.down[where].astype(np.int64)
        key, keys = np.searchsorted(steps, down) * segments + segment - first, len(steps) * segments
        for side, one in enumerate((rows, rows.negative())):
            found = _gather(one, down, key, keys, places[side], components)
            counts[side][:, :, first : first + segments] += found.reshape(components, len(steps), segments, -1)
    return [_cumulated(one, steps, many) for one, many in zip(places, counts, strict=True)]


def _cumulated(places: Places, steps: Ints, counts: Floats) -> Table:
    """Return the table of counts up to each checkpoint, at the places that are used."""
    used = np.flatnonzero(counts.any(axis=(0, 1, 2)))
    prior = places.ladder.log_prior if len(counts) == COMPONENTS else np.zeros(len(counts))
    return Table(places.ladder, places.nodes[used], steps, np.cumsum(counts[..., used], axis=2), prior)


def _gather(rows: Rows, down: Ints, key: Ints, keys: int, places: Places, components: int) -> Floats:
    """Return what lies where in a piece of the log, for every component, shape (components, keys, places).

    From some component on nothing is cut in a row: its summand is entered there once, and carried on to those after it.
    """
    ladder = places.ladder
    whole_from = np.maximum(ladder.step_without_cut(rows.need) - down, 0)
    free = np.flatnonzero(whole_from < components)
    place, part = places.divided(rows.whole[free])
    found = gathered(whole_from[free] * keys + key[free], components * keys, place, part, places.count)
    found = np.cumsum(found.reshape(components, keys, places.count), axis=0)
    for j in range(components):
        still = np.flatnonzero(whole_from > j)
        if not len(still):
            break
        place, part = places.divided(rows.cut(ladder.cut(down[still] + j), still))
        found[j] += gathered(key[still], keys, place, part, places.count)
    return np.asarray(found)


def _roots(table: Table, depth: float) -> Floats:
    """Return at each checkpoint the largest candidate that is out, or -b: the Illinois form of regula falsi.

    Capital changes by orders of magnitude; its logarithm, beyond the threshold, is compressed once more.
    """
    b, a, C = table.ladder.b, table.ladder.a, table.counts.shape[2]
    low, high, every = np.full(C, -b), np.full(C, a), np.arange(C)
    at_low, at_high = (_compressed(table.log_capital(ends, every) - depth) for ends in (low, high))
    low, high = np.where(at_high >= 0.0, a, low), np.where(at_low < 0.0, -b, high)
    kept = np.zeros(C)  # 1: the high end stayed last time, -1: the low one
    for turn in range(MOST_TURNS):
        left = np.flatnonzero(high - low > EXACT * table.ladder.reach)
        if not len(left):
            break
        share = np.clip(at_low[left] / (at_low[left] - at_high[left]), 1e-3, 1.0 - 1e-3) if turn % 6 < 5 else 0.5
        middle = low[left] + share * (high - low)[left]
        value = _compressed(table.log_capital(middle, left) - depth)
        out, within = left[value >= 0.0], left[value < 0.0]
        at_high[out[kept[out] == 1.0]] *= 0.5
        at_low[within[kept[within] == -1.0]] *= 0.5
        low[out], at_low[out], kept[out] = middle[value >= 0.0], value[value >= 0.0], 1.0
        high[within], at_high[within], kept[within] = middle[value < 0.0], value[value < 0.0], -1.0
    return low


def _compressed(x: Floats) -> Floats:
    return np.asarray(np.sign(x) * np.log1p(np.abs(x)))
