"""Intervals along a log: one kind for each set of assumptions."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.evaluation.average_bounds import both_averages
from bothworlds.evaluation.betting_bounds import both_bounds
from bothworlds.evaluation.dr_terms import Contrast, ValueQuery
from bothworlds.evaluation.logged import Logged, chunks
from bothworlds.theory.confidence.checks import checked_alpha

Interval = Literal["betting", "bernstein", "betting at the end", "bernstein at the end", "normal"]
END = "holds at the last row only, if the number of rows was fixed in advance, for a value that is the same in all rows"
INTERVALS: dict[str, str] = {
    "betting": "holds at any time, for a value that is the same in all rows",
    "bernstein": "holds at any time, for the average of values that may change",
    "betting at the end": END,
    "bernstein at the end": END,
    "normal": "is an approximation for many rows at one time; checked repeatedly it is wrong far too often",
}


class NormalIntervalWarning(UserWarning):
    """Emitted for normal intervals: under adaptive logging they may be wrong far more often than alpha."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Band:
    """An interval at each checkpoint.

    ``rows`` are the checkpoints as numbers of rows; ``estimate`` is the doubly robust mean so far (without predictions,
    inverse propensity weighting of rewards less the lowest one); ``low`` and ``high`` are the ends, in the problem's
    units. At checkpoints without information the interval is as wide as values can be.
    """

    kind: Interval
    alpha: float
    rows: Ints
    estimate: Floats
    low: Floats
    high: Floats

    @property
    def interval(self) -> tuple[float, float]:
        """The interval after the last row; not numbers if ``contradicted``."""
        return (float("nan"), float("nan")) if self.contradicted else (float(self.low[-1]), float(self.high[-1]))

    def __repr__(self) -> str:
        last = brief(f"after {self.rows[-1]:,} rows", float(self.estimate[-1]), self.interval)
        return f"Band({self.kind}, {len(self.rows)} checkpoints; {last})"

    @property
    def contradicted(self) -> bool:
        """Whether the interval is empty: the value changes with time, or the event of probability alpha occurred."""
        return bool(self.low[-1] > self.high[-1])

    @property
    def about(self) -> str:
        """What the interval claims, in words."""
        return INTERVALS[self.kind]


def brief(name: str, value: float, interval: tuple[float, float]) -> str:
    """Return a value and its interval as a line of text.

    >>> brief("new", 0.25, (0.2, 0.3125))
    'new: 0.25 in [0.2, 0.3125]'
    """
    low, high = interval
    return f"{name}: {value:.4g} in [{low:.4g}, {high:.4g}]"


def band_of(query: ValueQuery, checkpoints: Ints, *, kind: Interval = "betting", alpha: float = 0.05) -> Band:
    """Return the band of a contrast, in the problem's units."""
    checked_alpha(alpha)
    if kind not in INTERVALS:
        raise ValueError(f"interval must be one of {', '.join(map(repr, INTERVALS))}; got {kind!r}")
    mean, error = _means(query, checkpoints)
    if kind == "normal":
        low, high = _normal(mean, error, alpha)
    else:
        low, high = _ends(query, checkpoints, kind, alpha)
    band = Band(kind=kind, alpha=alpha, rows=checkpoints, estimate=mean, low=low, high=high)
    return _in_units(query.logged, query.contrast, band)


def _ends(query: ValueQuery, checkpoints: Ints, kind: str, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends: the lower bound, and minus the lower bound of the negative."""
    bounds: Callable[..., tuple[Floats, Floats]] = both_bounds if kind.startswith("betting") else both_averages
    low, high = bounds(query, checkpoints, alpha=alpha, planned=kind.endswith("at the end"))
    return low, -high


def _normal(mean: Floats, error: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return mean -+ z error, with a warning."""
    warnings.warn(
        "normal intervals are " + INTERVALS["normal"].removeprefix("is ") + "; interval='betting' holds at any time",
        NormalIntervalWarning,
        stacklevel=2,
    )
    z = NormalDist().inv_cdf(1.0 - alpha / 2.0)
    return mean - z * error, mean + z * error


def _means(query: ValueQuery, checkpoints: Ints) -> tuple[Floats, Floats]:
    """Return the mean of the uncut summands and its standard error, up to each checkpoint."""
    C = len(checkpoints)
    sums, squares = np.zeros(C), np.zeros(C)
    for where in chunks(int(checkpoints[-1])):
        x = query.uncut(where)
        segment = np.searchsorted(checkpoints, np.arange(where.start, where.stop), side="right")
        sums += np.bincount(segment, weights=x, minlength=C)
        squares += np.bincount(segment, weights=x * x, minlength=C)
    mean = np.cumsum(sums) / checkpoints
    variance = np.maximum(np.cumsum(squares) / checkpoints - mean**2, 0.0)
    return mean, np.sqrt(variance / np.maximum(checkpoints - 1, 1))


def _in_units(logged: Logged, contrast: Contrast, band: Band) -> Band:
    """Return a band of scaled rewards in the problem's units; a difference has no offset."""
    lowest, highest = logged.reward_range
    width, offset = highest - lowest, 0.0 if contrast.against is not None else lowest
    estimate, low, high = (offset + width * scaled for scaled in (band.estimate, band.low, band.high))
    return Band(kind=band.kind, alpha=band.alpha, rows=band.rows, estimate=estimate, low=low, high=high)


def checkpoints_for(rows: int, count: int = 200) -> Ints:
    """Return up to ``count`` checkpoints, numbers of rows evenly spaced on a logarithmic scale, ending with ``rows``.

    >>> checkpoints_for(1000, 5).tolist()
    [10, 32, 100, 316, 1000]
    """
    if rows < 1:
        raise ValueError("the log has no rows; there is nothing to evaluate")
    first = min(10, rows)
    return np.unique(np.rint(np.geomspace(first, rows, max(count, 1) if rows > first else 1)).astype(np.int64))
