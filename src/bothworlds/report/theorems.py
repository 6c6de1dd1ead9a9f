"""The theorems' bounds as lines of a report: which of them covers which algorithm in which regime."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from bothworlds.algorithms.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.real_ftrl import RealFTRL
from bothworlds.algorithms.tunings import Certified, Paper
from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.report.figures import Bound, Bounds
from bothworlds.report.panels import Summary
from bothworlds.simulation.study import Cell, make_algorithm
from bothworlds.theory.bounds import BoundTable, bounds
from bothworlds.theory.schedules import stability_constant


def theorem_bounds(summary: Summary) -> Bounds:
    """Return, for every label that a theorem covers, a function (environment, rounds) -> bound on the regret.

    It is the smallest of what the theorems that hold there say, and of 2 t, which is always true. Nothing is said of
    late or batched feedback, nor where nature reacts to the plays: there regret is not what counts.
    """
    if summary.study.numbers["delay"] > 0 or summary.study.numbers["batch"] > 1:
        return {}
    cells = {panel.environment: panel.entries[0].cell for panel in summary.panels}
    found: dict[str, Bound] = {}
    for label, options in summary.study.algorithms.items():
        algorithm = make_algorithm(options)
        name = covered_as(algorithm)
        if name is not None:
            found[label] = partial(_line, cells, algorithm, name)
    return found


def covered_as(algorithm: Any) -> str | None:
    """Return the name under which `bounds` lists an algorithm, None if no theorem is about it.

    >>> covered_as(LCTsallisINF()), covered_as(LCTsallisINF(tuning="adaptive")), covered_as(RealFTRL(horizon=100))
    ('LC-Tsallis-INF, certified', None, 'BoBW-RealFTRL')
    """
    match algorithm:
        case LCTsallisINF(alpha=0.5, covariance="exact", tuning=Paper(finite_support=finite)):
            return "LC-Tsallis-INF, paper" if finite else "LC-Tsallis-INF, paper, any support"
        case LCTsallisINF(alpha=0.5, tuning=Certified(c=c, batch=1)) if c in (None, stability_constant(0.5)):
            return "LC-Tsallis-INF, certified"
        case RealFTRL(horizon=int()):
            return "BoBW-RealFTRL"
        case _:
            return None


def _line(
    cells: dict[Environment, Cell], algorithm: Any, name: str, environment: Environment, rounds: Ints
) -> Floats | None:
    """Return the smallest bound that holds for an algorithm in an environment, round by round."""
    if environment.reacts:
        return None
    tuned_to = algorithm.horizon if isinstance(algorithm, RealFTRL) else None
    horizon = int(rounds[-1]) if tuned_to is None else tuned_to
    tables = [
        bounds(environment.problem, horizon=horizon, design=algorithm.design, **known)
        for known in _known(environment, cells[environment])
    ]
    curves = [bound.at(rounds) for bound in _named(tables, name)]
    smallest = np.min([2.0 * rounds, *curves], axis=0)
    return np.asarray(smallest, dtype=np.float64)


def _named(tables: list[BoundTable], name: str) -> Iterator[Any]:
    """Yield the bounds of exactly this name."""
    for table in tables:
        yield from (bound for bound in table if bound.name == name)


def _known(environment: Environment, cell: Cell) -> Iterator[dict[str, float]]:
    """Yield what is known of nature, as arguments of `bounds`: nothing, a smallest gap, a margin condition."""
    if not environment.stochastic:
        yield {}
        return
    corruption = {"corruption": environment.budget} if environment.budget > 0.0 else {}
    yield {"gap": environment.gap, **corruption} if environment.gap > 0.0 else {}
    sizes = {**cell.sizes, **cell.environment_options}
    if sizes.get("margin") not in (None, "none") and cell.environment_options["kind"] != "lower-bound":
        yield {"gap": float(sizes["gap"]), "margin": float(sizes["margin"]), **corruption}
