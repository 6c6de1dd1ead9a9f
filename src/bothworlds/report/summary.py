"""The data of a report: results arranged by regime and algorithm."""

import itertools
import math
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.algorithms.lc_tsallis.paper import Paper
from bothworlds.algorithms.registry import STUDY_NAMES
from bothworlds.arrays import Floats, Ints
from bothworlds.environments import Environment
from bothworlds.problem.rewards import total_reward
from bothworlds.report.palette import Style, styles
from bothworlds.report.scores import Rating, Score, finding, ratings, ratios, scores, slack
from bothworlds.report.statistics import Estimate, growth_exponent, interval_of, mean_of, sum_between
from bothworlds.simulation.results import Results, Run
from bothworlds.studies.folder import Finished
from bothworlds.studies.instances import common_seeds, pooled
from bothworlds.studies.study import Cell, Study

LONGEST_NAME = 80  # of a file or an identifier


class Exploration(NamedTuple):
    """Exploration of an algorithm: the rates of all replications (R, n), and those of its schedule if it has one.

    The paper's schedule is ``exact``; other schedules are upper limits. Of several instances, ``coverage``, ``t0`` and
    ``scheduled`` are means.
    """

    entry: "Entry"
    rates: Floats
    coverage: float
    t0: float
    scheduled: Floats | None
    exact: bool

    @property
    def gamma(self) -> Floats:
        """Mean of the rates that were played."""
        return np.asarray(self.rates.mean(axis=0))

    @property
    def explored(self) -> float:
        """Expected number of rounds explored, from the rates at the checkpoints."""
        return sum_between(self.entry.rounds, self.gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One algorithm in one panel; ``number`` is its place in the study.

    In a ``changing`` world ``run``, and so every number and curve, has dynamic regret, against the best arms of every
    round; ``results`` has the run against the best fixed policy.
    """

    label: str
    number: int
    style: Style
    cell: Cell
    results: Results
    player: Any = None
    changing: bool = False

    @property
    def algorithm(self) -> Any:
        """The algorithm that was played, or an equal one made from the study."""
        return self.player if self.player is not None else self.cell.make_algorithm()

    @property
    def run(self) -> Run:
        """The run of the algorithm, with the regret by which it is judged."""
        return self.results[self.label].judged(changing=self.changing)

    @property
    def rounds(self) -> Ints:
        """The checkpoints."""
        return self.results.checkpoints

    @property
    def regret(self) -> Estimate:
        """Regret at the horizon with its interval; dynamic regret in a changing world."""
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
    """One regime with one choice of sizes: its instances, and the algorithms that were played in them.

    ``ident`` is its name for files and identifiers, unlike that of any other panel. Of several instances every run has
    one row for each, otherwise one row for each replication.
    """

    name: str
    ident: str
    environments: list[Environment]
    entries: list[Entry]
    replayed: dict[str, Run]
    references: dict[str, Run]

    @property
    def environment(self) -> Environment:
        """The first instance."""
        return self.environments[0]

    @property
    def instances(self) -> int:
        """How many instances are pooled."""
        return len(self.environments)

    @property
    def unit(self) -> str:
        """What means and intervals are taken over: instances or replications."""
        return "instances" if self.instances > 1 else "replications"

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.entries[0].rounds[-1])

    def reward(self, run: Run) -> Estimate:
        """Total reward of a run at the horizon, with its interval."""
        return mean_of(total_reward(run.expected[:, -1], self.horizon, self.environment.problem.reward_range))

    def headline(self, entry: Entry) -> Estimate:
        """Return the headline number: regret, or total reward where nature reacts to the plays."""
        return self.reward(entry.run) if self.environment.reacts else entry.regret

    def account(self, entry: Entry) -> Estimate | None:
        """Return the mean of the paths' own bounds on the regret; None where they are no bound."""
        settings, accounts = entry.cell.settings, entry.run.account
        late = settings["delay"] > 0 or settings["batch"] > 1
        matched = isinstance(getattr(entry.algorithm, "tuning", None), Matched)
        other = self.environment.reacts or self.environment.changing
        return None if late or accounts is None or not matched or other else mean_of(accounts)

    @property
    def measure(self) -> str:
        """Name of the quantity of `headline`."""
        return "total reward" if self.environment.reacts else self.regret_name

    @property
    def regret_name(self) -> str:
        """Name of the regret by which algorithms are judged, and which curves show."""
        return "dynamic regret" if self.environment.changing else "regret"

    @cached_property
    def ratings(self) -> dict[str, Rating]:
        """The ratio of every algorithm to the best reference player; empty where references were not played."""
        still = self._best_replayed
        if not self.references or (self.environment.reacts and still is None):
            return {}
        return ratings(
            {entry.label: self._regrets(entry.run, still) for entry in self.entries},
            {label: self._regrets(run, still) for label, run in self.references.items()},
            dimension=self.environment.problem.dimension,
            horizon=self.horizon,
        )

    @property
    def _best_replayed(self) -> Floats | None:
        """The losses of the best fixed policy replayed, that of each instance, in every row; None if none was."""
        losses = [run.expected[:, -1] for run in self.replayed.values()]
        if not losses:
            return None
        return np.min(losses, axis=0) if self.instances > 1 else min(losses, key=lambda some: float(some.mean()))

    def _regrets(self, run: Run, still: Floats | None) -> Floats:
        """Return the regret of every row; against the best fixed policy replayed where nature reacts."""
        return run.paths[:, -1] if still is None else np.asarray(run.expected[:, -1] - still)

    @cached_property
    def ratios_by_instance(self) -> dict[str, Floats]:
        """The ratio of every algorithm to the best reference player on each instance; nothing for a single one."""
        still = self._best_replayed
        if not self.ratings or self.instances == 1:
            return {}
        rivals = np.array([self._regrets(run, still) for run in self.references.values()])
        slacks = np.full(self.instances, slack(self.environment.problem.dimension, self.horizon))
        regrets = {entry.label: self._regrets(entry.run, still)[None, :] for entry in self.entries}
        return {label: ratios(mine, slacks, rivals=rivals)[0] for label, mine in regrets.items()}

    @cached_property
    def exploration(self) -> list[Exploration]:
        """Exploration of every algorithm that has exploration rates."""
        recorded = [(entry, entry.run.exploration_rate) for entry in self.entries]
        return [self._explored(entry, rates) for entry, rates in recorded if rates is not None]

    def _explored(self, entry: Entry, rates: Floats) -> Exploration:
        """Return the exploration of an algorithm; t0 and a schedule exist only for tunings of LC-Tsallis-INF."""
        algorithm, problems = entry.algorithm, [environment.problem for environment in self.environments]
        if not isinstance(algorithm, LCTsallisINF):
            return Exploration(entry, rates, math.nan, math.nan, None, exact=False)
        designs, exact = [algorithm.design_for(problem) for problem in problems], isinstance(algorithm.tuning, Paper)
        coverage = float(np.mean([design.coverage for design in designs]))
        if isinstance(algorithm.tuning, Matched):
            return Exploration(entry, rates, coverage, math.nan, None, exact)
        schedules = [algorithm.schedule_for(problem, design) for problem, design in zip(problems, designs, strict=True)]
        gamma = np.mean([[one.exploration_rate(float(t)) for t in entry.rounds] for one in schedules], axis=0)
        t0 = float(np.mean([one.exploration_rounds for one in schedules]))
        return Exploration(entry, rates, coverage, t0, np.asarray(gamma), exact)

    @cached_property
    def leaders(self) -> set[str]:
        """The best algorithm, and those not significantly (95 %) different from it, paired over the rows."""
        best = min(self.entries, key=lambda entry: float(self._outcomes(entry).mean()))
        leading = {best.label}
        for entry in self.entries:
            value, half = mean_of(self._outcomes(entry) - self._outcomes(best))
            if abs(value) <= half:
                leading.add(entry.label)
        return leading

    def _outcomes(self, entry: Entry) -> Floats:
        """Return the values whose mean `headline` is, row by row, up to a scale."""
        return np.asarray(entry.run.expected[:, -1] if self.environment.reacts else entry.run.paths[:, -1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """The data of the report of a whole study."""

    study: Study
    panels: list[Panel]
    labels: list[str]
    styles: dict[str, Style]
    manifest: dict[str, Any]
    missing: list[str]
    from_python: bool = False  # made by `simulate`, without a study

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU played any of it."""
        return any(entry.on_gpu for panel in self.panels for entry in panel.entries)

    @cached_property
    def scores(self) -> dict[str, Score]:
        """The worst ratio of every algorithm that was played in all panels; empty without reference players."""
        rated = scores({panel.name: panel.ratings for panel in self.panels})
        return {label: rated[label] for label in self.labels if label in rated}

    @property
    def instances(self) -> int:
        """How many instances of a regime are pooled, the most of all regimes."""
        return max((panel.instances for panel in self.panels), default=1)

    @property
    def unit(self) -> str:
        """What means and intervals are taken over: instances or replications."""
        return "instances" if self.instances > 1 else "replications"

    @property
    def finding(self) -> list[str]:
        """The significant results as sentences."""
        return finding(self.scores, baselines=[label for label in self.labels if self.is_baseline(label)])

    def is_baseline(self, label: str) -> bool:
        """Tell whether an algorithm does not learn."""
        return bool(self.study.algorithms[label].get("kind") == "uniform")


def summary_of(finished: Finished) -> Summary:
    """Return the summary of a folder of results; instances that some algorithm lacks are left out."""
    study = finished.study
    labels = list(study.algorithms)
    style_of = dict(zip(labels, styles(study.algorithms.values()), strict=True))
    groups: dict[str, dict[str, dict[int, tuple[Cell, Results]]]] = {}
    for cell, results in finished.cells:
        group = groups.setdefault(panel_name(study, cell), {})
        group.setdefault(cell.algorithm, {})[cell.settings["seed"]] = (cell, results)
    panels: list[Panel] = []
    for name, group in groups.items():
        players, seeds = common_seeds(group)
        cells = [group[players[0]][seed][0] for seed in seeds]
        environments = [cell.make_environment() for cell in cells]
        entries = [
            Entry(
                label=label,
                number=labels.index(label),
                style=style_of[label],
                cell=group[label][seeds[0]][0],
                results=pooled([group[label][seed][1] for seed in seeds]),
                changing=environments[0].changing,
            )
            for label in players
        ]
        replayed = [finished.replayed(cell) for cell in cells] if environments[0].reacts else []
        panels.append(
            Panel(
                name=name,
                ident=unlike([slug(name)], {panel.ident for panel in panels}, apart="-"),
                environments=environments,
                entries=entries,
                replayed=_runs_of(replayed),
                references={
                    label: run.judged(changing=environments[0].changing)
                    for label, run in _reference_runs([finished.references(cell) for cell in cells]).items()
                },
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


def _runs_of(several: Sequence[Results | None]) -> dict[str, Run]:
    """Return the runs of several instances, pooled; nothing where an instance has no results."""
    finished = [results for results in several if results is not None]
    return pooled(finished).runs if finished and len(finished) == len(several) else {}


def _reference_runs(several: Sequence[dict[str, Results]]) -> dict[str, Run]:
    """Return the runs of the reference players of several instances, pooled; nothing where an instance has none."""
    if not all(several):
        return {}
    return {label: next(iter(pooled([players[label] for players in several]).runs.values())) for label in several[0]}


def slug(text: str) -> str:
    """Return a name for files and identifiers.

    >>> slug("ad fatigue, arms 4")
    'ad-fatigue-arms-4'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:LONGEST_NAME].strip("-") or "panel"


def unlike(names: Sequence[str], taken: Container[str], *, apart: str = " ") -> str:
    """Return the first of some names that is not taken; if all are taken, the last one with a number.

    >>> unlike(["mine", "mine (b.csv)"], {"mine"}), unlike(["mine"], {"mine", "mine 2"})
    ('mine (b.csv)', 'mine 3')
    """
    numbered = (f"{names[-1]}{apart}{count}" for count in itertools.count(2))
    return next(name for name in itertools.chain(names, numbered) if name not in taken)


def panel_name(study: Study, cell: Cell) -> str:
    """Return the name of a regime, with the sizes that vary within the study."""
    varying = [f"{key} {cell.sizes[key]}" for key, values in study.sizes.items() if len(values) > 1]
    return ", ".join([cell.environment, *varying])


def summary_from(results: Results) -> Summary:
    """Return the summary of a simulation; results read from a file lack their world and are refused."""
    if results.world is None:
        raise ValueError("results from a file do not contain their world; a page needs the results of bw.simulate")
    manifest, name = results.manifest, results.environment
    options = {label: options_of(manifest["algorithms"].get(label)) for label in results.runs}
    settings = {key: int(manifest[key]) for key in ("horizon", "replications", "seed", "delay", "batch")}
    study = Study(
        name=name, settings=settings, seeds=(settings["seed"],), sizes={}, environments={name: {}}, algorithms=options
    )
    style_of = dict(zip(options, styles(options.values()), strict=True))
    entries = [
        Entry(
            label=label,
            number=number,
            style=style_of[label],
            cell=_cell(study, label),
            results=results,
            player=results.players.get(label),
            changing=results.changing,
        )
        for number, label in enumerate(options)
    ]
    panel = Panel(
        name=name, ident=slug(name), environments=[results.world], entries=entries, replayed={}, references={}
    )
    return Summary(
        study=study,
        panels=[panel],
        labels=list(options),
        styles=style_of,
        manifest=manifest,
        missing=[],
        from_python=True,
    )


def _cell(study: Study, label: str) -> Cell:
    return Cell(
        environment=study.name,
        algorithm=label,
        sizes={},
        environment_options={},
        algorithm_options=study.algorithms[label],
        settings=study.settings,
    )


def options_of(plain: Any) -> dict[str, Any]:
    """Return the options that determine the colour of an algorithm, from its entry in a manifest.

    >>> options_of({"name": "LCTsallisINF", "alpha": 0.5, "tuning": {"name": "Matched", "gain": 2.5}})
    {'kind': 'LCTsallisINF', 'tuning': 'matched'}
    """
    if not isinstance(plain, dict):
        return {"kind": str(plain)}
    kind, tuning = str(plain.get("name")), plain.get("tuning")
    inner = {"tuning": str(tuning["name"]).lower()} if isinstance(tuning, dict) else {}
    return {"kind": STUDY_NAMES.get(kind, kind), **inner}
