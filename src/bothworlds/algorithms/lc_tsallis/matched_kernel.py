"""Kernel functions of the matched tuning: state, plan, growth of the rates, and the update.

`matched.Matched` has the formulas; research/theory.md has the proof.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.exploration_search import (
    Search,
    advance_search,
    charged_rate,
    cheapest_rate,
    may_skip_check,
)
from bothworlds.algorithms.lc_tsallis.leverage_bounds import ExplorationCase
from bothworlds.algorithms.lc_tsallis.lookahead import (
    load_partial,
    predicted_context,
    step_cost,
    store_partial,
    store_point,
    write_predicted_losses,
    write_residuals,
)
from bothworlds.algorithms.lc_tsallis.loss_prediction import Predicted, add_to_ridge, choose_predicting, regress
from bothworlds.algorithms.lc_tsallis.paper import advance
from bothworlds.algorithms.lc_tsallis.regression_drift import (
    DriftStep,
    all_paused,
    apply_drift,
    drift_paused,
    likely_variance,
    plan_drift,
    plan_stats,
    write_play_stats,
)
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    both,
    every,
    feature,
    larger,
    over_contexts,
    root,
    smaller,
    value,
    where,
)
from bothworlds.kernels.contract import Beliefs, Earlier, Known, Play, build_kernel
from bothworlds.kernels.exact_ftrl import (
    add_context,
    all_finite,
    begin_covariance,
    covariance,
    explore,
)
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled, scratch
from bothworlds.kernels.linalg import erase
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.kernels.tsallis_half import near_point, point_at_rate, sum_of_roots
from bothworlds.theory.schedules import SURE


class Options(NamedTuple):
    """Hyper-parameters, H = -psi of the uniform distribution, and the rates that leave no play uncovered."""

    gain: float
    least: float
    caution: float  # times d
    settled: float  # rounds after which caution counts in full
    price: float
    c: float
    forgetting: float
    drift_cap: float  # cap on the cost of the drift, as a share of the account
    full: float  # H
    first: float  # beta_1
    curved: float  # gamma = curved/beta^2, or
    linear: float  # gamma = linear/beta
    largest: float  # largest cost of an uncovered play while beta < b
    covered: float  # b: from beta = b on the price of the covering rate is at most 1
    scale: float  # b H/price: while beta < b, log beta grows by about the amount paid over this


class State(NamedTuple):
    """Learner state, then the plan. Recalled fields follow from the state and are read by the next update."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    start: Annotated[Floats, learnt("S")]
    start_rate: Annotated[Floats, learnt()]
    inverse_rate: Annotated[Floats, learnt()]  # beta_t = 1/eta_t
    start_inverse_rate: Annotated[Floats, learnt()]  # beta at which the search for the points of the plan starts
    search_direction: Annotated[Floats, learnt()]  # direction that the search for gamma_t tries next
    search_pause: Annotated[Floats, learnt()]  # rounds until the search continues
    excess_limit: Annotated[Floats, learnt()]  # the search continues at once beyond this excess
    account: Annotated[Floats, learnt()]  # bound on the cost of the path: stability, prices, penalties, drift
    covariance_floor: Annotated[Floats, learnt("d", "d")]  # below this covariance plays have to be checked again
    ridge: Annotated[Floats, learnt("d", "d")]
    response: Annotated[Floats, learnt("d")]
    counted: Annotated[Floats, learnt()]  # rounds in Theta; rounds before a change count by the share believed
    drift: Annotated[Floats, learnt("d")]  # mu_t: plans follow Theta + mu_t
    rounds_since_drift: Annotated[Floats, learnt()]  # plans since the last scheduled drift
    drift_fraction: Annotated[Floats, learnt()]  # zeta of the last drift: the part of the way that mu moved
    drift_cost: Annotated[Floats, learnt()]  # -sum <mu_{s+1} - mu_s, p_s>
    debt: Annotated[Floats, learnt()]  # unpaid charges for uncovered plays
    new_updates: Annotated[Floats, recalled()]  # updates since the plan was made
    step: Annotated[Floats, recalled("d")]  # sum of their estimates, less the plan's prediction
    rates: Annotated[Floats, recalled(2)]
    charge: Annotated[Floats, recalled()]  # charge for the plan's uncovered plays
    excess: Annotated[Floats, recalled()]  # excess at the last step of the search for gamma
    share: Annotated[Floats, recalled()]  # covariance_floor/Sigma_t if the plays of this plan were checked, else 0
    entropy: Annotated[Floats, recalled()]  # h_t = -psi(q_t), mean over contexts
    y: Annotated[Floats, recalled("S")]
    q: Annotated[Floats, recalled("S", "K")]
    roots: Annotated[Floats, recalled("S", "K")]  # of q_t
    baseline: Annotated[Floats, recalled("d")]  # m_t, the plan's prediction
    sigma: Annotated[Floats, recalled("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]
    inverse: Annotated[Floats, planned("d", "d")]


class Work(NamedTuple):
    """Scratch space; some arrays are reused within a plan."""

    vector: Annotated[Floats, scratch("d")]  # step/beta
    half: Annotated[Floats, scratch("d")]  # m
    total: Annotated[Floats, scratch("d")]  # Theta - n m, then Theta + mu
    offset: Annotated[Floats, scratch("d")]  # of mu from its goal
    mixed: Annotated[Floats, scratch("d", "d")]
    play: Annotated[Floats, scratch(5, "d")]  # see `ExplorationCase`
    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    losses: Annotated[Floats, scratch("K", packed=True)]  # this and the next two: used on a GPU only
    residuals: Annotated[Floats, scratch("K", packed=True)]
    near: Annotated[Floats, scratch("K", packed=True)]
    middle: Annotated[Floats, scratch("d", packed=True)]
    centre: Annotated[Floats, scratch("S", "d")]
    reach: Annotated[Floats, scratch("S", "K")]  # shifts, then rho^2 lev
    table: Annotated[Floats, scratch("S", "K")]  # <Theta - n m, z>, then predicted losses, then draw weights
    rho: Annotated[Floats, scratch("S", "K")]  # <m, z>, then largest residuals
    drift_table: Annotated[Floats, scratch("S", "K")]  # <mu, z>, then its offset, then lev(psi)
    means: Annotated[Floats, scratch("S", 3)]  # of shift, gap (then offset), and <mu, z>
    partial: Annotated[Floats, scratch("S", 5)]  # partial solutions: y and sums of powers


@kernel
def set_vectors(state: State, work: Work) -> None:
    """Write two vectors: the step since the plan was made, over beta, and Theta - n m."""
    eta, rounds = 1.0 / state.inverse_rate[0], state.counted[0]
    for i in range(state.step.shape[0]):
        work.vector[i] = eta * state.step[i]
        work.total[i] = state.theta[i] - rounds * work.half[i]


@kernel
def predict_entropy(known: Known, state: State, work: Work, scale: Number) -> int:
    """Start the points of a plan at the rate of the previous one, and write its entropy h there; return a status."""
    eta = 1.0 / state.start_inverse_rate[0]
    total = 0.0
    for x in range(state.q.shape[0]):
        here = predicted_context(known, state, work, x, scale)
        solution = near_point(here.losses, eta, state.start[x], here.r)
        if solution.status != OK:
            return solution.status
        store_partial(work, x, solution)
        total = total + known.g[x] * (sum_of_roots(solution, here.r) - 1.0)
    state.entropy[0] = larger(2.0 * over_contexts(total), SURE)
    return OK


@kernel
def optimistic_points(known: Known, state: State, work: Work, scale: Number) -> int:
    """Compute q_t(x) for every context (equation (4)) and h_t from the partial solutions; return a status."""
    eta = 1.0 / state.inverse_rate[0]
    k = state.start_inverse_rate[0] * eta
    total = 0.0
    for x in range(state.q.shape[0]):
        here = predicted_context(known, state, work, x, scale)
        status, y, roots = point_at_rate(here.losses, eta, k, load_partial(work, x), here.q, here.r)
        if status != OK:
            return status
        state.y[x] = y
        total = total + known.g[x] * (roots - 1.0)
        store_point(state, here, x)
    state.entropy[0] = larger(2.0 * over_contexts(total), SURE)
    return OK


@kernel
def step_costs(
    known: Known, options: Options, state: State, work: Work, drift_step: DriftStep
) -> tuple[Number, Number]:
    """Return the costs of the step since the plan was made: stability z, and u of a step that was not covered.

    ``state`` still has the plan that the estimates were made with. From beta = b on u is part of the price. Several
    updates cost the stability of their sum and nothing else.
    """
    beta, single = state.inverse_rate[0], state.new_updates[0] <= 1.0
    cost = step_cost(known, state, work, drift_step, options.c)
    u = where(both(single, beta < options.covered), beta * cost.uncovered, 0.0)
    return beta * where(single, cost.covered, cost.of_sum), u


@kernel
def gain_share(options: Options, h: Number) -> Number:
    """Return the share of its stability that a round adds to the penalty: larger while plans are undecided."""
    undecided = h / options.full
    return larger(options.gain * (undecided * undecided), options.least)


@kernel
def caution_weight(options: Options, t: Number, h: Number, v: Number) -> Number:
    """Return (h/H)^8 v^4 sqrt(min{1, t/settled}): near 1 if plans stay undecided for long and losses are noisy."""
    undecided = h / options.full
    square = undecided * undecided * v * (undecided * undecided * v)
    return square * square * root(smaller(t / options.settled, 1.0))


@kernel
def covering_rate(options: Options, beta: Number) -> Number:
    """Return the exploration rate that leaves no play uncovered."""
    return smaller(options.curved / (beta * beta), options.linear / beta)


@kernel
def update_account(options: Options, state: State, z: Number, u: Number) -> Number:
    """Add the costs of the plan and of its step to the account; return the part of the price that is paid now.

    That is 2 gamma_t for every decision, and from beta = b on the largest part of the charges that keeps the price of a
    round below that of the covering rate. The sum of several decisions is charged nothing.
    """
    beta, explored = state.inverse_rate[0], 2.0 * state.rates[1]
    some, single = state.new_updates[0] > 0.0, both(state.new_updates[0] > 0.0, state.new_updates[0] <= 1.0)
    new = where(single, state.charge[0], 0.0)
    room = where(both(some, beta >= options.covered), larger(2.0 * covering_rate(options, beta) - explored, 0.0), 0.0)
    paid = smaller(state.debt[0] + new, room)
    state.debt[0] = state.debt[0] + new - paid
    state.account[0] += (1.0 + options.drift_cap) * (z + u + state.new_updates[0] * explored + new)
    return state.new_updates[0] * explored + paid


@kernel
def increase_inverse_rate(options: Options, state: State, z: Number, due: Number, v: Number, before: Number) -> None:
    """Increase beta to the root of (beta - beta_t) (beta/beta_t) h = due, h the entropy of the next plan at beta_t.

    At beta that plan has at most beta/beta_t times the entropy, so that its penalty is at most due: a share of the
    stability of the previous rounds, caution, and the argument ``due``, a share of the price. ``before`` is the entropy
    of the previous plan.
    """
    beta, h = state.inverse_rate[0], state.entropy[0]
    caution = options.caution * caution_weight(options, state.t[0], smaller(h, before), v) / beta
    due = gain_share(options, h) * z + caution * state.new_updates[0] + due
    state.inverse_rate[0] = 0.5 * beta * (1.0 + root(1.0 + 4.0 * due / (h * beta)))
    state.new_updates[0] = 0.0
    erase(state.step)


@kernel
def exploration_case(options: Options, state: State, work: Work) -> ExplorationCase:
    """Return the inputs and the space from which the price of exploration is computed."""
    return ExplorationCase(
        state.sigma,
        state.q,
        state.roots,
        work.rho,
        state.inverse_rate[0],
        options.covered,
        options.c,
        work.mixed,
        state.inverse,
        work.centre,
        work.reach,
        work.drift_table,  # no longer needed: reused as space
        work.table,
        state.pi,  # not computed yet: reused as space
        work.middle,
        work.play,
        state.covariance_floor,
    )


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from the learner state; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    status = regress(state, work)
    if status != OK:
        return status
    updated = not every(state.new_updates[0] <= 0.0)
    z, entropy = 0.0 * state.t[0], value(state.entropy[0])
    due = 0.0 * z
    previous_beta = where(state.account[0] > 0.0, state.inverse_rate[0], 0.0)
    set_vectors(state, work)
    paused = drift_paused(state)
    drifting = not all_paused(paused)
    write_play_stats(known, state, work, drifting)
    stats = plan_stats(known, state, work, drifting)
    drift_step, scale = plan_drift(known, options, state, work, stats, paused, drifting), 1.0 / stats.highest
    if updated:
        z, u = step_costs(known, options, state, work, drift_step)
        early, paid = state.inverse_rate[0] < options.covered, update_account(options, state, z, u)
        state.inverse_rate[0] = state.inverse_rate[0] * (1.0 + u / options.scale)
        due = options.price * where(early, state.inverse_rate[0] / options.covered, 1.0) * paid
        state.start_inverse_rate[0] = where(
            state.new_updates[0] > 0.0, state.inverse_rate[0], state.start_inverse_rate[0]
        )
    apply_drift(state, work, drift_step)
    for i in range(state.theta.shape[0]):
        state.baseline[i] = work.half[i] * scale
    write_predicted_losses(known, state, work, scale)
    status = predict_entropy(known, state, work, scale)
    if status == OK:
        if updated:
            increase_inverse_rate(options, state, z, due, likely_variance(stats), entropy)
        status = optimistic_points(known, state, work, scale)
    if status != OK:
        return status
    state.account[0] += (1.0 + options.drift_cap) * ((state.inverse_rate[0] - previous_beta) * state.entropy[0])
    begin_covariance(work.sums)
    for x in range(state.q.shape[0]):
        add_context(known, x, state.q[x], work.sums)
    covariance(known, state.q, work.sums, state.sigma)
    beta = state.inverse_rate[0]
    covering, case = covering_rate(options, beta), exploration_case(options, state, work)
    search = Search(
        state.start_rate[0], state.search_direction[0], state.search_pause[0], state.excess_limit[0], covering
    )
    skip_check, regular = may_skip_check(case, search)
    if not every(skip_check):
        write_residuals(known, state, work, scale)
    result = cheapest_rate(known, case, search, skip_check, regular, options.largest)
    state.excess[0], state.share[0] = result.last_excess, result.share
    charged = charged_rate(known, case, result, covering, state.debt[0], state.t[0])
    state.charge[0] = charged.charge
    return explore(known, state, 1.0 / beta, charged.rate, charged.inverted)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Predicted) -> None:
    """Add theta_hat_t = m_t + Sigma_t^-1 phi (loss - <phi, m_t>) to Theta, and advance the clock."""
    residual = play.loss
    for i in range(state.theta.shape[0]):
        residual = residual - carried.baseline[i] * feature(known.z, play.x, play.a, i)
    first_update = where(state.new_updates[0] <= 0.0, 1.0, 0.0)  # the plan contains m_t once, for all updates
    for i in range(state.theta.shape[0]):
        correction = residual * carried.direction[i]
        state.step[i] += correction + (carried.baseline[i] - first_update * state.baseline[i])
        state.theta[i] = state.theta[i] + carried.baseline[i] + correction
    state.counted[0] += 1.0
    add_to_ridge(known, options, state, play)
    state.new_updates[0] += 1.0
    advance_search(state)
    advance(state)


KERNEL = build_kernel(refresh, choose_predicting, learn, possible=possible_leverage, together=True)


def paced(options: Options, rounds: float, earlier: Earlier | None) -> dict[str, Any]:
    """Return beta after some rounds: that of the earlier policy, scaled by beta_1 and the root of the share believed.

    Without an earlier policy it is first sqrt(1 + rounds), as for plans that stayed undecided.
    """
    if earlier is None:
        return {"inverse_rate": options.first * math.sqrt(1.0 + rounds)}
    scale = options.first / earlier.options.first * math.sqrt(earlier.share)
    return {"inverse_rate": max(options.first, scale * float(earlier.learnt["inverse_rate"][0]))}


KEPT = ("start_rate", "search_direction", "search_pause", "excess_limit")  # the search continues from its state
BELIEFS = Beliefs(
    total="theta",
    rounds="counted",
    gram="ridge",
    moment="response",
    rate_fields=paced,
    unchanged=KEPT,
    drift="drift",
)
