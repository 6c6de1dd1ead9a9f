"""Independent copies of a bandit algorithm, one per context, as kernel text: FTRL on importance-weighted losses.

Copy x has a clock of its own, n_x = 1 + the feedback it got, and the sums of its estimated losses, one number an arm;
losses of [-1, 1] are mapped to [0, 1] by (1 + loss)/2. Features are not used: nothing learnt in one context helps in
another. Algorithms differ in the regulariser, the rate and the estimator.

A decision carries what its feedback needs, fixed when it is taken: direction = 1/pi(A) at the arm A played and zero
elsewhere, baseline = b. The estimate b + (loss - b(A)) direction is unbiased for any b, however late.
"""

import math
from typing import NamedTuple

import numpy as np

from bothworlds.algorithms.possible import is_importance_weight
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.numbers import matrix_of, row_of
from bothworlds.kernels.plan import all_finite, draw_arm
from bothworlds.kernels.random import Pair
from bothworlds.kernels.simplex import shannon_point, tsallis_point
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Machine
from bothworlds.problem import Problem
from bothworlds.theory.frame import world_of

TSALLIS, SHANNON = 0.0, 1.0


class Numbers(NamedTuple):
    """Hyper-parameters: the regulariser, eta_n sqrt(n) (1 for Shannon entropy), and c of b = 1/2 where pi >= c eta^2.

    c = 0 stands for no baseline.
    """

    kind: float
    gain: float
    cutoff: float


class State(NamedTuple):
    """What is learnt: updates, own clocks, sums of estimates; then the plan, and the clocks for which it was made."""

    t: Floats
    clocks: Floats
    losses: Floats
    planned: Floats
    pi: Floats
    sigma: Floats  # there is no covariance; one number under the common name


LEARNT = ("t", "clocks", "losses")


class Work(NamedTuple):
    """Scratch space: powers of the FTRL point."""

    powers: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2])


def sizes(B: int, K: int, d: int) -> tuple[int, int]:  # noqa: ARG001
    """Return how many numbers the memory takes."""
    return 2, 2 * B + 2 * B * K + K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:  # noqa: ARG001
    """Name the parts of a policy's memory."""
    return State(
        t=row_of(memory, 0, 1),
        sigma=matrix_of(memory, 1, 1, 1),
        clocks=row_of(cells, 0, B),
        planned=row_of(cells, B, B),
        losses=matrix_of(cells, 2 * B, B, K),
        pi=matrix_of(cells, 2 * B + B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the scratch space."""
    return Work(row_of(cells, 2 * B + 2 * B * K, K))


@kernel
def rate(numbers: Numbers, blocked: Floats, clock: float) -> float:
    """Return eta_n: gain/sqrt(n), for Shannon entropy times sqrt(log k/k), k the number of arms offered."""
    eta = numbers.gain / math.sqrt(clock)
    if numbers.kind == TSALLIS:
        return eta
    count = 0
    for a in range(blocked.shape[0]):
        count += 1 if blocked[a] == 0.0 else 0
    arms = max(count, 2)
    return eta * math.sqrt(math.log(arms) / arms)


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the point of every copy that has learnt since the last plan; a pure function of what is learnt."""
    for x in range(state.pi.shape[0]):
        if state.planned[x] == state.clocks[x]:
            continue
        if not all_finite(state.losses[x]):
            return NOT_FINITE
        q = state.pi[x]
        eta = rate(numbers, world.blocked[x], state.clocks[x])
        for a in range(q.shape[0]):
            q[a] = state.losses[x, a] + world.blocked[x, a]
        if numbers.kind == TSALLIS:
            status, _ = tsallis_point(q, eta, 0.5, 1.0, work.powers, q)
            if status != OK:
                return status
        else:
            shannon_point(q, eta, q)
        state.planned[x] = state.clocks[x]
    return OK


@kernel
def choose(
    world: World,
    numbers: Numbers,
    state: State,
    work: Work,  # noqa: ARG001
    x: int,
    uniforms: Pair,
    key: int,  # noqa: ARG001
    time: int,  # noqa: ARG001
    direction: Floats,
    baseline: Floats,
) -> int:
    """Draw A_t from pi(x), and write the direction and the baseline of the moment."""
    arm = draw_arm(state.pi, x, uniforms)
    eta = rate(numbers, world.blocked[x], state.clocks[x])
    least = numbers.cutoff * eta * eta
    for a in range(direction.shape[0]):
        direction[a] = 0.0
        baseline[a] = 0.5 if numbers.cutoff > 0.0 and state.pi[x, a] >= least else 0.0
    direction[arm] = 1.0 / state.pi[x, arm]
    return arm


@kernel
def learn(
    world: World,  # noqa: ARG001
    numbers: Numbers,  # noqa: ARG001
    state: State,
    x: int,
    a: int,
    loss: float,
    direction: Floats,
    baseline: Floats,
) -> None:
    """Add the estimate to the sums of copy x, and move its clock."""
    rest = 0.5 * (1.0 + loss) - baseline[a]
    for b in range(direction.shape[0]):
        state.losses[x, b] += baseline[b] + rest * direction[b]
    state.clocks[x] += 1.0
    state.t[0] += 1.0


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn)


def per_context_machine(problem: Problem, numbers: Numbers) -> Machine:
    """Return the machine of an algorithm with one copy per context; K numbers travel with a decision."""
    offered = problem.available
    evenly = offered / offered.sum(axis=1, keepdims=True)

    def begin(state: State) -> None:
        state.t[...] = state.clocks[...] = 1.0  # and no plan yet

    return Machine(
        text=TEXT,
        world=world_of(problem, evenly, np.zeros((*offered.shape, 0))),
        numbers=np.array(numbers),
        begin=begin,
        learnt=LEARNT,
        frame={},
        has_baseline=numbers.cutoff > 0.0,
        carried=problem.n_arms,
        possible=is_importance_weight,
    )
