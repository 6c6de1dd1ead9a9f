"""The matched tuning of LC-Tsallis-INF, alpha = 1/2, as a learner of its own. Not the paper's.

1/eta_t grows by what makes the penalty of a round equal to its stability and twice its exploration: the matching of
Ito, Tsuchiya and Honda (COLT 2024), with the price of exploration added. Proof: docs/theory.md.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from bothworlds.algorithms.checks import check_positive
from bothworlds.algorithms.lc_tsallis.algorithm_1 import (
    Learner,
    Work,
    advance,
    certified_exploration,
    ftrl_points,
    trial_of,
)
from bothworlds.kernels.arithmetic import Number, either, every, larger, over_contexts, root, smaller, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known, Play, kernel_text
from bothworlds.kernels.entropy import mean_entropy
from bothworlds.kernels.exploration import condition
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, recalled
from bothworlds.kernels.matrix import product
from bothworlds.kernels.plan import Direction, all_finite, choose_exactly, explore
from bothworlds.kernels.possible import possible_leverage
from bothworlds.kernels.rates import MOST_EXPLORATION, Rates
from bothworlds.kernels.resampling import Resampling
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.theory.schedules import MATCHED_CONSTANT, Facts, Schedule

SURE = 1e-13  # entropy below this is rounding, and counts as this
TINY = 1e-300
STEP = 1.25  # 1/eta grows by this factor until some gamma_t <= 1/2 is enough
MAX_STEPS = 400


class Options(NamedTuple):
    """Hyper-parameters: c of Lemma B.1, and the rules that bound gamma_t by eta_t."""

    alpha: float
    c: float
    rates: Rates


class State(NamedTuple):
    """What is learnt, then the plan; what the rates look back at is recalled."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    start: Annotated[Floats, learnt("S")]
    start_rate: Annotated[Floats, learnt()]
    inverse_rate: Annotated[Floats, learnt()]  # 1/eta_t
    fresh: Annotated[Floats, recalled()]  # updates since the plan was made
    step: Annotated[Floats, recalled("d")]  # sum of their estimates
    rates: Annotated[Floats, recalled(2)]
    entropy: Annotated[Floats, recalled()]  # -psi(q_t) in the mean over contexts
    y: Annotated[Floats, recalled("S")]
    q: Annotated[Floats, recalled("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


@kernel
def squared_spread(known: Known, q: Floats, step: Floats, limit: Number) -> Number:
    """Return V = sum_x g min_s sum_a q^(3/2) (l_hat - s)^2 over |s| <= limit/sqrt(max q), where limit = c/eta.

    Stability is at most eta V/(1 - 2c): on the simplex l_hat may be shifted, and such an s keeps
    eta |l_hat - s| sqrt q <= 2c.
    """
    total = 0.0
    for x in range(q.shape[0]):
        weights, first, second, highest = 0.0, 0.0, 0.0, q[x, 0]
        for a in range(q.shape[1]):
            estimate = product(step, known.z[x, a])
            weight = q[x, a] * root(q[x, a])
            weights = weights + weight
            first = first + weight * estimate
            second = second + weight * estimate * estimate
            highest = larger(highest, q[x, a])
        most = limit / root(larger(highest, TINY))
        s = larger(smaller(first / larger(weights, TINY), most), 0.0 - most)
        total = total + known.g[x] * (second - 2.0 * s * first + s * s * weights)
    return larger(over_contexts(total), 0.0)


@kernel
def add_step(state: State, loss: Number, direction: Floats) -> None:
    """Remember an estimate until the next plan: there its spread is computed for all replications at once."""
    for i in range(state.step.shape[0]):
        state.step[i] += loss * direction[i]
    state.fresh[0] += 1.0


@kernel
def grow(known: Known, options: Options, state: State) -> None:
    """Let 1/eta grow by (eta_t V_t + 2 gamma_t)/h_t, h_t = -psi(q_t) in the mean; it doubles at most.

    ``state`` still has the plan that the estimates were made with; for several, theirs is the sum, and gamma_t counts
    for each.
    """
    if every(state.fresh[0] <= 0.0):
        return
    eta, gamma, h = state.rates[0], state.rates[1], state.entropy[0]
    price = eta * squared_spread(known, state.q, state.step, options.c / eta) + 2.0 * gamma * state.fresh[0]
    state.inverse_rate[0] = state.inverse_rate[0] + smaller(price / larger(h, SURE), 1.0 / eta)
    state.fresh[0] = 0.0
    for i in range(state.step.shape[0]):
        state.step[i] = 0.0


@kernel
def steady_points(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute q_t with the first eta_t, coming from above, that gamma_t = 1/2 keeps stable.

    From the cap downwards the rule's gamma_t is enough whatever q_t is, so the steps end there.
    """
    trial = trial_of(known, options.alpha, True, state, work)
    most = 1.0 / options.rates.cap
    status = OK
    for _ in range(MAX_STEPS):
        eta = 1.0 / state.inverse_rate[0]
        status = ftrl_points(known, options.alpha, state, work, eta)
        if status != OK or every(state.inverse_rate[0] >= most):
            break
        allowed = options.c * options.c / (eta * eta)
        steady = either(state.inverse_rate[0] >= most, condition(trial, 0.0 * eta + MOST_EXPLORATION) <= allowed)
        if every(steady):
            break
        state.inverse_rate[0] = where(steady, state.inverse_rate[0], smaller(STEP * state.inverse_rate[0], most))
    return status


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t from what is learnt; return a status."""
    if not all_finite(state.theta):
        return NOT_FINITE
    grow(known, options, state)
    status = steady_points(known, options, state, work)
    if status != OK:
        return status
    eta = 1.0 / state.inverse_rate[0]
    gamma = certified_exploration(known, options, state, work, eta)
    state.entropy[0] = mean_entropy(known, state.q, options.alpha)
    return explore(known, state, eta, gamma)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Direction) -> None:
    """Add theta_hat_t (equation (2)) to Theta and to what the next plan looks at, and advance the clock."""
    add_step(state, play.loss, carried.direction)
    for i in range(state.theta.shape[0]):
        state.theta[i] += play.loss * carried.direction[i]
    advance(state)


TEXT = kernel_text(refresh, choose_exactly, learn, possible=possible_leverage, together=True, static=("alpha",))


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Learning rates matched to what they cost. Not the paper's; a theorem of our own. alpha = 1/2.

    As `Certified` it explores by the smallest gamma_t that keeps the paper's stability condition. The learning rate
    begins as large as the condition allows with gamma_t = 1/2, and 1/eta_t then grows by what makes the penalty of a
    round equal to its stability and twice its exploration,

        1/eta_{t+1} = 1/eta_t + (eta_t V_t + 2 gamma_t)/h_t,       at most 2/eta_t

    with V_t the spread of the estimate made, weighted by q^(3/2), and h_t = -psi(q_t), both in the mean over contexts:
    the stability-penalty matching of Ito, Tsuchiya and Honda (COLT 2024), with the price of exploration added.

    Proved in docs/theory.md, with feedback after every decision: the same orders as the paper's theorems in T, K and d,
    with sqrt(L) in place of L, and exploration that costs sqrt(L K/(lambda Delta_*)) log T in place of
    sqrt(K) L/(d lambda) log T; corruption adds C^(1/3) times the 2/3 power of that. The proved constants are far larger
    than those of `Certified`.

    Parameters
    ----------
    c
        The constant of eta |l_hat| sqrt q <= c, below 1/2: larger explores less, and lets estimates jump further.
    """

    c: float = MATCHED_CONSTANT

    def __post_init__(self) -> None:
        check_positive(self, "c")
        if self.c >= 0.5:
            raise ValueError(f"c must lie below 1/2: from there on nothing is proved; got {self.c!r}")

    def step_limit(self, alpha: float) -> float:
        """Return how large eta |l_hat| sqrt q may be."""
        return self.c

    def schedule(self, facts: Facts) -> Schedule:
        """Refuse: the rates are not known beforehand."""
        raise ValueError("the matched tuning has no schedule: its rates follow from what is played")

    def learner(self, facts: Facts, resampling: Resampling) -> Learner:
        """Return text, options and the state at the start."""
        first = facts.schedule(rarity=facts.rarity, constant=self.c)
        options = Options(facts.alpha, self.c, first.rates)
        return Learner(TEXT, options, {"start": 1.0, "inverse_rate": 1.0 / first.gain})
