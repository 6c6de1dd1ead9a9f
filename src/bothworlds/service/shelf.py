"""Decisions that wait for their rewards, as columns: so that batches are learnt again without an object for each."""

from collections.abc import Sequence

import numpy as np

from bothworlds.kernels.arrays import Ints
from bothworlds.policy.feeding import Columns

HELD, GONE = -1, -2  # the places of a decision that is held out, and of one that is not here


class Shelf:
    """Keeps the newest decisions of a footing, so many of them; older ones are found in the store.

    >>> shelf = Shelf((1, 0), size=2)
    >>> three = Columns(np.arange(3), np.zeros(3, int), np.ones(3), np.ones((3, 1)), np.ones((3, 0)))
    >>> shelf.put(["a", "b", "c"], three)
    >>> shelf.missing(["a", "b", "c"])
    ['a']
    >>> shelf.take(["c", "b"])[0].contexts.tolist()
    [2, 1]
    """

    def __init__(self, carried: tuple[int, int], *, size: int = 2**15) -> None:
        self._size, self._count = size, 0
        self._places: dict[str, int] = {}
        ones = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.zeros(size)
        self._columns = Columns(*ones, *(np.zeros((size, length)) for length in carried))

    def put(self, ids: Sequence[str], columns: Columns) -> None:
        """Keep decisions."""
        numbers = range(self._count, self._count + len(ids))
        begin = numbers.start % self._size
        end = begin + len(ids)
        slots = slice(begin, end) if end <= self._size else np.arange(begin, end) % self._size
        for kept, new in zip(self._columns, columns, strict=True):
            kept[slots] = new
        self._places.update(zip(ids, numbers, strict=True))
        self._count = numbers.stop
        if len(self._places) > 2 * self._size:
            oldest = self._count - self._size
            self._places = {name: place for name, place in self._places.items() if place >= oldest}

    def hold(self, ids: Sequence[str]) -> None:
        """Note decisions that are held out: from them nothing is learnt."""
        self._places.update(dict.fromkeys(ids, HELD))

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Return which of some decisions are not here."""
        oldest, found = self._count - self._size, [self._places.get(name, GONE) for name in ids]
        if min(found, default=oldest) >= max(oldest, 0):
            return []
        return [
            name for name, place in zip(ids, found, strict=True) if place == GONE or (place < oldest and place != HELD)
        ]

    def take(self, ids: Sequence[str]) -> tuple[Columns, Ints]:
        """Take decisions that are here; return those not held out as columns, and which of them these are."""
        places = np.array([self._places.pop(name) for name in ids], dtype=np.int64)
        heard = np.flatnonzero(places != HELD)
        slots = places[heard] % self._size
        contexts, arms, propensities, directions, baselines = self._columns
        found = contexts[slots], arms[slots], propensities[slots], directions[slots], baselines[slots]
        return Columns(*found), heard
