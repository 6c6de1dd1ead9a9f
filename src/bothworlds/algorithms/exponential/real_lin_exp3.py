"""RealLinExp3 (Neu & Olkhovskaya, COLT 2020): exponential weights against an adversary, horizon known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from bothworlds._public_names import internal
from bothworlds.algorithms.options import (
    MGR,
    CovarianceChoice,
    check_choice,
    check_covariance,
    check_whole,
    description,
    refuse_design,
    refuse_reservoir,
    sampled_covariance,
    take_reservoir,
)
from bothworlds.algorithms.sampled_algorithm import SampledAlgorithm
from bothworlds.algorithms.shared import armwise
from bothworlds.algorithms.shared.armwise import (
    armwise_machine,
    armwise_plan,
    choose_by_arm,
    complements_of,
    learn_arm,
    resampled_arm_direction,
)
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.algorithms.shared.shannon_plan import State, Work, shannon_plan
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Beliefs, Draw, Known, Machine, any_decision, build_kernel, known_of
from bothworlds.kernels.exact_ftrl import Direction, add_estimate, all_finite, choose_exactly, draw_arm
from bothworlds.kernels.geometric_resampling import Resampling, resample
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import SampledRule
from bothworlds.theory.armwise import Scales, armwise_frame
from bothworlds.theory.coordinates import frame_of
from bothworlds.theory.design import Design, Kind, check_design, design_for
from bothworlds.theory.exp_weights_rates import Rates, exact_rates, printed_rates, resampled_rates, warn_of

FEATURES = ("arm-independent", "arm-dependent")
TUNINGS = ("corrected", "printed")


class Options(NamedTuple):
    """Hyper-parameters."""

    eta: float
    gamma: float
    resampling: Resampling


class ArmwiseOptions(NamedTuple):
    """Hyper-parameters, and per arm the complement of the span of the contexts that offer it."""

    fixed: Options
    complements: Annotated[Floats, given("K", "d", "d")]


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t, Sigma_t included."""
    if not all_finite(state.theta):
        return NOT_FINITE
    return shannon_plan(known, state, work, options.eta + 0.0 * state.t[0], options.gamma + 0.0 * state.t[0])


@kernel
def choose_resampling(
    known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Direction
) -> int:
    """Draw A_t from pi_t(x) and write a direction by resampling instead of Sigma_t^-1 phi(A_t, x); return A_t."""
    arm = draw_arm(state.pi, x, draw.uniforms)
    step = options.resampling.beta, int(options.resampling.samples)
    resample(known, state.pi, (x, arm), step, draw, work.vector, carried.direction)
    return arm


@kernel
def refresh_arms(known: Known, options: ArmwiseOptions, state: armwise.State, work: armwise.Work) -> int:
    """Compute the plan of round t from Theta; the covariance is computed after the draw, for one arm."""
    if not all_finite(state.theta):
        return NOT_FINITE
    armwise_plan(known, state, options.fixed.eta + 0.0 * state.t[0], options.fixed.gamma + 0.0 * state.t[0])
    return OK


@kernel
def choose_by_arm_resampling(
    known: Known, options: ArmwiseOptions, state: Any, work: Any, x: int, draw: Draw, carried: Direction
) -> int:
    """Draw A_t from pi_t(x) and write a direction by Matrix Geometric Resampling; return A_t."""
    arm = draw_arm(state.pi, x, draw.uniforms)
    step = options.fixed.resampling.beta, int(options.fixed.resampling.samples)
    resampled_arm_direction(known, state.pi, (x, arm), step, draw, work.vector, carried.direction)
    return arm


KERNEL = build_kernel(refresh, choose_exactly, add_estimate, possible=possible_leverage, together=True)
RESAMPLING = KERNEL._replace(choose=choose_resampling, possible=any_decision, together=False)
ARMWISE = build_kernel(refresh_arms, choose_by_arm, learn_arm, possible=possible_leverage, wide=True)
ARMWISE_RESAMPLING = ARMWISE._replace(choose=choose_by_arm_resampling, possible=any_decision)


