"""How rewards come over time: sums in stretches of time that grow with what is remembered, a few hundred numbers."""

import threading
from collections.abc import Iterable
from typing import NamedTuple

MOST = 240  # stretches that are kept
SHORTEST = 1.0  # seconds of one, at first


class Stretch(NamedTuple):
    """Rewards in a stretch of time: when it began, how many, and their sum."""

    began: float
    rewards: int
    total: float

    @property
    def mean(self) -> float:
        """The mean reward."""
        return self.total / self.rewards


class Pulse:
    """Counts rewards of decisions, and of those held out apart; may be told of old ones later. Safe in threads.

    >>> pulse = Pulse(most=2)
    >>> for time in range(4):
    ...     pulse.note(100.0 + time, time % 2, holdout=False)
    >>> pulse.width, [(stretch.began, stretch.mean) for stretch in pulse.stretches(holdout=False)]
    (2.0, [(100.0, 0.5), (102.0, 0.5)])
    """

    def __init__(self, *, most: int = MOST) -> None:
        self.width = SHORTEST
        self._most = most
        self._sums: dict[tuple[int, bool], tuple[int, float]] = {}
        self._first = self._last = 0
        self._lock = threading.Lock()

    def note(self, time: float, total: float, *, holdout: bool, count: int = 1) -> None:
        """Count rewards of one time, one or so many, by their sum."""
        if not count:
            return
        with self._lock:
            place = int(time // self.width)
            if not self._sums:
                self._first = self._last = place
            elif not self._first <= place <= self._last:
                self._first, self._last = min(place, self._first), max(place, self._last)
                while self._last - self._first >= self._most:
                    self._widen()
                place = int(time // self.width)
            before = self._sums.get((place, holdout), (0, 0.0))
            self._sums[place, holdout] = before[0] + count, before[1] + total

    def _widen(self) -> None:
        """Make stretches twice as long."""
        self.width *= 2.0
        wider: dict[tuple[int, bool], tuple[int, float]] = {}
        for (place, holdout), (count, total) in self._sums.items():
            before = wider.get((place // 2, holdout), (0, 0.0))
            wider[place // 2, holdout] = before[0] + count, before[1] + total
        self._sums, self._first, self._last = wider, self._first // 2, self._last // 2

    def stretches(self, *, holdout: bool) -> list[Stretch]:
        """Return what was counted, in the order of time."""
        with self._lock:
            found = sorted((place, sums) for (place, held), sums in self._sums.items() if held == holdout)
            return [Stretch(place * self.width, *sums) for place, sums in found]


def merged(stretches: Iterable[Stretch], least: int) -> list[Stretch]:
    """Return stretches put together until each has at least so many rewards; the rest goes to the last.

    >>> merged([Stretch(0.0, 2, 1.0), Stretch(1.0, 3, 2.0), Stretch(2.0, 1, 1.0)], 5)
    [Stretch(began=0.0, rewards=6, total=4.0)]
    """
    made: list[Stretch] = []
    for one in stretches:
        if made and made[-1].rewards < least:
            made[-1] = _together(made[-1], one)
        else:
            made.append(one)
    if len(made) > 1 and made[-1].rewards < least:
        made[-2:] = [_together(*made[-2:])]
    return made


def _together(first: Stretch, second: Stretch) -> Stretch:
    return Stretch(first.began, first.rewards + second.rewards, first.total + second.total)
