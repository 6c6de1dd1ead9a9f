"""Algorithm 1 of the paper as kernel functions, with the tunings `Paper` and `Certified`.

The learner state is t and Theta, the sum of the estimates. The plan, that is q_t, pi_t and Sigma_t, is a pure function
of it.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from bothworlds._public_names import internal
from bothworlds.algorithms.lc_tsallis.certified_exploration import Smallest, Trial, smallest_rate
from bothworlds.algorithms.options import check_positive, check_whole
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, Place
from bothworlds.kernels.contract import Beliefs, Draw, Kernel, Known, Play, any_decision, build_kernel
from bothworlds.kernels.exact_ftrl import (
    Direction,
    add_context,
    add_theta_hat,
    all_finite,
    begin_covariance,
    choose_exactly,
    covariance,
    draw_arm,
    estimate,
    explore,
    forget,
)
from bothworlds.kernels.ftrl_points import tsallis_point
from bothworlds.kernels.geometric_resampling import Resampling, resample
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled, scratch
from bothworlds.kernels.rates import Rates, scheduled_exploration, scheduled_learning
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.theory.schedules import Facts, Schedule, certified_constant, stability_constant


class Options(NamedTuple):
    """Hyper-parameters: ``certified`` is 1 for the smallest gamma_t that the constant c of Lemma B.1 allows, or 0."""

    alpha: float
    certified: float
    c: float
    rates: Rates
    resampling: Resampling


class State(NamedTuple):
    """Learner state, then the plan that follows from it."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    start: Annotated[Floats, learnt("S")]  # y of the previous plan, where Newton starts
    start_rate: Annotated[Floats, learnt()]  # gamma of the previous plan, where the search starts
    rates: Annotated[Floats, recalled(2)]  # eta_t, gamma_t
    y: Annotated[Floats, recalled("S")]
    q: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]  # G with Sigma_t^-1 = G^T G


class Work(NamedTuple):
    """Scratch space."""

    vector: Annotated[Floats, scratch("d")]
    half: Annotated[Floats, scratch("d")]
    mixed: Annotated[Floats, scratch("d", "d")]
    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    powers: Annotated[Floats, scratch("K", packed=True)]


@kernel
def ftrl_points(known: Known, alpha: float, state: Any, work: Any, eta: Number) -> int:
    """Compute q_t(x) for every context (equation (4)) from Theta, and Sigma(q_t)."""
    begin_covariance(work.sums)
    for x in range(state.q.shape[0]):
        q = state.q[x]
        estimate(known, state.theta, x, q)
        status, y = tsallis_point(q, eta, alpha, state.start[x], work.powers, q)
        if status != OK:
            return status
        state.y[x] = y
        add_context(known, x, q, work.sums)
    covariance(known, state.q, work.sums, state.sigma)
    return OK


@kernel
def certified_exploration(known: Known, options: Any, state: Any, work: Any, eta: Number) -> Smallest:
    """Return the smallest gamma_t with eta |l_hat| q^(1-alpha) <= c for all plays; at most the scheduled rate.

    Uses the memory of pi_t, which is computed afterwards, as space.
    """
    trial = Trial(state.sigma, known.z, state.q, options.alpha, work.mixed, state.inverse, work.half, state.pi)
    limit = options.c * options.c / (eta * eta)
    upper = scheduled_exploration(options.rates, eta)
    return smallest_rate(trial, limit, state.start_rate[0], upper)


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from the learner state; return a status."""
    forget(state.sigma)
    forget(state.inverse)
    if not all_finite(state.theta):
        return NOT_FINITE
    eta = scheduled_learning(options.rates, state.t[0])
    status = ftrl_points(known, options.alpha, state, work, eta)
    if status != OK:
        return status
    gamma, inverted = scheduled_exploration(options.rates, eta), 0.0 * eta
    if options.certified > 0.0:
        gamma, inverted = certified_exploration(known, options, state, work, eta)
    return explore(known, state, eta, gamma, inverted > 0.0)


@kernel
def choose_resampling(
    known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Direction
) -> Place:
    """Draw A_t from pi_t(x), and write a direction by Matrix Geometric Resampling instead of the exact one."""
    a = draw_arm(state.pi, x, draw.uniforms)
    beta, samples = options.resampling.beta, int(options.resampling.samples)
    if samples == 0:
        samples = math.ceil(options.resampling.log_bias / (beta * state.rates[1]))
    resample(known, state.pi, (x, a), (beta, samples), draw, work.vector, carried.direction)
    return a


@kernel
def advance(state: Any) -> None:
    """Increment t, and store the starting values of the next plan's searches."""
    for s in range(state.start.shape[0]):
        state.start[s] = state.y[s]
    state.start_rate[0] = state.rates[1]
    state.t[0] += 1.0


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Direction) -> None:
    """Add theta_hat_t = Sigma_t^-1 phi loss (equation (2)) to Theta, and advance the clock."""
    add_theta_hat(play.loss, carried.direction, state.theta)
    advance(state)


