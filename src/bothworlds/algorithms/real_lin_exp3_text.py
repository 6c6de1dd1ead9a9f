"""RealLinExp3 as kernel text: with one covariance per arm (P.Indep), and with one for all arms (P.Dep)."""

from typing import Any, NamedTuple

from bothworlds.algorithms.possible import leverages
from bothworlds.kernels import armwise
from bothworlds.kernels.armwise import armwise_plan, exact_arm_direction, learn_arm, resampled_arm_direction
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.plan import add_estimate, all_finite, draw_arm, exact_direction
from bothworlds.kernels.random import Pair
from bothworlds.kernels.resampling import resample
from bothworlds.kernels.shannon import State, kept, shannon_plan, sizes, state_of, work_of
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


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3], n[4:])


@kernel
def refresh(world: World, numbers: Numbers, state: Any, work: Any) -> int:  # noqa: ARG001
    """Compute the plan of round t from Theta."""
    if not all_finite(state.theta):
        return NOT_FINITE
    armwise_plan(world, state, numbers.eta + 0.0 * state.t[0], numbers.gamma + 0.0 * state.t[0])
    return OK


@kernel
def choose(
    world: World,
    numbers: Numbers,
    state: Any,
    work: Any,
    x: int,
    uniforms: Pair,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw A_t from pi_t(x) and write direction = Sigma_{t,A}^-1 x, exact or resampled; return A_t."""
    arm = draw_arm(state.pi, x, uniforms)
    if numbers.beta > 0.0:
        samples = int(numbers.samples)
        resampled_arm_direction(world, state, work, numbers.beta, samples, x, arm, key, time, direction)
    else:
        exact_arm_direction(world, state.pi, state, work, numbers.complements, x, arm, direction)
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
def shared_refresh(world: World, numbers: Numbers, state: State, work: Any) -> int:
    """Compute the plan of round t, Sigma_t included."""
    if not all_finite(state.theta):
        return NOT_FINITE
    return shannon_plan(world, state, work, numbers.eta + 0.0 * state.t[0], numbers.gamma + 0.0 * state.t[0])


@kernel
def shared_choose(
    world: World,
    numbers: Numbers,
    state: State,
    work: Any,
    x: int,
    uniforms: Pair,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw A_t from pi_t(x) and write direction = Sigma_t^-1 phi(A_t, x), exact or resampled; return A_t."""
    arm = draw_arm(state.pi, x, uniforms)
    if numbers.beta > 0.0:
        samples = int(numbers.samples)
        resample(world.z, world.g, state.pi, x, arm, numbers.beta, samples, key, time, work.vector, direction)
    else:
        exact_direction(world, state, work, x, arm, direction)
    return arm


ARMWISE = KernelText(armwise.sizes, numbers_of, armwise.state_of, armwise.work_of, refresh, choose, learn, wide=True)
SHARED = KernelText(sizes, numbers_of, state_of, work_of, shared_refresh, shared_choose, add_estimate, wide=True)


def shared_machine(problem: Problem, frame: dict[str, Floats], numbers: Floats) -> Machine:
    """Return the machine of the version with one covariance for all arms."""

    def begin(state: State) -> None:
        state.t[...] = 1.0

    world = world_of(problem, frame["exploration"], frame["coordinates"])
    return Machine(
        text=SHARED,
        world=world,
        numbers=numbers,
        begin=begin,
        learnt=armwise.LEARNT,
        frame=frame,
        has_baseline=False,
        kept=kept,
        possible=None if numbers_of(numbers).beta > 0.0 else leverages(world),
    )
