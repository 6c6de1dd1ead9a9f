"""Optimism in the face of uncertainty as kernel text: ridge regression, a width per arm, the smallest index.

Played is argmin_a <phi(a, x), theta_hat> - radius |phi(a, x)|_{V^-1}, ties at random. Algorithms differ in the radius.
"""

import math

from bothworlds.algorithms.ridge import (
    State,
    Work,
    add_play,
    add_smallest,
    estimate,
    ridge_machine,
    sizes,
    state_of,
    work_of,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.matrix import lower_bounds
from bothworlds.kernels.numbers import Number, larger, logarithm, root
from bothworlds.kernels.plan import choose_only, plain_numbers
from bothworlds.kernels.status import OK
from bothworlds.policy import Machine
from bothworlds.problem import Problem

CONSTANT, DETERMINANT = 0.0, 1.0


@kernel
def radius(numbers: Floats, state: State) -> Number:
    """Return the width of the confidence set: a constant, or OFUL's determinant form.

    R sqrt(log(det V/(ridge^d delta^2))) + sqrt(ridge) bound, R = 1 for losses in [-1, 1].
    """
    if numbers[0] == CONSTANT:
        return numbers[1] + 0.0 * state.t[0]
    ridge, delta, bound = numbers[1], numbers[2], numbers[3]
    log_determinant = 0.0
    for i in range(state.inverse.shape[0]):
        log_determinant = log_determinant - (2.0 * logarithm(state.inverse[i, i]) + math.log(ridge))
    return root(larger(log_determinant, 0.0) - 2.0 * math.log(delta)) + math.sqrt(ridge) * bound


@kernel
def refresh(world: World, numbers: Floats, state: State, work: Work) -> int:
    """Estimate theta, and put all probability on the arms of smallest index in each context."""
    status = estimate(state, work.half)
    if status != OK:
        return status
    width = radius(numbers, state)
    for x in range(state.pi.shape[0]):
        lower_bounds(state.theta, state.inverse, width, world.z[x], world.blocked[x], work.scores)
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = 0.0
        add_smallest(work.scores, state.pi[x])
    return OK


TEXT = KernelText(sizes, plain_numbers, state_of, work_of, refresh, choose_only, add_play, wide=True, together=True)


def optimistic_machine(problem: Problem, ridge: float, numbers: list[float]) -> Machine:
    """Return the machine of an optimistic algorithm."""
    return ridge_machine(TEXT, problem, ridge=ridge, numbers=numbers)
