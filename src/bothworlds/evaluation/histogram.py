"""Summands gathered at fixed places, so that the capital of all bets can be computed from a table.

The logarithm of a factor 1 + lambda (x - v) is concave in x. A summand between two places is therefore divided among
them so that its mean stays: what is computed is a lower bound of the capital, and the interval is valid, whatever the
data. With places so dense it is wider by some thousandths.

Places are even between -b and a, n = a + b wide, and beyond them at -b - n (2^(i/s) - 1) and a + n (2^(i/s) - 1): so
the lowest summand of every step of a ladder is a place itself.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bothworlds.evaluation.ladder import Ladder
from bothworlds.kernels.arrays import Floats, Ints

INSIDE = 64
PER_OCTAVE = 12


@dataclass(frozen=True, eq=False)
class Places:
    """Where summands are gathered: ``below`` places under -b, ``above`` over a."""

    ladder: Ladder
    below: int
    above: int

    @property
    def count(self) -> int:
        """How many places there are."""
        return self.below + INSIDE + 1 + self.above

    @cached_property
    def nodes(self) -> Floats:
        """The places, from low to high."""
        n, b, a = self.ladder.reach, self.ladder.b, self.ladder.a
        down = -b - n * (2.0 ** (np.arange(self.below, 0, -1) / PER_OCTAVE) - 1.0)
        up = a + n * (2.0 ** (np.arange(1, self.above + 1) / PER_OCTAVE) - 1.0)
        return np.concatenate([down, np.linspace(-b, a, INSIDE + 1), up])

    def divided(self, x: Floats) -> tuple[Ints, Floats]:
        """Return the place below each summand, and the part that goes to the one above."""
        nodes = self.nodes
        n, b, a = self.ladder.reach, self.ladder.b, self.ladder.a
        where = (x + b) * (INSIDE / n)
        low, high = np.flatnonzero(x < -b), np.flatnonzero(x > a)
        where[low] = -PER_OCTAVE * np.log2(1.0 + (-b - x[low]) / n)
        where[high] = INSIDE + PER_OCTAVE * np.log2(1.0 + (x[high] - a) / n)
        place = np.clip(np.floor(where).astype(np.int64) + self.below, 0, self.count - 2)
        part = (x - nodes[place]) / (nodes[place + 1] - nodes[place])
        return place, np.clip(part, 0.0, 1.0)


def places_for(ladder: Ladder, most: float) -> Places:
    """Return places that hold all summands, the largest weight being given: they lie in [-b - most, a + most]."""
    beyond = int(np.ceil(PER_OCTAVE * np.log2(1.0 + most / ladder.reach))) + 1
    return Places(ladder, beyond, beyond)


def gathered(key: Ints, keys: int, place: Ints, part: Floats, count: int) -> Floats:
    """Return how much lies at each place for each key, shape (keys, places)."""
    flat = key * count + place
    size = keys * count
    found = np.zeros(size)
    found += np.bincount(flat, weights=1.0 - part, minlength=size)
    found += np.bincount(flat + 1, weights=part, minlength=size)[:size]
    return found.reshape(keys, count)
