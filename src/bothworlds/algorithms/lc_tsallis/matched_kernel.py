"""Kernel functions of the matched tuning: state, plan, growth of the rates, and the update.

`matched.Matched` has the formulas; research/default-rule.md has the proof.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.change_evidence import (
    learn_in_window,
    lowered_rate,
    restart_if_changed,
    weigh_evidence,
)
from bothworlds.algorithms.lc_tsallis.exploration_rate import exploration_rate
from bothworlds.algorithms.lc_tsallis.loss_prediction import (
    Predicted,
    add_to_ridge,
    choose_predicting,
    regress,
    write_losses,
)
from bothworlds.algorithms.lc_tsallis.regression_drift import (
    apply_drift,
    begin_potential,
    likely_variance,
    mean_prediction,
    plan_drift,
    plan_stats,
    write_play_stats,
)
from bothworlds.algorithms.lc_tsallis.step_cost import step_costs
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    absolute,
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
from bothworlds.kernels.exact_ftrl import add_context, all_finite, begin_covariance, covariance, explore
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled, scratch
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.kernels.tsallis_half import Solved, near_point, point_at_rate, sum_of_roots
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
    covered: float  # b: from beta = b on uncovered plays are paid for beforehand
    scale: float  # b H/price: while beta < b, log beta grows by about the amount paid over this


class State(NamedTuple):
    """Learner state, then the plan. Recalled fields follow from the state and are read by the next update."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    start: Annotated[Floats, learnt("S")]  # y of the previous plan, where Newton starts
    inverse_rate: Annotated[Floats, learnt()]  # beta_t = 1/eta_t
    start_inverse_rate: Annotated[Floats, learnt()]  # beta at which the search for the points of the plan starts
    account: Annotated[Floats, learnt()]  # bound on the cost of the path: stability, prices, penalties, drift
    ridge: Annotated[Floats, learnt("d", "d")]
    response: Annotated[Floats, learnt("d")]
    remembered: Annotated[Floats, learnt()]  # n, rounds in the regression: since the last restart; believed ones count
    drift: Annotated[Floats, learnt("d")]  # mu_t: plans follow Theta + mu_t
    got: Annotated[Floats, learnt()]  # sum of <theta_hat_s, p_s>: the estimated losses of the plans
    late: Annotated[Floats, learnt()]  # what late answers have cost: losses of older plans less those estimates
    recent_gram: Annotated[Floats, learnt(2, "d", "d")]  # shorter memories (`change_evidence`)
    recent_moment: Annotated[Floats, learnt(2, "d")]
    recent: Annotated[Floats, learnt(2, "d")]  # their ridge estimates
    recent_rounds: Annotated[Floats, learnt(2)]  # sums of their weights
    evidence: Annotated[Floats, learnt(2)]
    restarts: Annotated[Floats, learnt()]  # their number
    restarting: Annotated[Floats, recalled()]  # 1 after a restart, 0 once the plan contains it
    observed: Annotated[Floats, recalled()]  # the last loss, and 1 if an older plan has made its decision
    outdated: Annotated[Floats, recalled()]
    new_update: Annotated[Floats, recalled()]  # 1 after an update, 0 once the plan contains it
    step: Annotated[Floats, recalled("d")]  # its estimate, less the plan's prediction
    rates: Annotated[Floats, recalled(2)]
    price: Annotated[Floats, recalled()]  # price of the plan's uncovered plays
    entropy: Annotated[Floats, recalled()]  # h_t = -psi(q_t), mean over contexts
    y: Annotated[Floats, recalled("S")]
    q: Annotated[Floats, recalled("S", "K")]
    roots: Annotated[Floats, recalled("S", "K")]  # of q_t
    baseline: Annotated[Floats, recalled("d")]  # m_t, the plan's prediction
    scale: Annotated[Floats, recalled()]  # m_t over the ridge estimate
    mean_prediction: Annotated[Floats, recalled()]  # <m_t, p_t>
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


