"""Rewards over time, as sums in a bounded number of time buckets of growing width."""

import math
import threading
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

MAX_BUCKETS = 240
FIRST_WIDTH = 1.0  # seconds
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
    """Sums of rewards per time bucket, for policy and holdout; too many buckets are merged in pairs.

    The time of a reward is that of its decision. Rewards may be added in any order of time. Thread-safe.

    >>> series = RewardSeries(max_buckets=2)
    >>> for time in range(4):
    ...     series.add(100.0 + time, time % 2, holdout=False)
    >>> series.width, [(bucket.start, bucket.mean) for bucket in series.buckets(holdout=False)]
    (2.0, [(100.0, 0.5), (102.0, 0.5)])
    """

    def __init__(self, *, max_buckets: int = MAX_BUCKETS) -> None:
        self.width = FIRST_WIDTH
        self._max_buckets = max_buckets
        self._sums: dict[tuple[int, bool], Sums] = {}
        self._first = self._last = 0
        self._lock = threading.Lock()

    def add(self, time: float, reward: float, *, holdout: bool) -> None:
        """Add the reward of a decision of some time (seconds since 1970)."""
        with self._lock:
            index = int(time // self.width)
            if not self._sums:
                self._first = self._last = index
            elif not self._first <= index <= self._last:
                self._first, self._last = min(index, self._first), max(index, self._last)
                while self._last - self._first >= self._max_buckets:
                    self._widen()
                index = int(time // self.width)
            self._sums[index, holdout] = _sum(self._sums.get((index, holdout), NONE), (1, reward, reward * reward))

    def _widen(self) -> None:
        """Double the width of the buckets."""
        self.width *= 2.0
        wider: dict[tuple[int, bool], Sums] = {}
        for (index, holdout), sums in self._sums.items():
            wider[index // 2, holdout] = _sum(wider.get((index // 2, holdout), NONE), sums)
        self._sums, self._first, self._last = wider, self._first // 2, self._last // 2

    def buckets(self, *, holdout: bool) -> list[Bucket]:
        """Return the nonempty buckets in order of time."""
        with self._lock:
            pairs = sorted((index, sums) for (index, held), sums in self._sums.items() if held == holdout)
            return [Bucket(index * self.width, *sums) for index, sums in pairs]


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
