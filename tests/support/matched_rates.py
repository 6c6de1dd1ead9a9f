"""Rates of the matched tuning without a problem: by hand."""

import math

from bothworlds.theory.bounds import matched
from bothworlds.theory.schedules import Matching


def by_hand(**options: float) -> matched.MatchedRates:
    """K = 4 (H = 2), d = 2, L = 12, lambda = 0.3."""
    return matched.MatchedRates(
        n_arms=4, dimension=2, rarity=12.0, coverage=0.3, matching=Matching(**{"drift_cap": 0.0, **options})
    )


def grown(beta: float, due: float, h: float) -> float:
    """Return the rate that solves (beta' - beta) (beta'/beta) h = due."""
    return 0.5 * beta * (1.0 + math.sqrt(1.0 + 4.0 * due / (h * beta)))
