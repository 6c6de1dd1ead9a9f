"""Results in a notebook: a table and a chart as HTML, and a matplotlib figure."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.report.chart import Chart, Line
from bothworlds.report.export import has_matplotlib, matplotlib_figure
from bothworlds.report.figure_style import Look, check_labels
from bothworlds.report.figures import shown
from bothworlds.report.palette import styles
from bothworlds.report.statistics import interval_of, mean_of
from bothworlds.report.summary import options_of
from bothworlds.report.svg import standalone
from bothworlds.report.tables import number, with_interval
from bothworlds.simulation.results import Results


def chart_of(results: Results, *, log: bool = False) -> Chart:
    """Return mean regret, dynamic in a changing world, with its 95 % interval against log t; ``log``: both axes."""
    options = [options_of(results.manifest.get("algorithms", {}).get(label)) for label in results.runs]
    t, name = results.checkpoints, regret_name(results)
    drawn_rounds, lines = shown(t), []
    for place, ((label, run), style) in enumerate(zip(results.judged().items(), styles(options), strict=True)):
        half = interval_of(run.paths)
        low, high = (run.regret - half)[drawn_rounds], (run.regret + half)[drawn_rounds]
        x, even = t[drawn_rounds].astype(np.float64), options[place].get("kind") == "uniform"
        lines.append(
            Line(
                label=label,
                number=place,
                style=style,
                x=x,
                y=run.regret[drawn_rounds],
                low=low,
                high=high,
                baseline=even,
            )
        )
    return Chart(
        name="regret",
        title=f"{name.capitalize()}, {results.environment}",
        description=f"Mean cumulative {name} with 95 % intervals against the round.",
        y_label=name,
        lines=lines,
        y_log=log,
    )


def regret_name(results: Results) -> str:
    """Return the name of the regret by which algorithms are judged."""
    return "dynamic regret" if results.changing else "regret"


def drawn(
    results: Results,
    *,
    log: bool = False,
    width: float | str = 4.6,
    font_size: float = 9.0,
    grey: bool = False,
    algorithms: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Return the regret as a matplotlib figure.

    ``log`` makes the vertical axis logarithmic; the other options are those of `Look`.
    """
    if not has_matplotlib():
        raise MissingPackageError(not_installed("figures need", "matplotlib", "report"))
    look = Look(width=width, font_size=font_size, grey=grey, algorithms=algorithms, labels=labels or {})
    check_labels(look, list(results.runs))
    return matplotlib_figure(look.of(chart_of(results, log=log)), look)


class _Row(NamedTuple):
    value: float
    cells: list[str]


def html_of(results: Results) -> str:
    """Return a table, smallest regret first, and a chart as an image, whose style stays inside it."""
    rows = []
    for label, run in results.judged().items():
        low, high = run.quantiles([0.1, 0.9])[:, -1]
        last = mean_of(run.paths[:, -1])
        rows.append(_Row(last.value, [escape(label), with_interval(last), number(float(low)), number(float(high))]))
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.cells)}</tr>" for row in sorted(rows, key=lambda r: r.value)
    )
    head = "".join(f"<th>{word}</th>" for word in ("algorithm", regret_name(results), "10 %", "90 %"))
    T = f"{results.checkpoints[-1]:,}"
    picture = base64.b64encode(standalone(chart_of(results)).encode()).decode()
    return (
        f"<p>{escape(results.environment)}, T = {T}: {regret_name(results)} with its 95 % interval, "
        "quantiles of replications</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<img alt="Regret against the round" src="data:image/svg+xml;base64,{picture}">'
    )
