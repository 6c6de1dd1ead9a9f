"""The adaptive tuning of LC-Tsallis-INF as a learner of its own: rates that follow the data. Not the paper's.

In coordinates where Sigma(e*) is the identity.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from bothworlds.algorithms.checks import check_not_negative, check_positive
from bothworlds.algorithms.lc_tsallis.algorithm_1 import Learner, Work, advance, ftrl_points, trial_of
from bothworlds.algorithms.lc_tsallis.prediction import Predicted, add_to_ridge, choose_predicting, predict
from bothworlds.kernels.arithmetic import (
    Number,
    every,
    exponential,
    feature,
    larger,
    logarithm,
    root,
    smaller,
    where,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Beliefs, Earlier, Known, Play, kernel_text
from bothworlds.kernels.entropy import mean_entropy
from bothworlds.kernels.exploration import condition, nothing_seen, smallest_rate
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled
from bothworlds.kernels.plan import all_finite, explore
from bothworlds.kernels.possible import possible_leverage
from bothworlds.kernels.rates import MOST_EXPLORATION
from bothworlds.kernels.resampling import Resampling
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.theory.schedules import Facts, Schedule, stability_constant

LARGEST_RESIDUAL = 2.0  # losses and predictions lie in [-1, 1]
TAIL_FORGETTING = 4.0  # sizes of residuals are those of about the last quarter of the rounds


class Options(NamedTuple):
    """Hyper-parameters of `Adaptive`, and what follows from the problem.

    ``full`` is (K^(1-alpha) - 1)/alpha, -psi of the uniform distribution; ``leverage`` 1/lambda, the largest of e*.
    """

    alpha: float
    gain: float  # eta_t = gain (1 + n/offset)^-slope
    slope: float
    offset: float
    recency: float  # Theta is multiplied by t/(t + recency) with every update
    forgetting: float  # the same for the ridge regression
    floor: float  # gamma_t >= min(1/2, floor/t)
    c: float  # 0 does without a limit
    full: float
    leverage: float


class State(NamedTuple):
    """What is learnt, with a ridge regression and running sums; then the plan."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    start: Annotated[Floats, learnt("S")]
    start_rate: Annotated[Floats, learnt()]
    ridge: Annotated[Floats, learnt("d", "d")]
    response: Annotated[Floats, learnt("d")]
    noisy: Annotated[Floats, learnt()]  # rounds so far, weighted by noise and by how undecided the plan was
    tail: Annotated[Floats, learnt(2)]  # residual^4 leverage and residual^2 leverage, recent ones
    rates: Annotated[Floats, recalled(2)]
    entropy: Annotated[Floats, recalled()]  # -psi(q_t) in the mean over contexts
    y: Annotated[Floats, recalled("S")]
    q: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]
    baseline: Annotated[Floats, planned("d")]


@kernel
def adaptive_rate(options: Options, state: State) -> Number:
    """Return eta_t = gain (1 + n/offset)^-slope, n counting rounds by their noise and openness."""
    return options.gain * exponential(-options.slope * logarithm(1.0 + state.noisy[0] / options.offset))


@kernel
def allowed_leverage(options: Options, state: State) -> Number:
    """Return the largest leverage that exploration has to leave: 2 d + c t/size.

    size^2 = sum residual^4 leverage/sum residual^2 leverage is the size of the residuals that make up the variance:
    that of the noise if it is symmetric, far more where rare rewards surprise. A single play of the rarest arm then
    moves its estimate by about c t, a share of what t rounds can.
    """
    size = smaller(root((1.0 + state.tail[0]) / (1.0 + state.tail[1])), LARGEST_RESIDUAL)
    return 2.0 * state.theta.shape[0] + options.c * state.t[0] / size


