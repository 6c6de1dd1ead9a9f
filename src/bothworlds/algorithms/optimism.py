"""Optimism in the face of uncertainty as kernel text: ridge regression, a width per arm, the smallest index.

Played is argmin_a <phi(a, x), theta_hat> - radius |phi(a, x)|_{V^-1}, ties at random. Algorithms differ in the radius.
"""

import math
from typing import NamedTuple

from bothworlds.algorithms.ridge import State, add_play, add_smallest, estimate, ridge_machine, state_of
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.matrix import combine, leverages
from bothworlds.kernels.plan import choose_only, plain_numbers
from bothworlds.kernels.status import OK
from bothworlds.policy import Machine
from bothworlds.problem import Problem

CONSTANT, DETERMINANT = 0.0, 1.0


class Work(NamedTuple):
    """Scratch space: the index of every cell, leverages, a row, and half a solution."""

    scores: Floats
    leverages: Floats
    row: Floats
    half: Floats


@kernel
def work_of(scratch: Floats, S: int, K: int, d: int, cells: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    return Work(
        scratch[0:cells], scratch[cells : 2 * cells], scratch[2 * cells : 3 * cells], scratch[3 * cells : 3 * cells + d]
    )


@kernel
def radius(numbers: Floats, state: State) -> float:
    """Return the width of the confidence set: a constant, or OFUL's determinant form.

    R sqrt(log(det V/(ridge^d delta^2))) + sqrt(ridge) bound, R = 1 for losses in [-1, 1].
    """
    if numbers[0] == CONSTANT:
        return float(numbers[1])
    ridge, delta, bound = numbers[1], numbers[2], numbers[3]
    log_determinant = 0.0
    for i in range(state.inverse.shape[0]):
        log_determinant -= 2.0 * math.log(state.inverse[i, i]) + math.log(ridge)
    return math.sqrt(max(0.0, log_determinant) - 2.0 * math.log(delta)) + math.sqrt(ridge) * float(bound)


@kernel
def refresh(world: World, numbers: Floats, state: State, work: Work) -> int:
    """Estimate theta, and put all probability on the arms of smallest index in each context."""
    status = estimate(state, work.half)
    if status != OK:
        return status
    width = radius(numbers, state)
    combine(state.theta, world.z, work.scores)
    leverages(state.inverse, world.z, work.row, work.leverages)
    for n in range(work.scores.shape[0]):
        work.scores[n] -= width * math.sqrt(work.leverages[n])
    S, K = state.pi.shape
    table = work.scores[0 : S * K].reshape((S, K))
    for x in range(S):
        for a in range(K):
            state.pi[x, a] = 0.0
        add_smallest(table[x], world.blocked[x], state.pi[x])
    return OK


TEXT = KernelText(plain_numbers, state_of, work_of, refresh, choose_only, add_play)


def optimistic_machine(problem: Problem, ridge: float, numbers: list[float]) -> Machine:
    """Return the machine of an optimistic algorithm."""
    S, K, d = problem.features.shape
    return ridge_machine(TEXT, problem, ridge=ridge, numbers=numbers, scratch=3 * S * K + d)
