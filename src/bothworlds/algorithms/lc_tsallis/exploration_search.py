"""Search for the exploration rate gamma_t with the least cost, uncovered plays included. Kernel functions.

The search continues over rounds: one direction per round while the price falls, then a pause that is a share of all
rounds so far. If plays are checked and their excess has grown much since the search last ran, it runs at once with its
largest step, so that a rate that became expensive is replaced immediately. The module
`bothworlds.algorithms.lc_tsallis.exploration_cost` computes the cost of a rate.

Early, below beta = b, an uncovered play is paid for when it is made, and may cost no more than ``largest``. By
leverages it costs 4 max sqrt(lev) sum_x g max_a sqrt(lev) at most, for all q and m_t, which is 4/(lambda gamma)
at most. So plays need not be checked in every round: as long as the covariance is nowhere less than a share s of that
at the last check, no play costs more than 1/s times the bound found then, and the rate SAFE always suffices.

Later all of them are charged for beforehand (`charge`), and charges are paid over the rounds that follow. If a charge
could raise the debt above b, the plan takes the covering rate, which needs no charge.
"""

import math
from typing import Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.exploration_cost import charge, price, write_lengths
from bothworlds.algorithms.lc_tsallis.leverage_bounds import (
    ExplorationCase,
    LeverageBounds,
    above_floor,
    bound_plays,
    bound_rate,
    excess,
    write_centres,
)
from bothworlds.kernels.arithmetic import Number, absolute, both, each, either, every, larger, smaller, where
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import invert_mixture
from bothworlds.kernels.random import price_uniform
from bothworlds.kernels.rates import FALLS, MOST_EXPLORATION, SAFE, STAYS

FACTOR = 1.5  # ratio of neighbouring trial rates
SMALLEST = 1e-7  # the next rate below is zero
MOST_TRIALS = 2
DIRECTIONS = 4.0  # number of directions, tried in turn
PAUSE = 1.0 / 6.0  # pause of the search, as a share of all rounds so far, plus one round
EXCESS_GROWTH = 2.0  # growth of the excess since the last search that ends its pause
HALF_COST = 2.0  # the direction that tries a rate with half the current cost


class Search(NamedTuple):
    """State of the search: first rate, direction, rounds to pause, and the excess up to which the pause holds.

    From beta = b on the covering rate is the largest allowed.
    """

    start: Number
    direction: Number
    pause: Number
    last_excess: Number
    covering: Number


class SearchResult(NamedTuple):
    """Result of the search: a rate, the excess at its last step, and the leverage bounds of the rate last evaluated.

    ``inverted`` says whether ``case.inverse`` belongs to ``rate``. ``share`` is 0 if plays were not checked, else the
    share of the covariance below which they have to be checked again.
    """

    rate: Number
    last_excess: Number
    bounds: LeverageBounds
    inverted: Any
    share: Number


class ChargedRate(NamedTuple):
    """A rate, whether ``case.inverse`` belongs to it, and the charge for the plays it does not cover."""

    rate: Number
    inverted: Any
    charge: Number


@kernel
def next_trial(direction: Number, rate: Number, cost: Number) -> Number:
    """Return the rate to try, by direction: a smaller one, a larger one, one with half the current cost, or 0."""
    below = where(rate > SMALLEST, rate / FACTOR, 0.0)
    above = where(rate > 0.0, smaller(FACTOR * rate, MOST_EXPLORATION), SMALLEST)
    half_cost = smaller(0.25 * cost, MOST_EXPLORATION)
    return where(direction <= 0.0, below, where(direction <= 1.0, above, where(direction <= HALF_COST, half_cost, 0.0)))


@kernel
def advance_search(state: Any) -> None:
    """Advance the direction of the search for gamma_t, set its pause to a share of past rounds, and store its excess.

    Also store the covariance below which plays have to be checked again.
    """
    pausing = state.search_pause[0] >= 1.0
    turned = where(state.search_direction[0] + 1.0 < DIRECTIONS, state.search_direction[0] + 1.0, 0.0)
    state.search_direction[0] = where(pausing, state.search_direction[0], turned)
    state.search_pause[0] = where(pausing, state.search_pause[0] - 1.0, PAUSE * state.t[0] + 1.0)
    state.excess_limit[0] = state.excess[0]
    share = state.share[0]
    if every(share <= 0.0):
        return
    for i in range(state.covariance_floor.shape[0]):
        for j in range(i + 1):
            state.covariance_floor[i, j] = where(share > 0.0, share * state.sigma[i, j], state.covariance_floor[i, j])


@kernel
def unsafe(case: ExplorationCase, bounds: LeverageBounds, largest: Number) -> Any:
    """Return where, early, a play may come to cost more than ``largest`` before plays are checked again."""
    return both(case.beta < case.b, STAYS * bounds.max_cost > largest)


@kernel
def floor_share(case: ExplorationCase, skip_check: Any, max_cost: Number, largest: float) -> Number:
    """Return the share to which covariances may fall before a play can cost more than ``largest``.

    0 if plays were not checked, and from beta = b on.
    """
    share = smaller(larger(max_cost / largest, 1.0 / FALLS), 1.0 / STAYS)
    return where(case.beta < case.b, where(skip_check, 0.0, share), 0.0)


