"""The theorems' bounds as lines of a report: which of them covers which algorithm in which regime."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from bothworlds.algorithms.exponential.real_ftrl import RealFTRL
from bothworlds.algorithms.lc_tsallis.algorithm_1 import Certified, Paper
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.report.figures import Bound, Bounds
from bothworlds.report.panels import Summary
from bothworlds.simulation.study import Cell
from bothworlds.theory.bounds import BoundTable, bounds
from bothworlds.theory.design import Kind, design_for
from bothworlds.theory.lemmas import margin_condition
from bothworlds.theory.schedules import Matching, certified_constant


def theorem_bounds(summary: Summary) -> Bounds:
    """Return, for every label that a theorem covers, a function (environment, rounds) -> bound on the regret.

    It is the smallest of what the theorems that hold there say, and of 2 t, which is always true. Nothing is said of
    late or batched feedback, nor where nature reacts to the plays: there regret is not what counts.
    """
    if summary.study.settings["delay"] > 0 or summary.study.settings["batch"] > 1:
        return {}
    cells = {panel.environment: panel.entries[0].cell for panel in summary.panels}
    tables = cache(partial(_tables, cells))  # a design takes seconds where there are many features
    found: dict[str, Bound] = {}
    players = {entry.label: entry.algorithm for panel in summary.panels for entry in panel.entries}
    for label, algorithm in players.items():
        name = covered_as(algorithm)
        if name is not None:
            tuned_to = algorithm.horizon if isinstance(algorithm, RealFTRL) else summary.study.settings["horizon"]
            found[label] = partial(_line, partial(tables, design=algorithm.design, horizon=tuned_to), name)
    return found


def covered_as(algorithm: Any) -> str | None:
    """Return the name under which `bounds` lists an algorithm, None if no theorem is about it.

    >>> covered_as(LCTsallisINF()), covered_as(LCTsallisINF(tuning=Matched(gain=0.5))), covered_as(RealFTRL(horizon=9))
    ('LC-Tsallis-INF, matched', None, 'BoBW-RealFTRL')
    """
    match algorithm:
        case LCTsallisINF(alpha=0.5, covariance="exact", tuning=Paper(finite_support=finite)):
            return "LC-Tsallis-INF, paper" if finite else "LC-Tsallis-INF, paper, any support"
        case LCTsallisINF(alpha=0.5, tuning=Certified(c=c, batch=1)) if c in (None, certified_constant(0.5)):
            return "LC-Tsallis-INF, certified"
        case LCTsallisINF(tuning=Matched() as tuning) if tuning.matching == Matching():
            return "LC-Tsallis-INF, matched"
        case RealFTRL(horizon=int()):
            return "BoBW-RealFTRL"
        case _:
            return None


def _line(
    tables: Callable[[Environment], list[BoundTable]], name: str, environment: Environment, rounds: Ints
) -> Floats | None:
    """Return the smallest bound of this name that holds in an environment, round by round."""
    if environment.reacts:
        return None
    curves = [bound.at(rounds) for table in tables(environment) for bound in table if bound.name == name]
    return np.asarray(np.min([2.0 * rounds, *curves], axis=0), dtype=np.float64)


def _tables(
    cells: dict[Environment, Cell], environment: Environment, *, design: Kind, horizon: int
) -> list[BoundTable]:
    """Return the bounds of an environment, for each way to describe it."""
    explore = design_for(environment.problem, design)
    known = known_of(environment, cells[environment])
    return [bounds(environment.problem, horizon=horizon, design=explore, **given) for given in known]


def known_of(environment: Environment, cell: Cell) -> Iterator[dict[str, float]]:
    """Yield what is known of nature, as arguments of `bounds`: nothing, a smallest gap, a margin condition.

    The margin is that of the sizes, where it holds: not every world is drawn to the sizes of a study.
    """
    if not environment.stochastic:
        yield {}
        return
    corruption = {"corruption": environment.budget} if environment.budget > 0.0 else {}
    yield {"gap": environment.gap, **corruption} if environment.gap > 0.0 else {}
    sizes = {**cell.sizes, **cell.environment_options}
    if sizes.get("margin") in (None, "none") or sizes.get("gap") in (None, "none"):
        return
    drawn = {"gap": float(sizes["gap"]), "margin": float(sizes["margin"])}
    if margin_condition(environment.context_gaps, environment.problem.probabilities, **drawn):
        yield {**drawn, **corruption}
