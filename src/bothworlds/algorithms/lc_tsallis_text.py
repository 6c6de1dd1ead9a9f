"""LC-Tsallis-INF as kernel text: Algorithm 1 of the paper, one round in three functions.

What is learnt is t and Theta = sum of the estimates (and, for the adaptive tuning, a ridge regression and one
running sum). The plan, that is q_t, pi_t and Sigma_t, is a pure function of what is learnt.
"""

import math
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.exploration import Trial, condition, smallest_rate, weigh
from bothworlds.kernels.matrix import cholesky, combine, solve, sums_size
from bothworlds.kernels.plan import all_finite, covariance_of_points, draw_arm, exact_direction, invert, mix
from bothworlds.kernels.resampling import resample
from bothworlds.kernels.simplex import tsallis_point
from bothworlds.kernels.status import NOT_FINITE, NOT_POSITIVE, OK

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
    constant: float  # c of the stability condition; 0 does without
    offset: float  # adaptive: c0 d
    floor: float  # adaptive: gamma_t >= min(1/2, floor/t)
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
    spread: Floats
    rates: Floats  # eta_t, gamma_t
    y: Floats
    baseline: Floats
    q: Floats
    cells: Floats  # the same q_t, flat and padded
    pi: Floats
    sigma: Floats
    inverse: Floats  # G with Sigma_t^-1 = G^T G


LEARNT = ("t", "theta", "start", "start_rate", "ridge", "response", "spread")


class Work(NamedTuple):
    """Scratch space: nothing in it outlives a call."""

    weights: Floats
    sums: Floats
    row: Floats
    vector: Floats
    half: Floats
    mixed: Floats
    ratio: Floats
    leverages: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12])


def state_size(S: int, K: int, d: int, cells: int) -> int:
    """Return how many numbers State takes."""
    return kept_size(S, d) + 2 * d * d + S * K + cells


def kept_size(S: int, d: int) -> int:
    """Return how many numbers of State, from its start, are not computed afresh with every plan."""
    return 5 + 2 * S + 3 * d + d * d


@kernel
def state_of(memory: Floats, S: int, K: int, d: int, cells: int) -> State:
    """Name the parts of a policy's memory."""
    s = 5 + 2 * S
    v = s + 3 * d
    m = v + 3 * d * d
    return State(
        t=memory[0:1],
        spread=memory[1:2],
        rates=memory[2:4],
        start_rate=memory[4:5],
        start=memory[5 : 5 + S],
        y=memory[5 + S : s],
        theta=memory[s : s + d],
        response=memory[s + d : s + 2 * d],
        baseline=memory[s + 2 * d : v],
        ridge=memory[v : v + d * d].reshape((d, d)),
        sigma=memory[v + d * d : v + 2 * d * d].reshape((d, d)),
        inverse=memory[v + 2 * d * d : m].reshape((d, d)),
        pi=memory[m : m + S * K].reshape((S, K)),
        q=memory[m + S * K : m + 2 * S * K].reshape((S, K)),
        cells=memory[m + S * K : m + S * K + cells],
    )


def work_size(d: int, cells: int) -> int:
    """Return how many numbers Work takes."""
    return sums_size(d) + 4 * cells + 2 * d + d * d


