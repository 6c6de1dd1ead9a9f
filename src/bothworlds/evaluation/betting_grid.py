"""The grid of bets, and bins for the summands that are bet on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bothworlds.arrays import Floats, Ints
from bothworlds.evaluation.logged import chunks

COMPONENTS = 16
TAIL = 0.8
LAST_STEP = 60
Steps: TypeAlias = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class BetGrid:
    """Bets and cuts for a contrast whose value lies in [-b, a]; ``share`` is c, ``peak`` the likeliest step.

    Each step halves the bet.
    """

    b: float
    a: float
    share: float
    peak: float

    @property
    def width(self) -> float:
        """Return n = a + b."""
        return self.a + self.b

    def bet(self, step: Ints | int) -> Floats:
        """Return lambda of each step."""
        return np.asarray(np.ldexp(self.share / self.width, -np.asarray(step)))

    def cut(self, step: Ints | int) -> Floats:
        """Return k of each step."""
        return np.asarray(np.ldexp(self.width, np.asarray(step)) - self.width)

    def first_uncut_step(self, uncut_k: Floats) -> Ints:
        """Return the lowest step at which nothing is cut, from the smallest such k."""
        return np.asarray(np.minimum(np.ceil(np.log2(1.0 + uncut_k / self.width)), LAST_STEP), dtype=np.int64)

    @property
    def log_prior(self) -> Floats:
        """Logarithms of the components' initial capitals, which sum to 1.

        >>> float(np.exp(BetGrid(b=0.0, a=1.0, share=0.9, peak=3.0).log_prior).sum().round(12))
        1.0
        """
        weight = 1.0 / (1.0 + ((np.arange(COMPONENTS) - self.peak) / TAIL) ** 2)
        return np.asarray(np.log(weight / weight.sum()))


def row_offsets(spread: Callable[[slice], Floats], rows: int, width: float) -> Steps:
    """Return for each row how many steps lower its bets are: log2 of the typical weight in earlier rows.

    The typical weight is the geometric mean of sqrt(E[weight^2]) over the later half of the earlier rows. Rows with
    large weights carry little information, and bets in proportion to the information lose least; any choice made from
    the past is valid. ``spread`` returns E[weight^2] of a slice of rows; it is called for each row about one and a half
    times, so that only one byte per row is kept.

    >>> sizes = np.array([1.0, 1.0, 16.0, 16.0, 16.0, 16.0])
    >>> row_offsets(sizes.__getitem__, 6, 1.0).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    offsets = np.empty(rows, dtype=np.int8)
    leading, trailing = (RunningSum(spread, width) for _ in range(2))
    for where in chunks(rows):
        row = np.arange(where.start, where.stop)
        half = row // 2
        sums, half_sums = leading.over(where), trailing.over(slice(int(half[0]), int(half[-1]) + 1))
        means = (sums - half_sums[half - half[0]]) / np.maximum(row - half, 1)
        offsets[where] = np.clip(np.rint(means), 0, LAST_STEP - COMPONENTS)
    return offsets


class RunningSum:
    """The sum of log2 sqrt(E[weight^2]) over the rows before each row, computed for consecutive slices."""

    def __init__(self, spread: Callable[[slice], Floats], width: float) -> None:
        self._spread, self._width, self._total = spread, width, 0.0

    def over(self, where: slice) -> Floats:
        """Return the sums for the next slice of rows."""
        sizes = 0.5 * np.log2(np.maximum(self._spread(where) / self._width**2, 1.0))
        sums = np.cumsum(np.concatenate([[self._total], sizes]))
        self._total = float(sums[-1])
        return sums[:-1]


INSIDE = 64  # bins in [-b, a]
PER_OCTAVE = 12  # bins per doubling of the distance outside


@dataclass(frozen=True, eq=False)
class Bins:
    """Nodes between which summands are divided: ``below`` nodes under -b, ``above`` over a."""

    grid: BetGrid
    below: int
    above: int

    @property
    def count(self) -> int:
        """Number of nodes."""
        return self.below + INSIDE + 1 + self.above

    @cached_property
    def nodes(self) -> Floats:
        """The nodes, increasing, shape (count,)."""
        n, b, a = self.grid.width, self.grid.b, self.grid.a
        down = -b - n * (2.0 ** (np.arange(self.below, 0, -1) / PER_OCTAVE) - 1.0)
        up = a + n * (2.0 ** (np.arange(1, self.above + 1) / PER_OCTAVE) - 1.0)
        return np.concatenate([down, np.linspace(-b, a, INSIDE + 1), up])

    def divided(self, x: Floats) -> tuple[Ints, Floats]:
        """Return the node below each summand, and the share of the summand that goes to the node above.

        The mean of the summands is preserved.
        """
        nodes = self.nodes
        n, b, a = self.grid.width, self.grid.b, self.grid.a
        position = (x + b) * (INSIDE / n)
        low, high = np.flatnonzero(x < -b), np.flatnonzero(x > a)
        position[low] = -PER_OCTAVE * np.log2(1.0 + (-b - x[low]) / n)
        position[high] = INSIDE + PER_OCTAVE * np.log2(1.0 + (x[high] - a) / n)
        node = np.clip(np.floor(position).astype(np.int64) + self.below, 0, self.count - 2)
        share = (x - nodes[node]) / (nodes[node + 1] - nodes[node])
        return node, np.clip(share, 0.0, 1.0)


def bins_for(grid: BetGrid, largest_weight: float) -> Bins:
    """Return bins that hold all summands, which lie in [-b - largest_weight, a + largest_weight]."""
    outside = int(np.ceil(PER_OCTAVE * np.log2(1.0 + largest_weight / grid.width))) + 1
    return Bins(grid, outside, outside)


def binned(key: Ints, keys: int, node: Ints, share: Floats, count: int) -> Floats:
    """Return the mass at each node for each key, shape (keys, count)."""
    flat = key * count + node
    size = keys * count
    mass = np.zeros(size)
    mass += np.bincount(flat, weights=1.0 - share, minlength=size)
    mass += np.bincount(flat + 1, weights=share, minlength=size)[:size]
    return mass.reshape(keys, count)
