"""Figures as files for papers: SVG from our own writer, PDF and PNG from matplotlib (`pip install '.[report]'`)."""

import logging
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from bothworlds.errors import not_installed
from bothworlds.problem.file_format import write_bytes
from bothworlds.report.chart import Chart, Line, Picture
from bothworlds.report.figure_style import FONTS, PLAIN, Look
from bothworlds.report.palette import LIGHT
from bothworlds.report.svg import spread, standalone, standalone_picture
from bothworlds.serialization import printable

SHAPE = 0.62  # height over width, without the legend
LETTERS = (60, 44, 34, 26, 20, 15, 10)  # characters in a line of the label of a vertical axis: the most that fit
WIDE = 5.5  # inches from which a legend has up to four columns, and the charts of a picture are side by side
EMBEDDED: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}  # letters as TrueType: publishers refuse Type 3
GREYS = ("#000000", "#666666", "#333333", "#8c8c8c")
MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")


def write_figures(
    figures: Iterable[Chart | Picture], folder: str | Path, *, look: Look = PLAIN
) -> tuple[list[Path], str]:
    """Write figures as SVG, and as PDF and PNG if matplotlib is installed; return the files and a note.

    ``look`` has the width, font, colours, algorithms and labels; the width does not apply to SVG. Figures that have no
    curves with this look are not written. The note says which package is missing, or is empty.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    note = "" if has_matplotlib() else not_installed("PDF and PNG need", "matplotlib", "report")
    for figure in figures:
        styled = look.of_picture(figure) if isinstance(figure, Picture) else look.of(figure)
        if not (styled.charts if isinstance(styled, Picture) else styled.lines):
            continue
        draw: Any = standalone_picture if isinstance(styled, Picture) else standalone
        path = target / f"{styled.name}.svg"
        write_bytes(path, draw(styled, font=look.font).encode())
        written.append(path)
        if not note:
            written += _with_matplotlib(styled, target, look)
    return written, note


def has_matplotlib() -> bool:
    """Tell whether matplotlib can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _with_matplotlib(figure: Chart | Picture, folder: Path, look: Look) -> list[Path]:
    """Write a figure as PDF and PNG with matplotlib, without dates, so that files are reproducible."""
    from matplotlib import rc_context

    paths: list[Path] = []
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it warns of the dates in the font cmr10
    with rc_context({**EMBEDDED, **FONTS[look.font]}):
        drawn = matplotlib_figure(figure, look)
        for kind, options in (("pdf", {"metadata": {"CreationDate": None}}), ("png", {"dpi": 200})):
            paths.append(folder / f"{figure.name}.{kind}")
            drawn.savefig(paths[-1], **options)
    return paths


def matplotlib_figure(figure: Chart | Picture, look: Look = PLAIN) -> Any:
    """Return a chart or a picture as a figure of matplotlib."""
    from matplotlib import rc_context

    with rc_context({"font.size": look.font_size, "axes.axisbelow": True, **FONTS[look.font]}):
        return _picture(figure, look) if isinstance(figure, Picture) else _chart(figure, look)


