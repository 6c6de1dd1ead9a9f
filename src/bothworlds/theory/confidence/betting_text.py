"""Capital of the bets against every candidate mean, observation by observation, as kernel text.

Against "the mean is m" bet, before x is seen, that it is larger: capital K+ is multiplied by 1 + b (x - m) with
0 <= b <= 1/(m - low), or that it is smaller: K- by 1 - b (x - m) with 0 <= b <= 1/(high - m). If m is the mean, both
are martingales of mean 1. A component j bets the share f_j of what it may, or, the last one, a predictable amount:

    b = min(lambda_t, f_j/(m - low)).

With such bets K+ falls in m and K- rises, whatever the data, so that a candidate that is out takes all beyond it
along, and a grid of candidates loses nothing but its spacing: only those still in, a window, are updated.
"""

import math
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.jit.compile import kernel

SUM, SQUARES, SEEN, LOW, HIGH, DEPTH = range(6)  # what is kept of the observations, scaled to [0, 1]; the last range
TALLIED = 6


class Bets(NamedTuple):
    """The gamblers: shares that components bet, candidate means, the largest bets on them, and capital up and down.

    ``window`` has the first candidate that is still in, and the first beyond; ``tally`` what is kept of observations.
    """

    fractions: Floats
    means: Floats
    most: Floats
    up: Floats
    down: Floats
    window: Ints
    tally: Floats


@kernel
def plug_in_bet(tally: Floats) -> float:
    """Return lambda_t = sqrt(2 log(2/alpha)/(s^2_{t-1} t log(1 + t))) for observations in [0, 1]."""
    before = tally[SEEN]
    variance = (0.25 + tally[SQUARES]) / (before + 1.0)
    t = before + 1.0
    return math.sqrt(2.0 * tally[DEPTH] / (variance * t * math.log(1.0 + t)))


@kernel
def take_note(tally: Floats, y: float) -> None:
    """Add an observation in [0, 1] to the running mean (1/2 + sum)/(t + 1) and its squared deviations."""
    tally[SEEN] += 1.0
    tally[SUM] += y
    mean = (0.5 + tally[SUM]) / (tally[SEEN] + 1.0)
    tally[SQUARES] += (y - mean) * (y - mean)


@kernel
def reach(bets: Bets, low: float, high: float) -> None:
    """Write the largest bets 1/(m - low) and 1/(high - m) on the candidates of the window."""
    for g in range(bets.window[0], bets.window[1]):
        bets.most[0, g] = 1.0 / (bets.means[g] - low)
        bets.most[1, g] = 1.0 / (high - bets.means[g])


@kernel
def multiply(bets: Bets, x: float, bet: float) -> None:
    """Multiply the capital of every component against every candidate of the window; ``bet`` is that of the last."""
    fractions, means, most, up, down = bets.fractions, bets.means, bets.most, bets.up, bets.down
    first, last = bets.window[0], bets.window[1]
    plug_in = fractions.shape[0] - 1
    for j in range(plug_in):
        share = fractions[j]
        for g in range(first, last):
            gain = share * (x - means[g])
            up[j, g] *= 1.0 + gain * most[0, g]
            down[j, g] *= 1.0 - gain * most[1, g]
    share = fractions[plug_in]
    for g in range(first, last):
        gain = x - means[g]
        up[plug_in, g] *= 1.0 + min(bet, share * most[0, g]) * gain
        down[plug_in, g] *= 1.0 - min(bet, share * most[1, g]) * gain


@kernel
def total(capital: Floats, g: int) -> float:
    """Return the capital of all components against a candidate."""
    found = 0.0
    for j in range(capital.shape[0]):
        found += capital[j, g]
    return found


@kernel
def feed_bets(bets: Bets, xs: Floats, lows: Floats, highs: Floats, enough: float) -> None:
    """Bet on every observation in turn; candidates against which a side has made ``enough`` leave the window."""
    window, tally = bets.window, bets.tally
    for i in range(xs.shape[0]):
        x, low, high = xs[i], lows[i % lows.shape[0]], highs[i % highs.shape[0]]
        if low != tally[LOW] or high != tally[HIGH]:
            tally[LOW], tally[HIGH] = low, high
            reach(bets, low, high)
        multiply(bets, x, plug_in_bet(tally) / (high - low))
        while window[0] < window[1] and total(bets.up, window[0]) >= enough:
            window[0] += 1
        while window[0] < window[1] and total(bets.down, window[1] - 1) >= enough:
            window[1] -= 1
        take_note(tally, (x - low) / (high - low))
