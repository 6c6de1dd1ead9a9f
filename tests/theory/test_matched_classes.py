"""The theorem of the matched tuning with gaps: sums over the rounds of one entropy class."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.theory import lemmas
from bothworlds.theory.bounds import matched
from support.matched_rates import by_hand, grown

seeds = st.integers(0, 10**6)


@given(seeds, st.floats(0.1, 5.0), st.floats(0.01, 5.0))
def test_stability_of_a_class_of_plans(seed: int, gain: float, least: float) -> None:
    """With entropies of at most eta before covered steps and B eta after them, beta_t bounds the sum of z_t."""
    rng = np.random.default_rng(seed)
    rates = by_hand(gain=gain, least=least, c=0.4)
    M, B, eta = lemmas.stability_share(0.4), rates.growth(0.4), 2.0 ** -float(rng.integers(1, 6))
    f = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * least * M / B))
    beta, total, squares = rates.beta_1, 0.0, 0.0
    for _ in range(300):
        h = eta * rng.random() ** rng.choice([0.01, 1.0, 5.0])
        z = M * beta * h * rng.random() ** rng.choice([0.01, 5.0]) * (rng.random() < 0.7)
        total, squares = total + z, squares + beta * z * eta
        assert total <= math.sqrt((2.0 * f * B / least + M) * squares) * (1 + 1e-9)
        after = B * eta * rng.random() ** rng.choice([0.01, 1.0]) if z > 0.0 else 1.0
        beta = grown(beta, least * z, after)
        assert total <= f * B * eta / least * beta * (1 + 1e-9)
        if beta > 1e30:
            break


@given(seeds)
def test_prices_of_rounds_in_which_the_cube_of_beta_doubles(seed: int) -> None:
    """Each price is at most 1/beta^2, beta in units of b and at least 1; beta grows between them."""
    rng = np.random.default_rng(seed)
    beta, total, often, more = rng.uniform(1.0, 1.5), 0.0, rng.random(), rng.choice([0.0, 0.1])
    for _ in range(100):
        if rng.random() < often:
            total += beta**-2.0
            beta *= 2.0 ** (1 / 3)
        beta *= 1.0 + more * rng.random()
        assert total <= matched.DOUBLING * (1 + 1e-9)


@given(seeds, st.sampled_from([0.3, 0.6, 60.0]))
def test_prices_of_a_class_of_plans(seed: int, price: float) -> None:
    """With entropies of at most eta after them; bounded by the sum of beta_t^2 P_t where beta^3 does not double."""
    rng = np.random.default_rng(seed)
    rates = by_hand(price=price)
    b, eta, often = rates.covered_from, rates.most_entropy * 2.0 ** -float(rng.integers(0, 12)), rng.random()
    beta, squares = float(b * rng.choice([1.0, 1.5, 5.0])), 0.0
    totals = {"doubling": 0.0, "slow": 0.0}
    for _ in range(300):
        P = min(1.0, (b / beta) ** 2) * rng.choice([1.0, rng.random() ** 4]) * (rng.random() < often)
        h = eta * rng.choice([1.0, 4.0, rng.uniform(0.5, 1.0)])
        if h <= eta:
            slow = 3.0 * price * P / eta <= beta
            totals["slow" if slow else "doubling"] += P
            squares += beta**2 * P if slow else 0.0
        assert totals["doubling"] <= matched.DOUBLING * (1 + 1e-9)
        most = np.cbrt((eta / price) ** 2 * squares)
        assert totals["slow"] <= matched.IN_CLASS * most * (1 + 1e-9)
        beta = grown(beta, price * P, h)


def test_prices_of_a_class_come_near_their_bound() -> None:
    """The largest price in every round, plans of one entropy: 4^(-1/3) of the bound, because beta^3 may double."""
    rates = by_hand()
    u, eta, price, rounds = rates.covering.curved, 0.1, rates.matching.price, 200_000
    beta, total = rates.covered_from, 0.0
    for _ in range(rounds):
        P = 2.0 * u / beta**2
        total += P
        beta = grown(beta, price * P, eta)
    assert total == pytest.approx(matched.IN_CLASS * np.cbrt((eta / price) ** 2 * 2.0 * u * rounds / 4.0), rel=0.05)
