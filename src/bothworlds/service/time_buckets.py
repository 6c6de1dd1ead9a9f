"""Values in a bounded number of time buckets: of a growing width, or of the last hours or days only."""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

MAX_BUCKETS = 240
FIRST_WIDTH = 1.0  # seconds
RANGES: Mapping[str, float | None] = MappingProxyType(  # in seconds, up to the newest value; None: everything
    {"15 min": 900.0, "1 h": 3600.0, "1 day": 86_400.0, "7 days": 604_800.0, "30 days": 2_592_000.0, "all": None}
)
Value = TypeVar("Value")


class TimeBuckets(Generic[Value]):
    """Sums of values by time bucket. Values may be added in any order of time. Thread-safe.

    Without a ``span``, neighbouring buckets are merged in pairs when there are too many. With one, the width is fixed,
    and values older than ``span`` seconds before the newest one are dropped.

    >>> import operator
    >>> buckets = TimeBuckets(operator.add, span=4.0, most=2)
    >>> for time in range(5):
    ...     buckets.add(100.0 + time, 1)
    >>> buckets.items()
    [(102.0, 2), (104.0, 1)]
    """

    def __init__(
        self, merge: Callable[[Value, Value], Value], *, span: float | None = None, most: int = MAX_BUCKETS
    ) -> None:
        self.width = FIRST_WIDTH if span is None else span / most
        self._merge, self._span, self._most = merge, span, most
        self._values: dict[int, Value] = {}
        self._first = self._last = 0
        self._lock = threading.Lock()

    def add(self, time: float, value: Value) -> None:
        """Add a value of some time (seconds since 1970)."""
        with self._lock:
            index = int(time // self.width)
            if not self._values:
                self._first = self._last = index
            elif not self._first <= index <= self._last and not self._make_room(index):
                return
            index = int(time // self.width)
            known = self._values.get(index)
            self._values[index] = value if known is None else self._merge(known, value)

    def _make_room(self, index: int) -> bool:
        """Take another bucket in; return False if it is too old."""
        if self._span is None:
            self._first, self._last = min(index, self._first), max(index, self._last)
            while self._last - self._first >= self._most:
                self._widen()
            return True
        if index <= self._last - self._most:
            return False
        self._first, self._last = min(index, self._first), max(index, self._last)
        oldest = self._last - self._most + 1
        if self._first < oldest:
            self._first = oldest
            self._values = {i: value for i, value in self._values.items() if i >= oldest}
        return True

    def _widen(self) -> None:
        """Double the width of the buckets."""
        self.width *= 2.0
        wider: dict[int, Value] = {}
        for index, value in self._values.items():
            known = wider.get(index // 2)
            wider[index // 2] = value if known is None else self._merge(known, value)
        self._values, self._first, self._last = wider, self._first // 2, self._last // 2

    def items(self) -> list[tuple[float, Value]]:
        """Return the start and the value of every bucket with a value, in order of time."""
        with self._lock:
            return [(index * self.width, value) for index, value in sorted(self._values.items())]
