"""What exploration is worth: the search for the rate gamma_t that costs least, what it leaves uncovered included.

It goes on from round to round: one direction in a round, as long as prices fall, and then it rests for a share of all
rounds so far. Where plays are looked at and have become able to go much further than when it went on last, it leaps at
once: one that has become dear must not wait for the next turn. See `bothworlds.kernels.price` for what a rate costs.

Early, below beta = b, a play that is not covered is paid for when it is made, and may cost no more than ``largest``. By
leverages it costs 4 max sqrt(lev) sum_x g max_a sqrt(lev) at most, whatever q and m_t are, and that is 4/(lambda gamma)
at most. So plays need not be looked at in every round: as long as the covariance is nowhere less than a share of what
it was then, no play costs more than the inverse of that share times as much, and the rate SAFE will always do.

Later all of them are charged for beforehand (`charge`), and what is charged is paid over the rounds that follow. If
the debt could come to more than b with a charge, the rate is the covering one, which leaves nothing to charge for.
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import Number, absolute, both, each, either, every, larger, smaller, where
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import invert_mixture
from bothworlds.kernels.price import charge, find_lengths, price
from bothworlds.kernels.random import price_uniform
from bothworlds.kernels.rates import FALLS, MOST_EXPLORATION, SAFE, STAYS
from bothworlds.kernels.reach import Case, Weighed, excess, find_centres, has_stayed, look, weigh

FACTOR = 1.5  # from one rate that is tried to the next
SMALLEST = 1e-7  # the next one below it is zero
MOST_TRIALS = 2
TURNS = 4.0  # ways that the search goes, one after the other
REST = 1.0 / 6.0  # of all rounds so far, and one more, before it goes on
JUMP = 2.0  # times what the excess was when the search went on last: then it does not rest
LEAP = 2.0  # the turn on which it tries a rate as dear as half of what is paid


class Search(NamedTuple):
    """Where the search for a rate begins, which way it goes, for how many rounds it rests, and up to which excess.

    The covering rate is the largest from beta = b on.
    """

    start: Number
    turn: Number
    rest: Number
    level: Number
    covering: Number


class Found(NamedTuple):
    """A rate, the excess at which the search went on, and what leverages say of the rate whose factor is at hand.

    ``inverted`` says whether ``case.inverse`` is that of its covariance. ``share`` is 0 if plays were not looked at,
    else that of the covariance below which they have to be looked at again.
    """

    rate: Number
    level: Number
    weighed: Weighed
    inverted: Any
    share: Number


class Charged(NamedTuple):
    """A rate, whether ``case.inverse`` is that of its covariance, and what is charged for plays it does not cover."""

    rate: Number
    inverted: Any
    charge: Number


@kernel
def next_trial(turn: Number, rate: Number, cost: Number) -> Number:
    """Return the rate to try: in turn a smaller one, a larger one, one as dear as half of what is paid, and none."""
    below = where(rate > SMALLEST, rate / FACTOR, 0.0)
    above = where(rate > 0.0, smaller(FACTOR * rate, MOST_EXPLORATION), SMALLEST)
    leap = smaller(0.25 * cost, MOST_EXPLORATION)
    return where(turn <= 0.0, below, where(turn <= 1.0, above, where(turn <= LEAP, leap, 0.0)))


@kernel
def plan_search(state: Any) -> None:
    """Turn the search for gamma_t, let it rest for a share of the rounds so far, and note where it went on.

    That is the excess, and the covariance below which plays of a plan have to be looked at again.
    """
    resting = state.rest[0] >= 1.0
    turned = where(state.turn[0] + 1.0 < TURNS, state.turn[0] + 1.0, 0.0)
    state.turn[0] = where(resting, state.turn[0], turned)
    state.rest[0] = where(resting, state.rest[0] - 1.0, REST * state.t[0] + 1.0)
    state.level[0] = state.excess[0]
    share = state.share[0]
    if every(share <= 0.0):
        return
    for i in range(state.enough.shape[0]):
        for j in range(i + 1):
            state.enough[i, j] = where(share > 0.0, share * state.sigma[i, j], state.enough[i, j])


@kernel
def unsafe(case: Case, weighed: Weighed, largest: Number) -> Any:
    """Return where, early on, a play may come to cost more than ``largest`` before plays are looked at again."""
    return both(case.beta < case.b, STAYS * weighed.dearest > largest)


@kernel
def share_of(case: Case, calm: Any, dearest: Number, largest: float) -> Number:
    """Return to which share covariances may fall before a play can cost more than ``largest``.

    0 if plays were not looked at, and if it is not early.
    """
    share = smaller(larger(dearest / largest, 1.0 / FALLS), 1.0 / STAYS)
    return where(case.beta < case.b, where(calm, 0.0, share), 0.0)


@kernel
def safe_rate(known: Known, case: Case, rate: Number, sound: Any, largest: Number) -> tuple[Number, Weighed]:
    """Return the rate whose factor is at hand, or SAFE where that one does not do any more, and what leverages say."""
    fails = 1.0 + 0.0 * rate
    for number in range(2):
        if number > 0:
            rate = where(fails > 0.0, larger(rate, SAFE), rate)
            sound = invert_mixture(case.sigma, rate, case.mixed, case.inverse)
        seen = look(known, case, sound)
        fails = where(sound, where(unsafe(case, seen, largest), 1.0, 0.0), 1.0) + 0.0 * rate
        if every(fails <= 0.0):
            break
    return rate, seen


@kernel
def first_rate(case: Case, search: Search) -> Number:
    """Return the rate at which the search begins."""
    most = where(case.beta < case.b, MOST_EXPLORATION, smaller(search.covering, MOST_EXPLORATION))
    return smaller(search.start, most)


@kernel
def has_calmed(case: Case, search: Search) -> tuple[Any, Any]:
    """Return where no play need be looked at, and where Sigma_t is regular at the first rate; make its factor."""
    sound = invert_mixture(case.sigma, first_rate(case, search), case.mixed, case.inverse)
    calm = both(both(case.beta < case.b, search.rest >= 1.0), sound)
    if not every(either(case.beta >= case.b, search.rest < 1.0)):
        calm = both(calm, has_stayed(case))
    return calm, sound


@kernel
def cheapest_rate(known: Known, case: Case, search: Search, calm: Any, sound: Any, largest: float) -> Found:
    """Return a rate gamma_t: the one before, or one that the search finds to cost less.

    From beta = b on it is never above the covering rate, which leaves no play uncovered. Early on, while the search
    rests and the covariance has not become much less, the rate stays, and no play is looked at.
    """
    start, early, covering = first_rate(case, search), case.beta < case.b, search.covering
    zero = 0.0 * start
    if every(calm):
        return Found(start, search.level + zero, Weighed(sound, zero, zero, zero), start >= 0.0, zero)
    find_centres(known, case)
    rate, weighed = safe_rate(known, case, start, sound, where(calm, math.inf, largest))
    level, dearest = excess(case, weighed), weighed.dearest
    jumped = either(rate > start, both(level > 1.0, level > JUMP * search.level))
    going = where(calm, 0.0, where(either(search.rest < 1.0, jumped), 1.0, 0.0)) + zero
    if every(going <= 0.0):
        return Found(rate, search.level + zero, weighed, rate >= 0.0, share_of(case, calm, dearest, largest))
    kept, heading, last = going <= 0.0, where(jumped, LEAP, search.turn), rate
    find_lengths(known, case)
    trial, cost = rate, math.inf + zero
    # The rate at hand, others, and the one found: one loop, for calls are inlined.
    for number in range(2 + MOST_TRIALS):
        if number > 0:
            trial = next_trial(heading, rate, cost)
            useless = either(2.0 * trial >= cost, either(going <= 0.0, absolute(trial - rate) <= 0.0))
            over = number > MOST_TRIALS or every(useless)
            if over and every(either(early, absolute(last - rate) <= 0.0)):
                break
            last = where(over, rate, trial)
            weighed = weigh(known, case, last)
            if over:
                break
        found = price(known, case, weighed, trial, cost)
        if number == 0:
            dear = both(case.beta >= case.b, both(going > 0.0, 2.0 * covering < found))
            rate, cost = where(dear, covering, rate), where(dear, 2.0 * covering, found)
            continue
        worse = either(either(useless, unsafe(case, weighed, largest)), found >= cost)
        going = where(worse, 0.0, 1.0)
        rate, cost = where(worse, rate, trial), where(worse, cost, found)
        level = where(worse, level, excess(case, weighed))
        dearest = where(worse, dearest, weighed.dearest)
    share, level = share_of(case, calm, dearest, largest), where(kept, search.level, level)
    return Found(rate, level, weighed, absolute(last - rate) <= 0.0, share)


@kernel
def charged(known: Known, case: Case, found: Found, covering: Number, debt: Number, time: Number) -> Charged:
    """Return the rate that was found with what is charged for it: nothing early on, and nothing at the covering rate.

    That is the one taken if the debt could come to more than b.
    """
    early, zero = case.beta < case.b, 0.0 * found.rate
    if every(either(early, excess(case, found.weighed) <= 1.0)):
        return Charged(found.rate, found.inverted, zero)
    drawn, most = charge(known, case, found.weighed, found.rate, each(price_uniform, time))
    within = either(early, debt + most <= case.b)
    rate = where(within, found.rate, covering)
    nothing = either(early, either(rate >= covering, excess(case, found.weighed) <= 1.0))
    return Charged(rate, both(found.inverted, within), where(nothing, 0.0, drawn))
