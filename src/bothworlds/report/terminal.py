"""Results in a terminal: the headline table, and small plots in Braille characters."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.report.summary import Panel, Summary
from bothworlds.report.tables import headline_rows, with_interval
from bothworlds.serialization import printable
from bothworlds.studies.references import REFERENCES

# Braille cells are two dots wide and four high; the bit of each dot.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
NOT_POLICY_REGRET = (
    "Nature reacts to the plays here: a fixed policy would have met other losses, so regret is not policy regret. "
    "What counts is the total reward, beside that of fixed policies replayed."
)
NOTES = {  # the first character is the mark of a regime with that measure
    "total reward": "* total reward: larger is better",
    "dynamic regret": "+ dynamic regret: against the best arm of every round",
}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def table_text(summary: Summary, *, width: int = 100) -> str:
    """Return the headline table as text: one table if it fits the width, otherwise several tables.

    Intervals are always shown, and the two columns of the worst ratio stay in one table.
    """
    titles, *rows = headline_rows(summary)
    names = [f"{panel.name}{NOTES.get(panel.measure, ' ')[0].strip()}" for panel in summary.panels]
    titles[1 : 1 + len(names)] = names
    last = [len(names) + 1, len(names) + 2] if summary.scores else []
    groups = [*([place] for place in range(1, len(names) + 1)), *([last] if last else [])]
    tables = _packed([titles, *rows], groups, width)
    measures = {panel.measure for panel in summary.panels}
    return "\n".join(["\n\n".join(tables), *(note for measure, note in NOTES.items() if measure in measures)])


def _packed(rows: Sequence[Sequence[str]], groups: Sequence[list[int]], width: int) -> list[str]:
    """Return the columns of a table as tables that fit a width, each with the first column; groups stay together."""
    tables: list[str] = []
    chosen: list[int] = []
    for group in groups:
        wider = _columns(rows, [*chosen, *group])
        if chosen and _width(wider) > width:
            tables.append(_columns(rows, chosen))
            chosen = []
        chosen = [*chosen, *group]
    return [*tables, _columns(rows, chosen)]


def _columns(rows: Sequence[Sequence[str]], places: Sequence[int]) -> str:
    return aligned([[row[0], *(row[place] for place in places)] for row in rows])


def finding_text(summary: Summary, *, width: int = 100) -> str:
    """Return the definition of the ratios and the significant findings; an empty text without reference players."""
    if not summary.scores:
        return ""
    formula = "ratio: (regret + s)/(that of the best reference player + s), s = sqrt(d T)/10"
    definition = f"{formula}; references are {_reference_names()}"
    return "\n".join(textwrap.fill(printable(sentence), width) for sentence in [definition, *summary.finding])


def _reference_names() -> str:
    first, *others = REFERENCES
    return f"{', '.join([first, *others[:-1]])} and {others[-1]}, always played"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells in columns, the first to the left, the others to the right.

    >>> print(aligned([["name", "n"], ["a", "10"]]))
    name   n
    ----  --
    a     10
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _width(text: str) -> int:
    """Return the length of the longest line."""
    return max(len(line) for line in text.splitlines())


def reward_text(panel: Panel) -> str:
    """Return the total rewards of learners and of fixed policies replayed, best first."""
    lines = [(panel.reward(entry.run), entry.label) for entry in panel.entries]
    lines += [(panel.reward(run), label) for label, run in panel.replayed.items()]
    lines.sort(key=lambda line: -line[0].value)
    rows = [[f"in {panel.name}", "total reward"], *([label, with_interval(reward)] for reward, label in lines)]
    return aligned(rows)


def reacting_text(panel: Panel) -> str:
    """Return the note on policy regret and the total rewards, for an environment that reacts to the plays."""
    return f"{printable(panel.name)}: {NOT_POLICY_REGRET}\n\n{reward_text(panel)}"


def plot_text(panel: Panel, *, width: int = 72, height: int = 12) -> str:
    """Return a plot of regret against time, both axes logarithmic, with a letter at the end of every curve."""
    columns, rows, title = max(20, width - 12), max(4, height), printable(panel.name)
    curves = [(entry.rounds, entry.run.regret) for entry in panel.entries]
    top = max(float(regret.max()) for _, regret in curves)
    if not top > 0.0:
        return f"{title}: no {panel.regret_name} to plot"
    T = panel.horizon
    bottom = max(min(float(r[r > 0.0].min()) for _, r in curves if (r > 0.0).any()), top / 1e4)
    first = max(1.0, min(10.0, T / 1000))
    if first >= T or top <= bottom:
        return f"{title}: too short to plot"
    cells = np.zeros((rows, columns), dtype=np.int64)
    ends: dict[int, str] = {}
    for place, (t, regret) in enumerate(curves):
        shown = (t >= first) & (regret >= bottom)
        x = _dots(np.log(t[shown] / first) / math.log(T / first), 2 * columns)
        y = _dots(1.0 - np.log(regret[shown] / bottom) / math.log(top / bottom), 4 * rows)
        for column, row in zip(x, y, strict=True):
            cells[row // 4, column // 2] |= DOTS[row % 4][column % 2]
        if shown[-1]:
            row = int(y[-1]) // 4
            ends[row] = ends.get(row, "") + LETTERS[place % len(LETTERS)]
    lines = [f"{title}: {panel.regret_name}, both axes logarithmic"]
    for row in range(rows):
        label = f"{top:,.3g}" if row == 0 else f"{bottom:,.3g}" if row == rows - 1 else ""
        dots = "".join(chr(0x2800 + int(cell)) if cell else " " for cell in cells[row])
        lines.append(f"{label:>8} |{dots}{ends.get(row, '')}")
    lines.append(f"{'':>8} +{'-' * columns}")
    lines.append(f"{'':>9}t = {first:,.0f}{f'{T:,}':>{max(1, columns - len(f't = {first:,.0f}'))}}")
    names = [f"{LETTERS[i % len(LETTERS)]} {printable(entry.label)}" for i, entry in enumerate(panel.entries)]
    return "\n".join([*lines, *_wrapped(names, width)])


def _dots(share: Floats, count: int) -> list[int]:
    """Return shares of a length of ``count`` dots as dot numbers."""
    places: list[int] = np.clip((share * (count - 1)).round(), 0, count - 1).astype(np.int64).tolist()
    return places


def _wrapped(parts: list[str], width: int) -> list[str]:
    """Put parts on lines of a width."""
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) + 3 > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + part
    return lines
