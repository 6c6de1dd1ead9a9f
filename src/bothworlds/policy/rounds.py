"""Which rounds still wait for feedback, kept as intervals: small however many rounds have passed."""

from bisect import bisect_right
from typing import Self

import numpy as np

from bothworlds.kernels.arrays import Ints


class OpenRounds:
    """The set of rounds that are neither answered nor expired.

    >>> rounds = OpenRounds()
    >>> for _ in range(5):
    ...     _ = rounds.add()
    >>> rounds.close(3)
    >>> rounds.intervals.tolist(), rounds.has(3), len(rounds)
    ([[1, 2], [4, 5]], False, 4)
    >>> rounds.expire(before=5), rounds.intervals.tolist()
    (3, [[5, 5]])
    >>> rounds.reach(8), rounds.intervals.tolist()
    (None, [[5, 8]])
    """

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._starts: list[int] = []
        self._ends: list[int] = []

    @classmethod
    def restore(cls, last: int, intervals: Ints) -> Self:
        """Rebuild from the last round and the intervals."""
        rounds = cls(last)
        rounds._starts = [int(start) for start, _ in intervals]
        rounds._ends = [int(end) for _, end in intervals]
        return rounds

    @property
    def intervals(self) -> Ints:
        """The open rounds as (first, last) pairs."""
        return np.array([self._starts, self._ends], dtype=np.int64).T

    def __len__(self) -> int:
        return sum(self._ends) - sum(self._starts) + len(self._starts)

    def has(self, number: int) -> bool:
        """Tell whether a round is open; a method, since every update asks, and `in` takes longer."""
        i = bisect_right(self._starts, number) - 1
        return i >= 0 and number <= self._ends[i]

    def add(self) -> int:
        """Open the next round and return its number, counted from 1."""
        last = self.last
        self.last = number = last + 1
        if self._ends and self._ends[-1] == last:
            self._ends[-1] = number
        else:
            self._starts.append(number)
            self._ends.append(number)
        return number

    def reach(self, number: int) -> None:
        """Open all rounds after the last one up to a number."""
        if number <= self.last:
            return
        if self._ends and self._ends[-1] == self.last:
            self._ends[-1] = number
        else:
            self._starts.append(self.last + 1)
            self._ends.append(number)
        self.last = number

    def skip(self, number: int) -> None:
        """Go on after a number: rounds up to it that were not opened never will be."""
        self.last = max(self.last, number)

    def close(self, number: int) -> None:
        """Close an open round; its interval shrinks, splits or disappears."""
        i = bisect_right(self._starts, number) - 1
        start, end = self._starts[i], self._ends[i]
        if start == end:
            del self._starts[i], self._ends[i]
        elif number == start:
            self._starts[i] = number + 1
        elif number == end:
            self._ends[i] = number - 1
        else:
            self._starts.insert(i + 1, number + 1)
            self._ends.insert(i, number - 1)

    def expire(self, *, before: int) -> int:
        """Close all open rounds before the given one; return how many."""
        count = len(self)
        kept = [(max(s, before), e) for s, e in zip(self._starts, self._ends, strict=True) if e >= before]
        self._starts = [s for s, _ in kept]
        self._ends = [e for _, e in kept]
        return count - len(self)
