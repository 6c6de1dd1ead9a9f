"""Charts as files for papers: SVG by hand, PDF and PNG with matplotlib (`pip install 'bothworlds[report]'`)."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from bothworlds.errors import not_installed
from bothworlds.plain import printable
from bothworlds.problem.storage import write_bytes
from bothworlds.report.chart import Chart, Line
from bothworlds.report.look import PLAIN, Look
from bothworlds.report.palette import LIGHT
from bothworlds.report.svg import standalone

SHAPE = 0.62  # height over width, without the legend
LETTERS = 36  # in a line beside the vertical axis
WIDE = 5.5  # inches from which a legend has four columns
EMBEDDED: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}  # letters as TrueType: publishers refuse Type 3
GREYS = ("#000000", "#666666", "#333333", "#8c8c8c")
MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")


def write_figures(charts: Iterable[Chart], folder: str | Path, *, look: Look = PLAIN) -> tuple[list[Path], str]:
    """Write every chart as SVG, and as PDF and PNG if matplotlib is there; return the files and what is to be said.

    ``look`` has width, size of letters, colours, algorithms and labels; SVG is as wide as its reader likes. Charts that
    it leaves empty are not written.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    note = "" if has_matplotlib() else not_installed("PDF and PNG need", "matplotlib", "report")
    for chart in (look.of(chart) for chart in charts):
        if not chart.lines:
            continue
        path = target / f"{chart.name}.svg"
        write_bytes(path, standalone(chart).encode())
        written.append(path)
        if not note:
            written += _with_matplotlib(chart, target, look)
    return written, note


def has_matplotlib() -> bool:
    """Tell whether matplotlib can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _with_matplotlib(chart: Chart, folder: Path, look: Look) -> list[Path]:
    """Draw a chart with matplotlib and write it as PDF and PNG, without dates, so that files are reproducible."""
    from matplotlib import rc_context

    paths: list[Path] = []
    with rc_context(EMBEDDED):
        figure = matplotlib_figure(chart, look)
        for kind, options in (("pdf", {"metadata": {"CreationDate": None}}), ("png", {"dpi": 200})):
            paths.append(folder / f"{chart.name}.{kind}")
            figure.savefig(paths[-1], **options)
    return paths


def matplotlib_figure(chart: Chart, look: Look = PLAIN) -> Any:
    """Return a chart as a figure of matplotlib."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.size": look.font_size, "axes.axisbelow": True}):
        rows = -(-len(chart.lines) // (2 if look.inches < WIDE else 4))
        height = look.inches * SHAPE + rows * look.font_size / 55.0
        figure = Figure(figsize=(look.inches, height), layout="constrained")
        _fill(figure, chart, look)
    return figure


def _fill(figure: Any, chart: Chart, look: Look) -> None:
    """Draw axes, curves, marks and legend."""
    axes = figure.add_subplot()
    small = max(1.0, look.font_size - 1.5)
    in_turn = sorted(chart.lines, key=lambda line: line.thin)  # algorithms first in the legend, then their bounds
    for place, line in enumerate(in_turn):
        _draw(axes, line, chart, _grey(place) if look.grey else None)
    axes.set_xscale("log" if chart.x_log else "linear")
    axes.set_yscale("log" if chart.y_log else "linear")
    if chart.x_names:  # after the scale, which has ticks of its own
        axes.set_xticks(range(1, len(chart.x_names) + 1), chart.x_names, rotation=20, ha="right", fontsize=small)
    axes.set_xlim(*chart.x_range)
    axes.set_ylim(*chart.y_range)
    for mark in chart.marks:
        colour = "#888888" if mark.colour is None or look.grey else LIGHT[mark.colour]
        if mark.start == mark.end:
            axes.axvline(mark.start, color=colour, linestyle=":", linewidth=1)
        else:
            axes.axvspan(mark.start, mark.end, color=colour, alpha=0.16, linewidth=0)
    for row, mark in enumerate(mark for mark in chart.marks if mark.text):
        height = 0.97 - 0.06 * row
        where = (max(mark.start, chart.x_range[0]), height)
        axes.annotate(f" {_plain(mark.text)}", where, xycoords=("data", "axes fraction"), va="top", fontsize=small)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(fill(chart.y_label, LETTERS))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    columns = 2 if look.inches < WIDE else 4
    figure.legend(loc="outside lower center", ncols=columns, fontsize=small, frameon=False)


class Grey(NamedTuple):
    """How a curve is drawn without colours."""

    colour: str
    dash: Any
    marker: str


def _grey(place: int) -> Grey:
    """Return a shade, dashes and a mark; neighbours differ in all of them."""
    dashes: list[Any] = ["-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2))]
    return Grey(GREYS[place % len(GREYS)], dashes[place % len(dashes)], MARKERS[place % len(MARKERS)])


def _draw(axes: Any, line: Line, chart: Chart, grey: Grey | None) -> None:
    """Draw a curve and its band, broken where a logarithmic axis cannot show it."""
    colour = LIGHT[line.style.colour] if grey is None else grey.colour
    style: Any = (0, (1.0, 2.0)) if line.thin else "-"
    if line.style.dash and not line.thin:
        style = (0, tuple(0.6 * float(length) for length in line.style.dash.split()))
    marks: dict[str, Any] = {"marker": "o", "markersize": 3.5} if line.dots else {}
    if grey is not None and not line.thin:
        style = grey.dash
        every = max(1, len(line.x) // 7)
        marks = {"marker": grey.marker, "markersize": 4.0, "markevery": every, "markerfacecolor": "white"}
    width, over = 0.9 if line.thin else 1.6, 3 if line.style.dash else 2
    y = np.where(line.y > 0.0, line.y, np.nan) if chart.y_log else line.y
    drawn = {"color": colour, "linestyle": style, "linewidth": width, "zorder": over, **marks}
    axes.plot(line.x, y, label=_plain(line.label), **drawn)
    band = chart.band(line)
    if band is not None and line.dots:
        axes.vlines(line.x, *band, color=colour, alpha=0.5, linewidth=1.0)
    elif band is not None:
        axes.fill_between(line.x, *band, color=colour, alpha=0.15, linewidth=0)


def _plain(text: str) -> str:
    """Escape what matplotlib would take as mathematics, and spell what it has no letters for."""
    return printable(text).replace("$", r"\$")