KERNEL = build_kernel(
    refresh, choose_exactly, learn, possible=possible_leverage, together=True, static=("alpha", "certified")
)
RESAMPLING = KERNEL._replace(choose=choose_resampling, possible=any_decision, together=False)


class LearnerSetup(NamedTuple):
    """A tuning applied to a problem: kernel, options, initial state, and beliefs."""

    kernel: Kernel
    options: Any
    begin: dict[str, Any]
    beliefs: Beliefs = Beliefs(total="theta")  # rates depend on t alone


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The paper's eta_t and gamma_t to the letter (equation (4), errata resolved).

    Proved for alpha = 1/2: O(log T) stochastic, O(sqrt T) adversarial, and in between (Theorems 4.1-4.4). Half of
    the first t0 = 256 sqrt(K) L/(d lambda) rounds are exploration.

    Parameters
    ----------
    finite_support
        Which branch of eta_t: True for Assumption 2.3, gamma = 128 L eta^2/lambda; False for "otherwise", gamma =
        8 eta/lambda, whose regret is O(sqrt T) in all regimes.

    >>> from bothworlds import LCTsallisINF
    >>> LCTsallisINF(tuning=Paper()) == LCTsallisINF(tuning="paper")
    True
    """

    finite_support: bool = True

    @internal
    def step_limit(self, alpha: float) -> float:
        """Return c of Lemma B.1."""
        return stability_constant(alpha)

    @internal
    def schedule(self, facts: Facts) -> Schedule:
        """Return eta_t and gamma_t."""
        rarity = facts.rarity if self.finite_support else None
        constant = self.step_limit(facts.alpha)
        return facts.schedule(rarity=rarity, constant=constant, use_linear=not self.finite_support)

    @internal
    def learner(self, facts: Facts, resampling: Resampling) -> LearnerSetup:
        """Return kernel, options and initial state."""
        return _learner(self, facts, resampling, certified=0.0)


@dataclass(frozen=True, kw_only=True)
class Certified:
    """The smallest gamma_t that keeps the paper's stability condition, computed in each round from exact leverages.

    Proved for alpha = 1/2 with feedback after every decision: the paper's proofs use gamma_t only for the condition,
    any c below 1/2 suffices, and for c of at least 1/8 gamma_t never exceeds the paper's. So every theorem of the paper
    still holds, with other constants: c = 1/8 is the paper's, and around 1/4, the default, the bounds are smallest
    (research/theory.md). From c = 1/2 on nothing is proved.

    Where b decisions are taken and answered together, ``batch=b`` treats them as one round with the mean of their
    estimates: every theorem holds for T/b rounds, times b. This is its cost: t0 is b times as long, and regret grows
    about b-fold (measured: 301 to 1,941 for b = 10, 316 to 5,350 for b = 40, at T = 50,000; research/theory.md). With
    batch = 1 the same batches cost next to nothing in these runs, but nothing is proved for them.

    Parameters
    ----------
    c
        The constant of eta |l_hat| <= c q^(alpha-1); (1 - alpha)/2, twice the paper's, if left out.
    batch
        Largest number of decisions that are taken and answered together: the condition holds for the sum of that many
        estimates of one plan, with c/batch in place of c, and the learning rate is divided by sqrt(batch).

    >>> from bothworlds import LCTsallisINF
    >>> LCTsallisINF(tuning=Certified(batch=100))
    LCTsallisINF(alpha=0.5, tuning=Certified(c=None, batch=100))
    """

    c: float | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        if self.c is not None:
            check_positive(self, "c")
        check_whole(self, "batch")

    @internal
    def step_limit(self, alpha: float) -> float:
        """Return the largest allowed eta |l_hat| q^(1-alpha)."""
        return (certified_constant(alpha) if self.c is None else self.c) / self.batch

    @internal
    def schedule(self, facts: Facts) -> Schedule:
        """Return eta_t and the largest gamma_t."""
        single = facts.schedule(rarity=facts.rarity, constant=self.step_limit(facts.alpha) * self.batch)
        return single.in_batches(self.batch)

    @internal
    def learner(self, facts: Facts, resampling: Resampling) -> LearnerSetup:
        """Return kernel, options and initial state."""
        return _learner(self, facts, resampling, certified=1.0)


def _learner(tuning: Paper | Certified, facts: Facts, resampling: Resampling, *, certified: float) -> LearnerSetup:
    """Return kernel, options and initial state."""
    options = Options(facts.alpha, certified, tuning.step_limit(facts.alpha), tuning.schedule(facts).rates, resampling)
    return LearnerSetup(RESAMPLING if resampling.beta > 0.0 else KERNEL, options, {"start": 1.0})