@kernel
def work_of(scratch: Floats, S: int, K: int, d: int, cells: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    w = sums_size(d)
    v = w + 4 * cells
    return Work(
        sums=scratch[0:w],
        weights=scratch[w : w + cells],
        row=scratch[w + cells : w + 2 * cells],
        ratio=scratch[w + 2 * cells : w + 3 * cells],
        leverages=scratch[w + 3 * cells : v],
        vector=scratch[v : v + d],
        half=scratch[v + d : v + 2 * d],
        mixed=scratch[v + 2 * d : v + 2 * d + d * d].reshape((d, d)),
    )


@kernel
def learning_rate(numbers: Numbers, t: float, spread: float) -> float:
    """Return eta_t: equation (4), or the observed-stability rate of the adaptive tuning."""
    if numbers.kind == ADAPTIVE:
        return numbers.gain / math.sqrt(numbers.offset + spread)
    return min(numbers.gain / math.sqrt(t), numbers.cap)


@kernel
def scheduled_exploration(numbers: Numbers, eta: float) -> float:
    """Return the rate that suffices whatever q_t is: rules (A) and (B) of schedules.py, at most 1/2."""
    curved = eta * eta if numbers.power == 2.0 else math.exp(numbers.power * math.log(eta))
    return min(MOST_EXPLORATION, numbers.linear * eta, numbers.power_scale * curved)


@kernel
def ftrl_points(world: World, numbers: Numbers, state: State, eta: float) -> int:
    """Compute q_t(x) for every context (equation (4)) from Theta."""
    combine(state.theta, world.z, state.cells)
    for x in range(state.q.shape[0]):
        q = state.q[x]
        for a in range(q.shape[0]):
            q[a] += world.blocked[x, a]
        status, y = tsallis_point(q, eta, numbers.alpha, state.start[x], q)
        if status != OK:
            return status
        state.y[x] = y
    return OK


@kernel
def exploration_rate(world: World, numbers: Numbers, state: State, work: Work, eta: float) -> float:
    """Return gamma_t: the schedule's, or the smallest that keeps a stability condition, or the floor."""
    rate = eta
    floor: float = 0.0
    if numbers.kind == ADAPTIVE:
        # eta_t times the root mean square of the residuals so far: the size of a step for a leverage of 1.
        rate = min(eta, numbers.gain / math.sqrt(state.theta.shape[0] * state.t[0]))
        floor = min(MOST_EXPLORATION, numbers.floor / state.t[0])
    upper = scheduled_exploration(numbers, rate)
    if numbers.kind == SCHEDULED:
        return upper
    if numbers.constant == 0.0:
        return floor
    weighted = 0
    if numbers.kind == CERTIFIED:
        weighted = work.ratio.shape[0]
        weigh(state.cells, numbers.alpha, work.ratio)
    ratio = work.ratio[0:weighted]
    trial = Trial(state.sigma, world.z, ratio, work.mixed, state.inverse, work.leverages)
    limit = numbers.constant * numbers.constant / (rate * rate)
    if floor > 0.0 and condition(trial, floor) <= limit:
        return floor
    return max(floor, smallest_rate(trial, limit, state.start_rate[0], upper))


@kernel
def predict_baseline(world: World, state: State, work: Work) -> int:
    """Compute the control variate m_t: the ridge estimate, scaled down to |<z, m>| <= 1 for all z."""
    if not cholesky(state.ridge, work.mixed):
        return NOT_POSITIVE
    solve(work.mixed, state.response, state.baseline)
    combine(state.baseline, world.z, work.row)
    highest = 1.0
    for n in range(work.row.shape[0]):
        highest = max(highest, abs(work.row[n]))
    for i in range(state.baseline.shape[0]):
        state.baseline[i] /= highest
    return OK


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan of round t from what is learnt; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    eta = learning_rate(numbers, state.t[0], state.spread[0])
    status = ftrl_points(world, numbers, state, eta)
    if status != OK:
        return status
    covariance_of_points(world, state, work)
    gamma = exploration_rate(world, numbers, state, work, eta)
    mix(world, state, gamma)
    state.rates[0] = eta
    state.rates[1] = gamma
    status = invert(state)
    if status == OK and numbers.kind == ADAPTIVE:
        return predict_baseline(world, state, work)
    return status


@kernel
def choose(
    world: World,
    numbers: Numbers,
    state: State,
    work: Work,
    x: int,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,
) -> int:
    """Draw A_t from pi_t(x), write direction = Sigma_t^-1 phi(A_t, x) and the control variate; return A_t."""
    arm = draw_arm(state.pi, x, key, time)
    cell = x * state.pi.shape[1] + arm
    if numbers.kind == ADAPTIVE:
        for i in range(baseline.shape[0]):
            baseline[i] = state.baseline[i]
    if numbers.beta > 0.0:
        samples = int(numbers.samples)
        if samples == 0:
            samples = math.ceil(numbers.log_bias / (numbers.beta * state.rates[1]))
        resample(world.z, world.g, state.pi, cell, numbers.beta, samples, key, time, work.vector, direction)
        return arm
    exact_direction(world, state, work, cell, direction)
    return arm


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
    cell = x * state.pi.shape[1] + a
    d = state.theta.shape[0]
    residual = loss
    if numbers.kind == ADAPTIVE:
        leverage = 0.0
        for i in range(d):
            residual -= baseline[i] * world.z[i, cell]
            leverage += direction[i] * world.z[i, cell]
        for i in range(d):
            state.theta[i] += baseline[i]
            state.response[i] += loss * world.z[i, cell]
            for j in range(d):
                state.ridge[i, j] += world.z[i, cell] * world.z[j, cell]
        state.spread[0] += residual * residual * leverage
    for i in range(d):
        state.theta[i] += residual * direction[i]
    for s in range(state.start.shape[0]):
        state.start[s] = state.y[s]
    state.start_rate[0] = state.rates[1]
    state.t[0] += 1.0


TEXT = KernelText(numbers_of, state_of, work_of, refresh, choose, learn)
