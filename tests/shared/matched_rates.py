"""Rates of the matched tuning without a problem: by hand, with any fading that its rules allow."""

import math
from collections.abc import Callable

import numpy as np

from bothworlds.kernels.rates import MOST_FADING
from bothworlds.theory.bounds import matched
from bothworlds.theory.schedules import Matching


def by_hand(**options: float) -> matched.MatchedRates:
    """K = 4 (H = 2), d = 2, L = 12, lambda = 0.3."""
    return matched.MatchedRates(
        n_arms=4, dimension=2, rarity=12.0, coverage=0.3, matching=Matching(**{"leaning": 0.0, **options})
    )


def fading(rates: matched.MatchedRates, rng: np.random.Generator, *, allowance: float) -> Callable[[int, float], float]:
    """Return a choice of chi_t by t and beta_t that keeps to the rules: all that they allow, in turns, late, at random.

    ``allowance`` infinite leaves out that of Xi: then what fading takes from beta has to be counted.
    """
    taken = 0.0
    habit, period = rng.integers(4), int(rng.integers(1, 60))

    def chi(t: int, beta: float) -> float:
        nonlocal taken
        left = allowance * rates.first * math.sqrt(t) - taken
        most = max(0.0, min(rates.matching.recency / t, MOST_FADING, beta / rates.first - 1.0, left / beta))
        share = (1.0, float(t // period % 2), float(t > period), rng.random())[habit]
        taken += share * most * beta
        return float(share * most)

    return chi


def grown(beta: float, due: float, h: float) -> float:
    """Return the rate that solves (beta' - beta) (beta'/beta) h = due."""
    return 0.5 * beta * (1.0 + math.sqrt(1.0 + 4.0 * due / (h * beta)))