class Work(NamedTuple):
    """Scratch space; some arrays are reused within a plan."""

    vector: Annotated[Floats, scratch("d")]  # step/beta, then a feature
    half: Annotated[Floats, scratch("d")]  # m, then half of a solution
    total: Annotated[Floats, scratch("d")]  # Theta - n m, then Theta + mu
    offset: Annotated[Floats, scratch("d")]  # of mu from its goal
    direction: Annotated[Floats, scratch("d")]  # Sigma_t^-1 phi of a play
    mixed: Annotated[Floats, scratch("d", "d")]
    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    centre: Annotated[Floats, scratch("S", "d")]
    centred: Annotated[Floats, scratch("d", packed=True)]  # psi: a feature less the centre of its context
    shift: Annotated[Floats, scratch("S", "K")]  # <step, z>/beta
    table: Annotated[Floats, scratch("S", "K")]  # <Theta - n m, z>, then the losses that the plan follows
    rho: Annotated[Floats, scratch("S", "K")]  # <m, z>, then <m_t, z>
    drift_table: Annotated[Floats, scratch("S", "K")]  # <mu, z>, then its offset
    lev: Annotated[Floats, scratch("S", "K")]
    means: Annotated[Floats, scratch("S", 3)]  # of shift, gap (then offset), and <mu, z>
    losses: Annotated[Floats, scratch("K", packed=True)]  # of a context
    partial: Annotated[Floats, scratch("S", 5)]  # partial solutions: y and sums of powers


@kernel
def set_vectors(state: State, work: Work) -> None:
    """Write two vectors: the step since the plan was made, over beta, and Theta - n m; the step becomes zero."""
    eta, rounds = 1.0 / state.inverse_rate[0], state.remembered[0]
    for i in range(state.step.shape[0]):
        work.vector[i] = eta * state.step[i]
        state.step[i] = 0.0  # the plan contains it
        work.total[i] = state.theta[i] - rounds * work.half[i]


@kernel
def predict_entropy(known: Known, state: State, work: Work) -> int:
    """Start the points of a plan at the rate of the previous one, and write its entropy h there; return a status."""
    eta, total = 1.0 / state.start_inverse_rate[0], 0.0
    for x in range(state.q.shape[0]):
        found, partial = near_point(work.table[x], eta, state.start[x], state.roots[x]), work.partial[x]
        if found.status != OK:
            return found.status
        partial[0] = found.y
        partial[1], partial[2], partial[3], partial[4] = found.sums
        total = total + known.g[x] * (sum_of_roots(found, state.roots[x]) - 1.0)
    state.entropy[0] = larger(2.0 * over_contexts(total), SURE)
    return OK


@kernel
def optimistic_points(known: Known, state: State, work: Work) -> int:
    """Compute q_t(x) for every context (equation (4)) and h_t from the partial solutions; return a status."""
    eta = 1.0 / state.inverse_rate[0]
    k, total = state.start_inverse_rate[0] * eta, 0.0
    for x in range(state.q.shape[0]):
        partial = work.partial[x]
        start = Solved(OK, partial[0], 0.0 * partial[0], (partial[1], partial[2], partial[3], partial[4]), 1)
        status, y, roots = point_at_rate(work.table[x], eta, k, start, state.q[x], state.roots[x])
        if status != OK:
            return status
        state.y[x] = y
        total = total + known.g[x] * (roots - 1.0)
    state.entropy[0] = larger(2.0 * over_contexts(total), SURE)
    return OK


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
def pay(options: Options, state: State, z: Number, u: Number) -> Number:
    """Add the costs of the plan and of its step to the account; return the part of the price that beta grows by.

    An uncovered step makes beta jump by the factor 1 + u/scale, early. Later u is part of the price of the plan.
    """
    beta, explored = state.inverse_rate[0], 2.0 * state.rates[1] + state.price[0]
    u = where(beta < options.covered, u, 0.0)
    state.account[0] += (1.0 + options.drift_cap) * (z + u + explored)
    state.inverse_rate[0] = beta * (1.0 + u / options.scale)
    return options.price * where(beta < options.covered, state.inverse_rate[0] / options.covered, 1.0) * explored