@dataclass(frozen=True, kw_only=True, repr=False)
class RealLinExp3(SampledAlgorithm):
    """Exponential weights on linear loss estimates, for adversarial losses and a known horizon.

    q_t(a|x) is proportional to exp(-eta <x, Theta_a>), pi_t = (1 - gamma) q_t + gamma uniform, and the estimate is
    theta_hat_a = Sigma_{t,a}^-1 X_t loss for the arm played, Sigma_{t,a} = E[1{A_t = a} X_t X_t^T]. Reference: Neu &
    Olkhovskaya, *Efficient and robust algorithms for adversarial linear contextual bandits*, COLT 2020, Theorem 2.

    Setting: one feature vector per context, one parameter per arm (`Problem.from_arm_independent`). Any other problem
    is stacked (Theorem 4.5) with dimension at most S, with a warning if that makes it one bandit per context;
    ``features="arm-dependent"`` is the same algorithm re-derived for such problems: one Sigma_t, exploration by a
    design.

    Proved, adversarial regime only: regret at most 2 sqrt(T (D + 2/lambda) log K) with the exact covariance, where D =
    K d and 1/lambda = K max_x x^T Sigma^-1 x (arm-dependent: d and 1/coverage); with `MGR`, 2 sqrt(T (3 D + 2 W log(T
    sigma^2)) log K) + 2 sqrt(T), W = K sigma^2/lambda_min. No gain in a stochastic world is proved.

    Cost per round: O(S K d), and O(S d^2 + d^3) for the matrix of the arm played; with `MGR` M (S + d) instead, M =
    1/eta, which is of order sqrt(T). Arm-dependent: O(S K d^2 + d^3).

    What we had to correct or choose: the printed rates violate the theorem's own condition eta <= 2/(M + 1) for every T
    (``tuning="printed"`` runs them, with a warning); the default is the optimum of the paper's general bound under that
    condition. Where gamma would exceed 1 it is clipped, eta with it, and a warning names a sufficient horizon.
    Contexts are whitened first, the best case for `MGR`. Arms not offered in some contexts get probability 0 and
    exploration is uniform over the others: all bounds hold with D the sum of the ranks of the contexts that offer an
    arm, and lambda as computed.

    Parameters
    ----------
    horizon
        T.
    covariance
        "exact", or `MGR`: with ``MGR()`` the number of draws is the theorem's. On a `SampledProblem`, arm-dependent
        only: `MGR`, or "reservoir", short for `Reservoir()`, with the rates of the exact covariance.
    features
        "arm-independent" or "arm-dependent".
    tuning
        "corrected" or "printed"; the latter with `MGR` only, the setting of its theorem.
    design
        Exploration design of the arm-dependent version, as in `RealFTRL`; arm-independent exploration is uniform.

    >>> problem = Problem.from_arm_independent([[1.0, 0.0], [1.0, 1.0]], probabilities=[0.5, 0.5], arms=3)
    >>> policy = RealLinExp3(horizon=1000).start(problem, rng=1)
    >>> policy.probabilities(0).round(3).tolist(), policy.act(1).direction.shape
    ([0.333, 0.333, 0.333], (2,))
    """

    horizon: int
    covariance: CovarianceChoice = "exact"
    features: Literal["arm-independent", "arm-dependent"] = "arm-independent"
    tuning: Literal["corrected", "printed"] = "corrected"
    design: Kind | Design | None = None

    def __post_init__(self) -> None:
        check_whole(self, "horizon")
        take_reservoir(self)
        check_covariance(self, reservoir=True)
        check_choice(self, "features", FEATURES)
        check_choice(self, "tuning", TUNINGS)
        if self.design is not None:
            check_design(self.design)
        if self.design is not None and self.features == "arm-independent":
            raise ValueError("exploration is uniform with arm-independent features; design needs 'arm-dependent'")
        if self.tuning == "printed" and not isinstance(self.covariance, MGR):
            raise ValueError("the printed tuning belongs to a theorem about MGR; use it with covariance=MGR()")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        refuse_reservoir(self, problem)
        armwise = self.features == "arm-independent"  # not in a helper, so that warnings point at the caller of `start`
        make_frame = armwise_frame if armwise else self._frame
        arrays = make_frame(problem) if frame is None else frame
        scales = Scales(*arrays["scales"].tolist())
        rates = self._rates(problem, scales, warn=frame is None)
        beta = 0.5 / scales.norm if rates.samples else 0.0
        options = Options(rates.eta, rates.gamma, Resampling(beta, rates.samples, 0.0))
        if armwise:
            functions = ARMWISE_RESAMPLING if beta > 0.0 else ARMWISE
            complements = complements_of(arrays, problem.n_arms)
            return armwise_machine(functions, problem, arrays, ArmwiseOptions(options, complements), rates="rates")
        functions = RESAMPLING if beta > 0.0 else KERNEL
        known = known_of(problem, arrays["exploration"], arrays["coordinates"])
        beliefs = Beliefs(total="theta")
        return Machine(kernel=functions, known=known, options=options, frame=arrays, beliefs=beliefs, rates="rates")

    def _rates(self, problem: Problem | SampledProblem, scales: Scales, *, warn: bool) -> Rates:
        """Return eta, gamma and the number of draws; warn if the theorem does not cover them."""
        rates_of = self._rates_of(problem, scales)
        rates = self._with_draws(rates_of(self.horizon))
        if warn:
            printed = self.tuning == "printed"
            remedy = "No horizon helps; tuning='corrected' does" if printed else "Fewer draws, or MGR(), would do"
            warn_of(rates, rates_of, remedy)
        return rates

    @internal
    def sampled_rule(self, problem: SampledProblem) -> SampledRule:
        """Return the rates for a problem without a list of contexts, with the theorem's number of draws."""
        if self.features != "arm-dependent":
            raise ValueError("a sampled problem has features of arms and contexts: use features='arm-dependent'")
        refuse_design(self, None)
        leverage = 1.0 / problem.coverage
        rates = self._rates(problem, Scales(problem.dimension, leverage, leverage, 1.0, 1.0), warn=True)
        resampled = isinstance(self.covariance, MGR)
        drawing = replace(self, covariance=MGR(samples=rates.samples)) if resampled else self
        return SampledRule(alpha=1.0, rates=lambda *_: (rates.eta, rates.gamma), covariance=sampled_covariance(drawing))

    def rates_for(self, problem: Problem) -> Rates:
        """Return eta, gamma and the number of draws on a problem."""
        scales = Scales(*self._frame(problem)["scales"].tolist())
        return self._with_draws(self._rates_of(problem, scales)(self.horizon))

    def _frame(self, problem: Problem) -> dict[str, Floats]:
        """Return coordinates, exploration and scales."""
        if self.features == "arm-independent":
            return armwise_frame(problem)
        explore = design_for(problem, self.design or "joint-g")
        frame = frame_of(problem, explore)
        d, leverage = frame["coordinates"].shape[2], 1.0 / explore.coverage
        longest = float((frame["coordinates"] ** 2).sum(axis=2).max())  # the leverage, up to rounding
        return {**frame, "scales": np.array(Scales(d, leverage, longest, 1.0, 1.0))}

    def _rates_of(self, problem: Problem | SampledProblem, scales: Scales) -> Callable[[int], Rates]:
        """Return the rates as a function of the horizon."""
        resampled = printed_rates if self.tuning == "printed" else resampled_rates
        make = resampled if isinstance(self.covariance, MGR) else exact_rates
        return partial(make, n_arms=problem.n_arms, scales=scales)

    def _with_draws(self, rates: Rates) -> Rates:
        """Replace the number of draws by that of the covariance option, if it has one."""
        chosen = self.covariance.samples if isinstance(self.covariance, MGR) else None
        return rates if chosen is None else rates._replace(samples=chosen)

    def __repr__(self) -> str:
        return description(self)
