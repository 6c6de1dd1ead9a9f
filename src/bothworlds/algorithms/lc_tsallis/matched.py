"""The matched tuning of LC-Tsallis-INF, alpha = 1/2, as a learner of its own. Not the paper's; proof in docs/theory.md.

Optimistic FTRL: a ridge regression predicts the losses, and stability is paid for what it did not foresee. 1/eta_t
grows by what makes the penalty of a round a share of what the round before has cost: the matching of Ito, Tsuchiya and
Honda (COLT 2024), solved for the plan to come. Exploration is chosen by what it is worth (`kernels.worth`).
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from bothworlds.algorithms.checks import check_not_negative, check_positive
from bothworlds.algorithms.lc_tsallis.algorithm_1 import Learner, advance
from bothworlds.algorithms.lc_tsallis.prediction import (
    Predicted,
    add_to_ridge,
    choose_predicting,
    foreseen_losses,
    largest_residuals,
    likely_variance,
    predict,
)
from bothworlds.kernels.arithmetic import Number, every, feature, larger, over_contexts, root, smaller, value, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Beliefs, Earlier, Known, Play, kernel_text
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled, scratch
from bothworlds.kernels.matrix import erase
from bothworlds.kernels.plan import (
    add_context,
    all_finite,
    begin_covariance,
    checked_inverse,
    covariance,
    invert,
    note_plan,
)
from bothworlds.kernels.possible import possible_leverage
from bothworlds.kernels.resampling import Resampling
from bothworlds.kernels.simplex import smallest, tsallis_point
from bothworlds.kernels.stability import covered_stability, stability_of_sum
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.kernels.worth import Case, Search, cheapest_rate, find_centres, plan_search
from bothworlds.theory.schedules import SURE, Facts, Matching, Schedule

ALPHA = 0.5
SETTLED = 400.0  # rounds for each dimension: with gaps that matter plans have settled by then


class Options(NamedTuple):
    """Hyper-parameters, H = -psi of the uniform distribution, and the rates that leave no play uncovered."""

    gain: float
    least: float
    caution: float  # times d
    settled: float  # rounds after which it counts in full
    price: float
    c: float
    recency: float
    forgetting: float
    full: float
    first: float  # beta_1, below which fading does not go
    curved: float  # gamma = curved/beta^2, or
    linear: float  # gamma = linear/beta
    dearest: float  # the price of gamma = 1/2 is never more
    covered: float  # b: from beta = b on the covering rate costs 1 at most


class State(NamedTuple):
    """What is learnt, then the plan; what the rates look back at is recalled."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    start: Annotated[Floats, learnt("S")]
    start_rate: Annotated[Floats, learnt()]
    inverse_rate: Annotated[Floats, learnt()]  # beta_t = 1/eta_t
    turn: Annotated[Floats, learnt()]  # which way the search for gamma_t goes next
    rest: Annotated[Floats, learnt()]  # and in how many rounds
    level: Annotated[Floats, learnt()]  # or above which price
    account: Annotated[Floats, learnt()]  # what the path has cost: stability, prices and penalties
    ridge: Annotated[Floats, learnt("d", "d")]
    response: Annotated[Floats, learnt("d")]
    fresh: Annotated[Floats, recalled()]  # updates since the plan was made
    kept: Annotated[Floats, recalled()]  # what their fading has left of older estimates, less 1
    step: Annotated[Floats, recalled("d")]  # sum of their estimates, less what the plan foresaw
    rates: Annotated[Floats, recalled(2)]
    paid: Annotated[Floats, recalled()]  # the price of gamma_t
    entropy: Annotated[Floats, recalled()]  # h_t = -psi(q_t) in the mean over contexts
    y: Annotated[Floats, recalled("S")]
    q: Annotated[Floats, recalled("S", "K")]
    roots: Annotated[Floats, recalled("S", "K")]  # of q_t
    baseline: Annotated[Floats, recalled("d")]  # m_t, which the plan foresaw
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


