"""Compiled bets against every candidate mean, observation by observation.

Before x is observed, bet against "the mean is m": that it is larger, which multiplies the capital K+ by 1 + b (x - m),
0 <= b <= 1/(m - low), and that it is smaller, which multiplies K- by 1 - b (x - m), 0 <= b <= 1/(high - m). If m is the
mean, both are martingales of mean 1. Component j bets the share f_j of the largest bet; the last component bets a
predictable amount,

    b = min(lambda_t, f_j/(m - low)).

With such bets K+ falls in m and K- rises, whatever the data. A rejected candidate therefore rejects all candidates
beyond it, a grid loses only its spacing, and only a window of candidates needs updates.
"""

import math
from typing import NamedTuple

from bothworlds.arrays import Floats, Ints
from bothworlds.kernels.jit.compile import kernel

# statistics of the observations scaled to [0, 1], the last range, and log(2/alpha)
SUM, SQUARES, COUNT, LOW, HIGH, LOG_THRESHOLD = range(6)
N_STATS = 6


class Bets(NamedTuple):
    """Shares of the components, candidate means, largest bets, and capital of the bets on a larger and a smaller mean.

    ``window`` is the range of candidates not yet rejected (first, end); ``stats`` are indexed by the constants above.
    """

    fractions: Floats
    means: Floats
    most: Floats
    up: Floats
    down: Floats
    window: Ints
    stats: Floats


@kernel
def plug_in_bet(stats: Floats) -> float:
    """Return lambda_t = sqrt(2 log(2/alpha)/(s^2_{t-1} t log(1 + t))) for observations in [0, 1]."""
    previous = stats[COUNT]
    variance = (0.25 + stats[SQUARES]) / (previous + 1.0)
    t = previous + 1.0
    return math.sqrt(2.0 * stats[LOG_THRESHOLD] / (variance * t * math.log(1.0 + t)))


@kernel
def record_observation(stats: Floats, y: float) -> None:
    """Add an observation in [0, 1] to the running mean (1/2 + sum)/(t + 1) and its squared deviations."""
    stats[COUNT] += 1.0
    stats[SUM] += y
    mean = (0.5 + stats[SUM]) / (stats[COUNT] + 1.0)
    stats[SQUARES] += (y - mean) * (y - mean)


@kernel
def set_largest_bets(bets: Bets, low: float, high: float) -> None:
    """Write the largest bets 1/(m - low) and 1/(high - m) on the candidates of the window."""
    for g in range(bets.window[0], bets.window[1]):
        bets.most[0, g] = 1.0 / (bets.means[g] - low)
        bets.most[1, g] = 1.0 / (high - bets.means[g])


@kernel
def multiply(bets: Bets, x: float, bet: float) -> None:
    """Update the capital of every component for every candidate of the window; ``bet`` is lambda_t of the last one."""
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
    capital_sum = 0.0
    for j in range(capital.shape[0]):
        capital_sum += capital[j, g]
    return capital_sum


@kernel
def feed_bets(bets: Bets, xs: Floats, lows: Floats, highs: Floats, threshold: float) -> None:
    """Bet on every observation in turn; a candidate is rejected once the capital of a side reaches ``threshold``."""
    window, stats = bets.window, bets.stats
    for i in range(xs.shape[0]):
        x, low, high = xs[i], lows[i % lows.shape[0]], highs[i % highs.shape[0]]
        if low != stats[LOW] or high != stats[HIGH]:
            stats[LOW], stats[HIGH] = low, high
            set_largest_bets(bets, low, high)
        multiply(bets, x, plug_in_bet(stats) / (high - low))
        while window[0] < window[1] and total(bets.up, window[0]) >= threshold:
            window[0] += 1
        while window[0] < window[1] and total(bets.down, window[1] - 1) >= threshold:
            window[1] -= 1
        record_observation(stats, (x - low) / (high - low))
