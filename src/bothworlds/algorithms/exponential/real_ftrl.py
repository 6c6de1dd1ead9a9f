"""BoBW-RealFTRL with arm-dependent features (Appendix D of the paper): FTRL with Shannon entropy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from bothworlds._public_names import internal
from bothworlds.algorithms.options import (
    MGR,
    CovarianceChoice,
    Reservoir,
    refuse_design,
    sampled_covariance,
    take_reservoir,
)
from bothworlds.algorithms.sampled_algorithm import SampledAlgorithm
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.algorithms.shared.shannon_plan import Work, expected_entropy, shannon_plan
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, larger, logarithm, root, where
from bothworlds.kernels.contract import Beliefs, Earlier, Known, Machine, Play, build_kernel, known_of
from bothworlds.kernels.exact_ftrl import Direction, add_theta_hat, all_finite, choose_exactly
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled
from bothworlds.kernels.status import NOT_FINITE
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import SampledRule
from bothworlds.theory.coordinates import frame_of
from bothworlds.theory.design import Design, Kind, check_design, design_for


class Options(NamedTuple):
    """Hyper-parameters: (1/lambda + d)/log K, log K, 1/lambda, and log T, or 0 for log(1 + t)."""

    weight: float
    log_arms: float
    inverse_coverage: float
    log_horizon: float


class State(NamedTuple):
    """Learner state, then the plan."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    inverse_rate: Annotated[Floats, learnt()]  # B_t = 1/eta_t before the cap
    entropy: Annotated[Floats, learnt()]  # sum of entropies
    plan_entropy: Annotated[Floats, recalled()]  # entropy of the plan
    rates: Annotated[Floats, planned(2)]
    q: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


