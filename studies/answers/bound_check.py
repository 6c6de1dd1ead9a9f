"""Which theorem holds for a cell of a study, with its explicit bound, and whether regret stays below it."""

import math
from typing import Any, NamedTuple

import numpy as np

from bothworlds.algorithms.exponential.real_ftrl import RealFTRL
from bothworlds.arrays import Floats, Ints
from bothworlds.report.theorems import covered_as, known_of
from bothworlds.simulation.results import Results
from bothworlds.studies.study import Cell
from bothworlds.theory.bounds import Bound, bounds
from bothworlds.theory.design import design_for

ERRORS = 3.0  # standard errors that are added to the mean regret before it is held against a bound


class Check(NamedTuple):
    """Mean regret against an explicit bound.

    ``regret`` and ``bound`` are those at the horizon, ``ratio`` is the largest (regret + 3 s.e.)/bound over the rounds
    t at which the bound is below 2 t, NaN where there is none; ``vacuous`` says that the horizon is not one of them.
    """

    regret: float
    bound: float
    ratio: float
    vacuous: bool

    @property
    def holds(self) -> bool:
        """Whether no informative checkpoint is above the bound."""
        return not self.ratio > 1.0


def against_bound(rounds: Ints, paths: Floats, bound: Floats) -> Check:
    """Hold mean regret plus three standard errors against a bound, wherever the bound is below 2 t.

    >>> t = np.array([10, 100, 1000])
    >>> against_bound(t, np.array([[9.0, 30.0, 90.0]] * 2), np.array([30.0, 60.0, 100.0]))
    Check(regret=90.0, bound=100.0, ratio=0.9, vacuous=False)
    """
    regret, R = paths.mean(axis=0), len(paths)
    error = paths.std(axis=0, ddof=1) / math.sqrt(R) if R > 1 else np.zeros(len(rounds))
    told = bound < 2.0 * rounds
    ratio = float(((regret + ERRORS * error)[told] / bound[told]).max()) if told.any() else math.nan
    return Check(float(regret[-1]), float(bound[-1]), ratio, not told[-1])


def proved_bound(cell: Cell) -> Bound | None:
    """Return the bound of a cell that is smallest at its horizon, or None where nothing is proved.

    LC-Tsallis-INF with alpha = 1/2, exact covariance and the tunings "paper", "certified" (c = 1/4) and "matched"
    (with the constants of `Matching`), BoBW-RealFTRL tuned to the horizon; both with feedback after every decision.
    """
    name, settings = _name(cell), cell.settings
    if name is None or settings["delay"] > 0 or settings["batch"] > 1:
        return None
    environment = cell.make_environment()
    if environment.reacts:
        return None
    design = design_for(environment.problem, cell.algorithm_options.get("design", "joint-g"))
    known = known_of(environment, cell)
    tables = [bounds(environment.problem, horizon=settings["horizon"], design=design, **given) for given in known]
    found = [bound for table in tables for bound in table if bound.name == name]
    return min(reversed(found), key=lambda bound: bound.value)  # of equal ones that of the regime, which comes last


def check_cell(cell: Cell, results: Results) -> tuple[Bound, Check] | None:
    """Hold the regret of a cell against what is proved for it; None where nothing is."""
    bound = proved_bound(cell)
    if bound is None:
        return None
    rounds = results.checkpoints
    return bound, against_bound(rounds, results[cell.algorithm].paths, bound.at(rounds))


def _name(cell: Cell) -> str | None:
    """Return the name that the table of bounds has for an algorithm, if there is one."""
    algorithm: Any = cell.make_algorithm()
    if isinstance(algorithm, RealFTRL) and algorithm.horizon != cell.settings["horizon"]:
        return None
    return covered_as(algorithm)
