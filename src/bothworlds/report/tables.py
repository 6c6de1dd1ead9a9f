"""The tables of a report as text and as LaTeX: one row per algorithm, one column per regime."""

import math

from bothworlds.report.scores import Rating
from bothworlds.report.statistics import Estimate
from bothworlds.report.summary import Panel, Summary
from bothworlds.serialization import printable

MARKS = {"total reward": " (reward)", "dynamic regret": " (dynamic)"}  # after the name of a regime, by its measure


def number(value: float) -> str:
    """Return a number with thousands separators and about three significant digits; a dash for NaN.

    >>> number(1234.56), number(12.345), number(0.01234), number(float("nan"))
    ('1,235', '12.3', '0.012', '–')
    """
    if math.isnan(value):
        return "–"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 3
    return _rounded(value, digits)


def _rounded(value: float, digits: int) -> str:
    """Return a number with some decimals; never minus zero."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def with_interval(estimate: Estimate) -> str:
    """Return a number and the half width of its interval, with the same number of digits.

    >>> with_interval(Estimate(1234.5, 45.6)), with_interval(Estimate(0.5, float("nan")))
    ('1,234 ± 46', '0.50')
    """
    if math.isnan(estimate.value):
        return "–"
    if math.isnan(estimate.half):
        return number(estimate.value)
    size = max(abs(estimate.value), estimate.half)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{_rounded(estimate.value, digits)} ± {_rounded(estimate.half, digits)}"


def headline_rows(summary: Summary) -> list[list[str]]:
    """Return the headline table: a row of titles, then one row per algorithm."""
    titles = [f"{panel.name}{MARKS.get(panel.measure, '')}" for panel in summary.panels]
    rows = [["algorithm", *titles, *(["worst ratio", "in"] if summary.scores else [])]]
    for label in summary.labels:
        cells = [_cell(panel, label) for panel in summary.panels]
        if any(cell != "–" for cell in cells):
            rows.append([label, *cells, *_score_cells(summary, label)])
    return rows


def _score_cells(summary: Summary, label: str) -> list[str]:
    """Return the worst ratio of an algorithm and its regime; dashes where it was not played in all regimes."""
    if not summary.scores:
        return []
    score = summary.scores.get(label)
    return ["–", "–"] if score is None else [ratio_text(score.rating), score.regime]


def ratio_text(rating: Rating) -> str:
    """Return a ratio with its interval.

    >>> import numpy as np
    >>> ratio_text(Rating(np.array([2.5, 2.4, 2.6]))), ratio_text(Rating(np.array([180.0])))
    ('2.50 [1.50, 4.16]', '180')
    """
    ends = [number(end) for end in rating.interval]
    return number(rating.value) if math.isnan(rating.interval[1]) else f"{number(rating.value)} [{', '.join(ends)}]"


def _cell(panel: Panel, label: str) -> str:
    """Return regret or reward of an algorithm in a panel; a dash where it was not played."""
    entry = next((entry for entry in panel.entries if entry.label == label), None)
    return "–" if entry is None else with_interval(panel.headline(entry))


def latex_table(summary: Summary) -> str:
    """Return the headline table in LaTeX; it needs the package booktabs."""
    head, *rows = headline_rows(summary)
    lines = [
        f"% {_latex(summary.study.name)}: regret at the horizon, mean and 95 % interval; made by bothworlds",
        *(["% (dynamic): against the best arm of every round"] if _any_changing(summary) else []),
        f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        "\\toprule",
        " & ".join(_latex(cell) for cell in head) + " \\\\",
        "\\midrule",
    ]
    for row in rows:
        cells = [_latex(row[0])]
        for place, cell in enumerate(row[1:]):
            text = f"${cell.replace(',', '{,}').replace('±', chr(92) + 'pm')}$" if cell != "–" else "--"
            text = _latex(cell) if place == len(summary.panels) + 1 else text  # the name of a regime
            strong = place < len(summary.panels) and row[0] in summary.panels[place].leaders
            cells.append(f"\\boldmath {text}" if strong else text)
        lines.append(" & ".join(cells) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _any_changing(summary: Summary) -> bool:
    return any(panel.measure == "dynamic regret" for panel in summary.panels)


def _latex(text: str) -> str:
    """Escape the characters that are special in LaTeX."""
    named = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(named.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in printable(text))