@kernel
def exploration_rate(known: Known, options: Options, state: State, work: Work) -> Number:
    """Return gamma_t: the smallest rate that leaves no leverage above what is allowed, and at least the floor."""
    floor = smaller(options.floor / state.t[0], MOST_EXPLORATION)
    if options.c == 0.0:
        return floor
    trial = trial_of(known, options.alpha, False, state, work)
    limit = allowed_leverage(options, state)
    found, seen = condition(trial, floor, nothing_seen(floor))
    enough = found <= limit
    if every(enough):
        return floor
    upper = smaller(options.leverage / limit, MOST_EXPLORATION)
    return where(enough, floor, larger(floor, smallest_rate(trial, limit, state.start_rate[0], upper, seen)))


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from what is learnt; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    eta = adaptive_rate(options, state)
    status = ftrl_points(known, options.alpha, state, work, eta)
    if status != OK:
        return status
    gamma = exploration_rate(known, options, state, work)
    state.entropy[0] = mean_entropy(known, state.q, options.alpha)
    status = explore(known, state, eta, gamma)
    return predict(known, state, work) if status == OK else status


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Predicted) -> None:
    """Fade Theta, add the estimate with its control variate to it, and keep the sums that the rates follow."""
    fade = state.t[0] / (state.t[0] + options.recency)
    residual = play.loss
    leverage = 0.0
    for i in range(state.theta.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        residual = residual - carried.baseline[i] * z
        leverage = leverage + carried.direction[i] * z
        state.theta[i] = fade * state.theta[i] + carried.baseline[i]
    add_to_ridge(known, options, state, play)
    squared = residual * residual
    keep = state.t[0] / (state.t[0] + TAIL_FORGETTING)
    state.tail[0] = keep * state.tail[0] + squared * squared * leverage
    state.tail[1] = keep * state.tail[1] + squared * leverage
    undecided = state.entropy[0] / options.full
    state.noisy[0] += squared * undecided * undecided * undecided
    for i in range(state.theta.shape[0]):
        state.theta[i] += residual * carried.direction[i]
    advance(state)


TEXT = kernel_text(refresh, choose_predicting, learn, possible=possible_leverage, together=True, static=("alpha",))


def paced(options: Options, rounds: float, earlier: Earlier | None) -> dict[str, Any]:
    """Return the clock of the learning rate after some rounds: what it was, by the share believed.

    Without an earlier policy every round counts in full, as if noise had been large and plans undecided.
    """
    if earlier is None:
        return {"noisy": rounds}
    return {"noisy": earlier.share * earlier.learnt["noisy"], "tail": earlier.share * earlier.learnt["tail"]}


BELIEFS = Beliefs(total="theta", gram="ridge", moment="response", paced=paced)


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """Heuristic, no theorem: a control variate, and rates that follow the data. Not the paper's.

    The estimate m_t + Sigma_t^-1 phi (loss - <phi, m_t>) is exactly unbiased for the ridge prediction m_t of the
    moment of the decision. The learning rate follows a clock n that counts rounds by their squared residual and by the
    cube of how undecided the plan was, 1 for a uniform plan and 0 for a sure one,

        n_t = sum_s (loss_s - <phi_s, m_s>)^2 (psi(q_s)/psi(uniform))^3
        eta_t = scale K^(1/4)/sqrt(offset d) (1 + n_t/offset)^-slope

    for alpha = 1/2, and with sqrt((1-alpha) K^(1-alpha)/alpha) in place of K^(1/4) for any alpha: an adversary keeps
    the plan undecided and makes the rate fall, little noise or a clear winner let it stay.

    Without a bound on its steps a single lucky play of a rare arm can turn the policy around for thousands of rounds;
    rare rewards do this often. So gamma_t is the smallest rate, at most 1/2, for which no leverage exceeds
    2 d + c t/size, where size is that of the residuals that make up their variance; and at least min(1/2, floor/t).

    Estimates fade, theta_hat_s having the weight (s/t)^recency: what was learnt long ago gives way when the world has
    changed. A sqrt(T) bound for weighted losses is one for plain losses, times 1 + 2 recency (docs/scoreboard.md).

    Feedback counts as new when it comes, so its order matters: estimates fade from then on. (With `Matched` it matters
    as much; with `Paper` and `Certified` not, but for rounding.)

    How the defaults were found, and what else was tried: docs/scoreboard.md.

    Parameters
    ----------
    scale
        Larger learns faster under noise, smaller withstands an adaptive adversary better.
    offset
        How slowly the rate starts.
    slope
        Exponent of the rate: 1/2 is that of the theory, more begins faster and becomes more careful.
    recency
        How much faster older estimates fade; 0 for a plain sum.
    forgetting
        The same for the ridge regression: it predicts from about the last 1/forgetting of all rounds.
    floor
        Exploration that keeps the covariance well-conditioned; costs about floor log T average gaps.
    c
        Bound on the share of all rounds that one play may weigh; None does without one.
    """

    scale: float = 1.2
    offset: float = 1.0
    slope: float = 0.6
    recency: float = 0.25
    forgetting: float = 30.0
    floor: float = 0.1
    c: float | None = 0.1

    def __post_init__(self) -> None:
        for name in ("scale", "offset", "slope", "floor"):
            check_positive(self, name)
        for name in ("recency", "forgetting"):
            check_not_negative(self, name)
        if self.c is not None:
            check_positive(self, "c")

    def step_limit(self, alpha: float) -> float:
        """Return c of Lemma B.1, which this tuning does not keep."""
        return stability_constant(alpha)

    def schedule(self, facts: Facts) -> Schedule:
        """Return eta_t of many rounds if every squared residual were 1 and the plan uniform, and the largest gamma_t.

        2 d + c t/size >= c t/2, so gamma_t is at most the larger of 2/(c lambda t) and floor/t.
        """
        gain = self.scale * facts.learning_gain * self.offset ** (self.slope - 0.5)
        enough = 0.0 if self.c is None else 2.0 / (self.c * facts.coverage)
        power = 1.0 / self.slope
        most = max(enough, self.floor) / gain**power
        return Schedule(gain=gain, cap=math.inf, linear=math.inf, power_scale=most, power=power, decay=self.slope)

    def learner(self, facts: Facts, resampling: Resampling) -> Learner:
        """Return text, options and the state at the start."""
        options = Options(
            alpha=facts.alpha,
            gain=self.schedule(facts).gain * self.offset**-self.slope,
            slope=self.slope,
            offset=self.offset,
            recency=self.recency,
            forgetting=self.forgetting,
            floor=self.floor,
            c=self.c or 0.0,
            full=(facts.n_arms ** (1.0 - facts.alpha) - 1.0) / facts.alpha,
            leverage=1.0 / facts.coverage,
        )
        return Learner(TEXT, options, {"start": 1.0, "ridge": np.eye(facts.dimension)}, BELIEFS)
