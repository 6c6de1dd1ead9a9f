"""The time by which reward windows close: a clock that is set forward does not close them early."""

import time
from collections import deque

SMALLEST_JUMP = 2.0  # seconds between two looks by which the clocks differ: less is drift


def steady() -> float:
    """Return seconds on a clock that nobody sets."""
    return time.monotonic()


class WindowClock:
    """Compares the clock that stamps records with one that nobody sets.

    After the clock was set forward by d seconds, earlier records look d seconds older than they are. Until a window
    has passed since, d is subtracted; a record from after that closes later in any case. A clock that is set back by
    as much cancels it. What happens to the clock while the service does not run, is not noticed.

    >>> clock = WindowClock(wall=1000.0, at=0.0)
    >>> clock.now(60.0, wall=1010.0, at=10.0)
    1010.0
    >>> [clock.now(60.0, wall=at + 4600.0, at=at) for at in (11.0, 70.0, 72.0)]
    [1011.0, 1070.0, 4672.0]
    """

    def __init__(self, *, wall: float | None = None, at: float | None = None) -> None:
        self._offset = self._read(wall, at)[0] - self._read(wall, at)[1]
        self._jumps: deque[tuple[float, float]] = deque()

    def _read(self, wall: float | None, at: float | None) -> tuple[float, float]:
        return time.time() if wall is None else wall, steady() if at is None else at

    def now(self, window: float, *, wall: float | None = None, at: float | None = None) -> float:
        """Return the time by which windows of this length close."""
        wall, at = self._read(wall, at)
        jump = wall - at - self._offset
        self._offset += jump
        if abs(jump) > SMALLEST_JUMP:
            self._jumps.append((at, jump))
        while self._jumps and at - self._jumps[0][0] > window:
            self._jumps.popleft()
        return wall - max(0.0, sum(jump for _, jump in self._jumps))
