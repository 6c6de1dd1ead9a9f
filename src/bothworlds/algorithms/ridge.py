"""Ridge regression on the plays, the estimate shared by the optimists and by Thompson sampling.

V = ridge I + sum of phi phi^T grows by one rank-one matrix a play and is factored afresh for every plan, so that the
stored inverse never drifts from V, however long the run.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bothworlds.algorithms.possible import Possible
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.matrix import apply_inverse, cholesky, invert_lower
from bothworlds.kernels.numbers import (
    Number,
    Place,
    absolute,
    every,
    feature,
    larger,
    matrix_of,
    row_of,
    where,
)
from bothworlds.kernels.simplex import smallest
from bothworlds.kernels.status import NOT_POSITIVE, OK
from bothworlds.policy import Machine
from bothworlds.problem import Problem
from bothworlds.theory.frame import world_of

TIE = 1e-12  # relative to the largest index of the context


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


class Work(NamedTuple):
    """Scratch space: half a solution, two vectors, and the index of every arm of a context."""

    half: Floats
    sample: Floats
    normals: Floats
    scores: Floats


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 2 + 5 * d + 2 * d * d, B * K + K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 2 + 2 * d
    return State(
        t=row_of(memory, 0, 1),
        seed=row_of(memory, 1, 1),
        response=row_of(memory, 2, d),
        theta=row_of(memory, 2 + d, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        pi=matrix_of(cells, 0, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:
    """Name the parts of the scratch space."""
    m = 2 + 2 * d + 2 * d * d
    return Work(
        half=row_of(memory, m, d),
        sample=row_of(memory, m + d, d),
        normals=row_of(memory, m + 2 * d, d),
        scores=row_of(cells, B * K, K),
    )


@kernel
def add_play(
    world: World,
    numbers: Any,  # noqa: ARG001
    state: State,
    x: Place,
    a: Place,
    loss: Number,
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
def estimate(state: State, half: Floats) -> int:
    """Factor V afresh and compute theta_hat = V^-1 response; return a status."""
    if not every(cholesky(state.sigma, state.inverse)):
        return NOT_POSITIVE
    invert_lower(state.inverse)
    apply_inverse(state.inverse, state.response, half, state.theta)
    return OK


@kernel
def add_smallest(index: Floats, pi: Floats) -> None:
    """Add 1 to the probability of the arm of smallest index, in equal parts where several tie.

    A tie is a difference of 1e-12 of the largest index in size, rounding: the unit of the features does not matter.
    """
    least = smallest(index)
    size = absolute(least)
    for a in range(index.shape[0]):
        size = larger(size, where(index[a] < math.inf, absolute(index[a]), 0.0))
    limit = least + TIE * size
    count = 0.0
    for a in range(index.shape[0]):
        count = count + where(index[a] <= limit, 1.0, 0.0)
    for a in range(index.shape[0]):
        pi[a] = pi[a] + where(index[a] <= limit, 1.0 / count, 0.0)


def ridge_machine(
    text: KernelText,
    problem: Problem,
    *,
    ridge: float,
    numbers: list[float],
    learnt: tuple[str, ...] = LEARNT,
    seed: Callable[[State, Any], None] | None = None,
    possible: Possible | None = None,
) -> Machine:
    """Return the machine of an algorithm with the state above, on the features as they are."""
    offered = problem.available
    evenly = offered / offered.sum(axis=1, keepdims=True)

    def begin(state: State) -> None:
        state.t[...] = 1.0
        for i in range(state.sigma.shape[0]):
            state.sigma[i, i] = ridge

    return Machine(
        text=text,
        world=world_of(problem, evenly, np.where(offered[:, :, None], problem.features, 0.0)),
        numbers=np.array(numbers, dtype=np.float64),
        begin=begin,
        learnt=learnt,
        frame={},
        has_baseline=False,
        seed=seed,
        possible=possible,
    )
