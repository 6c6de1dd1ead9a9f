"""Fixed policies, replayed in environments that react to the arms played.

Regret compares with losses caused by the learner's own plays. If, for example, click rates fall when an ad is shown, a
fixed policy would have incurred other losses, which are known only by playing it.
"""

from dataclasses import replace

import numpy as np

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.arrays import Floats
from bothworlds.environments import Environment, dynamics
from bothworlds.studies.study import Cell

KIND = "fixed policies"
SWEEPS = 500


def replayed_cell(cell: Cell) -> Cell:
    """Return the cell that replays fixed policies in the environment of another cell."""
    return replace(cell, algorithm=KIND, algorithm_options={"kind": KIND})


def fixed_policies(environment: Environment) -> dict[str, FixedPolicy]:
    """Return the baselines of a reacting environment: uniform, best arm at the start, and the best mixture if known."""
    problem = environment.problem
    start = np.where(problem.available, environment.tables[0], np.inf).argmin(axis=1)
    found = {
        "uniform, replayed": FixedPolicy(),
        "best arm at the start, replayed": FixedPolicy.always(start, problem.n_arms, label="best arm at the start"),
    }
    if environment.kind == dynamics.FATIGUE:
        mixture = best_mixture(environment)
        found["best fixed mixture, replayed"] = FixedPolicy(mixture, "best fixed mixture")
    return found


def best_mixture(environment: Environment) -> Floats:
    """Return the fixed policy (contexts, arms) of smallest loss per round in the limit of ad fatigue.

    Under pi the exposure of arm a tends to e_a = sum_x g(x) pi(a|x), so the loss tends to
    sum_x g(x) sum_a pi(a|x) (l(a, x) + w e_a) = <g pi, l> + w |e|^2, which is convex. In one context it is a squared
    distance, minimized by a projection on the simplex; coordinate descent over contexts finds the joint minimum.
    """
    g, fresh, wear = environment.problem.probabilities, environment.tables[0], float(environment.constants[0])
    pi = np.eye(environment.problem.n_arms)[fresh.argmin(axis=1)]
    exposure = g @ pi
    for _ in range(SWEEPS if wear > 0.0 else 0):
        before = pi.copy()
        for x in range(len(g)):
            others = exposure - g[x] * pi[x]
            pi[x] = on_simplex(-(fresh[x] + 2.0 * wear * others) / (2.0 * wear * g[x]))
            exposure = others + g[x] * pi[x]
        if np.abs(pi - before).max() < 1e-12:
            break
    return np.asarray(pi)


def on_simplex(point: Floats) -> Floats:
    """Return the probability distribution nearest to a point, in Euclidean distance.

    >>> on_simplex(np.array([0.5, 0.9, -3.0])).round(3).tolist()
    [0.3, 0.7, 0.0]
    """
    falling = np.sort(point)[::-1]
    levels = (np.cumsum(falling) - 1.0) / np.arange(1, len(point) + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    kept = np.maximum(point - level, 0.0)
    return np.asarray(kept / kept.sum())
