"""BoBW-RealFTRL with arm-dependent features (Appendix D of the paper): FTRL with Shannon entropy."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np

from bothworlds.algorithms.options import CovarianceChoice, refuse_design, sampled_covariance, take_reservoir
from bothworlds.algorithms.possible import leverages
from bothworlds.algorithms.tunings import MGR, Reservoir
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.numbers import Number, Place, larger, logarithm, matrix_of, root, row_of, where
from bothworlds.kernels.plan import all_finite, choose_exactly
from bothworlds.kernels.random import Seed
from bothworlds.kernels.shannon import Work, expected_entropy, shannon_plan
from bothworlds.kernels.status import NOT_FINITE
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import Rule, SampledPolicy
from bothworlds.theory.design import Design, Kind, check_design, design_for
from bothworlds.theory.frame import frame_of, world_of


class Numbers(NamedTuple):
    """Hyper-parameters: (1/lambda + d)/log K, log K, 1/lambda, and log T, or 0 for log(1 + t)."""

    weight: float
    log_arms: float
    inverse_coverage: float
    log_horizon: float


class State(NamedTuple):
    """What is learnt, then the plan.

    ``pace`` is B_t = 1/eta_t before the cap, ``entropy`` the sum of entropies, ``now`` that of the plan.
    """

    t: Floats
    theta: Floats
    pace: Floats
    entropy: Floats
    now: Floats
    rates: Floats
    q: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats


LEARNT = ("t", "theta", "pace", "entropy")


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3])


def kept(B: int, d: int) -> tuple[int, int]:  # noqa: ARG001
    """Return how many numbers of the state, from its start, are not computed afresh with every plan."""
    return 6 + d, 0


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 6 + 3 * d + 2 * d * d, 2 * B * K + d * d


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 6 + d
    return State(
        t=row_of(memory, 0, 1),
        pace=row_of(memory, 1, 1),
        entropy=row_of(memory, 2, 1),
        now=row_of(memory, 3, 1),
        rates=row_of(memory, 4, 2),
        theta=row_of(memory, 6, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        pi=matrix_of(cells, 0, B, K),
        q=matrix_of(cells, B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:
    """Name the parts of the scratch space."""
    v = 6 + d + 2 * d * d
    return Work(sums=matrix_of(cells, 2 * B * K, d, d), vector=row_of(memory, v, d), half=row_of(memory, v + d, d))


@kernel
def first_pace(numbers: Numbers, t: Number) -> Number:
    """Return B_1 = sqrt((1/lambda + d) log T/log K), with log(1 + t) in place of log T where T is not known."""
    if numbers.log_horizon > 0.0:
        return root(numbers.weight * numbers.log_horizon + 0.0 * t)
    return root(numbers.weight * logarithm(1.0 + t))


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan of round t: q_t by softmax, eta_t = 1/max{B_t, 2/lambda}, gamma_t = eta_t/lambda <= 1/2."""
    if not all_finite(state.theta):
        return NOT_FINITE
    state.pace[0] = where(state.t[0] <= 1.0, first_pace(numbers, state.t[0]), state.pace[0])
    eta = 1.0 / larger(state.pace[0], 2.0 * numbers.inverse_coverage)
    gamma = eta * numbers.inverse_coverage
    status = shannon_plan(world, state, work, eta, gamma)
    state.now[0] = expected_entropy(world.g, state.q)
    return status


