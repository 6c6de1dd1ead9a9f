"""Charts as files for papers: SVG by hand, PDF and PNG with matplotlib (`pip install '.[report]'`)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.problem.storage import write_bytes
from bothworlds.report.chart import Chart, Line
from bothworlds.report.palette import LIGHT
from bothworlds.report.svg import standalone


def write_figures(charts: Iterable[Chart], folder: str | Path) -> tuple[list[Path], str]:
    """Write every chart as SVG, and as PDF and PNG if matplotlib is there; return the files and what is to be said."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    note = "" if has_matplotlib() else "PDF and PNG need matplotlib: pip install '.[report]' in a clone of bothworlds"
    for chart in charts:
        path = target / f"{chart.name}.svg"
        write_bytes(path, standalone(chart).encode())
        written.append(path)
        if not note:
            written += _with_matplotlib(chart, target)
    return written, note


def has_matplotlib() -> bool:
    """Tell whether matplotlib can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _with_matplotlib(chart: Chart, folder: Path) -> list[Path]:
    """Draw a chart with matplotlib and write it as PDF and PNG, without dates, so that files are reproducible."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.size": 9, "axes.axisbelow": True}):
        figure = Figure(figsize=(4.6, 3.4), layout="constrained")
        _fill(figure, chart)
        paths = []
        for kind, options in (("pdf", {"metadata": {"CreationDate": None}}), ("png", {"dpi": 200})):
            paths.append(folder / f"{chart.name}.{kind}")
            figure.savefig(paths[-1], **options)
    return paths


def _fill(figure: Any, chart: Chart) -> None:
    """Draw axes, curves, marks and legend."""
    axes = figure.add_subplot()
    for line in sorted(chart.lines, key=lambda line: line.thin):  # algorithms first in the legend, then their bounds
        _draw(axes, line, chart)
    axes.set_xscale("log" if chart.x_log else "linear")
    axes.set_yscale("log" if chart.y_log else "linear")
    axes.set_xlim(*chart.x_range)
    axes.set_ylim(*chart.y_range)
    for mark in chart.marks:
        colour = "#888888" if mark.colour is None else LIGHT[mark.colour]
        if mark.start == mark.end:
            axes.axvline(mark.start, color=colour, linestyle=":", linewidth=1)
        else:
            axes.axvspan(mark.start, mark.end, color=colour, alpha=0.16, linewidth=0)
    for row, mark in enumerate(mark for mark in chart.marks if mark.text):
        height = 0.09 + 0.06 * row if chart.low else 0.97 - 0.06 * row
        place = (max(mark.start, chart.x_range[0]), height)
        axes.annotate(f" {_plain(mark.text)}", place, xycoords=("data", "axes fraction"), va="top", fontsize=7)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, fontsize=7, frameon=False)


def _draw(axes: Any, line: Line, chart: Chart) -> None:
    """Draw a curve and its band, broken where a logarithmic axis cannot show it."""
    colour = LIGHT[line.style.colour]
    style: Any = (0, (1.0, 2.0)) if line.thin else "-"
    if line.style.dash and not line.thin:
        style = (0, tuple(0.6 * float(length) for length in line.style.dash.split()))
    width, over = 0.9 if line.thin else 1.6, 3 if line.style.dash else 2
    y = np.where(line.y > 0.0, line.y, np.nan) if chart.y_log else line.y
    axes.plot(line.x, y, color=colour, linestyle=style, linewidth=width, zorder=over, label=_plain(line.label))
    band = chart.band(line)
    if band is not None:
        axes.fill_between(line.x, *band, color=colour, alpha=0.15, linewidth=0)


def _plain(text: str) -> str:
    """Escape what matplotlib would take as mathematics."""
    return text.replace("$", r"\$")