@kernel
def increase_inverse_rate(options: Options, state: State, z: Number, due: Number, v: Number, before: Number) -> None:
    """Increase beta to the root of (beta - beta_t) (beta/beta_t) h = due, h the entropy of the next plan at beta_t.

    At beta that plan has at most beta/beta_t times the entropy, so that its penalty is at most due: a share of the
    stability of the previous round, caution, and the argument ``due``, a share of the price. ``before`` is the entropy
    of the previous plan.
    """
    beta, h = state.inverse_rate[0], state.entropy[0]
    caution = options.caution * caution_weight(options, state.remembered[0] + 1.0, smaller(h, before), v) / beta
    due = gain_share(options, h) * z + caution + due
    state.inverse_rate[0] = 0.5 * beta * (1.0 + root(1.0 + 4.0 * due / (h * beta)))
    state.new_update[0] = 0.0


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from the learner state; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    status = regress(state, work)
    if status != OK:
        return status
    updated, entropy = not every(state.new_update[0] <= 0.0), value(state.entropy[0])
    previous_beta = where(state.account[0] > 0.0, state.inverse_rate[0], 0.0)
    z, due = 0.0 * state.t[0], 0.0 * state.t[0]
    set_vectors(state, work)
    write_play_stats(known, state, work)
    stats = plan_stats(known, state, work)
    if updated:
        gained = state.inverse_rate[0] * stats.mean_shift + state.mean_prediction[0]
        state.got[0] += gained
        state.late[0] += state.outdated[0] * (state.observed[0] - gained)
        state.observed[0], state.outdated[0] = 0.0, 0.0  # the plan contains it
    else:
        begin_potential(known, state, work)
    length, scale = plan_drift(known, options, state, work), 1.0 / stats.highest
    if updated:
        beta = value(state.inverse_rate[0])
        z, u = step_costs(known, state, work, options.c)
        z, due = beta * z, pay(options, state, beta * z, beta * u)
        state.inverse_rate[0] = lowered_rate(options, state)
        previous_beta = smaller(previous_beta, state.inverse_rate[0])
        state.start_inverse_rate[0] = state.inverse_rate[0]
    apply_drift(state, work, length)
    state.scale[0] = scale
    for i in range(state.theta.shape[0]):
        state.baseline[i] = work.half[i] * scale
    write_losses(known, work, scale)
    status = predict_entropy(known, state, work)
    if status == OK:
        if updated:
            increase_inverse_rate(options, state, z, due, likely_variance(stats), entropy)
        status = optimistic_points(known, state, work)
    if status != OK:
        return status
    state.got[0] += where(previous_beta > 0.0, 0.0, state.inverse_rate[0] * state.entropy[0])
    state.account[0] += (1.0 + options.drift_cap) * ((state.inverse_rate[0] - previous_beta) * state.entropy[0])
    state.mean_prediction[0] = mean_prediction(known, state, work)
    begin_covariance(work.sums)
    for x in range(state.q.shape[0]):
        add_context(known, x, state.q[x], work.sums)
    covariance(known, state.q, work.sums, state.sigma)
    rate = exploration_rate(known, options, state, work)
    state.price[0] = rate.price
    return explore(known, state, 1.0 / state.inverse_rate[0], rate.gamma, rate.inverted)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Predicted) -> None:
    """Add theta_hat_t = m_t + Sigma_t^-1 phi (loss - <phi, m_t>) to Theta, and advance the clock."""
    residual, other = play.loss, 0.0 * play.loss
    for i in range(state.theta.shape[0]):
        residual = residual - carried.baseline[i] * feature(known.z, play.x, play.a, i)
        other = larger(other, absolute(carried.baseline[i] - state.baseline[i]))
    state.observed[0], state.outdated[0] = play.loss, where(other > 0.0, 1.0, 0.0)
    for i in range(state.theta.shape[0]):
        estimate = carried.baseline[i] + residual * carried.direction[i]
        state.step[i] = estimate - state.baseline[i]
        state.theta[i] += estimate
    weigh_evidence(known, state, play)
    add_to_ridge(known, options, state, play)
    for w in range(state.evidence.shape[0]):
        learn_in_window(known, state, play, w)
    state.remembered[0] += 1.0
    restart_if_changed(state)
    for x in range(state.start.shape[0]):
        state.start[x] = state.y[x]
    state.new_update[0] = 1.0
    state.t[0] += 1.0


KERNEL = build_kernel(refresh, choose_predicting, learn, possible=possible_leverage, together=True, row_by_row=True)


def paced(options: Options, rounds: float, earlier: Earlier | None) -> dict[str, Any]:
    """Return beta after some rounds: that of the earlier policy, scaled by beta_1 and the root of the share believed.

    Without an earlier policy it is first sqrt(1 + rounds), as for plans that stayed undecided.
    """
    if earlier is None:
        return {"inverse_rate": options.first * math.sqrt(1.0 + rounds)}
    scale = options.first / earlier.options.first * math.sqrt(earlier.share)
    return {"inverse_rate": max(options.first, scale * float(earlier.learnt["inverse_rate"][0]))}


BELIEFS = Beliefs(
    total="theta",
    rounds="remembered",
    gram="ridge",
    moment="response",
    rate_fields=paced,
    drift="drift",
    restarts="restarts",
    unchanged=("restarts",),
)