@kernel
def learn(
    world: World,  # noqa: ARG001
    numbers: Numbers,
    state: State,
    x: Place,  # noqa: ARG001
    a: Place,  # noqa: ARG001
    loss: Number,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add theta_hat_t to Theta and B_1/sqrt(1 + sum of entropies/log K) to B_t."""
    for i in range(state.theta.shape[0]):
        state.theta[i] += loss * direction[i]
    state.entropy[0] += state.now[0]
    state.pace[0] += first_pace(numbers, state.t[0]) / root(1.0 + state.entropy[0] / numbers.log_arms)
    state.t[0] += 1.0


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose_exactly, learn, wide=True, together=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class RealFTRL:
    """FTRL with Shannon entropy and an entropy-adaptive rate: the paper's reformulation with arm-dependent features.

    q_t(x) is proportional to exp(-eta_t <phi(a, x), Theta>), pi_t = (1 - gamma_t) q_t + gamma_t e* with gamma_t =
    eta_t/lambda, and 1/eta_t grows by (1/eta_1)/sqrt(1 + sum of entropies/log K) a round. One round costs
    O(S K d^2 + d^3).

    Proved (Theorems of Appendix D): O((1/lambda + d) log T log(KT)/Delta_*) in the stochastic regime, so log^2 T,
    O(sqrt((1/lambda + d) T log T log K)) in the adversarial one, and in between under corruption.

    What we had to choose: the printed rate needs the cap eta_t <= lambda/2, or gamma_t exceeds 1 for all but
    astronomical horizons; entropies are H = -psi >= 0; they are averaged over contexts with g instead of taken at
    the context seen, which is known before the round as well and less noisy.

    Parameters
    ----------
    horizon
        T, which enters through log T. Without it log(1 + t) stands in, and nothing is proved.
    design
        The exploration policy: "joint-g", "joint-d", "per-context", "uniform", or a `Design`.
    covariance
        "exact"; on a `SampledProblem` `MGR`, or "reservoir", that is `Reservoir`. Entropies are then those at the
        contexts seen, as in the paper.

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

    @overload
    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy: ...
    @overload
    def start(self, problem: SampledProblem, *, rng: Seed = None, interpreted: bool = False) -> SampledPolicy: ...
    def start(
        self, problem: Problem | SampledProblem, *, rng: Seed = None, interpreted: bool = False
    ) -> Policy | SampledPolicy:
        """Begin on a problem; the same seed gives the same decisions."""
        if isinstance(problem, SampledProblem):
            return SampledPolicy.begin(self, problem, self.sampled_rule(problem), rng=rng, interpreted=interpreted)
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def _numbers(self, K: int, d: int, lam: float) -> Numbers:
        """Return the hyper-parameters as the kernel text wants them."""
        return Numbers(
            weight=(1.0 / lam + d) / math.log(K),
            log_arms=math.log(K),
            inverse_coverage=1.0 / lam,
            log_horizon=0.0 if self.horizon is None else math.log(self.horizon),
        )

    def sampled_rule(self, problem: SampledProblem) -> Rule:
        """Return the same rates for contexts that are not listed."""
        refuse_design(self, "joint-g")
        numbers = self._numbers(problem.n_arms, problem.dimension, problem.coverage)

        def rates(t: float, pace: float) -> tuple[float, float]:  # noqa: ARG001
            eta = 1.0 / max(pace, 2.0 * numbers.inverse_coverage)
            return eta, eta * numbers.inverse_coverage

        def growth(t: float, entropy: float) -> float:
            return float(first_pace(numbers, t)) / math.sqrt(1.0 + entropy / numbers.log_arms)

        first = float(first_pace(numbers, 1.0))
        return Rule(alpha=1.0, rates=rates, covariance=sampled_covariance(self), first_pace=first, growth=growth)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""
        if self.covariance != "exact":
            raise ValueError(f"{self.covariance} is for a SampledProblem; the contexts of {problem} are listed")
        if frame is None:
            frame = frame_of(problem, design_for(problem, self.design))
        world = world_of(problem, frame["exploration"], frame["coordinates"])
        _, K, d = world.z.shape
        numbers = self._numbers(K, d, float(frame["coverage"][0]))
        return Machine(
            text=TEXT,
            world=world,
            numbers=np.array(numbers),
            begin=_begin,
            learnt=LEARNT,
            frame=frame,
            has_baseline=False,
            kept=kept,
            possible=leverages(world),
        )

    def __repr__(self) -> str:
        parts = [f"horizon={self.horizon}"] if self.horizon is not None else []
        parts += [f"design={self.design!r}"] if self.design != "joint-g" else []
        parts += [f"covariance={self.covariance}"] if self.covariance != "exact" else []
        return f"RealFTRL({', '.join(parts)})"


def _begin(state: State) -> None:
    """Start the clock."""
    state.t[...] = 1.0
