"""Which theorem holds for a cell of a study, with its explicit bound."""

from typing import Any

from bothworlds.algorithms.exponential.real_ftrl import RealFTRL
from bothworlds.environments import Environment
from bothworlds.report.theorems import covered_as
from bothworlds.report.verdicts import Check, against_bound
from bothworlds.simulation.results import Results
from bothworlds.simulation.study import Cell
from bothworlds.theory.bounds import Bound, bounds


def proved_bound(cell: Cell) -> Bound | None:
    """Return the sharpest theorem's bound for a cell, or None where nothing is proved.

    LC-Tsallis-INF with alpha = 1/2, exact covariance and the tunings "paper", "certified" (c = 1/4) and "matched"
    (c = 0.4), BoBW-RealFTRL tuned to the horizon; both with feedback after every decision.
    """
    name, numbers = _name(cell), cell.numbers
    if name is None or numbers["delay"] > 0 or numbers["batch"] > 1:
        return None
    environment = cell.make_environment()
    if environment.reacts:
        return None
    known = _known(cell, environment) if environment.stochastic else {}
    design = cell.algorithm_options.get("design", "joint-g")
    table = bounds(environment.problem, horizon=numbers["horizon"], design=design, **known)
    return next(bound for bound in reversed(table.bounds) if bound.name == name)  # that of the regime comes last


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
    if isinstance(algorithm, RealFTRL) and algorithm.horizon != cell.numbers["horizon"]:
        return None
    return covered_as(algorithm)


def _known(cell: Cell, environment: Environment) -> dict[str, Any]:
    """Return gap, margin and corruption of a world with a fixed parameter."""
    sizes = {
        **cell.sizes,
        **{key: cell.environment_options[key] for key in cell.sizes if key in cell.environment_options},
    }
    if sizes["margin"] is not None:
        known = {"gap": sizes["gap"], "margin": sizes["margin"]}
    else:
        known = {"gap": environment.gap}
    return {**known, "corruption": environment.budget} if environment.budget > 0.0 else known
