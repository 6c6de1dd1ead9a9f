"""Ridge regression on the plays, the estimate shared by the optimists and by Thompson sampling.

V = ridge I + sum of phi phi^T grows by one rank-one matrix a play and is factored afresh for every plan, so that the
stored inverse never drifts from V, however long the run.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.matrix import apply_inverse, cholesky, invert_lower
from bothworlds.kernels.status import NOT_POSITIVE, OK
from bothworlds.policy import Machine
from bothworlds.problem import Problem

TIE = 1e-12


class State(NamedTuple):
    """What is learnt: the clock, V and sum of phi loss, and a seed for those who draw; then the plan.

    ``sigma`` is V under its common name, ``inverse`` is G with V^-1 = G^T G.
    """

    t: Floats
    seed: Floats
    response: Floats
    theta: Floats
    sigma: Floats
    inverse: Floats
    pi: Floats


LEARNT = ("t", "response", "sigma")


@kernel
def state_of(memory: Floats, S: int, K: int, d: int, cells: int) -> State:  # noqa: ARG001
    """Name the parts of a policy's memory."""
    m = 2 + 2 * d
    p = m + 2 * d * d
    return State(
        t=memory[0:1],
        seed=memory[1:2],
        response=memory[2 : 2 + d],
        theta=memory[2 + d : m],
        sigma=memory[m : m + d * d].reshape((d, d)),
        inverse=memory[m + d * d : p].reshape((d, d)),
        pi=memory[p : p + S * K].reshape((S, K)),
    )


@kernel
def add_play(
    world: World,
    numbers: Any,  # noqa: ARG001
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
def estimate(state: State, half: Floats) -> int:
    """Factor V afresh and compute theta_hat = V^-1 response; return a status."""
    if not cholesky(state.sigma, state.inverse):
        return NOT_POSITIVE
    invert_lower(state.inverse)
    apply_inverse(state.inverse, state.response, half, state.theta)
    return OK


@kernel
def add_smallest(index: Floats, blocked: Floats, pi: Floats) -> None:
    """Add 1 to the arm of smallest index among those offered, in equal parts where several tie."""
    least = math.inf
    for a in range(pi.shape[0]):
        least = min(least, index[a] + blocked[a])
    count, last = 0, 0
    for a in range(pi.shape[0]):
        if index[a] + blocked[a] <= least + TIE:
            count += 1
            last = a
    if count == 1:
        pi[last] += 1.0
        return
    for a in range(pi.shape[0]):
        if index[a] + blocked[a] <= least + TIE:
            pi[a] += 1.0 / count


def ridge_machine(
    text: KernelText,
    problem: Problem,
    *,
    ridge: float,
    numbers: list[float],
    scratch: int,
    learnt: tuple[str, ...] = LEARNT,
) -> Machine:
    """Return the machine of an algorithm with the state above, on the features as they are."""
    S, K, d = problem.features.shape
    offered = problem.available
    z = np.ascontiguousarray(np.where(offered[:, :, None], problem.features, 0.0).reshape(S * K, d).T)
    blocked = np.where(offered, 0.0, np.inf)
    world = World(z, blocked, np.array(problem.probabilities), offered / offered.sum(axis=1, keepdims=True))
    memory = np.zeros(2 + 2 * d + 2 * d * d + S * K)
    state = state_of(memory, S, K, d, S * K)
    state.t[0] = 1.0
    state.sigma[...] = ridge * np.eye(d)
    return Machine(
        text=text,
        world=world,
        numbers=np.array(numbers, dtype=np.float64),
        memory=memory,
        scratch=np.zeros(scratch),
        learnt=learnt,
        frame={},
        has_baseline=False,
    )
