"""Results of a study as a report needs them: one panel per regime and sizes, one entry per algorithm."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.report.palette import Style, styles
from bothworlds.report.statistics import Estimate, factor, growth_exponent, mean_of, scores
from bothworlds.simulation.folder import Finished
from bothworlds.simulation.replayed import total_reward
from bothworlds.simulation.results import Results, Run
from bothworlds.simulation.study import Cell, Study


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One algorithm in one panel; ``number`` is its place in the study."""

    label: str
    number: int
    style: Style
    cell: Cell
    results: Results

    @property
    def run(self) -> Run:
        """The run itself."""
        return self.results[self.label]

    @property
    def rounds(self) -> Ints:
        """The checkpoints."""
        return self.results.checkpoints

    @property
    def regret(self) -> Estimate:
        """Regret at the horizon with its interval."""
        return mean_of(self.run.paths[:, -1])

    @cached_property
    def exponent(self) -> Estimate:
        """Growth exponent of the regret over the last decade."""
        return growth_exponent(self.rounds, self.run.paths)

    @property
    def half_width(self) -> Floats:
        """Half width of the 95 % interval of the regret at the checkpoints; zero for one replication."""
        return np.nan_to_num(self.run.standard_error * factor(len(self.run.expected)))

    @property
    def cost(self) -> float:
        """Microseconds of processor time per round; NaN where it was not measured."""
        measured = self.results.manifest.get("run", {}).get("microseconds_per_round", {})
        return float(next(iter(measured.values()), math.nan))


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One regime with one choice of sizes: its truth, and the algorithms that were played in it."""

    name: str
    environment: Environment
    entries: list[Entry]
    replayed: dict[str, Run]

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.entries[0].rounds[-1])

    def reward(self, run: Run) -> Estimate:
        """Total reward of a run at the horizon, with its interval."""
        return mean_of(total_reward(self.environment.problem, run.expected[:, -1], self.horizon))

    def headline(self, entry: Entry) -> Estimate:
        """Return the number that counts: regret, or total reward where nature reacts to the plays."""
        return self.reward(entry.run) if self.environment.reacts else entry.regret

    @property
    def measure(self) -> str:
        """What `headline` is."""
        return "total reward" if self.environment.reacts else "regret"

    @property
    def scores(self) -> dict[str, float]:
        """100 for the best algorithm of the panel, 0 for the worst."""
        sign = -1.0 if self.environment.reacts else 1.0
        points = scores([sign * self.headline(entry).value for entry in self.entries])
        return {entry.label: point for entry, point in zip(self.entries, points, strict=True)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """A whole study, ready to be told."""

    study: Study
    panels: list[Panel]
    labels: list[str]
    styles: dict[str, Style]
    manifest: dict[str, Any]
    missing: list[str]

    @cached_property
    def scores(self) -> dict[str, Estimate]:
        """Mean score over the panels of each algorithm, and its lowest (as the second number)."""
        points: dict[str, list[float]] = {label: [] for label in self.labels}
        for panel in self.panels:
            for label, score in panel.scores.items():
                points[label].append(score)
        return {label: Estimate(sum(some) / len(some), min(some)) for label, some in points.items() if some}


def summary_of(finished: Finished) -> Summary:
    """Arrange what is in a folder of results."""
    study = finished.study
    labels = list(study.algorithms)
    style_of = dict(zip(labels, styles(study.algorithms.values()), strict=True))
    groups: dict[str, list[Entry]] = {}
    for cell, results in finished.cells:
        label = cell.algorithm
        entry = Entry(label=label, number=labels.index(label), style=style_of[label], cell=cell, results=results)
        groups.setdefault(panel_name(study, cell), []).append(entry)
    panels = []
    for name, entries in groups.items():
        environment = entries[0].cell.make_environment()
        replayed = finished.replayed(entries[0].cell) if environment.reacts else None
        runs = {} if replayed is None else replayed.runs
        panels.append(Panel(name=name, environment=environment, entries=entries, replayed=runs))
    return Summary(
        study=study,
        panels=panels,
        labels=labels,
        styles=style_of,
        manifest=finished.cells[0][1].manifest,
        missing=[cell.name for cell in finished.missing],
    )


def panel_name(study: Study, cell: Cell) -> str:
    """Return the name of a regime, with those sizes that differ within the study."""
    varying = [f"{key} {cell.sizes[key]}" for key, values in study.sizes.items() if len(values) > 1]
    return ", ".join([cell.environment, *varying])
