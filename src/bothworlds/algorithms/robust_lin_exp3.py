"""RobustLinExp3 (Neu & Olkhovskaya, COLT 2020): importance weights instead of covariances of the policy."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bothworlds.algorithms.armwise_machine import armwise_machine
from bothworlds.algorithms.options import check_horizon, description
from bothworlds.kernels import armwise
from bothworlds.kernels.armwise import armwise_plan, learn_arm
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.numbers import at, feature
from bothworlds.kernels.plan import all_finite, draw_arm
from bothworlds.kernels.random import Pair, Seed
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem
from bothworlds.theory.armwise import Scales, robust_frame
from bothworlds.theory.exponential import robust_rates, warn_of


class Numbers(NamedTuple):
    """Hyper-parameters; inverses, one matrix per arm, flat, are empty where they are the identity."""

    eta: float
    gamma: float
    inverses: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2:])


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
    work: Any,  # noqa: ARG001
    x: int,
    uniforms: Pair,
    key: int,  # noqa: ARG001
    time: int,  # noqa: ARG001
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw A_t from pi_t(x) and write direction = Sigma^-1 x/pi_t(A_t|x); return A_t."""
    arm = draw_arm(state.pi, x, uniforms)
    d = direction.shape[0]
    for i in range(d):
        total = feature(world.z, x, arm, i)
        if numbers.inverses.shape[0] > 0:
            total = 0.0
            for j in range(d):
                total += numbers.inverses[(arm * d + i) * d + j] * feature(world.z, x, arm, j)
        direction[i] = total / at(state.pi, x, arm)
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


TEXT = KernelText(armwise.sizes, numbers_of, armwise.state_of, armwise.work_of, refresh, choose, learn, wide=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class RobustLinExp3:
    """Exponential weights on importance-weighted linear estimates: T^(2/3), but cheap, and robust to misspecification.

    As `RealLinExp3`, with theta_hat_a = Sigma^-1 X_t loss/pi_t(a|X_t) for the arm played: Sigma = E[X X^T] does not
    depend on the policy. Reference: Neu & Olkhovskaya, *Efficient and robust algorithms for adversarial linear
    contextual bandits*, COLT 2020.

    Setting: one feature vector per context, one parameter per arm, as `RealLinExp3`, arms not offered included; here
    Sigma then sums over the contexts that offer the arm.

    Proved, adversarial regime only: regret at most 4 T^(2/3) (K d log K)^(1/3) from a horizon on; losses that are
    linear only up to an error of eps add O(eps T), which is what the importance weights are for.

    Cost per round: O(S K d). In whitened coordinates Sigma is the identity, so that no matrix is left.

    What we had to choose: eta <= gamma/max[x^T Sigma^-1 x K], which the paper leaves to a large enough horizon, is
    enforced; gamma above 1 is clipped with a warning.

    Parameters
    ----------
    horizon
        T.

    >>> problem = Problem.from_arm_independent([[1.0, 0.0], [1.0, 1.0]], probabilities=[0.5, 0.5], arms=3)
    >>> RobustLinExp3(horizon=1000).start(problem, rng=1).probabilities(0).round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    horizon: int

    def __post_init__(self) -> None:
        check_horizon(self, least=1)

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the same seed gives the same decisions."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""
        kept = robust_frame(problem) if frame is None else frame
        rates_of = partial(robust_rates, n_arms=problem.n_arms, scales=Scales(*kept["scales"].tolist()))
        rates = rates_of(self.horizon)
        if frame is None:
            warn_of(rates, rates_of)
        numbers = np.concatenate([[rates.eta, rates.gamma], kept["inverses"].reshape(-1)])
        return armwise_machine(TEXT, problem, kept, numbers, exact=True)

    def __repr__(self) -> str:
        return description(self)
