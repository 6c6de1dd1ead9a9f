"""FTRL-LC: best of both worlds with Shannon entropy and arm-independent features (Kuroki et al., Kato & Ito)."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from bothworlds.algorithms.armwise_machine import armwise_machine
from bothworlds.algorithms.options import check_covariance, check_horizon, description
from bothworlds.algorithms.tunings import MGR
from bothworlds.kernels import armwise
from bothworlds.kernels.armwise import (
    State,
    Work,
    armwise_plan,
    exact_arm_direction,
    learn_arm,
    resampled_arm_direction,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.numbers import Number, at, larger, logarithm, smaller, where
from bothworlds.kernels.plan import all_finite, draw_arm
from bothworlds.kernels.random import Pair, Seed
from bothworlds.kernels.shannon import entropy_of
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem
from bothworlds.theory.armwise import Scales, armwise_frame


class Numbers(NamedTuple):
    """Hyper-parameters: c1, the least 1/eta_t, gamma_t/eta_t (over log t, with resampling), log K, T, beta and M.

    beta is 0 for the exact inverse; M is 0 for 1/eta_t rounded up.
    """

    first: float
    cap: float
    exploration: float
    log_arms: float
    horizon: float
    beta: float
    samples: float
    complements: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7:])


@kernel
def exploration_rate(numbers: Numbers, t: Number, eta: Number) -> Number:
    """Return gamma_t = eta_t/lambda, or with resampling 4 W eta_t log t; both at most 1/2."""
    if numbers.beta > 0.0:
        return numbers.exploration * logarithm(smaller(t, numbers.horizon)) * eta
    return numbers.exploration * eta


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:  # noqa: ARG001
    """Compute the plan of round t: eta_t = 1/max{cap, beta'_t}, then q_t and pi_t."""
    if not all_finite(state.theta):
        return NOT_FINITE
    state.pace[0] = where(state.t[0] <= 1.0, numbers.first, state.pace[0])
    eta = 1.0 / larger(state.pace[0], numbers.cap)
    armwise_plan(world, state, eta, exploration_rate(numbers, state.t[0], eta))
    return OK


@kernel
def draws(numbers: Numbers, state: State) -> int:
    """Return M_t: 1/eta_t rounded up, 1 in the first round, or the fixed number."""
    if numbers.samples > 0.0:
        return int(numbers.samples)
    return 1 if state.t[0] == 1.0 else math.ceil(max(numbers.cap, state.pace[0]))


@kernel
def choose(
    world: World,
    numbers: Numbers,
    state: State,
    work: Work,
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
        samples = draws(numbers, state)
        resampled_arm_direction(world, state, work, numbers.beta, samples, x, arm, key, time, direction)
    else:
        exact_arm_direction(world, state.pi, state, work, numbers.complements, x, arm, direction)
    return arm


@kernel
def learn(
    world: World,  # noqa: ARG001
    numbers: Numbers,
    state: State,
    x: int,
    a: int,
    loss: float,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add theta_hat to the Theta of the arm played and c1/sqrt(1 + sum of entropies/log K) to beta'_t."""
    for b in range(state.q.shape[1]):
        state.entropy[0] += entropy_of(at(state.q, x, b))
    state.pace[0] += numbers.first / math.sqrt(1.0 + state.entropy[0] / numbers.log_arms)
    learn_arm(state, a, loss, direction)


TEXT = KernelText(armwise.sizes, numbers_of, armwise.state_of, armwise.work_of, refresh, choose, learn, wide=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class FTRLLC:
    """FTRL with Shannon entropy and an entropy-adaptive rate for arm-independent features: FTRL-LC.

    q_t(a|x) is proportional to exp(-eta_t <x, Theta_a>), pi_t = (1 - gamma_t) q_t + gamma_t uniform, estimates as in
    `RealLinExp3`, and 1/eta_t grows by c1/sqrt(1 + sum of entropies H(q_s(X_s))/log K) a round. Reference: Kuroki,
    Rumi, Tsuchiya, Vitale & Cesa-Bianchi, *Best-of-both-worlds algorithms for linear contextual bandits*, AISTATS
    2024, Algorithm 2; Kato & Ito, *Best-of-both-worlds linear contextual bandits*, 2023, is the same construction.

    Setting: one feature vector per context, one parameter per arm, as `RealLinExp3`, arms not offered included. Its
    sibling for arm-dependent features is `RealFTRL`.

    Proved, with D = K d and 1/lambda = K max_x x^T Sigma^-1 x: O((D + 1/lambda) log(T) log(K T)/Delta_*) in the
    stochastic regime, so log^2 T, O(sqrt(T (D + 1/lambda) log T log K)) in the adversarial one, and in between under
    corruption. With `MGR`, which the paper uses, W log T stands for 1/lambda, W = K sigma^2/lambda_min. For the exact
    version the proof is the same with the bias left out.

    Cost per round: O(S K d), and O(S d^2 + d^3) for the matrix of the arm played; with `MGR` M_t (S + d), M_t =
    1/eta_t: in a stochastic world that grows linearly in t, so a run costs T^2.

    What we had to correct or choose: M_t = 4 W log t/gamma_t is 1/eta_t rounded up; in round 1 it is 0/0, where the
    paper takes one draw and gamma_1 = 0. After round T log t stays at log T, or gamma_t would pass 1/2. With the exact
    inverse c1 = sqrt((D + 2/lambda) log T/log K), gamma_t = eta_t/lambda and 1/eta_t >= 2/lambda. Contexts are
    whitened; there |theta| <= 1 but |x| <= sigma, so the bias of `MGR` is at most sigma/t^2 a round. Entropies are
    those of the observed contexts, as printed.

    Parameters
    ----------
    horizon
        T, at least 2: it enters through log T.
    covariance
        "exact", or `MGR`; ``MGR(samples=M)`` takes M draws in every round, for which nothing is proved.

    >>> problem = Problem.from_arm_independent([[1.0, 0.0], [1.0, 1.0]], probabilities=[0.5, 0.5], arms=3)
    >>> FTRLLC(horizon=1000).start(problem, rng=1).probabilities(0).round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    horizon: int
    covariance: Literal["exact"] | MGR = "exact"

    def __post_init__(self) -> None:
        check_horizon(self, least=2)
        check_covariance(self)

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the same seed gives the same decisions."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""
        kept = armwise_frame(problem) if frame is None else frame
        scales = Scales(*kept["scales"].tolist())
        log_arms, log_horizon = math.log(problem.n_arms), math.log(self.horizon)
        beta, samples = 0.0, 0
        weight = scales.dimension + 2.0 * scales.leverage
        cap, exploration = max(2.0, 2.0 * scales.leverage), scales.leverage
        if isinstance(self.covariance, MGR):
            beta, samples = 0.5 / scales.norm, self.covariance.samples or 0
            weight = 3.0 * scales.dimension + 2.0 * scales.spread * log_horizon
            cap, exploration = max(2.0, 8.0 * scales.spread * log_horizon), 4.0 * scales.spread
        first = math.sqrt(weight * log_horizon / log_arms)
        numbers = [first, cap, exploration, log_arms, self.horizon, beta, samples]
        flat = np.append(numbers, kept["complements"])
        return armwise_machine(TEXT, problem, kept, flat, more=("pace", "entropy"), exact=beta == 0.0)

    def __repr__(self) -> str:
        return description(self, covariance="exact")
