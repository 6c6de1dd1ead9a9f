"""Capital of the bets against every candidate mean, observation by observation, as kernel text.

Against "the mean is m" bet, before x is seen, that it is larger: capital K+ is multiplied by 1 + b (x - m) with
0 <= b <= 1/(m - low), or that it is smaller: K- by 1 - b (x - m) with 0 <= b <= 1/(high - m). If m is the mean, both
are martingales of mean 1. A component j bets the share f_j of what it may, or, the last one, a predictable amount:

    b = min(lambda_t, f_j/(m - low)).

With such bets K+ falls in m and K- rises, whatever the data, so that a candidate that is out takes all beyond it
along, and a grid of candidates loses nothing but its spacing: only those still in, a window, are updated.
"""

import math

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.jit.compile import kernel

SUM, SQUARES, SEEN, LOW, HIGH, DEPTH = range(6)  # what is kept of the observations, scaled to [0, 1]; the last range
N_NUMBERS = 6


@kernel
def plug_in_bet(numbers: Floats) -> float:
    """Return lambda_t = sqrt(2 log(2/alpha)/(s^2_{t-1} t log(1 + t))) for observations in [0, 1]."""
    before = numbers[SEEN]
    variance = (0.25 + numbers[SQUARES]) / (before + 1.0)
    t = before + 1.0
    return math.sqrt(2.0 * numbers[DEPTH] / (variance * t * math.log(1.0 + t)))


@kernel
def take_note(numbers: Floats, y: float) -> None:
    """Add an observation in [0, 1] to the running mean (1/2 + sum)/(t + 1) and its squared deviations."""
    numbers[SEEN] += 1.0
    numbers[SUM] += y
    mean = (0.5 + numbers[SUM]) / (numbers[SEEN] + 1.0)
    numbers[SQUARES] += (y - mean) * (y - mean)


@kernel
def reach(means: Floats, low: float, high: float, first: int, last: int, most: Floats) -> None:
    """Write the largest bets 1/(m - low) and 1/(high - m) on the candidates of the window."""
    for g in range(first, last):
        most[0, g] = 1.0 / (means[g] - low)
        most[1, g] = 1.0 / (high - means[g])


@kernel
def multiply(
    x: float, bet: float, fractions: Floats, means: Floats, most: Floats, up: Floats, down: Floats, window: Ints
) -> None:
    """Multiply the capital of every component against every candidate of the window."""
    first, last = window[0], window[1]
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
def feed_bets(
    xs: Floats, lows: Floats, highs: Floats, fractions: Floats, means: Floats, most: Floats, up: Floats, down: Floats,
    window: Ints, numbers: Floats, enough: float,
) -> None:  # fmt: skip
    """Bet on every observation in turn; candidates against which a side has made ``enough`` leave the window."""
    for i in range(xs.shape[0]):
        x, low, high = xs[i], lows[i % lows.shape[0]], highs[i % highs.shape[0]]
        if low != numbers[LOW] or high != numbers[HIGH]:
            numbers[LOW], numbers[HIGH] = low, high
            reach(means, low, high, window[0], window[1], most)
        multiply(x, plug_in_bet(numbers) / (high - low), fractions, means, most, up, down, window)
        while window[0] < window[1] and total(up, window[0]) >= enough:
            window[0] += 1
        while window[0] < window[1] and total(down, window[1] - 1) >= enough:
            window[1] -= 1
        take_note(numbers, (x - low) / (high - low))
