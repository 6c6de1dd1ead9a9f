"""The plan over time: the mean probability of every arm, over the decisions of a time bucket."""

from collections.abc import Sequence

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.service.time_buckets import TimeBuckets

BUCKETS = 60
Sums = tuple[float, Floats]  # number of decisions, and the sums of their probabilities by arm


class PlanSeries:
    """Sums of probabilities by time bucket and arm; arms are numbered in order of their first appearance.

    >>> series = PlanSeries()
    >>> series.add(np.array([5.0, 5.5]), np.array([0, 1]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> series.means(arms=2)
    (array([5.]), array([[0.75, 0.25]]))
    """

    def __init__(self, *, span: float | None = None) -> None:
        self._buckets: TimeBuckets[Sums] = TimeBuckets(_merge, span=span, most=BUCKETS)

    @property
    def width(self) -> float:
        """The width of the buckets in seconds."""
        return self._buckets.width

    def add(self, times: Floats, columns: Ints, probabilities: Floats) -> None:
        """Add decisions: their times, the numbers of their arms, and their probabilities, (decisions, arms)."""
        if not len(times):
            return
        seconds = np.floor(times / self.width)  # the width may grow meanwhile: finer groups are merged then
        for second in np.unique(seconds):
            chosen = seconds == second
            sums = np.zeros(int(columns.max()) + 1)
            sums[columns] = probabilities[chosen].sum(axis=0)
            self._buckets.add(float(times[chosen][0]), (float(chosen.sum()), sums))

    def means(self, *, arms: int) -> tuple[Floats, Floats]:
        """Return the start of every bucket, and the mean probability of every arm there, (buckets, arms)."""
        items = self._buckets.items()
        starts = np.array([start for start, _ in items])
        table = np.zeros((len(items), arms))
        for row, (_, (count, sums)) in zip(table, items, strict=True):
            row[: len(sums)] = sums[:arms] / count
        return starts, table


class ArmNumbers:
    """Numbers arms by name, in order of their first appearance."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def of(self, arms: Sequence[str]) -> Ints:
        """Return the numbers of arms; new ones get the next numbers."""
        for arm in arms:
            if arm not in self._numbers:
                self._numbers[arm] = len(self.names)
                self.names.append(arm)
        return np.array([self._numbers[arm] for arm in arms], dtype=np.int64)


def _merge(one: Sums, other: Sums) -> Sums:
    sums = np.zeros(max(len(one[1]), len(other[1])))
    sums[: len(one[1])] += one[1]
    sums[: len(other[1])] += other[1]
    return one[0] + other[0], sums
