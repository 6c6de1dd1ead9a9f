"""FTRL-LC (Kuroki et al., AISTATS 2024): FTRL with Shannon entropy for arm-independent features."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from bothworlds.algorithms.options import MGR, check_covariance, check_whole, description
from bothworlds.algorithms.shared.armwise import (
    Work,
    armwise_machine,
    armwise_plan,
    choose_by_arm,
    complements_of,
    learn_arm,
    resampled_arm_direction,
)
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.algorithms.shared.shannon_plan import entropy_of
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, at, larger, logarithm, smaller, where
from bothworlds.kernels.contract import Draw, Known, Machine, Play, any_decision, build_kernel
from bothworlds.kernels.exact_ftrl import Direction, all_finite, draw_arm
from bothworlds.kernels.geometric_resampling import Resampling
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given, learnt, planned, recalled
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.theory.armwise import Scales, armwise_frame


class Options(NamedTuple):
    """Hyper-parameters: c1, the smallest 1/eta_t, gamma_t/eta_t (over log t, with resampling), log K and T.

    0 resampled draws means 1/eta_t rounded up.
    """

    first: float
    cap: float
    exploration: float
    log_arms: float
    horizon: float
    resampling: Resampling
    complements: Annotated[Floats, given("K", "d", "d")]


class State(NamedTuple):
    """Learner state, with beta'_t (``inverse_rate``) and the sum of entropies; then the plan."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("K*d")]
    arms: Annotated[Floats, learnt("K", "d", same_as="theta")]
    inverse_rate: Annotated[Floats, learnt()]
    entropy: Annotated[Floats, learnt()]
    rates: Annotated[Floats, planned(2)]
    q: Annotated[Floats, recalled("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]


@kernel
def exploration_rate(options: Options, t: Number, eta: Number) -> Number:
    """Return gamma_t = eta_t/lambda, or with resampling 4 W eta_t log t; both at most 1/2."""
    if options.resampling.beta > 0.0:
        return options.exploration * logarithm(smaller(t, options.horizon)) * eta
    return options.exploration * eta


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t: eta_t = 1/max{cap, beta'_t}, then q_t and pi_t."""
    if not all_finite(state.theta):
        return NOT_FINITE
    state.inverse_rate[0] = where(state.t[0] <= 1.0, options.first, state.inverse_rate[0])
    eta = 1.0 / larger(state.inverse_rate[0], options.cap)
    armwise_plan(known, state, eta, exploration_rate(options, state.t[0], eta))
    return OK


@kernel
def draws(options: Options, state: State) -> int:
    """Return M_t: 1/eta_t rounded up, 1 in the first round, or the fixed number."""
    if options.resampling.samples > 0.0:
        return int(options.resampling.samples)
    return 1 if state.t[0] == 1.0 else math.ceil(max(options.cap, state.inverse_rate[0]))


@kernel
def choose_resampling(
    known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Direction
) -> int:
    """Draw A_t from pi_t(x) and write a direction by Matrix Geometric Resampling; return A_t."""
    arm = draw_arm(state.pi, x, draw.uniforms)
    step = options.resampling.beta, draws(options, state)
    resampled_arm_direction(known, state.pi, (x, arm), step, draw, work.vector, carried.direction)
    return arm


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Direction) -> None:
    """Add theta_hat to the Theta of the arm played and c1/sqrt(1 + sum of entropies/log K) to beta'_t."""
    for b in range(state.q.shape[1]):
        state.entropy[0] += entropy_of(at(state.q, play.x, b))
    state.inverse_rate[0] += options.first / math.sqrt(1.0 + state.entropy[0] / options.log_arms)
    learn_arm(known, options, state, play, carried)


KERNEL = build_kernel(refresh, choose_by_arm, learn, possible=possible_leverage, wide=True)
RESAMPLING = KERNEL._replace(choose=choose_resampling, possible=any_decision)


@dataclass(frozen=True, kw_only=True, repr=False)
class FTRLLC(Algorithm):
    """FTRL with Shannon entropy and an entropy-adaptive rate for arm-independent features: FTRL-LC.

    q_t(a|x) is proportional to exp(-eta_t <x, Theta_a>), pi_t = (1 - gamma_t) q_t + gamma_t uniform, estimates as in
    `RealLinExp3`, and 1/eta_t grows by c1/sqrt(1 + sum of entropies H(q_s(X_s))/log K) a round. Reference: Kuroki,
    Rumi, Tsuchiya, Vitale & Cesa-Bianchi, *Best-of-both-worlds algorithms for linear contextual bandits*, AISTATS
    2024, Algorithm 2; Kato & Ito, *Best-of-both-worlds linear contextual bandits*, 2023, is the same construction.

    Setting: one feature vector per context, one parameter per arm, as in `RealLinExp3`, including contexts that do not
    offer all arms. For arm-dependent features see `RealFTRL`.

    Proved, with D = K d and 1/lambda = K max_x x^T Sigma^-1 x: O((D + 1/lambda) log(T) log(K T)/Delta_*) in the
    stochastic regime, so log^2 T, O(sqrt(T (D + 1/lambda) log T log K)) in the adversarial one, and in between under
    corruption. With `MGR`, which the paper uses, W log T replaces 1/lambda, W = K sigma^2/lambda_min. For the exact
    version the proof is the same without the bias.

    Cost per round: O(S K d), and O(S d^2 + d^3) for the matrix of the arm played; with `MGR` M_t (S + d), M_t =
    1/eta_t: in a stochastic world that grows linearly in t, so a run costs T^2.

    What we had to correct or choose: M_t = 4 W log t/gamma_t is 1/eta_t rounded up; in round 1 it is 0/0, where the
    paper takes one draw and gamma_1 = 0. After round T log t stays at log T, or gamma_t would exceed 1/2. With the
    exact inverse c1 = sqrt((D + 2/lambda) log T/log K), gamma_t = eta_t/lambda and 1/eta_t >= 2/lambda. Contexts are
    whitened; there |theta| <= 1 but |x| <= sigma, so the bias of `MGR` is at most sigma/t^2 a round. Entropies are
    those of the observed contexts, as printed.

    Parameters
    ----------
    horizon
        T, at least 2: it affects the rates by log T.
    covariance
        "exact", or `MGR`; ``MGR(samples=M)`` takes M draws in every round, for which nothing is proved.

    >>> problem = Problem.from_arm_independent([[1.0, 0.0], [1.0, 1.0]], probabilities=[0.5, 0.5], arms=3)
    >>> FTRLLC(horizon=1000).start(problem, rng=1).probabilities(0).round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    horizon: int
    covariance: Literal["exact"] | MGR = "exact"

    def __post_init__(self) -> None:
        check_whole(self, "horizon", least=2)
        check_covariance(self)

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        arrays = armwise_frame(problem) if frame is None else frame
        scales = Scales(*arrays["scales"].tolist())
        log_arms, log_horizon = math.log(problem.n_arms), math.log(self.horizon)
        beta, samples = 0.0, 0
        weight = scales.dimension + 2.0 * scales.leverage
        cap, exploration = max(2.0, 2.0 * scales.leverage), scales.leverage
        if isinstance(self.covariance, MGR):
            beta, samples = 0.5 / scales.norm, self.covariance.samples or 0
            weight = 3.0 * scales.dimension + 2.0 * scales.resampling * log_horizon
            cap, exploration = max(2.0, 8.0 * scales.resampling * log_horizon), 4.0 * scales.resampling
        options = Options(
            first=math.sqrt(weight * log_horizon / log_arms),
            cap=cap,
            exploration=exploration,
            log_arms=log_arms,
            horizon=float(self.horizon),
            resampling=Resampling(beta, float(samples), 0.0),
            complements=complements_of(arrays, problem.n_arms),
        )
        return armwise_machine(RESAMPLING if beta > 0.0 else KERNEL, problem, arrays, options, rates="rates")

    def __repr__(self) -> str:
        return description(self)
