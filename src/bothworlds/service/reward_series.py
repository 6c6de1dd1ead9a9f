"""Rewards over time, as sums in a bounded number of time buckets."""

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

from bothworlds.service.time_buckets import MAX_BUCKETS, TimeBuckets

Sums: TypeAlias = tuple[int, float, float]  # number of rewards, their sum, and that of their squares
NONE: Sums = 0, 0.0, 0.0


class Bucket(NamedTuple):
    """Number and sums of the rewards, and of their squares, in a time interval; its start in seconds since 1970."""

    start: float
    rewards: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """The mean reward."""
        return self.total / self.rewards

    def interval(self, limits: tuple[float, float], *, alpha: float = 0.05) -> tuple[float, float]:
        """Return a fixed-time interval for the mean, within the reward range (Wilson 1927, for rewards 0 and 1).

        >>> low, high = Bucket(0.0, 100, 10.0, 10.0).interval((0.0, 1.0))
        >>> round(low, 4), round(high, 4)
        (0.0552, 0.1744)
        """
        low, high = limits
        z2, n = NormalDist().inv_cdf(1.0 - alpha / 2.0) ** 2, self.rewards
        width = high - low
        mean = (self.mean - low) / width
        variance = max(self.squares / n - self.mean**2, 0.0) / width**2
        centre = (n * mean + z2 / 2.0) / (n + z2)
        radius = math.sqrt(z2 * (n * variance + z2 / 4.0)) / (n + z2)
        return low + width * max(centre - radius, 0.0), low + width * min(centre + radius, 1.0)


class RewardSeries:
    """Sums of rewards per time bucket, for policy and holdout.

    The time of a reward is that of its decision. ``span`` is that of `TimeBuckets`. Thread-safe.

    >>> series = RewardSeries(max_buckets=2)
    >>> for time in range(4):
    ...     series.add(100.0 + time, time % 2, holdout=False)
    >>> series.width, [(bucket.start, bucket.mean) for bucket in series.buckets(holdout=False)]
    (2.0, [(100.0, 0.5), (102.0, 0.5)])
    """

    def __init__(self, *, span: float | None = None, max_buckets: int = MAX_BUCKETS) -> None:
        self._buckets: TimeBuckets[tuple[Sums, Sums]] = TimeBuckets(_sum_pair, span=span, most=max_buckets)

    @property
    def width(self) -> float:
        """The width of the buckets in seconds."""
        return self._buckets.width

    def add(self, time: float, reward: float, *, holdout: bool) -> None:
        """Add the reward of a decision of some time (seconds since 1970)."""
        self.add_sums(time, (1, reward, reward * reward), holdout=holdout)

    def add_sums(self, time: float, sums: Sums, *, holdout: bool) -> None:
        """Add several rewards of decisions of about the same time."""
        self._buckets.add(time, (NONE, sums) if holdout else (sums, NONE))

    def buckets(self, *, holdout: bool) -> list[Bucket]:
        """Return the nonempty buckets in order of time."""
        pairs = [(start, sums[holdout]) for start, sums in self._buckets.items()]
        return [Bucket(start, *sums) for start, sums in pairs if sums[0]]


def merge_buckets(buckets: Iterable[Bucket], least: int) -> list[Bucket]:
    """Merge neighbouring buckets until each has at least ``least`` rewards; the last one takes the rest.

    >>> merge_buckets([Bucket(0.0, 2, 1.0, 1.0), Bucket(1.0, 3, 2.0, 2.0), Bucket(2.0, 1, 1.0, 1.0)], 5)
    [Bucket(start=0.0, rewards=6, total=4.0, squares=4.0)]
    """
    merged: list[Bucket] = []
    for bucket in buckets:
        if merged and merged[-1].rewards < least:
            merged[-1] = _merge(merged[-1], bucket)
        else:
            merged.append(bucket)
    if len(merged) > 1 and merged[-1].rewards < least:
        merged[-2:] = [_merge(*merged[-2:])]
    return merged


def _merge(first: Bucket, second: Bucket) -> Bucket:
    return Bucket(first.start, *_sum(first[1:], second[1:]))


def _sum(one: Sums, other: Sums) -> Sums:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _sum_pair(one: tuple[Sums, Sums], other: tuple[Sums, Sums]) -> tuple[Sums, Sums]:
    return _sum(one[0], other[0]), _sum(one[1], other[1])
