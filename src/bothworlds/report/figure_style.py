"""The look of figures for a paper: width, font and colours, and which algorithms they show under which names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from bothworlds.report.chart import Chart, Line, Picture

COLUMNS = {"column": 3.25, "page": 6.75}  # inches: one column of a paper with two columns, and the whole width
FONTS: dict[str, Any] = {  # settings of matplotlib; "tex" needs no LaTeX
    "sans": {"font.family": ["sans-serif"]},
    "serif": {"font.family": ["serif"], "mathtext.fontset": "dejavuserif"},
    "tex": {
        "font.family": ["cmr10", "DejaVu Serif"],  # the second one has the letters that Computer Modern lacks
        "mathtext.fontset": "cm",
        "axes.formatter.use_mathtext": True,
        "axes.unicode_minus": False,
    },
}
NARROWEST, WIDEST = 1.0, 40.0


@dataclass(frozen=True, kw_only=True)
class Look:
    """Options of figures.

    Parameters
    ----------
    width
        In inches, or "column" (3.25) or "page" (6.75).
    font_size
        In points; the legend is one point smaller.
    font
        "sans", "serif", or "tex", the Computer Modern letters of LaTeX.
    grey
        Draw in black and greys, with different dashes and markers.
    algorithms
        Labels of the algorithms to show, in this order; all if left out.
    labels
        Other names for some algorithms.

    >>> Look(width="column").inches
    3.25
    """

    width: float | str = 4.6
    font_size: float = 9.0
    font: str = "sans"
    grey: bool = False
    algorithms: Sequence[str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not NARROWEST <= self.inches <= WIDEST:
            raise ValueError(f"width must be from {NARROWEST:g} to {WIDEST:g} inches; got {self.width!r}")
        if not 1.0 <= self.font_size <= 100.0:
            raise ValueError(f"font_size must be from 1 to 100 points; got {self.font_size!r}")
        if self.font not in FONTS:
            raise ValueError(f"font must be one of {', '.join(FONTS)}; got {self.font!r}")

    @property
    def inches(self) -> float:
        """The width in inches."""
        if isinstance(self.width, str) and self.width in COLUMNS:
            return COLUMNS[self.width]
        try:
            return float(self.width)
        except ValueError:
            raise ValueError(f"width must be inches, or one of {', '.join(COLUMNS)}; got {self.width!r}") from None

    def of(self, chart: Chart) -> Chart:
        """Return a chart with the selected curves and their bounds, renamed."""
        known = {line.label: line.number for line in chart.lines if not line.thin}
        lines = list(chart.lines)
        if self.algorithms is not None:
            order = [known[label] for label in self.algorithms if label in known]
            lines = sorted((line for line in lines if line.number in order), key=lambda line: order.index(line.number))
        return replace(chart, lines=[self._renamed(line) for line in lines])

    def of_picture(self, picture: Picture) -> Picture:
        """Return a picture with the selected curves, renamed; charts without curves are left out."""
        charts = tuple(chart for chart in map(self.of, picture.charts) if chart.lines)
        return replace(picture, charts=charts)

    def _renamed(self, line: Line) -> Line:
        """Return a line under its new name, which also is its label at the end."""
        if not line.thin:
            return replace(line, label=self.labels[line.label], end="") if line.label in self.labels else line
        word, _, label = line.label.partition(" for ")
        return replace(line, label=f"{word} for {self.labels.get(label, label)}")


PLAIN = Look()


def check_labels(look: Look, known: Sequence[str]) -> None:
    """Refuse a look with an unknown label."""
    for label in [*(look.algorithms or []), *look.labels]:
        if label not in known:
            raise ValueError(f"no algorithm {label!r} here; there are {', '.join(map(repr, known))}")


def select(figures: Sequence[Chart | Picture], names: Sequence[str] | None) -> list[Chart | Picture]:
    """Return the figures with some names, in their own order; all if ``names`` is None. Unknown names are refused."""
    if names is None:
        return list(figures)
    known = [figure.name for figure in figures]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"no figure {name!r} here{hint}; there are {', '.join(known)}")
    return [figure for figure in figures if figure.name in names]
