"""Charts as data: what is drawn, not how. The page and the figure files are drawn from the same chart."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.report.palette import Style

DECADES_SHOWN = 4.5  # of a logarithmic vertical axis
REACH = 6.0  # a linear axis ends at this multiple of the median curve, so that one bad curve does not squash the others
LONGEST_LABEL = 14  # characters
SHARE_OF_A_BAND = 0.8  # a logarithmic axis shows a band only where this share of it is positive


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A curve with an optional band around it; ``number`` is the algorithm's place in the study.

    A ``thin`` line is a "bound for" an algorithm, or a "limit for" it. A ``baseline`` does not stretch a linear axis:
    it may leave the chart. With ``dots`` every point has a dot, and the band is a whisker there; the dots are connected
    if ``joined``. ``spots`` (points, n) are small dots at the same places. ``end`` is the label at the end of the line.
    """

    label: str
    number: int
    style: Style
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    thin: bool = False
    baseline: bool = False
    dots: bool = False
    joined: bool = True
    spots: Floats | None = None
    end: str = ""

    @property
    def short(self) -> str:
        """The label at the end of the line: ``end``, or the label without its common prefix, cut to 14 characters.

        >>> Line(label="LC-Tsallis-INF matched", number=0, style=Style(0, ""), x=np.ones(1), y=np.ones(1)).short
        'matched'
        """
        label = self.end or self.label.removeprefix("LC-Tsallis-INF ")
        return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1].rstrip()}…"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A vertical stripe from one round to another, or a rule where both are equal, with a short text."""

    start: float
    end: float
    text: str
    colour: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """Curves on two axes, each linear or logarithmic.

    ``x_names`` are the names of 1, 2, ... on a horizontal axis of categories. A linear vertical axis covers all curves
    and their bands if ``whole``; otherwise it ends at `REACH` times the median curve.
    """

    name: str
    title: str
    description: str
    y_label: str
    lines: list[Line]
    x_label: str = "round t"
    x_log: bool = True
    y_log: bool = False
    y_limits: tuple[float, float] | None = None
    whole: bool = False
    marks: list[Mark] = field(default_factory=list)
    x_names: tuple[str, ...] = ()

    @property
    def in_order(self) -> list[Line]:
        """The lines in drawing order: solid ones first, so that dashed ones stay visible above them."""
        return sorted(self.lines, key=lambda line: bool(line.style.dash))

    @property
    def x_range(self) -> tuple[float, float]:
        """Ends of the horizontal axis."""
        x = np.concatenate([line.x for line in self.lines])
        if self.x_names:
            return 0.5, len(self.x_names) + 0.5
        return _widened(float(x.min()), float(x.max()))

    @property
    def y_range(self) -> tuple[float, float]:
        """Ends of the vertical axis."""
        if self.y_limits is not None:
            return self.y_limits
        return self._log_range if self.y_log else self._linear_range

    @property
    def _linear_range(self) -> tuple[float, float]:
        """Ends of a linear vertical axis: from zero or below to the highest curve that is not cut off."""
        if self.whole:
            values = _finite(part for line in self.lines for part in (line.y, line.low, line.high))
            low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
            return _widened(min(0.0, 1.05 * low), 1.05 * max(0.0, high))
        stretching = [line for line in self.lines if not line.baseline] or self.lines
        curves = [y for line in stretching if (y := _finite([line.y])).size]
        peaks = sorted(max(0.0, float(y.max())) for y in curves)
        middle = peaks[(len(peaks) - 1) // 2] if peaks else 0.0
        top = max((peak for peak in peaks if middle == 0.0 or peak <= REACH * middle), default=0.0)
        lowest = min((float(y.min()) for y in curves), default=0.0)
        return _widened(max(min(0.0, 1.08 * lowest), -2.0 * top if top > 0.0 else 1.08 * lowest), 1.08 * top)

    @property
    def _log_range(self) -> tuple[float, float]:
        """Ends of a logarithmic vertical axis: from the lowest curve or spot to the highest; bands may leave."""
        curves = _finite(part for line in self.lines for part in (line.y, line.spots))
        positive = curves[curves > 0.0]
        if not positive.size:
            return 0.1, 1.0
        top = float(positive.max())
        return _widened(max(float(positive.min()) / 1.3, top / 10.0**DECADES_SHOWN), top * 1.15)

    def band(self, line: Line) -> tuple[Floats, Floats] | None:
        """Return the band of a line, fit to be drawn.

        On a logarithmic axis a band may leave the chart at the bottom. A band that is often below zero is left out,
        because half a band would look like a narrow one.
        """
        if line.low is None or line.high is None:
            return None
        if not self.y_log:
            return line.low, line.high
        if np.mean(line.low > 0.0) < SHARE_OF_A_BAND:
            return None
        return np.maximum(line.low, self.y_range[0] / 2.0), np.where(line.high > 0.0, line.high, np.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """Charts side by side in one figure, each below its title."""

    name: str
    title: str
    description: str
    charts: tuple[Chart, ...]


def _finite(arrays: Iterable[Floats | None]) -> Floats:
    """Return the finite numbers of some arrays, as one array."""
    values = np.concatenate([array.reshape(-1) for array in arrays if array is not None])
    return np.asarray(values[np.isfinite(values)])


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return a range that is not empty."""
    return (low, high) if high > low else (low, low + max(1.0, abs(low)))


def ticks(low: float, high: float, *, log: bool, count: int = 5) -> list[float]:
    """Return round numbers within a range.

    >>> ticks(0, 97, log=False)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    >>> ticks(10, 30_000, log=True)
    [10.0, 100.0, 1000.0, 10000.0]
    """
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1.0,) if math.log10(high / low) > 2.0 else (1.0, 2.0, 5.0)
        every = math.ceil(math.log10(high / low) / 6.0)
        places = [step * 10.0**power for power in powers if power % max(1, every) == 0 for step in steps]
    else:
        rough = (high - low) / count
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1.0, 2.0, 5.0, 10.0) if unit * m >= rough)
        places = [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    slack = 1e-9 * abs(high)
    return [value for value in places if low - slack <= value <= high + slack]


def short(value: float) -> str:
    """Return a number for an axis.

    >>> [short(v) for v in (0, 0.05, 200, 20_000, 1_500_000, 1e-7)]
    ['0', '0.05', '200', '20k', '1.5M', '1e-07']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"
