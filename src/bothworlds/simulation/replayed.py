"""Fixed policies replayed where nature reacts to the plays: what standing still would have earned.

Regret compares with losses as the learner made them. Where an ad tires by being shown, a fixed policy would have met
other losses, so only playing it tells what it would have got.
"""

from dataclasses import replace

import numpy as np

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.environments import Environment, nature
from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.simulation.study import Cell

KIND = "fixed policies"
STEPS = 2000


def replayed_cell(cell: Cell) -> Cell:
    """Return the cell that replays fixed policies in the environment of another cell."""
    return replace(cell, algorithm=KIND, algorithm_options={"kind": KIND})


def fixed_policies(environment: Environment) -> dict[str, FixedPolicy]:
    """Return the yardsticks of a world that reacts: uniform, best at the start, and the best mixture if it is known."""
    problem = environment.problem
    start = np.where(problem.available, environment.tables[0], np.inf).argmin(axis=1)
    found = {
        "uniform, replayed": FixedPolicy(),
        "best arm at the start, replayed": FixedPolicy.always(start, problem.n_arms, label="best arm at the start"),
    }
    if environment.kind == nature.FATIGUE:
        mixture = best_mixture(environment)
        found["best fixed mixture, replayed"] = FixedPolicy(mixture, "best fixed mixture")
    return found


def best_mixture(environment: Environment) -> Floats:
    """Return the fixed policy of smallest loss a round once ads have tired, shape (contexts, arms).

    Under pi the exposure of arm a tends to e_a = sum_x g(x) pi(a|x), so the loss tends to
    sum_x g(x) sum_a pi(a|x) (l(a, x) + w e_a) = <g pi, l> + w |e|^2, which is convex: Frank-Wolfe with exact steps.
    """
    problem, wear = environment.problem, float(environment.numbers[0])
    g = problem.probabilities[:, None]
    fresh = np.where(problem.available, environment.tables[0], np.inf)
    pi = problem.available / problem.available.sum(axis=1, keepdims=True)
    for _ in range(STEPS):
        exposure = (g * pi).sum(axis=0)
        corner = np.eye(problem.n_arms)[(fresh + 2.0 * wear * exposure).argmin(axis=1)]
        move = corner - pi
        shift = (g * move).sum(axis=0)
        slope = float((g * move * np.where(problem.available, fresh, 0.0)).sum() + 2.0 * wear * exposure @ shift)
        if slope > -1e-9:
            break
        bend = 2.0 * wear * float(shift @ shift)
        pi = pi + move * min(1.0, -slope / bend if bend > 0.0 else 1.0)
    return np.asarray(pi / pi.sum(axis=1, keepdims=True))


def total_reward(problem: Problem, losses: Floats, rounds: int) -> Floats:
    """Turn cumulative losses of some rounds into total reward in the user's units; minus the loss without a range.

    >>> p = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], reward_range=(0, 1))
    >>> total_reward(p, np.array([-2.0, 2.0]), 10).tolist()
    [6.0, 4.0]
    """
    if problem.reward_range is None:
        return -losses
    lo, hi = problem.reward_range
    return np.asarray(0.5 * ((lo + hi) * rounds - (hi - lo) * losses))
