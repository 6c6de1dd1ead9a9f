"""The theorems' bounds as lines of a report: which theorem applies to which algorithm in which regime."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from bothworlds.algorithms.exponential.real_ftrl import RealFTRL
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.algorithms.lc_tsallis.paper import Certified, Paper
from bothworlds.arrays import Floats, Ints
from bothworlds.environments import Environment
from bothworlds.report.figures import Bound, Bounds
from bothworlds.report.summary import Summary
from bothworlds.studies.study import Cell
from bothworlds.theory.bounds import BoundTable, bounds
from bothworlds.theory.design import Kind, design_for
from bothworlds.theory.lemmas import margin_condition
from bothworlds.theory.schedules import Matching, certified_constant


def theorem_bounds(summary: Summary) -> Bounds:
    """Return, for every label that a theorem covers, a function (environment, rounds) -> bound on the regret.

    The bound is the minimum of 2 t, which always holds, and of the bounds of the theorems that apply. None applies to
    late or batched feedback, nor where nature reacts to the plays, because there regret is not policy regret, nor in
    changing worlds, which are judged by dynamic regret.
    """
    if summary.study.settings["delay"] > 0 or summary.study.settings["batch"] > 1:
        return {}
    cells = {panel.environment: panel.entries[0].cell for panel in summary.panels}
    tables = cache(partial(_tables, cells))  # a design takes seconds where there are many features
    covered: dict[str, Bound] = {}
    algorithms = {entry.label: entry.algorithm for panel in summary.panels for entry in panel.entries}
    for label, algorithm in algorithms.items():
        name = covered_as(algorithm)
        if name is not None:
            tuned_to = algorithm.horizon if isinstance(algorithm, RealFTRL) else summary.study.settings["horizon"]
            covered[label] = _cached(partial(_line, partial(tables, design=algorithm.design, horizon=tuned_to), name))
    return covered


def _cached(bound: Bound) -> Bound:
    """Return a bound that computes its values for the same environment and rounds once."""
    known: dict[tuple[Environment, bytes], Floats | None] = {}

    def at(environment: Environment, rounds: Ints) -> Floats | None:
        key = environment, rounds.tobytes()
        if key not in known:
            known[key] = bound(environment, rounds)
        return known[key]

    return at


def covered_as(algorithm: Any) -> str | None:
    """Return the name under which `bounds` lists an algorithm, None if no theorem covers it.

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
    if environment.reacts or environment.changing:
        return None
    curves = [bound.at(rounds) for table in tables(environment) for bound in table if bound.name == name]
    return np.asarray(np.min([2.0 * rounds, *curves], axis=0), dtype=np.float64)


def _tables(
    cells: dict[Environment, Cell], environment: Environment, *, design: Kind, horizon: int
) -> list[BoundTable]:
    """Return the bounds of an environment, for each of its descriptions."""
    explore = design_for(environment.problem, design)
    descriptions = known_of(environment, cells[environment])
    return [bounds(environment.problem, horizon=horizon, design=explore, **given) for given in descriptions]


def known_of(environment: Environment, cell: Cell) -> Iterator[dict[str, float]]:
    """Yield descriptions of nature, as arguments of `bounds`: none, a smallest gap, a margin condition.

    The margin is that of the study's sizes, if the environment satisfies it: not every environment uses the sizes.
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
