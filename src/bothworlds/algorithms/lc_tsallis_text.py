"""LC-Tsallis-INF as kernel text: Algorithm 1 of the paper, one round in three functions.

What is learnt is t and Theta = sum of the estimates (and, for the adaptive tuning, a ridge regression and
running sums; for the matched tuning, 1/eta_t). The plan, that is q_t, pi_t and Sigma_t, is a pure function of what
is learnt.
"""

import math

from bothworlds.algorithms.adaptive_text import (
    adaptive_rate,
    allowed_leverage,
    learn_adaptively,
    predict_baseline,
)
from bothworlds.algorithms.lc_tsallis_memory import Numbers, State, Work, numbers_of, sizes, state_of, work_of
from bothworlds.algorithms.matched_text import add_step, grow
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.entropy import mean_entropy
from bothworlds.kernels.exploration import Trial, condition, smallest_rate
from bothworlds.kernels.numbers import (
    Number,
    Place,
    either,
    every,
    exponential,
    larger,
    logarithm,
    root,
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

SCHEDULED, CERTIFIED, ADAPTIVE, MATCHED = 0.0, 1.0, 2.0, 3.0
MOST_EXPLORATION = 0.5  # the analysis needs gamma_t <= 1/2
STEP = 1.25  # matched: 1/eta grows by this factor until some gamma_t <= 1/2 is enough
MAX_STEPS = 400


@kernel
def learning_rate(numbers: Numbers, state: State) -> Number:
    """Return eta_t: equation (4), or that of the adaptive or the matched tuning."""
    if numbers.kind == ADAPTIVE:
        return adaptive_rate(numbers, state)
    if numbers.kind == MATCHED:
        return 1.0 / state.inverse_rate[0]
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
    is_certified = numbers.kind != ADAPTIVE
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
def steady_points(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute q_t with the first eta_t, coming from above, that gamma_t = 1/2 keeps stable.

    From the cap downwards the rule's gamma_t is enough whatever q_t is, so the steps end there.
    """
    trial = Trial(state.sigma, world.z, state.q, numbers.alpha, True, work.mixed, state.inverse, work.powers)
    most = 1.0 / numbers.cap
    status = OK
    for _ in range(MAX_STEPS):
        eta = learning_rate(numbers, state)
        status = ftrl_points(world, numbers, state, work, eta)
        if status != OK or every(state.inverse_rate[0] >= most):
            break
        allowed = numbers.constant * numbers.constant / (eta * eta)
        steady = either(state.inverse_rate[0] >= most, condition(trial, 0.0 * eta + MOST_EXPLORATION) <= allowed)
        if every(steady):
            break
        state.inverse_rate[0] = where(steady, state.inverse_rate[0], smaller(STEP * state.inverse_rate[0], most))
    return status


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan of round t from what is learnt; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    if numbers.kind == MATCHED:
        grow(world, numbers, state)
        status = steady_points(world, numbers, state, work)
    else:
        status = ftrl_points(world, numbers, state, work, learning_rate(numbers, state))
    if status != OK:
        return status
    eta = learning_rate(numbers, state)
    gamma = exploration_rate(world, numbers, state, work, eta)
    mix(world, state, gamma)
    state.rates[0] = eta
    state.rates[1] = gamma
    if numbers.kind == ADAPTIVE or numbers.kind == MATCHED:
        state.entropy[0] = mean_entropy(world, state.q, numbers.alpha)
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
    x: Place,
    uniforms: Pair,
    key: int,  # noqa: ARG001
    time: int,  # noqa: ARG001
    direction: Floats,
    baseline: Floats,
) -> Place:
    """Draw A_t from pi_t(x), write direction = Sigma_t^-1 phi(A_t, x) and the control variate; return A_t."""
    a = draw_arm(state.pi, x, uniforms)
    if numbers.kind == ADAPTIVE:
        for i in range(state.theta.shape[0]):
            baseline[i] = state.baseline[i]
    exact_direction(world, state, work, x, a, direction)
    return a


@kernel
def choose_resampling(
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
    """Draw A_t from pi_t(x), and write a direction from draws instead of the exact one."""
    a = draw_arm(state.pi, x, uniforms)
    samples = int(numbers.samples)
    if samples == 0:
        samples = math.ceil(numbers.log_bias / (numbers.beta * state.rates[1]))
    resample(world.z, world.g, state.pi, x, a, numbers.beta, samples, key, time, work.vector, direction)
    return a


@kernel
def learn(
    world: World,
    numbers: Numbers,
    state: State,
    x: Place,
    a: Place,
    loss: Number,
    direction: Floats,
    baseline: Floats,
) -> None:
    """Add theta_hat_t (equation (2)), or its version with a control variate, to Theta, and advance the clock."""
    residual = loss
    if numbers.kind == MATCHED:
        add_step(state, loss, direction)
    if numbers.kind == ADAPTIVE:
        residual = learn_adaptively(world, numbers, state, x, a, loss, direction, baseline)
    for i in range(state.theta.shape[0]):
        state.theta[i] += residual * direction[i]
    for s in range(state.start.shape[0]):
        state.start[s] = state.y[s]
    state.start_rate[0] = state.rates[1]
    state.t[0] += 1.0


STATIC = tuple(Numbers._fields.index(name) for name in ("kind", "alpha"))
TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn, wide=True, together=True, static=STATIC)
RESAMPLING = TEXT._replace(choose=choose_resampling, together=False)
