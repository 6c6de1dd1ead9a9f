"""What the answers share: a question, its answer, cells by name, and numbers as words."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from answers.bound_check import Check, check_cell
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TUNINGS
from bothworlds.arrays import Floats, Ints
from bothworlds.report.chart import Chart, Line
from bothworlds.report.palette import DASHES, Style, styles
from bothworlds.report.statistics import Estimate, mean_of
from bothworlds.simulation.results import Run
from bothworlds.studies.folder import Finished
from bothworlds.studies.study import Cell
from bothworlds.theory.bounds import Bound

SEEN, IN_PART, NOT_SEEN, CONTRADICTED = "seen", "seen in part", "not seen at feasible horizons", "contradicted"
OPEN = "no claim of the paper; measured"
APART = (0, 1, 3, 4, 5, 7)  # colours of the palette that stay apart when they stand side by side


class Answer(NamedTuple):
    """What was seen: a verdict, a sentence or two, a table and charts."""

    verdict: str
    words: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    charts: list[Chart]


class Question(NamedTuple):
    """A question of the page: its letter, what is asked, what the paper claims, the studies, and how to answer."""

    letter: str
    title: str
    claim: str
    studies: tuple[str, ...]
    answer: Callable[[Mapping[str, Finished]], Answer]


class Held(NamedTuple):
    """A cell for which something is proved, with the bound and how the regret compares."""

    cell: Cell
    bound: Bound
    check: Check


def own_sizes(cell: Cell) -> dict[str, float]:
    """Return the sizes that an environment has of its own."""
    return {key: cell.environment_options[key] for key in cell.sizes if key in cell.environment_options}


def held(finished: Finished) -> list[Held]:
    """Hold every cell of a study for which a theorem holds against its bound."""
    found = [(cell, check_cell(cell, results)) for cell, results in finished.cells]
    return [Held(cell, *checked) for cell, checked in found if checked is not None]


def verdict(right: list[bool]) -> str:
    """Return a verdict from what was right and what was not."""
    return SEEN if all(right) and right else IN_PART if any(right) else NOT_SEEN


def run_of(finished: Finished, environment: str, algorithm: str, **sizes: float) -> tuple[Cell, Ints, Run]:
    """Return a cell by name, with its rounds and its run."""
    for cell, results in finished.cells:
        here = all(cell.sizes[key] == value for key, value in sizes.items())
        if here and cell.environment == environment and cell.algorithm == algorithm:
            return cell, results.checkpoints, results[algorithm]
    raise KeyError(f"{finished.study.name} has no finished cell {algorithm!r} in {environment!r} {sizes or ''}")


def final(run: Run) -> Estimate:
    """Return the regret at the horizon, with its 95 % interval."""
    return mean_of(run.paths[:, -1])


def t0_of(cell: Cell) -> float:
    """Return t0 of an LC-Tsallis-INF cell: until then half of the rounds are exploration, with the tuning "paper"."""
    algorithm, problem = cell.make_algorithm(), cell.make_environment().problem
    return float(algorithm.schedule_for(problem, algorithm.design_for(problem)).exploration_rounds)


def number(value: float) -> str:
    """Return a number in three digits or so.

    >>> number(1234.5), number(0.12345), number(math.nan)
    ('1,234', '0.12', '-')
    """
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "never"
    if 0.0 < abs(value) < 0.01:
        return f"{value:.1g}"
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.1f}" if abs(value) >= 10.0 else f"{value:.2f}"


def interval(estimate: Estimate) -> str:
    """Return a number with its interval."""
    return number(estimate.value) + ("" if math.isnan(estimate.half) else f" ± {number(estimate.half)}")


def curve(label: str, place: int, style: Style, rounds: Ints, run: Run, *, first: float = 10.0) -> Line:
    """Return the mean regret with its 95 % interval as a line, thinned to a hundred points."""
    kept = np.flatnonzero(rounds >= first)
    kept = kept[:: max(1, len(kept) // 60)]
    half = run.half_width[kept]
    mean = run.regret[kept]
    return Line(
        label=label,
        number=place,
        style=style,
        x=rounds[kept].astype(np.float64),
        y=mean,
        low=mean - half,
        high=mean + half,
    )


def regret_chart(name: str, finished: Finished, environment: str, *, y_log: bool = False) -> Chart:
    """Return the regret of all algorithms in an environment against t."""
    looks = dict(zip(finished.study.algorithms, styles(finished.study.algorithms.values()), strict=True))
    lines = []
    for place, algorithm in enumerate(finished.study.algorithms):
        _, rounds, run = run_of(finished, environment, algorithm)
        lines.append(curve(algorithm, place, looks[algorithm], rounds, run))
    return Chart(
        name=name,
        title=f"Regret, {environment}",
        description="Mean regret with 95 % intervals against the round.",
        x_label="round t",
        y_label="regret",
        lines=lines,
        y_log=y_log,
    )


def look(label: str, place: int) -> Style:
    """Return the style of a line: that of a tuning if it is one, else a colour and dashes of its own.

    >>> look("certified", 3), look("K = 2", 1)
    (Style(colour=0, dash=''), Style(colour=1, dash='7 4'))
    """
    if label in TUNINGS:
        return styles([{"kind": "LCTsallisINF", "tuning": label}])[0]
    return Style(APART[place % len(APART)], DASHES[place % len(DASHES)])


def plain_chart(
    name: str, title: str, x_label: str, y_label: str, lines: Mapping[str, tuple[Floats, Floats]], *, y_log: bool = True
) -> Chart:
    """Return a chart of some lines, x and y by label, with a logarithmic horizontal axis."""
    drawn = [
        Line(
            label=label,
            number=i,
            style=look(label, i),
            x=np.asarray(x, float),
            y=np.asarray(y, float),
        )
        for i, (label, (x, y)) in enumerate(lines.items())
    ]
    return Chart(name=name, title=title, description=title, x_label=x_label, y_label=y_label, lines=drawn, y_log=y_log)