class Work(NamedTuple):
    """Scratch space."""

    vector: Annotated[Floats, scratch("d")]
    half: Annotated[Floats, scratch("d")]
    mixed: Annotated[Floats, scratch("d", "d")]
    play: Annotated[Floats, scratch(3, "d")]
    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    powers: Annotated[Floats, scratch("K", packed=True)]
    losses: Annotated[Floats, scratch("K", packed=True)]
    middle: Annotated[Floats, scratch("d", packed=True)]
    centre: Annotated[Floats, scratch("S", "d")]
    reach: Annotated[Floats, scratch("S", "K")]
    table: Annotated[Floats, scratch("S", "K")]
    rho: Annotated[Floats, scratch("S", "K")]


@kernel
def stability_paid(known: Known, options: Options, state: State, work: Work) -> Number:
    """Return the stability of the step since the plan was made; of a single update, if it was covered.

    ``state`` still has the plan that the estimates were made with. One that is not covered is in the price; the price
    knows nothing of sums.
    """
    beta, c = state.inverse_rate[0], options.c
    z = covered_stability(known, state.q, state.roots, beta, state.step, c, work.losses)
    single = state.fresh[0] <= 1.0
    if every(single):
        return z
    return where(single, z, stability_of_sum(known, state.q, state.roots, beta, state.step, c, work.losses))


@kernel
def optimistic_points(known: Known, state: State, work: Work) -> int:
    """Compute q_t(x) for every context (equation (4)) from the foreseen losses, and h_t.

    With r = sqrt q = 1/(s + y), s = eta (L - min L), the sum of the roots is that of q s, plus y.
    """
    eta = 1.0 / state.inverse_rate[0]
    total = 0.0
    for x in range(state.q.shape[0]):
        losses = work.table[x]
        status, y = tsallis_point(losses, eta, ALPHA, state.start[x], work.powers, state.q[x])
        if status != OK:
            return status
        state.y[x] = y
        least = smallest(losses)
        excess = 0.0 * y
        for a in range(state.q.shape[1]):
            q = state.q[x, a]
            excess = excess + q * where(q > 0.0, losses[a] - least, 0.0)
        total = total + known.g[x] * (eta * excess + (y - 1.0))
    state.entropy[0] = larger(2.0 * over_contexts(total), SURE)
    return OK


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
def grow(options: Options, state: State, z: Number, v: Number, before: Number) -> None:
    """Let beta grow to the root of (beta - beta_t) (beta/beta_t) h = due, h the entropy of the next plan at beta_t.

    At beta that plan has at most beta/beta_t times the entropy, so that its penalty is at most what is due: a share of
    the stability of the rounds before, caution, and a share of their price, less as long as beta is small. ``before``
    is the entropy that the plan before has had.
    """
    beta, h = state.inverse_rate[0], state.entropy[0]
    share = options.price * smaller(beta / options.covered, 1.0)
    each = options.caution * doubt(options, state.t[0], smaller(h, before), v) / beta + share * state.paid[0]
    due = (1.0 + state.kept[0]) * (gain_at(options, h) * z + each * state.fresh[0])
    state.inverse_rate[0] = 0.5 * beta * (1.0 + root(1.0 + 4.0 * due / (h * beta)))
    state.fresh[0] = 0.0
    state.kept[0] = 0.0
    erase(state.step)
    for x in range(state.start.shape[0]):
        state.start[x] = state.y[x]


