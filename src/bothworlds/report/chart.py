"""A chart as data: what is drawn, not how. Both the page and the figure files are made from it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.report.palette import Style

DECADES_SHOWN = 4.5  # of a logarithmic vertical axis
REACH = 6.0  # a linear axis shows curves up to so many times the middle one; it would squash the good ones otherwise
LONGEST_LABEL = 14
SHARE_OF_A_BAND = 0.8  # of the curve; a band that is positive more rarely tells nothing on a logarithmic axis


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A curve with an optional band around it; ``number`` is the algorithm's place in the study.

    A ``thin`` line is a "bound for" an algorithm, or a "limit for" it. A ``yardstick`` does not stretch a linear axis:
    it may leave the chart. With ``dots`` every place has a dot, and the band is a whisker there.
    """

    label: str
    number: int
    style: Style
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    thin: bool = False
    yardstick: bool = False
    dots: bool = False

    @property
    def short(self) -> str:
        """The label as it stands at the end of the line.

        >>> Line(label="LC-Tsallis-INF matched", number=0, style=Style(0, ""), x=np.ones(1), y=np.ones(1)).short
        'matched'
        """
        words = self.label.removeprefix("LC-Tsallis-INF ")
        return words if len(words) <= LONGEST_LABEL else f"{words[: LONGEST_LABEL - 1].rstrip()}…"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A vertical stripe from one round to another, or a line where both are the same, with a few words."""

    start: float
    end: float
    text: str
    colour: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """Curves on two axes, each linear or logarithmic.

    ``x_names`` are names for 1, 2, ... on a horizontal axis that is no number.
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
    marks: list[Mark] = field(default_factory=list)
    x_names: tuple[str, ...] = ()

    @property
    def in_order(self) -> list[Line]:
        """The lines as they are drawn: solid ones first, so that dashes over them are seen."""
        return sorted(self.lines, key=lambda line: bool(line.style.dash))

    @property
    def x_range(self) -> tuple[float, float]:
        """Where the horizontal axis begins and ends."""
        x = np.concatenate([line.x for line in self.lines])
        if self.x_names:
            return 0.6, len(self.x_names) + 0.4
        return _widened(float(x.min()), float(x.max()))

    @property
    def y_range(self) -> tuple[float, float]:
        """Where the vertical axis begins and ends."""
        if self.y_limits is not None:
            return self.y_limits
        return self._log_range if self.y_log else self._linear_range

    @property
    def _linear_range(self) -> tuple[float, float]:
        """Zero, and the curves up to `REACH` times the middle one; the others, and bands, may leave the chart."""
        stretching = [line for line in self.lines if not line.yardstick] or self.lines
        curves = [y for line in stretching if (y := _finite([line.y])).size]
        peaks = sorted(max(0.0, float(y.max())) for y in curves)
        middle = peaks[(len(peaks) - 1) // 2] if peaks else 0.0
        top = max((peak for peak in peaks if middle == 0.0 or peak <= REACH * middle), default=0.0)
        lowest = min((float(y.min()) for y in curves), default=0.0)
        return _widened(max(min(0.0, 1.08 * lowest), -2.0 * top if top > 0.0 else 1.08 * lowest), 1.08 * top)

    @property
    def _log_range(self) -> tuple[float, float]:
        """From the lowest curve to the highest; bands may leave."""
        curves = _finite(line.y for line in self.lines)
        positive = curves[curves > 0.0]
        if not positive.size:
            return 0.1, 1.0
        top = float(positive.max())
        return _widened(max(float(positive.min()) / 1.3, top / 10.0**DECADES_SHOWN), top * 1.15)

    def band(self, line: Line) -> tuple[Floats, Floats] | None:
        """Return the band of a line as it can be drawn.

        On a logarithmic axis a band may leave the chart at the bottom; one that is often below zero is left out, for
        half a band would look like a precise one.
        """
        if line.low is None or line.high is None:
            return None
        if not self.y_log:
            return line.low, line.high
        if np.mean(line.low > 0.0) < SHARE_OF_A_BAND:
            return None
        return np.maximum(line.low, self.y_range[0] / 2.0), np.where(line.high > 0.0, line.high, np.nan)


def _finite(several: Iterable[Floats | None]) -> Floats:
    """Return all finite numbers of some arrays."""
    values = np.concatenate([one for one in several if one is not None])
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
        found = [step * 10.0**power for power in powers if power % max(1, every) == 0 for step in steps]
    else:
        rough = (high - low) / count
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1.0, 2.0, 5.0, 10.0) if unit * m >= rough)
        found = [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    slack = 1e-9 * abs(high)
    return [value for value in found if low - slack <= value <= high + slack]


def short(value: float) -> str:
    """Return a number for an axis.

    >>> [short(v) for v in (0, 0.05, 200, 20_000, 1_500_000, 1e-7)]
    ['0', '0.05', '200', '20k', '1.5M', '1e-07']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"
