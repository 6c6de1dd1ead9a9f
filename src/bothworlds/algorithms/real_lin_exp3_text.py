"""RealLinExp3 as kernel text: with one covariance per arm (P.Indep), and with one for all arms (P.Dep)."""

from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels import armwise, shannon
from bothworlds.kernels.armwise import armwise_plan, exact_arm_direction, learn_arm, resampled_arm_direction
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.plan import all_finite, draw_arm, exact_direction
from bothworlds.kernels.resampling import resample
from bothworlds.kernels.shannon import shannon_plan
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Machine
from bothworlds.problem import Problem
from bothworlds.theory.frame import world_of


class Numbers(NamedTuple):
    """Hyper-parameters; beta is 0 for the exact inverse, complements are empty where all arms are offered."""

    eta: float
    gamma: float
    beta: float
    samples: float
    complements: Floats


class State(NamedTuple):
    """What the version with one covariance has learnt, then its plan."""

    t: Floats
    theta: Floats
    rates: Floats
    q: Floats
    cells: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3], n[4:])


@kernel
def refresh(world: World, numbers: Numbers, state: Any, work: Any) -> int:
    """Compute the plan of round t from Theta."""
    if not all_finite(state.theta):
        return NOT_FINITE
    armwise_plan(world, state, work, numbers.eta, numbers.gamma)
    return OK


@kernel
def choose(
    world: World,
    numbers: Numbers,
    state: Any,
    work: Any,
    x: int,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw A_t from pi_t(x) and write direction = Sigma_{t,A}^-1 x, exact or resampled; return A_t."""
    arm = draw_arm(state.pi, x, key, time)
    if numbers.beta > 0.0:
        samples = int(numbers.samples)
        resampled_arm_direction(world, state, work, numbers.beta, samples, x, arm, key, time, direction)
    else:
        exact_arm_direction(world, state, work, numbers.complements, x, arm, direction)
    return arm


@kernel
def learn(
    world: World,  # noqa: ARG001
    numbers: Numbers,  # noqa: ARG001
    state: Any,
    x: int,  # noqa: ARG001
    a: int,
    loss: float,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add theta_hat to the Theta of the arm played."""
    learn_arm(state, a, loss, direction)


@kernel
def shared_state_of(memory: Floats, S: int, K: int, d: int, cells: int) -> State:
    """Name the parts of the memory with one covariance for all arms."""
    m = 3 + d
    p = m + 2 * d * d
    return State(
        t=memory[0:1],
        rates=memory[1:3],
        theta=memory[3:m],
        sigma=memory[m : m + d * d].reshape((d, d)),
        inverse=memory[m + d * d : p].reshape((d, d)),
        pi=memory[p : p + S * K].reshape((S, K)),
        q=memory[p + S * K : p + 2 * S * K].reshape((S, K)),
        cells=memory[p + S * K : p + S * K + cells],
    )


@kernel
def shared_refresh(world: World, numbers: Numbers, state: State, work: Any) -> int:
    """Compute the plan of round t, Sigma_t included."""
    if not all_finite(state.theta):
        return NOT_FINITE
    return shannon_plan(world, state, work, numbers.eta, numbers.gamma)


@kernel
def shared_choose(
    world: World,
    numbers: Numbers,
    state: State,
    work: Any,
    x: int,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw A_t from pi_t(x) and write direction = Sigma_t^-1 phi(A_t, x), exact or resampled; return A_t."""
    arm = draw_arm(state.pi, x, key, time)
    cell = x * state.pi.shape[1] + arm
    if numbers.beta > 0.0:
        samples = int(numbers.samples)
        resample(world.z, world.g, state.pi, cell, numbers.beta, samples, key, time, work.vector, direction)
    else:
        exact_direction(world, state, work, cell, direction)
    return arm


@kernel
def shared_learn(
    world: World,  # noqa: ARG001
    numbers: Numbers,  # noqa: ARG001
    state: State,
    x: int,  # noqa: ARG001
    a: int,  # noqa: ARG001
    loss: float,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add theta_hat to Theta."""
    for i in range(direction.shape[0]):
        state.theta[i] += loss * direction[i]
    state.t[0] += 1.0


ARMWISE = KernelText(numbers_of, armwise.state_of, armwise.work_of, refresh, choose, learn)
SHARED = KernelText(numbers_of, shared_state_of, shannon.work_of, shared_refresh, shared_choose, shared_learn)


def shared_machine(problem: Problem, frame: dict[str, Floats], numbers: Floats) -> Machine:
    """Return the machine of the version with one covariance for all arms."""
    world = world_of(problem, frame["exploration"], frame["coordinates"], width=shannon.LANES)
    S, K = world.blocked.shape
    d, cells = world.z.shape
    memory = np.zeros(3 + d + 2 * d * d + S * K + cells)
    memory[0] = 1.0
    return Machine(
        text=SHARED,
        world=world,
        numbers=numbers,
        memory=memory,
        scratch=np.zeros(shannon.work_size(d, cells)),
        learnt=armwise.LEARNT,
        frame=frame,
        has_baseline=False,
    )
