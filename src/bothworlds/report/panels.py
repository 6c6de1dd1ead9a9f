"""Results of a study as a report needs them: one panel per regime and sizes, one entry per algorithm."""

import itertools
import math
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bothworlds.algorithms.lc_tsallis.algorithm_1 import Paper
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.problem.feedback import total_reward
from bothworlds.report.palette import Style, styles
from bothworlds.report.scores import Rating, Score, finding, ratings, scores
from bothworlds.report.statistics import Estimate, growth_exponent, interval_of, mean_of, sum_between
from bothworlds.simulation.folder import Finished
from bothworlds.simulation.results import Results, Run
from bothworlds.simulation.study import Cell, Study

LONGEST_NAME = 80  # of a file or an identifier


class Exploration(NamedTuple):
    """What an algorithm explores: the rates of all replications (R, n), and those of its schedule if it has one.

    The paper's schedule is ``exact``; others are the most that is explored.
    """

    entry: "Entry"
    rates: Floats
    coverage: float
    t0: float
    scheduled: Floats | None
    exact: bool

    @property
    def gamma(self) -> Floats:
        """The rate that was played, in the mean."""
        return np.asarray(self.rates.mean(axis=0))

    @property
    def explored(self) -> float:
        """How many rounds were explored, from the rates at the checkpoints."""
        return sum_between(self.entry.rounds, self.gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One algorithm in one panel; ``number`` is its place in the study."""

    label: str
    number: int
    style: Style
    cell: Cell
    results: Results
    player: Any = None

    @property
    def algorithm(self) -> Any:
        """The algorithm itself: the one that was played, or one made from the study."""
        return self.player if self.player is not None else self.cell.make_algorithm()

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
        return interval_of(self.run.paths)

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU played it."""
        return "gpu" in self.results.manifest.get("run", {}).get("device", {}).values()

    @property
    def cost(self) -> float:
        """Microseconds of processor time per round; NaN where it was not measured, as on a GPU."""
        if self.on_gpu:
            return math.nan
        measured = self.results.manifest.get("run", {}).get("microseconds_per_round", {})
        return float(measured.get(self.label, next(iter(measured.values()), math.nan)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One regime with one choice of sizes: its truth, and the algorithms that were played in it.

    ``ident`` is its name for files and identifiers, unlike that of any other panel.
    """

    name: str
    ident: str
    environment: Environment
    entries: list[Entry]
    replayed: dict[str, Run]
    references: dict[str, Run]

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.entries[0].rounds[-1])

    def reward(self, run: Run) -> Estimate:
        """Total reward of a run at the horizon, with its interval."""
        return mean_of(total_reward(run.expected[:, -1], self.horizon, self.environment.problem.reward_range))

    def headline(self, entry: Entry) -> Estimate:
        """Return the number that counts: regret, or total reward where nature reacts to the plays."""
        return self.reward(entry.run) if self.environment.reacts else entry.regret

    def account(self, entry: Entry) -> Estimate | None:
        """Return what the paths of an algorithm have cost by their own sums; None where they bound nothing."""
        settings, found = entry.cell.settings, entry.run.account
        late = settings["delay"] > 0 or settings["batch"] > 1
        matched = isinstance(getattr(entry.algorithm, "tuning", None), Matched)
        return None if late or found is None or not matched or self.environment.reacts else mean_of(found)

    @property
    def measure(self) -> str:
        """What `headline` is."""
        return "total reward" if self.environment.reacts else "regret"

    @cached_property
    def ratings(self) -> dict[str, Rating]:
        """The ratio of every algorithm to the best reference player; nothing where references were not played."""
        still = min(self.replayed.values(), key=lambda run: float(run.expected[:, -1].mean()), default=None)
        if not self.references or (self.environment.reacts and still is None):
            return {}
        return ratings(
            {entry.label: self._regrets(entry.run, still) for entry in self.entries},
            {label: self._regrets(run, still) for label, run in self.references.items()},
            dimension=self.environment.problem.dimension,
            horizon=self.horizon,
        )

    def _regrets(self, run: Run, still: Run | None) -> Floats:
        """Return the regret of every replication; against the best fixed policy replayed where nature reacts."""
        if self.environment.reacts and still is not None:
            return np.asarray(run.expected[:, -1] - still.expected[:, -1])
        return run.paths[:, -1]

    @cached_property
    def exploration(self) -> list[Exploration]:
        """What is explored by every algorithm that has exploration rates."""
        rates = [(entry, entry.run.exploration_rate) for entry in self.entries]
        return [self._explored(entry, found) for entry, found in rates if found is not None]

    def _explored(self, entry: Entry, rates: Floats) -> Exploration:
        """Return what an algorithm explores; t0 and a schedule are those of LC-Tsallis-INF, and not of all tunings."""
        algorithm, problem = entry.algorithm, self.environment.problem
        if not isinstance(algorithm, LCTsallisINF):
            return Exploration(entry, rates, math.nan, math.nan, None, exact=False)
        design, exact = algorithm.design_for(problem), isinstance(algorithm.tuning, Paper)
        if isinstance(algorithm.tuning, Matched):
            return Exploration(entry, rates, design.coverage, math.nan, None, exact)
        schedule = algorithm.schedule_for(problem, design)
        gamma = np.array([schedule.exploration_rate(float(t)) for t in entry.rounds])
        return Exploration(entry, rates, design.coverage, float(schedule.exploration_rounds), gamma, exact)

    @cached_property
    def leaders(self) -> set[str]:
        """The best algorithm, and those that 95 % of certainty cannot tell from it (paired over replications)."""
        best = min(self.entries, key=lambda entry: float(self._outcomes(entry).mean()))
        found = {best.label}
        for entry in self.entries:
            value, half = mean_of(self._outcomes(entry) - self._outcomes(best))
            if abs(value) <= half:
                found.add(entry.label)
        return found

    def _outcomes(self, entry: Entry) -> Floats:
        """Return what `headline` is the mean of, replication by replication; the unit does not matter here."""
        return np.asarray(entry.run.expected[:, -1] if self.environment.reacts else entry.run.paths[:, -1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """A whole study, ready to be told."""

    study: Study
    panels: list[Panel]
    labels: list[str]
    styles: dict[str, Style]
    manifest: dict[str, Any]
    missing: list[str]
    from_python: bool = False  # no study says how it was made

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU played some of it."""
        return any(entry.on_gpu for panel in self.panels for entry in panel.entries)

    @cached_property
    def scores(self) -> dict[str, Score]:
        """The worst ratio of every algorithm that was played in all panels; nothing without reference players."""
        found = scores({panel.name: panel.ratings for panel in self.panels})
        return {label: found[label] for label in self.labels if label in found}

    @property
    def finding(self) -> list[str]:
        """The result in sentences, where it is clear."""
        return finding(self.scores, yardsticks=[label for label in self.labels if self.is_yardstick(label)])

    def is_yardstick(self, label: str) -> bool:
        """Tell whether a player learns nothing."""
        return bool(self.study.algorithms[label].get("kind") == "uniform")


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
    panels: list[Panel] = []
    for name, entries in groups.items():
        environment = entries[0].cell.make_environment()
        replayed = finished.replayed(entries[0].cell) if environment.reacts else None
        runs = {} if replayed is None else replayed.runs
        ident = unlike([slug(name)], {panel.ident for panel in panels}, apart="-")
        references = {
            label: next(iter(one.runs.values())) for label, one in finished.references(entries[0].cell).items()
        }
        panels.append(
            Panel(
                name=name,
                ident=ident,
                environment=environment,
                entries=entries,
                replayed=runs,
                references=references,
            )
        )
    return Summary(
        study=study,
        panels=panels,
        labels=labels,
        styles=style_of,
        manifest=finished.cells[0][1].manifest if finished.cells else {},
        missing=[cell.name for cell in finished.missing],
    )


def slug(text: str) -> str:
    """Return a name fit for files and identifiers.

    >>> slug("ad fatigue, arms 4")
    'ad-fatigue-arms-4'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:LONGEST_NAME].strip("-") or "panel"


def unlike(names: Sequence[str], taken: Container[str], *, apart: str = " ") -> str:
    """Return the first of some names that is not taken; if all are, the last one with a number.

    >>> unlike(["mine", "mine (b.csv)"], {"mine"}), unlike(["mine"], {"mine", "mine 2"})
    ('mine (b.csv)', 'mine 3')
    """
    numbered = (f"{names[-1]}{apart}{count}" for count in itertools.count(2))
    return next(name for name in itertools.chain(names, numbered) if name not in taken)


def panel_name(study: Study, cell: Cell) -> str:
    """Return the name of a regime, with those sizes that differ within the study."""
    varying = [f"{key} {cell.sizes[key]}" for key, values in study.sizes.items() if len(values) > 1]
    return ", ".join([cell.environment, *varying])
