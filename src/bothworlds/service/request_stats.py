"""Counts of answered requests by route and status, and histograms of their latency, now and over the last hour."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
SAMPLE_SECONDS = 10.0  # between two samples of the counts
MOST_SAMPLES = 361  # an hour
OTHER = "other"  # the route of unknown paths
Cell: TypeAlias = tuple[str, int]  # route and status


class Latencies(NamedTuple):
    """Numbers of requests by upper bound of their latency (``BOUNDS``, then more), and the sum of latencies."""

    counts: tuple[int, ...]
    seconds: float

    @property
    def total(self) -> int:
        """The number of requests."""
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """Return an upper bound of a quantile of the latency in seconds; NaN without requests, inf beyond the bounds.

        >>> Latencies((0, 98, 0, 2, *[0] * 11), 0.1).quantile(0.5)
        0.001
        """
        wanted, reached = share * self.total, 0
        for bound, count in zip((*BOUNDS, float("inf")), self.counts, strict=True):
            reached += count
            if count and reached >= wanted:
                return bound
        return float("nan")


class Sample(NamedTuple):
    """The counts since the start at some time (seconds since 1970)."""

    time: float
    cells: Mapping[Cell, Latencies]


class RequestStats:
    """Counts of answered requests. One thread observes; any thread may read.

    The route of a request is one of few, so that the number of counters is bounded.

    >>> stats = RequestStats()
    >>> stats.observe("/v1/decide", 200, 0.004)
    >>> stats.observe("/v1/decide", 503, 20.0)
    >>> stats.statuses()
    {('/v1/decide', 200): 1, ('/v1/decide', 503): 1}
    >>> stats.by_route()["/v1/decide"].counts
    (0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    """

    def __init__(self) -> None:
        self._cells: dict[Cell, list[float]] = {}
        self._samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        cell = self._cells.get((route, status))
        if cell is None:
            cell = self._cells[route, status] = [0] * (len(BOUNDS) + 2)
        cell[bisect_left(BOUNDS, seconds)] += 1
        cell[-1] += seconds

    def cells(self) -> dict[Cell, Latencies]:
        """Return the latencies since the start by route and status."""
        copies = [(key, list(cell)) for key, cell in list(self._cells.items())]
        return {key: Latencies(tuple(map(int, cell[:-1])), cell[-1]) for key, cell in copies}

    def statuses(self) -> dict[Cell, int]:
        """Return the numbers of responses since the start by route and status."""
        return {key: latencies.total for key, latencies in self.cells().items()}

    def by_route(self) -> dict[str, Latencies]:
        """Return the latencies since the start by route."""
        return by_route(self.cells())

    def sample(self, now: float) -> None:
        """Keep the current counts, if the last sample is older than ``SAMPLE_SECONDS``."""
        samples = self._samples
        if not samples or not 0.0 <= now - samples[-1].time < SAMPLE_SECONDS:
            samples.append(Sample(now, self.cells()))

    def recent(self) -> list[Sample]:
        """Return the samples of the last hour and the current counts, oldest first."""
        return [*self._samples, Sample(time.time(), self.cells())]


def by_route(cells: Mapping[Cell, Latencies]) -> dict[str, Latencies]:
    """Return latencies by route, of all statuses together."""
    routes: dict[str, list[Latencies]] = {}
    for (route, _), latencies in cells.items():
        routes.setdefault(route, []).append(latencies)
    return {route: total(parts) for route, parts in routes.items()}


def total(parts: Iterable[Latencies]) -> Latencies:
    """Return the sum of latencies."""
    parts = [*parts, NONE]
    return Latencies(tuple(map(sum, zip(*(part.counts for part in parts), strict=True))), sum(p.seconds for p in parts))


def since(now: Sample, before: Sample) -> dict[Cell, Latencies]:
    """Return the latencies of the requests between two samples."""
    made = {}
    for key, latencies in now.cells.items():
        old = before.cells.get(key, NONE)
        counts = tuple(new - gone for new, gone in zip(latencies.counts, old.counts, strict=True))
        if any(counts):
            made[key] = Latencies(counts, latencies.seconds - old.seconds)
    return made


NONE = Latencies((0,) * (len(BOUNDS) + 1), 0.0)
