"""How figures for a paper look: their width, letters and colours, and who is in them under which name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bothworlds.report.chart import Chart, Line

COLUMNS = {"column": 3.25, "page": 6.75}  # inches: one column of a paper with two, and the whole width
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
    grey
        Draw in black and greys, told apart by dashes and marks.
    algorithms
        Labels of those to show, in this order; all if left out.
    labels
        Other names for some of them.

    >>> Look(width="column").inches
    3.25
    """

    width: float | str = 4.6
    font_size: float = 9.0
    grey: bool = False
    algorithms: Sequence[str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not NARROWEST <= self.inches <= WIDEST:
            raise ValueError(f"width must be from {NARROWEST:g} to {WIDEST:g} inches; got {self.width!r}")
        if not 1.0 <= self.font_size <= 100.0:
            raise ValueError(f"font_size must be from 1 to 100 points; got {self.font_size!r}")

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
        """Return a chart with the chosen curves, and their bounds, under their names."""
        known = {line.label: line.number for line in chart.lines if not line.thin}
        lines = list(chart.lines)
        if self.algorithms is not None:
            order = [known[label] for label in self.algorithms if label in known]
            lines = sorted((line for line in lines if line.number in order), key=lambda line: order.index(line.number))
        return replace(chart, lines=[replace(line, label=self._named(line)) for line in lines])

    def _named(self, line: Line) -> str:
        if not line.thin:
            return self.labels.get(line.label, line.label)
        word, _, label = line.label.partition(" for ")
        return f"{word} for {self.labels.get(label, label)}"


PLAIN = Look()


def check_labels(look: Look, known: Sequence[str]) -> None:
    """Refuse a look that names somebody who is not there."""
    for label in [*(look.algorithms or []), *look.labels]:
        if label not in known:
            raise ValueError(f"no algorithm {label!r} here; there are {', '.join(map(repr, known))}")