def _chart(chart: Chart, look: Look) -> Any:
    """Return a chart with its legend below it."""
    from matplotlib.figure import Figure

    columns = 4 if look.inches >= WIDE else 2
    while True:
        rows = -(-len(chart.lines) // columns)
        height = look.inches * SHAPE + rows * look.font_size / 55.0
        figure = Figure(figsize=(look.inches, height), layout="constrained")
        axes = figure.add_subplot()
        _fill(axes, chart, look)
        legend = figure.legend(loc="outside lower center", ncols=columns, fontsize=_small(look), frameon=False)
        figure.draw_without_rendering()
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        columns -= 1
    _fit_label(axes, chart.y_label)
    return figure


def _picture(picture: Picture, look: Look) -> Any:
    """Return the charts of a picture, side by side or one below the other, with labels at the ends of the curves."""
    from matplotlib.figure import Figure

    count = len(picture.charts)
    rows, columns = (1, count) if look.inches >= WIDE else (count, 1)
    width = look.inches / columns
    figure = Figure(figsize=(look.inches, rows * width * SHAPE), layout="constrained")
    for chart, axes in zip(picture.charts, np.ravel(figure.subplots(rows, columns)), strict=True):
        _fill(axes, chart, look)
        axes.set_title(_plain(chart.title), loc="left", fontsize=look.font_size)
        _label_ends(axes, chart, look, width * 72.0 * SHAPE * 0.6)
    figure.draw_without_rendering()
    return figure


def _label_ends(axes: Any, chart: Chart, look: Look, height: float) -> None:
    """Label the curves at their right ends, without overlaps; ``height`` is about that of the axes, in points."""
    bottom, top = chart.y_range
    unit = (top - bottom) / height
    ends = [-(float(line.y[-1]) - bottom) / unit for line in chart.lines]  # downwards, in points
    size = _small(look)
    moved = spread(ends, -height, 0.0, 1.15 * size)
    for place, (line, at) in enumerate(zip(chart.lines, moved, strict=True)):
        colour = _grey(place).colour if look.grey else LIGHT[line.style.colour]
        where = (1.02, -at * unit / (top - bottom))
        text = axes.annotate(_plain(line.short), where, xycoords="axes fraction", va="center", fontsize=size)
        text.set_color(colour)


def _small(look: Look) -> float:
    """Return the size of small text, in points."""
    return max(1.0, look.font_size - 1.5)


def _fill(axes: Any, chart: Chart, look: Look) -> None:
    """Draw axes, curves and marks."""
    small = _small(look)
    in_order = sorted(chart.lines, key=lambda line: line.thin)  # algorithms first in the legend, then their bounds
    for place, line in enumerate(in_order):
        _draw(axes, line, chart, _grey(place) if look.grey else None)
    axes.set_xscale("log" if chart.x_log else "linear")
    axes.set_yscale("log" if chart.y_log else "linear")
    if chart.x_names:  # after the scale, which sets ticks
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
    axes.set_ylabel(chart.y_label)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _fit_label(axes: Any, label: str) -> None:
    """Break the label of the vertical axis into lines so that it does not leave the figure."""
    figure = axes.figure
    for letters in LETTERS:
        axes.set_ylabel(fill(label, letters, break_long_words=False))
        figure.draw_without_rendering()
        box = axes.yaxis.label.get_window_extent()
        if figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1:
            return


class Grey(NamedTuple):
    """Style of a curve without colours."""

    colour: str
    dash: Any
    marker: str


def _grey(place: int) -> Grey:
    """Return a shade, dashes and a marker; neighbours differ in all three."""
    dashes: list[Any] = ["-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2))]
    return Grey(GREYS[place % len(GREYS)], dashes[place % len(dashes)], MARKERS[place % len(MARKERS)])


def _draw(axes: Any, line: Line, chart: Chart, grey: Grey | None) -> None:
    """Draw a curve with its band, interrupted where a logarithmic axis cannot show it, or dots with their spots."""
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
    if not line.joined:
        drawn["linestyle"] = "none"
    axes.plot(line.x, y, label=_plain(line.label), **drawn)
    if line.spots is not None:
        x = np.repeat(line.x, line.spots.shape[1])
        axes.plot(x, line.spots.ravel(), ".", color=colour, alpha=0.35, markersize=2.0, markeredgewidth=0.0)
    band = chart.band(line)
    if band is not None and line.dots:
        axes.vlines(line.x, *band, color=colour, alpha=0.5, linewidth=1.0)
    elif band is not None:
        axes.fill_between(line.x, *band, color=colour, alpha=0.15, linewidth=0)


def _plain(text: str) -> str:
    """Escape what matplotlib would take as mathematics, and spell out characters without glyphs."""
    return printable(text).replace("$", r"\$")