@kernel
def first_inverse_rate(options: Options, t: Number) -> Number:
    """Return B_1 = sqrt((1/lambda + d) log T/log K), with log(1 + t) in place of log T if T is not known."""
    if options.log_horizon > 0.0:
        return root(options.weight * options.log_horizon + 0.0 * t)
    return root(options.weight * logarithm(1.0 + t))


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t: q_t by softmax, eta_t = 1/max{B_t, 2/lambda}, gamma_t = eta_t/lambda <= 1/2."""
    if not all_finite(state.theta):
        return NOT_FINITE
    state.inverse_rate[0] = where(state.t[0] <= 1.0, first_inverse_rate(options, state.t[0]), state.inverse_rate[0])
    eta = 1.0 / larger(state.inverse_rate[0], 2.0 * options.inverse_coverage)
    gamma = eta * options.inverse_coverage
    status = shannon_plan(known, state, work, eta, gamma)
    state.plan_entropy[0] = expected_entropy(known.g, state.q)
    return status


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Direction) -> None:
    """Add theta_hat_t to Theta and B_1/sqrt(1 + sum of entropies/log K) to B_t."""
    add_theta_hat(play.loss, carried.direction, state.theta)
    state.entropy[0] += state.plan_entropy[0]
    state.inverse_rate[0] += first_inverse_rate(options, state.t[0]) / root(1.0 + state.entropy[0] / options.log_arms)
    state.t[0] += 1.0


KERNEL = build_kernel(refresh, choose_exactly, learn, possible=possible_leverage, together=True)


def paced(options: Options, rounds: float, earlier: Earlier | None) -> dict[str, Any]:
    """Return B_t and the sum of entropies after some rounds: those of the earlier policy, scaled by the share believed.

    Without an earlier policy they are those of plans that stayed undecided.
    """
    first = float(first_inverse_rate(options, 1.0))
    if earlier is None:
        return {"inverse_rate": first * math.sqrt(1.0 + rounds), "entropy": rounds * options.log_arms}
    scale = first / float(first_inverse_rate(earlier.options, 1.0)) * math.sqrt(earlier.share)
    share = earlier.share * options.log_arms / earlier.options.log_arms
    learnt = {name: float(earlier.learnt[name][0]) for name in ("inverse_rate", "entropy")}
    return {"inverse_rate": max(first, scale * learnt["inverse_rate"]), "entropy": share * learnt["entropy"]}


BELIEFS = Beliefs(total="theta", rate_fields=paced)


@dataclass(frozen=True, kw_only=True, repr=False)
class RealFTRL(SampledAlgorithm):
    """FTRL with Shannon entropy and an entropy-adaptive rate: the paper's reformulation with arm-dependent features.

    q_t(x) is proportional to exp(-eta_t <phi(a, x), Theta>), pi_t = (1 - gamma_t) q_t + gamma_t e* with gamma_t =
    eta_t/lambda, and 1/eta_t grows by (1/eta_1)/sqrt(1 + sum of entropies/log K) a round. One round costs
    O(S K d^2 + d^3).

    Proved (Theorems of Appendix D): O((1/lambda + d) log T log(KT)/Delta_*) in the stochastic regime, so log^2 T,
    O(sqrt((1/lambda + d) T log T log K)) in the adversarial one, and in between under corruption.

    What we had to choose: the printed rate needs the cap eta_t <= lambda/2, or gamma_t exceeds 1 for all but
    astronomical horizons; entropies are H = -psi >= 0; they are averaged over contexts with g instead of taken at
    the observed context, which is also known before the round and less noisy.

    Parameters
    ----------
    horizon
        T, which affects the rates by log T. If left out log(1 + t) replaces it, and nothing is proved.
    design
        The exploration design: "joint-g", "joint-d", "per-context", "uniform", or a `Design`.
    covariance
        "exact"; on a `SampledProblem` `MGR`, or "reservoir", short for `Reservoir()`. Entropies are then those at the
        observed contexts, as in the paper.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> RealFTRL(horizon=1000).start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    horizon: int | None = None
    design: Kind | Design = "joint-g"
    covariance: CovarianceChoice = "exact"

    def __post_init__(self) -> None:
        number: Any = self.horizon
        if number is not None and (not isinstance(number, int | np.integer) or number < 2):
            raise ValueError(f"horizon must be a whole number of at least 2, or None; got {number!r}")
        if number is not None:
            object.__setattr__(self, "horizon", int(number))
        check_design(self.design)
        take_reservoir(self)
        if self.covariance != "exact" and not isinstance(self.covariance, MGR | Reservoir):
            raise ValueError(
                f"covariance must be 'exact', 'reservoir', Reservoir(...) or MGR(...); got {self.covariance!r}"
            )

    def _options(self, K: int, d: int, lam: float) -> Options:
        """Return the hyper-parameters of the kernel."""
        return Options(
            weight=(1.0 / lam + d) / math.log(K),
            log_arms=math.log(K),
            inverse_coverage=1.0 / lam,
            log_horizon=0.0 if self.horizon is None else math.log(self.horizon),
        )

    @internal
    def sampled_rule(self, problem: SampledProblem) -> SampledRule:
        """Return the same rates for a problem without a list of contexts."""
        refuse_design(self, "joint-g")
        options = self._options(problem.n_arms, problem.dimension, problem.coverage)

        def rates(_: float, inverse_rate: float) -> tuple[float, float]:
            eta = 1.0 / max(inverse_rate, 2.0 * options.inverse_coverage)
            return eta, eta * options.inverse_coverage

        def growth(t: float, entropy: float) -> float:
            return float(first_inverse_rate(options, t)) / math.sqrt(1.0 + entropy / options.log_arms)

        first = float(first_inverse_rate(options, 1.0))
        return SampledRule(
            alpha=1.0, rates=rates, covariance=sampled_covariance(self), first_inverse_rate=first, growth=growth
        )

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        if self.covariance != "exact":
            raise ValueError(f"{self.covariance} is for a SampledProblem; the contexts of {problem} are listed")
        if frame is None:
            frame = frame_of(problem, design_for(problem, self.design))
        known = known_of(problem, frame["exploration"], frame["coordinates"])
        _, K, d = known.z.shape
        options = self._options(K, d, float(frame["coverage"][0]))
        return Machine(kernel=KERNEL, known=known, options=options, frame=frame, beliefs=BELIEFS, rates="rates")

    def __repr__(self) -> str:
        parts = [f"horizon={self.horizon}"] if self.horizon is not None else []
        parts += [f"design={self.design!r}"] if self.design != "joint-g" else []
        parts += [f"covariance={self.covariance}"] if self.covariance != "exact" else []
        return f"RealFTRL({', '.join(parts)})"
