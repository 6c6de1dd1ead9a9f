"""RobustLinExp3 (Neu & Olkhovskaya, COLT 2020): importance weights instead of covariances of the policy."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np

from bothworlds.algorithms.options import check_whole, description
from bothworlds.algorithms.shared.armwise import State, Work, armwise_machine, armwise_plan, learn_arm, per_arm
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import at, feature
from bothworlds.kernels.contract import Draw, Known, Machine, build_kernel
from bothworlds.kernels.exact_ftrl import Direction, all_finite, draw_arm
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.theory.armwise import Scales, robust_frame
from bothworlds.theory.exp_weights_rates import robust_rates, warn_of


class Options(NamedTuple):
    """Hyper-parameters, and one inverse matrix per arm."""

    eta: float
    gamma: float
    inverses: Annotated[Floats, given("K", "d", "d")]


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from Theta."""
    if not all_finite(state.theta):
        return NOT_FINITE
    armwise_plan(known, state, options.eta + 0.0 * state.t[0], options.gamma + 0.0 * state.t[0])
    return OK


@kernel
def choose(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Direction) -> int:
    """Draw A_t from pi_t(x) and write direction = Sigma^-1 x/pi_t(A_t|x); return A_t."""
    arm = draw_arm(state.pi, x, draw.uniforms)
    d = work.vector.shape[0]
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += options.inverses[arm, i, j] * feature(known.z, x, arm, j)
        carried.direction[i] = total / at(state.pi, x, arm)
    return arm


KERNEL = build_kernel(refresh, choose, learn_arm, wide=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class RobustLinExp3(Algorithm):
    """Exponential weights on importance-weighted linear estimates: T^(2/3), but cheap, and robust to misspecification.

    As `RealLinExp3`, with theta_hat_a = Sigma^-1 X_t loss/pi_t(a|X_t) for the arm played: Sigma = E[X X^T] does not
    depend on the policy. Reference: Neu & Olkhovskaya, *Efficient and robust algorithms for adversarial linear
    contextual bandits*, COLT 2020.

    Setting: one feature vector per context, one parameter per arm, as in `RealLinExp3`. Where contexts do not offer all
    arms, Sigma sums over the contexts that offer the arm.

    Proved, adversarial regime only: regret at most 4 T^(2/3) (K d log K)^(1/3) for large enough T; losses that are
    linear only up to an error of eps add O(eps T), which is the purpose of the importance weights.

    Cost per round: O(S K d). In whitened coordinates Sigma is the identity, so that no matrix is needed.

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
        check_whole(self, "horizon")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        arrays = robust_frame(problem) if frame is None else frame
        rates_of = partial(robust_rates, n_arms=problem.n_arms, scales=Scales(*arrays["scales"].tolist()))
        rates = rates_of(self.horizon)
        if frame is None:
            warn_of(rates, rates_of)
        inverses = per_arm(arrays["inverses"], problem.n_arms, np.eye(arrays["contexts"].shape[1]))
        return armwise_machine(KERNEL, problem, arrays, Options(rates.eta, rates.gamma, inverses), rates="rates")

    def __repr__(self) -> str:
        return description(self)
