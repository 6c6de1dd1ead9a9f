"""The matched tuning as kernel text: its state, its plan, how the rates grow, and how it learns.

`matched.Matched` says in words and formulas what is computed here; docs/theory.md has the proof.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.algorithm_1 import advance
from bothworlds.algorithms.lc_tsallis.foresight import (
    begun_in,
    find_residuals,
    foresee_all,
    foreseen_in,
    keep_begun,
    keep_point,
    step_cost,
)
from bothworlds.algorithms.lc_tsallis.leaning import (
    Way,
    all_rest,
    lean,
    likely_variance,
    look_at_all,
    resting,
    tell_all,
    way_from,
)
from bothworlds.algorithms.lc_tsallis.prediction import Predicted, add_to_ridge, choose_predicting, regress
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
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Beliefs, Earlier, Known, Play, kernel_text
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled, scratch
from bothworlds.kernels.matrix import erase
from bothworlds.kernels.plan import (
    add_context,
    all_finite,
    begin_covariance,
    covariance,
    explore,
)
from bothworlds.kernels.possible import possible_leverage
from bothworlds.kernels.reach import Case
from bothworlds.kernels.root_point import near_point, point_at_rate, sum_of_roots
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.kernels.worth import Search, charged, cheapest_rate, has_calmed, plan_search
from bothworlds.theory.schedules import SURE


class Options(NamedTuple):
    """Hyper-parameters, H = -psi of the uniform distribution, and the rates that leave no play uncovered."""

    gain: float
    least: float
    caution: float  # times d
    settled: float  # rounds after which it counts in full
    price: float
    c: float
    forgetting: float
    leaning: float  # which share of the account it may cost
    full: float
    first: float  # beta_1
    curved: float  # gamma = curved/beta^2, or
    linear: float  # gamma = linear/beta
    largest: float  # what a play that is not covered may cost early on, that is below
    covered: float  # b: from beta = b on the covering rate costs 1 at most
    scale: float  # b H/price: what is paid early on, over this, is about what the logarithm of beta grows by


class State(NamedTuple):
    """What is learnt, then the plan; what the rates look back at is recalled."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    start: Annotated[Floats, learnt("S")]
    start_rate: Annotated[Floats, learnt()]
    inverse_rate: Annotated[Floats, learnt()]  # beta_t = 1/eta_t
    begun_at: Annotated[Floats, learnt()]  # the beta that its plan is begun at
    turn: Annotated[Floats, learnt()]  # which way the search for gamma_t goes next
    rest: Annotated[Floats, learnt()]  # and in how many rounds
    level: Annotated[Floats, learnt()]  # or beyond which excess
    account: Annotated[Floats, learnt()]  # what the path has cost: stability, prices, penalties, and leaning at most
    enough: Annotated[Floats, learnt("d", "d")]  # covariance: below it plays have to be looked at again
    ridge: Annotated[Floats, learnt("d", "d")]
    response: Annotated[Floats, learnt("d")]
    counted: Annotated[Floats, learnt()]  # rounds that are in Theta; of those before a change, the share believed
    lean: Annotated[Floats, learnt("d")]  # mu_t: plans follow Theta + mu_t
    beat: Annotated[Floats, learnt()]  # plans since one whose turn it was to lean
    gone: Annotated[Floats, learnt()]  # which part of its way mu went last
    owed: Annotated[Floats, learnt()]  # -sum <mu_{s+1} - mu_s, p_s>
    debt: Annotated[Floats, learnt()]  # what was charged for plays that were not covered, and is not paid yet
    fresh: Annotated[Floats, recalled()]  # updates since the plan was made
    step: Annotated[Floats, recalled("d")]  # sum of their estimates, less what the plan foresaw
    rates: Annotated[Floats, recalled(2)]
    charge: Annotated[Floats, recalled()]  # for plays that the plan does not cover
    excess: Annotated[Floats, recalled()]  # at which the search for it went on last
    share: Annotated[Floats, recalled()]  # enough/Sigma_t if plays of this plan were looked at, else 0
    entropy: Annotated[Floats, recalled()]  # h_t = -psi(q_t) in the mean over contexts
    y: Annotated[Floats, recalled("S")]
    q: Annotated[Floats, recalled("S", "K")]
    roots: Annotated[Floats, recalled("S", "K")]  # of q_t
    baseline: Annotated[Floats, recalled("d")]  # m_t, which the plan foresaw
    sigma: Annotated[Floats, recalled("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]
    inverse: Annotated[Floats, planned("d", "d")]


class Work(NamedTuple):
    """Scratch space."""

    vector: Annotated[Floats, scratch("d")]
    half: Annotated[Floats, scratch("d")]
    total: Annotated[Floats, scratch("d")]
    off: Annotated[Floats, scratch("d")]
    mixed: Annotated[Floats, scratch("d", "d")]
    play: Annotated[Floats, scratch(5, "d")]
    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    losses: Annotated[Floats, scratch("K", packed=True)]  # this and the next two: a GPU's
    residuals: Annotated[Floats, scratch("K", packed=True)]
    near: Annotated[Floats, scratch("K", packed=True)]
    middle: Annotated[Floats, scratch("d", packed=True)]
    centre: Annotated[Floats, scratch("S", "d")]
    reach: Annotated[Floats, scratch("S", "K")]
    table: Annotated[Floats, scratch("S", "K")]
    rho: Annotated[Floats, scratch("S", "K")]
    leant: Annotated[Floats, scratch("S", "K")]
    means: Annotated[Floats, scratch("S", 3)]
    begun: Annotated[Floats, scratch("S", 5)]


@kernel
def set_vectors(state: State, work: Work) -> None:
    """Write the step since the plan was made, over beta, and Theta - n m."""
    eta, rounds = 1.0 / state.inverse_rate[0], state.counted[0]
    for i in range(state.step.shape[0]):
        work.vector[i] = eta * state.step[i]
        work.total[i] = state.theta[i] - rounds * work.half[i]


@kernel
def foresee_entropy(known: Known, state: State, work: Work, scale: Number) -> int:
    """Begin the points of a plan at the rate of the one before, and find its entropy h there; return a status."""
    eta = 1.0 / state.begun_at[0]
    total = 0.0
    for x in range(state.q.shape[0]):
        here = foreseen_in(known, state, work, x, scale)
        found = near_point(here.losses, eta, state.start[x], here.r)
        if found.status != OK:
            return found.status
        keep_begun(work, x, found)
        total = total + known.g[x] * (sum_of_roots(found, here.r) - 1.0)
    state.entropy[0] = larger(2.0 * over_contexts(total), SURE)
    return OK


@kernel
def optimistic_points(known: Known, state: State, work: Work, scale: Number) -> int:
    """Compute q_t(x) for every context (equation (4)) and h_t, from the points begun; return a status."""
    eta = 1.0 / state.inverse_rate[0]
    k = state.begun_at[0] * eta
    total = 0.0
    for x in range(state.q.shape[0]):
        here = foreseen_in(known, state, work, x, scale)
        status, y, roots = point_at_rate(here.losses, eta, k, begun_in(work, x), here.q, here.r)
        if status != OK:
            return status
        state.y[x] = y
        total = total + known.g[x] * (roots - 1.0)
        keep_point(state, here, x)
    state.entropy[0] = larger(2.0 * over_contexts(total), SURE)
    return OK


@kernel
def step_paid(known: Known, options: Options, state: State, work: Work, way: Way) -> tuple[Number, Number]:
    """Return what the step since the plan was made has cost: stability z, and u of one that was not covered.

    ``state`` still has the plan that the estimates were made with. From beta = b on u is in the price; of several
    updates the stability of their sum is all of it.
    """
    beta, single = state.inverse_rate[0], state.fresh[0] <= 1.0
    cost = step_cost(known, state, work, way, options.c)
    u = where(both(single, beta < options.covered), beta * cost.uncovered, 0.0)
    return beta * where(single, cost.covered, cost.of_sum), u


@kernel
def gain_at(options: Options, h: Number) -> Number:
    """Return which share of its stability a round adds to the penalty: more of it while plans are undecided."""
    undecided = h / options.full
    return larger(options.gain * (undecided * undecided), options.least)


@kernel
def doubt(options: Options, t: Number, h: Number, v: Number) -> Number:
    """Return (h/H)^8 v^4 sqrt(min{1, t/settled}): near 1 if plans stay undecided for long and losses are noisy."""
    undecided = h / options.full
    square = undecided * undecided * v * (undecided * undecided * v)
    return square * square * root(smaller(t / options.settled, 1.0))


@kernel
def covering_rate(options: Options, beta: Number) -> Number:
    """Return the exploration rate that leaves no play uncovered."""
    return smaller(options.curved / (beta * beta), options.linear / beta)


@kernel
def spend(options: Options, state: State, z: Number, u: Number) -> Number:
    """Enter what the plan and the step it has led to have cost in the account; return what is paid now of prices.

    That is 2 gamma_t for every decision, and from beta = b on as much of what was charged as keeps the price of a round
    below that of the covering rate. A sum of several decisions has paid for itself.
    """
    beta, explored = state.inverse_rate[0], 2.0 * state.rates[1]
    some, single = state.fresh[0] > 0.0, both(state.fresh[0] > 0.0, state.fresh[0] <= 1.0)
    new = where(single, state.charge[0], 0.0)
    room = where(both(some, beta >= options.covered), larger(2.0 * covering_rate(options, beta) - explored, 0.0), 0.0)
    paid = smaller(state.debt[0] + new, room)
    state.debt[0] = state.debt[0] + new - paid
    state.account[0] += (1.0 + options.leaning) * (z + u + state.fresh[0] * explored + new)
    return state.fresh[0] * explored + paid


@kernel
def grow(options: Options, state: State, z: Number, due: Number, v: Number, before: Number) -> None:
    """Let beta grow to the root of (beta - beta_t) (beta/beta_t) h = due, h the entropy of the next plan at beta_t.

    At beta that plan has at most beta/beta_t times the entropy, so that its penalty is at most what is due: a share of
    the stability of the rounds before, caution, and a share of prices, which is ``due`` as it is. ``before`` is the
    entropy that the plan before has had.
    """
    beta, h = state.inverse_rate[0], state.entropy[0]
    caution = options.caution * doubt(options, state.t[0], smaller(h, before), v) / beta
    due = gain_at(options, h) * z + caution * state.fresh[0] + due
    state.inverse_rate[0] = 0.5 * beta * (1.0 + root(1.0 + 4.0 * due / (h * beta)))
    state.fresh[0] = 0.0
    erase(state.step)


@kernel
def case_of(options: Options, state: State, work: Work) -> Case:
    """Return what the price of exploration is computed from."""
    return Case(
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
        work.leant,  # which is over by then, and lends its space
        work.table,
        state.pi,  # which comes after it, and lends its space
        work.middle,
        work.play,
        state.enough,
    )


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from what is learnt; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    status = regress(state, work)
    if status != OK:
        return status
    news = not every(state.fresh[0] <= 0.0)
    z, entropy = 0.0 * state.t[0], value(state.entropy[0])
    due = 0.0 * z
    passed = where(state.account[0] > 0.0, state.inverse_rate[0], 0.0)  # of the plan before
    set_vectors(state, work)
    rests = resting(state)
    leans = not all_rest(rests)
    tell_all(known, state, work, leans)
    looked = look_at_all(known, state, work, leans)
    way, scale = way_from(known, options, state, work, looked, rests, leans), 1.0 / looked.highest
    if news:
        z, u = step_paid(known, options, state, work, way)
        early, paid = state.inverse_rate[0] < options.covered, spend(options, state, z, u)
        state.inverse_rate[0] = state.inverse_rate[0] * (1.0 + u / options.scale)
        due = options.price * where(early, state.inverse_rate[0] / options.covered, 1.0) * paid
        state.begun_at[0] = where(state.fresh[0] > 0.0, state.inverse_rate[0], state.begun_at[0])
    lean(state, work, way)
    for i in range(state.theta.shape[0]):
        state.baseline[i] = work.half[i] * scale
    foresee_all(known, state, work, scale)
    status = foresee_entropy(known, state, work, scale)
    if status == OK:
        if news:
            grow(options, state, z, due, likely_variance(looked), entropy)
        status = optimistic_points(known, state, work, scale)
    if status != OK:
        return status
    state.account[0] += (1.0 + options.leaning) * ((state.inverse_rate[0] - passed) * state.entropy[0])
    begin_covariance(work.sums)
    for x in range(state.q.shape[0]):
        add_context(known, x, state.q[x], work.sums)
    covariance(known, state.q, work.sums, state.sigma)
    beta = state.inverse_rate[0]
    covering, case = covering_rate(options, beta), case_of(options, state, work)
    search = Search(state.start_rate[0], state.turn[0], state.rest[0], state.level[0], covering)
    calm, sound = has_calmed(case, search)
    if not every(calm):
        find_residuals(known, state, work, scale)
    found = cheapest_rate(known, case, search, calm, sound, options.largest)
    state.excess[0], state.share[0] = found.level, found.share
    taken = charged(known, case, found, covering, state.debt[0], state.t[0])
    state.charge[0] = taken.charge
    return explore(known, state, 1.0 / beta, taken.rate, taken.inverted)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Predicted) -> None:
    """Add theta_hat_t = m_t + Sigma_t^-1 phi (loss - <phi, m_t>) to Theta, and advance the clock."""
    residual = play.loss
    for i in range(state.theta.shape[0]):
        residual = residual - carried.baseline[i] * feature(known.z, play.x, play.a, i)
    foreseen = where(state.fresh[0] <= 0.0, 1.0, 0.0)  # once: the plan foresaw one m_t, whatever it is answered with
    for i in range(state.theta.shape[0]):
        surprise = residual * carried.direction[i]
        state.step[i] += surprise + (carried.baseline[i] - foreseen * state.baseline[i])
        state.theta[i] = state.theta[i] + carried.baseline[i] + surprise
    state.counted[0] += 1.0
    add_to_ridge(known, options, state, play)
    state.fresh[0] += 1.0
    plan_search(state)
    advance(state)


TEXT = kernel_text(refresh, choose_predicting, learn, possible=possible_leverage, together=True)


def paced(options: Options, rounds: float, earlier: Earlier | None) -> dict[str, Any]:
    """Return beta after some rounds: as many times the first one as before, by the root of the share believed.

    Without an earlier policy it is first sqrt(1 + rounds), that of plans which stayed undecided.
    """
    if earlier is None:
        return {"inverse_rate": options.first * math.sqrt(1.0 + rounds)}
    scale = options.first / earlier.options.first * math.sqrt(earlier.share)
    return {"inverse_rate": max(options.first, scale * float(earlier.learnt["inverse_rate"][0]))}


KEPT = ("start_rate", "turn", "rest", "level")  # the search goes on where it was
BELIEFS = Beliefs(
    total="theta",
    counted="counted",
    gram="ridge",
    moment="response",
    paced=paced,
    kept=KEPT,
    leant="lean",
)
