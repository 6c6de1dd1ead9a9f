"""LC-Tsallis-INF as kernel text: Algorithm 1 of the paper, one round in three functions.

What is learnt is t and Theta = sum of the estimates (and, for the adaptive tuning, a ridge regression and
running sums). The plan, that is q_t, pi_t and Sigma_t, is a pure function of what is learnt.
"""

import math
from typing import NamedTuple

from bothworlds.algorithms.adaptive_text import (
    adaptive_rate,
    allowed_leverage,
    learn_adaptively,
    openness,
    predict_baseline,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.exploration import Trial, condition, smallest_rate
from bothworlds.kernels.numbers import (
    Number,
    every,
    exponential,
    larger,
    logarithm,
    matrix_of,
    root,
    row_of,
    smaller,
    where,
)
from bothworlds.kernels.plan import (
    add_context,
    all_finite,
    clear,
    covariance,
    draw_arm,
    estimate,
    exact_direction,
    invert,
    mix,
)
from bothworlds.kernels.random import Pair
from bothworlds.kernels.resampling import resample
from bothworlds.kernels.simplex import tsallis_point
from bothworlds.kernels.status import NOT_FINITE, OK

SCHEDULED, CERTIFIED, ADAPTIVE = 0.0, 1.0, 2.0
MOST_EXPLORATION = 0.5  # the analysis needs gamma_t <= 1/2


class Numbers(NamedTuple):
    """Hyper-parameters as numbers, in the order of the flat array."""

    kind: float
    alpha: float
    gain: float  # eta_t = min(gain/sqrt(t), cap)
    cap: float
    linear: float  # gamma_t <= min(linear eta, power_scale eta^power)
    power_scale: float
    power: float
    constant: float  # c of the stability condition, or of the adaptive tuning's; 0 does without
    slope: float  # adaptive: eta_t = gain (1 + n/offset)^-slope
    offset: float  # adaptive
    floor: float  # adaptive: gamma_t >= min(1/2, floor/t)
    recency: float  # adaptive: Theta is multiplied by t/(t + recency) with every update
    forgetting: float  # adaptive: the same for the ridge regression
    full: float  # adaptive: K^(1-alpha) - 1, -alpha psi of the uniform distribution
    leverage: float  # adaptive: 1/lambda, the largest leverage of e*
    beta: float  # resampling step; 0 means the exact inverse
    samples: float  # resampling: fixed number of draws, or 0 for log_bias
    log_bias: float  # resampling: draws = log_bias/(gamma beta)


class State(NamedTuple):
    """What is learnt, then the plan that follows from it."""

    t: Floats
    theta: Floats
    start: Floats  # y of the plan before, where Newton starts
    start_rate: Floats  # gamma of the plan before, where its search starts
    ridge: Floats
    response: Floats
    noisy: Floats  # adaptive: rounds so far, weighted by noise and openness
    tail: Floats  # adaptive: residual^4 leverage and residual^2 leverage, recent ones
    rates: Floats  # eta_t, gamma_t
    openness: Floats  # adaptive: how undecided the plan is, 1 for uniform q_t
    y: Floats
    baseline: Floats
    q: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats  # G with Sigma_t^-1 = G^T G


LEARNT = ("t", "theta", "start", "start_rate")
LEARNT_BY_ADAPTIVE = (*LEARNT, "ridge", "response", "noisy", "tail")


class Work(NamedTuple):
    """Scratch space: nothing in it outlives a call."""

    sums: Floats
    powers: Floats
    vector: Floats
    half: Floats
    mixed: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(
        n[0],
        n[1],
        n[2],
        n[3],
        n[4],
        n[5],
        n[6],
        n[7],
        n[8],
        n[9],
        n[10],
        n[11],
        n[12],
        n[13],
        n[14],
        n[15],
        n[16],
        n[17],
    )


def kept(B: int, d: int) -> tuple[int, int]:
    """Return how many numbers of the state, from its start, are not computed afresh with every plan."""
    return 8 + d, 2 * B


def kept_by_adaptive(B: int, d: int) -> tuple[int, int]:
    """Return the same for the adaptive tuning, with its baseline and its ridge regression."""
    return 8 + 3 * d + d * d, 2 * B


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 8 + 5 * d + 4 * d * d, 2 * B + 2 * B * K + d * d + K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    v = 8 + 3 * d
    s = v + d * d
    c = 2 * B
    return State(
        t=row_of(memory, 0, 1),
        noisy=row_of(memory, 1, 1),
        rates=row_of(memory, 2, 2),
        start_rate=row_of(memory, 4, 1),
        tail=row_of(memory, 5, 2),
        openness=row_of(memory, 7, 1),
        theta=row_of(memory, 8, d),
        response=row_of(memory, 8 + d, d),
        baseline=row_of(memory, 8 + 2 * d, d),
        ridge=matrix_of(memory, v, d, d),
        sigma=matrix_of(memory, s, d, d),
        inverse=matrix_of(memory, s + d * d, d, d),
        start=row_of(cells, 0, B),
        y=row_of(cells, B, B),
        pi=matrix_of(cells, c, B, K),
        q=matrix_of(cells, c + B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:
    """Name the parts of the scratch space."""
    v = 8 + 3 * d + 3 * d * d
    c = 2 * B + 2 * B * K
    return Work(
        vector=row_of(memory, v, d),
        half=row_of(memory, v + d, d),
        mixed=matrix_of(memory, v + 2 * d, d, d),
        sums=matrix_of(cells, c, d, d),
        powers=row_of(cells, c + d * d, K),
    )


@kernel
def learning_rate(numbers: Numbers, state: State) -> Number:
    """Return eta_t: equation (4), or that of the adaptive tuning."""
    if numbers.kind == ADAPTIVE:
        return adaptive_rate(numbers, state)
    return smaller(numbers.gain / root(state.t[0]), numbers.cap)


@kernel
def scheduled_exploration(numbers: Numbers, eta: Number) -> Number:
    """Return the rate that suffices whatever q_t is: rules (A) and (B) of schedules.py, at most 1/2."""
    curved = eta * eta
    if numbers.power != 2.0:
        curved = exponential(numbers.power * logarithm(eta))
    return smaller(smaller(numbers.linear * eta, numbers.power_scale * curved), MOST_EXPLORATION)


@kernel
def ftrl_points(world: World, numbers: Numbers, state: State, work: Work, eta: Number) -> int:
    """Compute q_t(x) for every context (equation (4)) from Theta, and Sigma(q_t)."""
    clear(work.sums)
    for x in range(state.q.shape[0]):
        q = state.q[x]
        estimate(world, state.theta, x, q)
        status, y = tsallis_point(q, eta, numbers.alpha, state.start[x], work.powers, q)
        if status != OK:
            return status
        state.y[x] = y
        add_context(world, x, q, work.sums)
    covariance(world, state.q, work.sums, state.sigma)
    return OK


@kernel
def exploration_rate(world: World, numbers: Numbers, state: State, work: Work, eta: Number) -> Number:
    """Return gamma_t: the schedule's, or the smallest that keeps a stability condition, or the floor."""
    if numbers.kind == SCHEDULED:
        return scheduled_exploration(numbers, eta)
    is_certified = numbers.kind == CERTIFIED
    trial = Trial(state.sigma, world.z, state.q, numbers.alpha, is_certified, work.mixed, state.inverse, work.powers)
    if is_certified:
        limit = numbers.constant * numbers.constant / (eta * eta)
        return smallest_rate(trial, limit, state.start_rate[0], scheduled_exploration(numbers, eta))
    floor = smaller(numbers.floor / state.t[0], MOST_EXPLORATION)
    if numbers.constant == 0.0:
        return floor
    limit = allowed_leverage(numbers, state)
    enough = condition(trial, floor) <= limit
    if every(enough):
        return floor
    upper = smaller(numbers.leverage / limit, MOST_EXPLORATION)
    return where(enough, floor, larger(floor, smallest_rate(trial, limit, state.start_rate[0], upper)))


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan of round t from what is learnt; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    eta = learning_rate(numbers, state)
    status = ftrl_points(world, numbers, state, work, eta)
    if status != OK:
        return status
    gamma = exploration_rate(world, numbers, state, work, eta)
    mix(world, state, gamma)
    state.rates[0] = eta
    state.rates[1] = gamma
    status = invert(state)
    if status == OK and numbers.kind == ADAPTIVE:
        state.openness[0] = openness(world, numbers, state)
        return predict_baseline(world, state, work)
    return status


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
    baseline: Floats,
) -> int:
    """Draw A_t from pi_t(x), write direction = Sigma_t^-1 phi(A_t, x) and the control variate; return A_t."""
    a = draw_arm(state.pi, x, uniforms)
    if numbers.kind == ADAPTIVE:
        for i in range(state.theta.shape[0]):
            baseline[i] = state.baseline[i]
    if numbers.beta > 0.0:
        samples = int(numbers.samples)
        if samples == 0:
            samples = math.ceil(numbers.log_bias / (numbers.beta * state.rates[1]))
        resample(world.z, world.g, state.pi, x, a, numbers.beta, samples, key, time, work.vector, direction)
        return a
    exact_direction(world, state, work, x, a, direction)
    return a


@kernel
def learn(
    world: World,
    numbers: Numbers,
    state: State,
    x: int,
    a: int,
    loss: float,
    direction: Floats,
    baseline: Floats,
) -> None:
    """Add theta_hat_t (equation (2)), or its version with a control variate, to Theta, and advance the clock."""
    residual = loss
    if numbers.kind == ADAPTIVE:
        residual = learn_adaptively(world, numbers, state, x, a, loss, direction, baseline)
    for i in range(state.theta.shape[0]):
        state.theta[i] += residual * direction[i]
    for s in range(state.start.shape[0]):
        state.start[s] = state.y[s]
    state.start_rate[0] = state.rates[1]
    state.t[0] += 1.0


KIND, ALPHA, BETA = (Numbers._fields.index(name) for name in ("kind", "alpha", "beta"))
TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn, wide=True, static=(KIND, ALPHA, BETA))