@kernel
def case_of(options: Options, state: State, work: Work) -> Case:
    """Return what the price of exploration is computed from."""
    return Case(
        state.sigma,
        state.q,
        state.roots,
        work.rho,
        state.inverse_rate[0],
        options.c,
        work.mixed,
        state.inverse,
        work.centre,
        work.reach,
        work.middle,
        work.play,
    )


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from what is learnt; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    news = not every(state.fresh[0] <= 0.0)
    z, before = 0.0 * state.t[0], value(state.entropy[0])
    faded = where(state.account[0] > 0.0, (1.0 + state.kept[0]) * state.inverse_rate[0], 0.0)  # of the plan before
    if news:
        z = stability_paid(known, options, state, work)
        state.account[0] += z + state.fresh[0] * state.paid[0]
        state.inverse_rate[0] = larger((1.0 + state.kept[0]) * state.inverse_rate[0], options.first)
    status = predict(known, state, work)
    if status == OK:
        largest_residuals(known, state, work.rho)
        foreseen_losses(known, state, work)
    for turn in range(2):  # at the rate of the round before, then at that of this one
        if status == OK and (news or turn == 0):
            if turn == 1:
                grow(options, state, z, likely_variance(known, state.q, work.rho), before)
            status = optimistic_points(known, state, work)
    if status != OK:
        return status
    state.account[0] += (state.inverse_rate[0] - faded) * state.entropy[0]
    begin_covariance(work.sums)
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            state.roots[x, a] = root(state.q[x, a])
        add_context(known, x, state.q[x], work.sums)
    covariance(known, state.q, work.sums, state.sigma)
    find_centres(known, state.q, state.roots, work.centre)
    beta = state.inverse_rate[0]
    covering = smaller(options.curved / (beta * beta), options.linear / beta)
    case = case_of(options, state, work)
    search = Search(state.start_rate[0], state.turn[0], state.rest[0], state.level[0])
    found = cheapest_rate(known, case, search, covering, options.dearest)
    state.paid[0] = found.price
    note_plan(known, state, 1.0 / beta, found.rate)
    return checked_inverse(state) if every(found.inverted) else invert(state)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Predicted) -> None:
    """Add theta_hat_t = m_t + Sigma_t^-1 phi (loss - <phi, m_t>) to Theta, fade it, and advance the clock."""
    residual = play.loss
    for i in range(state.theta.shape[0]):
        residual = residual - carried.baseline[i] * feature(known.z, play.x, play.a, i)
    keep = state.t[0] / (state.t[0] + options.recency)
    foreseen = where(state.fresh[0] <= 0.0, 1.0, 0.0)  # once: the plan foresaw one m_t, whatever it is answered with
    for i in range(state.theta.shape[0]):
        surprise = residual * carried.direction[i]
        state.step[i] += surprise + (carried.baseline[i] - foreseen * state.baseline[i])
        state.theta[i] = keep * (state.theta[i] + carried.baseline[i] + surprise)
    state.kept[0] = (1.0 + state.kept[0]) * keep - 1.0
    add_to_ridge(known, options, state, play)
    state.fresh[0] += 1.0
    plan_search(state)
    advance(state)


TEXT = kernel_text(refresh, choose_predicting, learn, possible=possible_leverage, together=True)


def paced(options: Options, rounds: float, earlier: Earlier | None) -> dict[str, Any]:
    """Return beta after some rounds: as many times its first value as before, by the root of the share believed.

    Without an earlier policy it is first sqrt(1 + rounds), that of plans which stayed undecided.
    """
    if earlier is None:
        return {"inverse_rate": options.first * math.sqrt(1.0 + rounds)}
    scale = options.first / earlier.options.first * math.sqrt(earlier.share)
    return {"inverse_rate": max(options.first, scale * float(earlier.learnt["inverse_rate"][0]))}


