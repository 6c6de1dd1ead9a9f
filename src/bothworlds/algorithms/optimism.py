"""Optimism in the face of uncertainty as kernel text: ridge regression, a width per arm, the smallest index.

Played is argmin_a <phi(a, x), theta_hat> - radius |phi(a, x)|_{V^-1}, ties at random. Algorithms differ in the radius.
"""

import math
from typing import NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.matrix import apply_inverse, cholesky, invert_lower, leverage, product
from bothworlds.kernels.numbers import Number, every, feature, larger, logarithm, matrix_of, root, row_of, where
from bothworlds.kernels.plan import choose_only, plain_numbers
from bothworlds.kernels.simplex import smallest
from bothworlds.kernels.status import NOT_POSITIVE, OK
from bothworlds.policy import Machine
from bothworlds.problem import Problem
from bothworlds.theory.frame import world_of

TIE = 1e-12
CONSTANT, DETERMINANT = 0.0, 1.0


class State(NamedTuple):
    """What is learnt: the clock, V and sum of phi loss; then the plan. ``sigma`` is V under its common name."""

    t: Floats
    response: Floats
    theta: Floats
    sigma: Floats
    inverse: Floats
    pi: Floats


LEARNT = ("t", "response", "sigma")


class Work(NamedTuple):
    """Scratch space: half a solution."""

    half: Floats


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 1 + 3 * d + 2 * d * d, B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 1 + 2 * d
    return State(
        t=row_of(memory, 0, 1),
        response=row_of(memory, 1, d),
        theta=row_of(memory, 1 + d, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        pi=matrix_of(cells, 0, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the scratch space."""
    return Work(row_of(memory, 1 + 2 * d + 2 * d * d, d))


@kernel
def play_the_smallest(index: Floats) -> None:
    """Replace the indices of a context's arms by probabilities: all on the smallest, evenly where they tie."""
    least = smallest(index)
    count = 0.0
    for a in range(index.shape[0]):
        index[a] = where(index[a] <= least + TIE, 1.0, 0.0)
        count = count + index[a]
    for a in range(index.shape[0]):
        index[a] = index[a] / count


@kernel
def learn(
    world: World,
    numbers: Floats,  # noqa: ARG001
    state: State,
    x: int,
    a: int,
    loss: float,
    direction: Floats,  # noqa: ARG001
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add phi phi^T to V and phi loss to the response."""
    for i in range(state.response.shape[0]):
        z = feature(world.z, x, a, i)
        state.response[i] += loss * z
        for j in range(state.response.shape[0]):
            state.sigma[i, j] += z * feature(world.z, x, a, j)
    state.t[0] += 1.0


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
    """Factor V afresh (no drift), estimate theta, and rank the arms of every context."""
    if not every(cholesky(state.sigma, state.inverse)):
        return NOT_POSITIVE
    invert_lower(state.inverse)
    apply_inverse(state.inverse, state.response, work.half, state.theta)
    width = radius(numbers, state)
    for x in range(state.pi.shape[0]):
        index = state.pi[x]
        for a in range(index.shape[0]):
            z = world.z[x, a]
            index[a] = product(state.theta, z) - width * root(leverage(state.inverse, z)) + world.blocked[x, a]
        play_the_smallest(index)
    return OK


TEXT = KernelText(sizes, plain_numbers, state_of, work_of, refresh, choose_only, learn, wide=True)


def optimistic_machine(problem: Problem, ridge: float, numbers: list[float]) -> Machine:
    """Return the machine of an optimistic algorithm, on the features as they are."""
    offered = problem.available
    evenly = offered / offered.sum(axis=1, keepdims=True)

    def begin(state: State) -> None:
        state.t[...] = 1.0
        for i in range(state.sigma.shape[0]):
            state.sigma[i, i] = ridge

    return Machine(
        text=TEXT,
        world=world_of(problem, evenly, np.where(offered[:, :, None], problem.features, 0.0)),
        numbers=np.array(numbers, dtype=np.float64),
        begin=begin,
        learnt=LEARNT,
        frame={},
        has_baseline=False,
    )