@kernel
def safe_rate(
    known: Known, case: ExplorationCase, rate: Number, regular: Any, largest: Number
) -> tuple[Number, LeverageBounds]:
    """Return the first rate, raised to SAFE where unsafe, and its leverage bounds; ``case.inverse`` is its factor."""
    fails = 1.0 + 0.0 * rate
    for number in range(2):
        if number > 0:
            rate = where(fails > 0.0, larger(rate, SAFE), rate)
            regular = invert_mixture(case.sigma, rate, case.mixed, case.inverse)
        bounds = bound_plays(known, case, regular)
        fails = where(regular, where(unsafe(case, bounds, largest), 1.0, 0.0), 1.0) + 0.0 * rate
        if every(fails <= 0.0):
            break
    return rate, bounds


@kernel
def first_rate(case: ExplorationCase, search: Search) -> Number:
    """Return the rate at which the search starts."""
    most = where(case.beta < case.b, MOST_EXPLORATION, smaller(search.covering, MOST_EXPLORATION))
    return smaller(search.start, most)


@kernel
def may_skip_check(case: ExplorationCase, search: Search) -> tuple[Any, Any]:
    """Return where plays need no check, and where Sigma_t is regular at the first rate; write its factor."""
    regular = invert_mixture(case.sigma, first_rate(case, search), case.mixed, case.inverse)
    skip_check = both(both(case.beta < case.b, search.pause >= 1.0), regular)
    if not every(either(case.beta >= case.b, search.pause < 1.0)):
        skip_check = both(skip_check, above_floor(case))
    return skip_check, regular


@kernel
def cheapest_rate(
    known: Known, case: ExplorationCase, search: Search, skip_check: Any, regular: Any, largest: float
) -> SearchResult:
    """Return a rate gamma_t: the previous one, or one that the search finds to cost less.

    From beta = b on it is at most the covering rate, which leaves no play uncovered. Early, while the search pauses and
    the covariance has not fallen much, the rate stays, and no play is checked.
    """
    start, early, covering = first_rate(case, search), case.beta < case.b, search.covering
    zero = 0.0 * start
    if every(skip_check):
        return SearchResult(
            start, search.last_excess + zero, LeverageBounds(regular, zero, zero, zero), start >= 0.0, zero
        )
    write_centres(known, case)
    rate, bounds = safe_rate(known, case, start, regular, where(skip_check, math.inf, largest))
    last_excess, max_cost = excess(case, bounds), bounds.max_cost
    jumped = either(rate > start, both(last_excess > 1.0, last_excess > EXCESS_GROWTH * search.last_excess))
    searching = where(skip_check, 0.0, where(either(search.pause < 1.0, jumped), 1.0, 0.0)) + zero
    if every(searching <= 0.0):
        return SearchResult(
            rate, search.last_excess + zero, bounds, rate >= 0.0, floor_share(case, skip_check, max_cost, largest)
        )
    idle, direction, last = searching <= 0.0, where(jumped, HALF_COST, search.direction), rate
    write_lengths(known, case)
    trial, cost = rate, math.inf + zero
    # The first rate, trial rates, and the rate found: one loop, because calls are inlined.
    for number in range(2 + MOST_TRIALS):
        if number > 0:
            trial = next_trial(direction, rate, cost)
            useless = either(2.0 * trial >= cost, either(searching <= 0.0, absolute(trial - rate) <= 0.0))
            over = number > MOST_TRIALS or every(useless)
            if over and every(either(early, absolute(last - rate) <= 0.0)):
                break
            last = where(over, rate, trial)
            bounds = bound_rate(known, case, last)
            if over:
                break
        estimate = price(known, case, bounds, trial, cost)
        if number == 0:
            too_costly = both(case.beta >= case.b, both(searching > 0.0, 2.0 * covering < estimate))
            rate, cost = where(too_costly, covering, rate), where(too_costly, 2.0 * covering, estimate)
            continue
        worse = either(either(useless, unsafe(case, bounds, largest)), estimate >= cost)
        searching = where(worse, 0.0, 1.0)
        rate, cost = where(worse, rate, trial), where(worse, cost, estimate)
        last_excess = where(worse, last_excess, excess(case, bounds))
        max_cost = where(worse, max_cost, bounds.max_cost)
    share, last_excess = floor_share(case, skip_check, max_cost, largest), where(idle, search.last_excess, last_excess)
    return SearchResult(rate, last_excess, bounds, absolute(last - rate) <= 0.0, share)


@kernel
def charged_rate(
    known: Known, case: ExplorationCase, result: SearchResult, covering: Number, debt: Number, time: Number
) -> ChargedRate:
    """Return the rate and the charge for it: no charge early, and none at the covering rate.

    The covering rate replaces the rate if the charge could raise the debt above b.
    """
    early, zero = case.beta < case.b, 0.0 * result.rate
    if every(either(early, excess(case, result.bounds) <= 1.0)):
        return ChargedRate(result.rate, result.inverted, zero)
    drawn, most = charge(known, case, result.bounds, result.rate, each(price_uniform, time))
    within = either(early, debt + most <= case.b)
    rate = where(within, result.rate, covering)
    nothing = either(early, either(rate >= covering, excess(case, result.bounds) <= 1.0))
    return ChargedRate(rate, both(result.inverted, within), where(nothing, 0.0, drawn))