SEARCH = ("start_rate", "turn", "rest", "level")  # it goes on where it was
BELIEFS = Beliefs(total="theta", gram="ridge", moment="response", paced=paced, kept=SEARCH)


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Learning rates matched to what they cost, exploration by what it is worth. Not the paper's; alpha = 1/2.

    The default: it has a theorem of our own, and the lowest score in docs/scoreboard.md, rare clicks included.

    *Predictions.* A ridge regression m_t foresees the losses, q_t is the FTRL point of Theta + m_t, and the estimate is
    m_t + Sigma_t^-1 phi (loss - <phi, m_t>): exactly unbiased, and stability is paid for the residual alone.

    *Rates.* With beta_t = 1/eta_t, z_t the stability of the round, computed after it, and P_t the price of exploration,
    beta grows until the penalty of the next round is a share of what this one has cost, and caution,

        (beta_{t+1} - beta_t) h(q_{t+1}) <= gain_t z_t + caution d s_t/beta_t + price min{1, beta_t/b} P_t

    where gain_t = max{gain (h/H)^2, least}, s_t = (h/H)^8 v_t^4 sqrt(min{1, (t + 1)/(400 d)}), h = -psi(q) in the mean
    over contexts (in s_t that of the plan before, if it is less), H that of uniform plans, and v_t the largest variance
    of losses that have the predicted means. An adversary keeps plans undecided for long, and rates should fall then;
    noise does not, and rare clicks have little variance. P_t is what the worst losses would cost; from beta = b on
    exploration can do without it, and before, where it is largest and hardly ever comes true, it counts less.

    *Exploration.* Any gamma_t is safe as long as it is paid for: plays whose step would break the stability condition
    |step| sqrt q <= c beta, and may cost any amount, are charged with their expectation in every round. gamma_t is what
    makes 2 gamma_t plus this charge smallest. Rare contexts cost by their probability.

    *Fading.* theta_hat_s has the weight (s/t)^recency: what was learnt long ago gives way when the world has changed.

    Proved in docs/theory.md, with feedback after every decision, C_t = caution d s_t/beta_t: R_T <= H beta_1 +
    E sum [(1 + gain_t) z_t + C_t + (1 + price) P_t], of the order of sqrt(d sqrt(K) T) always, and logarithmic in T
    where there are gaps. Fading multiplies the first by sqrt(1 + 2 recency), the second by 1 + recency log T at most,
    H beta_1 too. The sum also holds, without fading, for decisions answered in batches.

    Feedback counts as new when it comes, so its order matters, and where batches end.

    Parameters
    ----------
    gain, least
        Which share of its stability a round adds to the penalty, for undecided plans and at least.
    caution
        What it adds if plans stay undecided for long, in units of d/beta; 0 leaves that to gain.
    price
        Which share of the price of exploration, from beta = b on.
    c
        The constant of the condition, below 1/2: larger explores less, and lets estimates jump further.
    recency
        How much faster older estimates fade; 0 for a plain sum.
    forgetting
        The same for the ridge regression: it predicts from about the last 1/forgetting of all rounds.
    """

    gain: float = Matching.gain
    least: float = Matching.least
    caution: float = Matching.caution
    price: float = Matching.price
    c: float = Matching.c
    recency: float = Matching.recency
    forgetting: float = 3.0

    def __post_init__(self) -> None:
        for name in ("gain", "least", "price", "c"):
            check_positive(self, name)
        for name in ("caution", "recency", "forgetting"):
            check_not_negative(self, name)
        if self.c >= 0.5:
            raise ValueError(f"c must lie below 1/2: from there on nothing is proved; got {self.c!r}")

    @property
    def matching(self) -> Matching:
        """What the theorem depends on: predictions may be any."""
        return Matching(
            gain=self.gain,
            least=self.least,
            caution=self.caution,
            price=self.price,
            c=self.c,
            recency=self.recency,
        )

    def step_limit(self, alpha: float) -> float:
        """Return how large a step is that is paid for when it is made."""
        return self.c

    def schedule(self, facts: Facts) -> Schedule:
        """Refuse: the rates are not known beforehand."""
        raise ValueError(
            "the matched tuning has no schedule: its rates follow from what is played; tuning='certified' and "
            "tuning='paper' have one"
        )

    def learner(self, facts: Facts, resampling: Resampling) -> Learner:
        """Return text, options and the state at the start."""
        covering = facts.covering(c=self.c)
        first = math.sqrt(facts.dimension) * facts.n_arms**-0.25
        options = Options(
            gain=self.gain,
            least=self.least,
            caution=self.caution * facts.dimension,
            settled=SETTLED * facts.dimension,
            price=self.price,
            c=self.c,
            recency=self.recency,
            forgetting=self.forgetting,
            full=2.0 * (math.sqrt(facts.n_arms) - 1.0),
            first=first,
            curved=covering.curved,
            linear=covering.linear,
            dearest=covering.dearest,
            covered=covering.sure_from,
        )
        begin = {"start": 1.0, "start_rate": 0.5, "inverse_rate": first, "ridge": np.eye(facts.dimension)}
        return Learner(TEXT, options, begin, BELIEFS)
