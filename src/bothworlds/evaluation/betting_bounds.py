"""An anytime-valid lower bound for a value, by betting on summands that are bounded below only.

For a candidate v, component j bets lambda on each row that X is larger than v: its capital is

    K_j(v) = prod_t (1 + lambda_{j + e_t} (X_t - v)),

where e_t and the predictions inside X_t are known before row t. If v is the value, every factor has mean 1 (at most 1
where support is missing) and is positive, since X_t >= -k - b and lambda (k + b + a) <= c < 1: no upper end of X_t, so
none of the weights, is needed. Capital in a fair game ever reaches 2/alpha with probability alpha/2 at most
(Ville 1939), so that

    L = the v at which sum_j prior_j K_j(v) = 2/alpha

is below the value at all times, with probability 1 - alpha/2; the sum falls in v because each factor does. The upper
bound is minus the lower bound of -v. References: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2024 (*Anytime-
valid off-policy inference for contextual bandits*, section 2), Karampatziakis, Mineiro and Ramdas 2021 (*Off-policy
confidence sequences*); the grid of bets with a cut for each, and the binning of summands, are ours.

The value must be the same in all rows given the past; `average_bounds` is for averages of values that change.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.evaluation.betting_grid import COMPONENTS, BetGrid, Bins, Steps, binned, bins_for, row_offsets
from bothworlds.evaluation.dr_terms import SummandRows, ValueQuery
from bothworlds.evaluation.logged import chunks

SHARE, PEAK = 0.9, 3.0
PRECISION = 1e-5  # of the width: how far an end may lie outside the root
MAX_ITERATIONS = 60
PRIOR_ROWS = 10.0  # weight, in rows, of the initial guess of the variance
OUTLIER = 30.0  # widths: summands farther out are clipped in the estimate of the variance


@dataclass(frozen=True, eq=False)
class BinnedSummands:
    """Mass of summands at each node, shape (components, offsets, checkpoints, nodes).

    ``offsets`` are the values of e_t that occur.
    """

    grid: BetGrid
    nodes: Floats
    offsets: Ints
    mass: Floats
    log_prior: Floats

    @cached_property
    def _used_steps(self) -> list[tuple[float, Floats, list[tuple[int, Floats]]]]:
        """For each step that is bet: the bet, the nodes, and the mass by component."""
        used, components = [], len(self.log_prior)
        for step in range(int(self.offsets[0]), int(self.offsets[-1]) + components):
            pairs = [(step - e, i) for i, e in enumerate(self.offsets.tolist())]
            parts = [(j, self.mass[j, i]) for j, i in pairs if 0 <= j < components]
            if parts:
                # No mass lies below the lowest summand of the step, but the logarithm must exist there.
                floor = np.maximum(self.nodes, -self.grid.b - float(self.grid.cut(step)))
                used.append((float(self.grid.bet(step)), floor, parts))
        return used

    def log_capital(self, v: Floats, at: Ints) -> Floats:
        """Return the logarithm of the total capital at some checkpoints, with one candidate for each."""
        logs = np.zeros((len(self.log_prior), len(at)))
        for bet, floor, parts in self._used_steps:
            gains = np.log(1.0 + bet * (floor - v[:, None]))
            for j, mass in parts:
                logs[j] += np.einsum("cb,cb->c", mass[at], gains)
        logs += self.log_prior[:, None]
        largest = logs.max(axis=0)
        return np.asarray(largest + np.log(np.exp(logs - largest).sum(axis=0)))


def both_bounds(query: ValueQuery, checkpoints: Ints, *, alpha: float, planned: bool = False) -> tuple[Floats, Floats]:
    """Return lower bounds for the value of a contrast and for its negative, at checkpoints.

    Each holds at all times together with probability 1 - alpha/2. With ``planned`` the bets are chosen for the last
    checkpoint, and the bounds hold there alone.
    """
    b, a = query.contrast.value_bounds
    if a + b == 0.0:
        return np.zeros(len(checkpoints)), np.zeros(len(checkpoints))
    threshold, n = math.log(2.0 / alpha), query.logged.rows
    parts = chunks(n)
    largest_weight = max(float(np.abs(query.weights(where)).max()) for where in parts)
    grids = [BetGrid(b=below, a=above, share=SHARE, peak=PEAK) for below, above in ((b, a), (a, b))]
    if planned:
        x = np.concatenate([query.rows(where).uncut for where in parts])
        offsets, at, components = planned_steps(x, grids[0], threshold), checkpoints[-1:], 1
    else:
        offsets = row_offsets(query.spread, n, a + b)
        at, components = checkpoints, COMPONENTS
    setup = BettingSetup(query, at, offsets, components)
    low, high = (
        np.maximum.accumulate(_roots(summands, threshold)) for summands in _summands(setup, grids, largest_weight)
    )
    if planned:
        low, high = (np.append(np.full(len(checkpoints) - 1, -end), bound) for end, bound in ((b, low), (a, high)))
    return low, high


@dataclass(frozen=True, eq=False)
class BettingSetup:
    """The query, its checkpoints, the offset of each row (how many steps lower it is bet on), and the components."""

    query: ValueQuery
    checkpoints: Ints
    offsets: Steps
    components: int


def planned_steps(x: Floats, grid: BetGrid, threshold: float) -> Steps:
    """Return the step for each row whose bet is nearest to sqrt(2 log(2/alpha)/(N s^2)), s from earlier rows.

    Waudby-Smith and Ramdas 2024, section 4: bets for an interval at one time N.
    """
    n, earlier = len(x), np.arange(len(x))
    clipped = np.clip(x, -grid.b - OUTLIER * grid.width, grid.a + OUTLIER * grid.width)
    sums, squares = (np.concatenate([[0.0], np.cumsum(clipped**power)[:-1]]) for power in (1, 2))
    deviations = np.maximum(squares - sums**2 / np.maximum(earlier, 1), 0.0)
    variance = (PRIOR_ROWS * grid.width**2 / 4.0 + deviations) / (PRIOR_ROWS + earlier)
    bet = np.sqrt(2.0 * threshold / (n * variance))
    return np.asarray(np.clip(np.rint(np.log2(grid.share / (grid.width * bet))), 0, 40), dtype=np.int8)


def _summands(setup: BettingSetup, grids: list[BetGrid], largest_weight: float) -> list[BinnedSummands]:
    """Return the binned summands of the contrast and of its negative, cumulated over checkpoints."""
    offsets = np.unique(setup.offsets).astype(np.int64)
    C, components = len(setup.checkpoints), setup.components
    bins = [bins_for(grid, largest_weight) for grid in grids]
    mass = [np.zeros((components, len(offsets), C, side.count)) for side in bins]
    for where in chunks(setup.query.logged.rows):
        rows = setup.query.rows(where)
        segment = np.searchsorted(setup.checkpoints, np.arange(where.start, where.stop), side="right")
        first, segments = int(segment[0]), int(segment[-1] - segment[0]) + 1
        offset = setup.offsets[where].astype(np.int64)
        key, keys = np.searchsorted(offsets, offset) * segments + segment - first, len(offsets) * segments
        for side, signed in enumerate((rows, rows.negative())):
            new = _chunk_mass(signed, offset, key, keys, bins[side], components)
            mass[side][:, :, first : first + segments] += new.reshape(components, len(offsets), segments, -1)
    return [_cumulated(side, offsets, masses) for side, masses in zip(bins, mass, strict=True)]


def _cumulated(bins: Bins, offsets: Ints, mass: Floats) -> BinnedSummands:
    """Return the mass up to each checkpoint, at the nodes that are used."""
    used = np.flatnonzero(mass.any(axis=(0, 1, 2)))
    prior = bins.grid.log_prior if len(mass) == COMPONENTS else np.zeros(len(mass))
    return BinnedSummands(bins.grid, bins.nodes[used], offsets, np.cumsum(mass[..., used], axis=2), prior)


def _chunk_mass(rows: SummandRows, offset: Ints, key: Ints, keys: int, bins: Bins, components: int) -> Floats:
    """Return the mass of one chunk of the log by component, shape (components, keys, nodes).

    From some component on a row's summand is not cut: it is entered once, there, and cumulated over later components.
    """
    grid = bins.grid
    uncut_from = np.maximum(grid.first_uncut_step(rows.uncut_k) - offset, 0)
    uncut = np.flatnonzero(uncut_from < components)
    node, share = bins.divided(rows.uncut[uncut])
    mass = binned(uncut_from[uncut] * keys + key[uncut], components * keys, node, share, bins.count)
    mass = np.cumsum(mass.reshape(components, keys, bins.count), axis=0)
    for j in range(components):
        cut = np.flatnonzero(uncut_from > j)
        if not len(cut):
            break
        node, share = bins.divided(rows.cut(grid.cut(offset[cut] + j), cut))
        mass[j] += binned(key[cut], keys, node, share, bins.count)
    return np.asarray(mass)


def _roots(summands: BinnedSummands, threshold: float) -> Floats:
    """Return at each checkpoint the largest rejected candidate, or -b: the Illinois form of regula falsi.

    Capital changes by orders of magnitude, so the distance of its logarithm from the threshold is compressed again.
    """
    b, a, C = summands.grid.b, summands.grid.a, summands.mass.shape[2]
    low, high, every = np.full(C, -b), np.full(C, a), np.arange(C)
    at_low, at_high = (_compressed(summands.log_capital(ends, every) - threshold) for ends in (low, high))
    low, high = np.where(at_high >= 0.0, a, low), np.where(at_low < 0.0, -b, high)
    moved = np.zeros(C)  # 1: the low end moved last, -1: the high end
    for iteration in range(MAX_ITERATIONS):
        open_ = np.flatnonzero(high - low > PRECISION * summands.grid.width)
        if not len(open_):
            break
        share = (
            np.clip(at_low[open_] / (at_low[open_] - at_high[open_]), 1e-3, 1.0 - 1e-3) if iteration % 6 < 5 else 0.5
        )
        middle = low[open_] + share * (high - low)[open_]
        value = _compressed(summands.log_capital(middle, open_) - threshold)
        rejected, kept = open_[value >= 0.0], open_[value < 0.0]
        at_high[rejected[moved[rejected] == 1.0]] *= 0.5
        at_low[kept[moved[kept] == -1.0]] *= 0.5
        low[rejected], at_low[rejected], moved[rejected] = middle[value >= 0.0], value[value >= 0.0], 1.0
        high[kept], at_high[kept], moved[kept] = middle[value < 0.0], value[value < 0.0], -1.0
    return low


def _compressed(x: Floats) -> Floats:
    return np.asarray(np.sign(x) * np.log1p(np.abs(x)))
