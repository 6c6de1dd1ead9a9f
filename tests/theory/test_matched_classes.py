"""The theorem of the matched tuning with gaps: sums over rounds of one class of entropies."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.kernels.rates import MOST_FADING
from bothworlds.theory import lemmas
from bothworlds.theory.bounds import matched
from matched_rates import by_hand, fading, grown

seeds = st.integers(0, 10**6)
recencies = st.sampled_from([0.0, 0.3, 1.0, 20.0])


@given(seeds, st.floats(0.1, 5.0), st.floats(0.01, 5.0), recencies)
def test_stability_of_a_class_of_plans(seed: int, gain: float, least: float, a: float) -> None:
    """With entropies of at most eta before covered steps and B eta after them, beta_t keeps up with their faded sum."""
    rng = np.random.default_rng(seed)
    rates = by_hand(gain=gain, least=least, c=0.4, recency=a)
    M, B, eta = lemmas.stability_share(0.4), rates.growth(0.4), 2.0 ** -float(rng.integers(1, 6))
    f = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * least * M / B))
    chi, beta, held, total, seen, F = fading(rates, rng, allowance=math.inf), rates.first, 0.0, 0.0, 0.0, 0.0
    for t in range(1, 300):
        h = eta * rng.random() ** rng.choice([0.01, 1.0, 5.0])
        z = M * beta * h * rng.random() ** rng.choice([0.01, 5.0]) * (rng.random() < 0.7)
        total, seen = total + z, seen + beta * z * eta
        assert total <= math.sqrt((1.0 + F / 2.0) * (2.0 * f * B / least + M) * seen) * (1 + 1e-9)
        fades = chi(t, beta)
        kept, F = 1.0 / (1.0 + fades), F + fades
        after = B * eta * rng.random() ** rng.choice([0.01, 1.0]) if z > 0.0 else 1.0
        held = kept * (held + z)
        beta = grown(kept * beta, kept * least * z, after)
        assert held <= f * B * eta / least * beta * (1 + 1e-9)
        if beta > 1e30:
            break


@given(seeds, recencies)
def test_prices_of_rounds_in_which_the_cube_of_beta_doubles(seed: int, a: float) -> None:
    """At most 1/beta^2 each, beta in units of b, if it is 1 or more after fading; between them it fades or grows."""
    rng = np.random.default_rng(seed)
    beta, total, F, often = rng.uniform(0.5, 1.5), 0.0, 0.0, rng.random()
    for t in range(1, 300):
        fades = min(a / t, MOST_FADING) * rng.choice([0.0, 1.0, rng.random()])
        faded, F = beta / (1.0 + fades), F + fades
        if faded >= 1.0 and rng.random() < often:
            total += beta**-2.0
            faded *= 2.0 ** (1 / 3)
        beta = max(faded, rng.uniform(0.5, 1.0))
        assert total <= (1.0 + 2.0 * F) * matched.DOUBLING * (1 + 1e-9)


@given(seeds, recencies, st.sampled_from([0.3, 0.6, 60.0]))
def test_prices_of_a_class_of_plans(seed: int, a: float, price: float) -> None:
    """With entropies of at most eta after them: by the sum of beta_t^2 P_t, but for rounds that double beta^3."""
    rng = np.random.default_rng(seed)
    rates = by_hand(recency=a, price=price)
    b, eta, often = rates.covered_from, rates.most_entropy * 2.0 ** -float(rng.integers(0, 12)), rng.random()
    chi, beta, seen, F = fading(rates, rng, allowance=math.inf), float(b * rng.choice([1.0, 1.5, 5.0])), 0.0, 0.0
    totals = {"dear": 0.0, "calm": 0.0}
    for t in range(1, 300):
        P = min(1.0, (b / beta) ** 2) * rng.choice([1.0, rng.random() ** 4]) * (rng.random() < often)
        fades = chi(t, beta)
        faded, F = beta / (1.0 + fades), F + fades
        h = eta * rng.choice([1.0, 4.0, rng.uniform(0.5, 1.0)])
        if faded >= b and h <= eta:
            calm = 3.0 * price * P / eta <= beta
            totals["calm" if calm else "dear"] += P
            seen += beta**2 * P if calm else 0.0
        assert totals["dear"] <= matched.DOUBLING * (1.0 + 2.0 * F) * (1 + 1e-9)
        most = np.cbrt((1.0 + F / math.sqrt(3.0)) ** 2 * (eta / price) ** 2 * seen)
        assert totals["calm"] <= matched.IN_CLASS * most * (1 + 1e-9)
        beta = grown(faded, price * P * min(1.0, faded / b) / (1.0 + fades), h)


def test_prices_of_a_class_come_near_their_bound() -> None:
    """The largest price in every round, plans of one entropy: 4^(-1/3) of it, what beta^3 may double by."""
    rates = by_hand()
    u, eta, price, rounds = rates.covering.curved, 0.1, rates.matching.price, 200_000
    beta, total = rates.covered_from, 0.0
    for _ in range(rounds):
        P = 2.0 * u / beta**2
        total += P
        beta = grown(beta, price * P, eta)
    assert total == pytest.approx(matched.IN_CLASS * np.cbrt((eta / price) ** 2 * 2.0 * u * rounds / 4.0), rel=0.05)
