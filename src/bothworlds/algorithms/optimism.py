"""Optimism in the face of uncertainty as kernel text: ridge regression, a width per arm, the smallest index.

Played is argmin_a <phi(a, x), theta_hat> - radius |phi(a, x)|_{V^-1}, ties at random. Algorithms differ in the radius.
"""

import math
from typing import NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats, aligned
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.matrix import apply_inverse, cholesky, combine, invert_lower, leverages
from bothworlds.kernels.plan import choose_only, plain_numbers
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
    """Scratch space: the index of every cell, leverages, and half a solution."""

    scores: Floats
    leverages: Floats
    half: Floats


@kernel
def state_of(memory: Floats, S: int, K: int, d: int, cells: int) -> State:  # noqa: ARG001
    """Name the parts of a policy's memory."""
    m = 1 + 2 * d
    p = m + 2 * d * d
    return State(
        t=memory[0:1],
        response=memory[1 : 1 + d],
        theta=memory[1 + d : m],
        sigma=memory[m : m + d * d].reshape((d, d)),
        inverse=memory[m + d * d : p].reshape((d, d)),
        pi=memory[p : p + S * K].reshape((S, K)),
    )


@kernel
def work_of(scratch: Floats, S: int, K: int, d: int, cells: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    return Work(scratch[0:cells], scratch[cells : 2 * cells], scratch[2 * cells : 2 * cells + d])


@kernel
def play_the_smallest(world: World, state: State, index: Floats) -> None:
    """Put all probability on the arms of smallest index in each context, evenly where they tie."""
    S, K = state.pi.shape
    table = index[0 : S * K].reshape((S, K))
    for x in range(S):
        least = math.inf
        for a in range(K):
            least = min(least, table[x, a] + world.blocked[x, a])
        count = 0
        for a in range(K):
            tied = table[x, a] + world.blocked[x, a] <= least + TIE
            state.pi[x, a] = 1.0 if tied else 0.0
            count += 1 if tied else 0
        for a in range(K):
            state.pi[x, a] /= count


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
    cell = x * state.pi.shape[1] + a
    for i in range(state.response.shape[0]):
        state.response[i] += loss * world.z[i, cell]
        for j in range(state.response.shape[0]):
            state.sigma[i, j] += world.z[i, cell] * world.z[j, cell]
    state.t[0] += 1.0


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
    """Factor V afresh (no drift), estimate theta, and rank the arms of every context."""
    if not cholesky(state.sigma, state.inverse):
        return NOT_POSITIVE
    invert_lower(state.inverse)
    apply_inverse(state.inverse, state.response, work.half, state.theta)
    width = radius(numbers, state)
    combine(state.theta, world.z, work.scores)
    leverages(state.inverse, world.z, work.leverages)
    for n in range(work.scores.shape[0]):
        work.scores[n] -= width * math.sqrt(work.leverages[n])
    play_the_smallest(world, state, work.scores)
    return OK


TEXT = KernelText(plain_numbers, state_of, work_of, refresh, choose_only, learn)


def optimistic_machine(problem: Problem, ridge: float, numbers: list[float]) -> Machine:
    """Return the machine of an optimistic algorithm, on the features as they are."""
    S, K, d = problem.features.shape
    offered = problem.available
    evenly = offered / offered.sum(axis=1, keepdims=True)
    world = world_of(problem, evenly, np.where(offered[:, :, None], problem.features, 0.0))
    cells = world.z.shape[1]
    memory = np.zeros(1 + 2 * d + 2 * d * d + S * K)
    state = state_of(memory, S, K, d, cells)
    state.t[0] = 1.0
    state.sigma[...] = ridge * np.eye(d)
    return Machine(
        text=TEXT,
        world=world,
        numbers=np.array(numbers, dtype=np.float64),
        memory=memory,
        scratch=aligned(2 * cells + d),
        learnt=LEARNT,
        frame={},
        has_baseline=False,
    )
