"""The theorem of the matched tuning: its constants by hand, and its sums on random paths."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.theory import lemmas
from bothworlds.theory.bounds import matched
from support.matched_rates import by_hand, grown

MATCHED = bw.LCTsallisINF(tuning="matched")
seeds = st.integers(0, 10**6)


def test_the_constants_of_the_theorem_by_hand() -> None:
    """The adversarial bound, written out with gain = least = 1, caution 3 and c = 1/4."""
    rates, T = by_hand(gain=1.0, least=1.0, caution=3.0, price=0.5, c=0.25), np.array([1e8])
    assert rates.most_entropy == 2.0
    assert rates.beta_1 == pytest.approx(1.0)
    assert rates.variance == pytest.approx(4.0 * 2.0 / 0.75)
    u = 2.0 * 1.01667**2 * 12.0 / (0.0625 * 0.3)
    assert rates.covering.curved == pytest.approx(u)
    assert rates.covering.largest == pytest.approx(64.0 / 0.3)
    share = 0.0625 / 0.75 * (1.0 + math.sqrt(0.5))
    f = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * share))
    assert rates.stability_scale == pytest.approx(rates.variance * (2.0 * f + share))
    assert rates.penalty_scale == pytest.approx((2.0 + share) * (rates.variance + 3.0 * 2.0))
    X = rates.prices(T)[0]
    late = 3.0 * (2.0 / 1.5) ** (2 / 3) * (2.0 * u * 1e8) ** (1 / 3)
    b, most = 2.0 * math.sqrt(2.0 * u), 64.0 / 0.3
    even = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * 0.5 / (b * 2.0)))  # the factor of 2 gamma_t = 1
    jump = 1.0 + 0.5 * most / (b * 2.0)  # the factor of the most expensive play
    slowest = max(1.0 / math.log(even), most / math.log(jump))
    early = slowest * math.log(even * jump * b) + most + 1.0
    assert rates.early_prices == pytest.approx(early)
    penalties = 2.0 * b * jump * even**2
    assert rates.early_penalties == pytest.approx(penalties)
    assert early + late <= X <= early + 1.1 * late
    stability = math.sqrt((1e8 + X) * 2.0 * rates.variance * (2.0 * f + share))
    penalty = math.sqrt((1e8 + X) * 2.0 * (2.0 + share) * (rates.variance + 6.0))
    assert matched.adversarial(rates, T)[0] == pytest.approx(
        stability + penalty + X + 0.5 * (X - early) + penalties + 2.0
    )


def test_price_may_be_high_where_covering_is_cheap() -> None:
    """The step before the first covered round is price/(H b), which may exceed 1."""
    rates = by_hand(price=1e6)
    H, b, price = 2.0, rates.covered_from, 1e6
    late = 3.0 * ((1.0 + 3.0 * price / (H * b)) * H / (3.0 * price)) ** (2 / 3) * (0.25 * b * b * 1e8) ** (1 / 3)
    assert rates.prices(np.array([1e8]))[0] == pytest.approx(rates.early_prices + late)


def test_the_constants_with_gaps_by_hand() -> None:
    """Steps 8 and 9 of the proof for Q = 10^4 of 10^12 rounds, with the best depth."""
    T, Q, least, price, c = 1e12, 1e4, 0.5, 0.5, 0.2
    rates = by_hand(gain=2.0, least=least, caution=3.0, price=price, c=c)  # H = 2, beta_1 = 1
    k, V = 1.0 / (1.0 + math.sqrt(0.5)), 8.0 / (1.0 - c)
    M, B, b = c * c / (k * (1.0 - c)), 3.0 / (k * (1.0 - c)), rates.covered_from
    depths = [(math.ceil(nu * math.log2(T)), 2.0 * T**-nu) for nu in np.arange(1, 11) / 10]
    fixed = rates.early_prices + 1.0 / (1.0 - 4.0 ** (-1 / 3))
    X = rates.prices(np.array([T]))[0]
    for _ in range(4):
        squares = 2.0 * (3.0 / (k * (1.0 - 2.0 * c))) ** 2 * 4.0 * 3.0 * Q + 2.0 * 4.0 / (c * b) * X  # of h'
        scale = 12.0 ** (1 / 3) * (b / (2.0 * price)) ** (2 / 3)
        late = [(low**2 * T) ** (1 / 3) + (J**2 * 4.0 * squares) ** (1 / 3) for J, low in depths]
        X = min(X, fixed + scale * min(late))
    assert rates.prices(np.array([T]))[0] > 2.0 * X
    assert rates.prices_of(np.array([T]), np.array([Q]))[0] == pytest.approx(X)
    slope = (1.0 + math.sqrt(1.0 + 4.0 * least * M / B)) * B / least + M
    spent = []
    for J, low in depths:
        weights = [1.0 + max(2.0 * min(1.0, B * 2.0**-j) ** 2, least) for j in range(J + 1)]
        classes = sum(w * w for w in weights[:J]) * 4.0 * 1.46557 * V * math.sqrt(12.0 * 3.0) * min(2.0 * Q, Q + X)
        spent.append(math.sqrt(slope * classes) + weights[J] * math.sqrt(slope * low * 2.0 * V * T))
    x = 3.0 * 2.0 / 2.0
    cautious = 1.0 + math.sqrt(1.0 + 4.0 * x) + x
    caution = math.sqrt(cautious * 6.0 * 4.0 * 3.0 * Q / 2.0)
    expected = min(spent) + caution + (1.0 + price) * X + rates.early_penalties
    assert rates.costs_given_misses(np.array([T]), np.array([Q]))[0] == pytest.approx(expected, rel=1e-5)


@given(seeds, st.floats(0.1, 5.0), st.floats(0.01, 5.0))
def test_sums_of_stability(seed: int, gain: float, least: float) -> None:
    """Bounded by the sum of beta_t z_t, for any entropies and steps."""
    rng = np.random.default_rng(seed)
    rates = by_hand(gain=gain, least=least, c=0.4)
    H, M = rates.most_entropy, lemmas.stability_share(0.4)
    often, middle = rng.random(), min(1.0, math.sqrt(least / gain))
    beta, before, total, products = rates.beta_1, H, 0.0, 0.0
    for _ in range(300):
        z = M * beta * before * rng.random() ** rng.choice([0.01, 5.0, 50.0]) * (rng.random() < often)
        assert total <= rates._reach * H * beta * (1 + 1e-9)
        total, products = total + z, products + beta * z
        assert total <= math.sqrt(rates.stability_scale / rates.variance * H * products) * (1 + 1e-9)
        h = H * rng.choice([middle, rng.random() ** rng.choice([0.01, 1.0, 10.0])])
        start = beta * (1.0 + (rng.random() ** 20 if z == 0.0 else 0.0))  # a jump
        beta = grown(start, max(gain * (h / H) ** 2, least) * z + rng.random() ** 20, h)
        before = min(H, beta / start * h) * (1.0 if rng.random() < 0.7 else rng.random())
        if beta > 1e30:
            break


def shares_of_penalties(rates: matched.MatchedRates) -> tuple[float, float]:
    """Return the factor of beta_t z_t in `penalty_scale`, and the part of caution."""
    without = matched.MatchedRates(**{**vars(rates), "matching": replace(rates.matching, caution=0.0)})
    return without.penalty_scale / rates.variance, rates.penalty_scale - without.penalty_scale


@given(seeds, st.floats(0.1, 5.0), st.floats(0.01, 5.0))
def test_penalties_of_stability_and_caution(seed: int, gain: float, least: float) -> None:
    """The square of their sum grows by at most `penalty_scale`, for any entropies and steps."""
    rng = np.random.default_rng(seed)
    rates = by_hand(gain=gain, least=least, caution=4.0, c=0.4)
    H, M = rates.most_entropy, lemmas.stability_share(0.4)
    most, cautious = shares_of_penalties(rates)
    beta, before, N, allowed = rates.beta_1, H, 0.0, 0.0
    for _ in range(200):
        z = M * beta * before * rng.random() ** rng.choice([0.01, 5.0]) * (rng.random() < 0.8)
        start = beta * (1.0 + (rng.random() if z == 0.0 else 0.0))  # a jump
        h = H * rng.random() ** rng.choice([0.01, 1.0, 10.0])
        g = max(gain * (h / H) ** 2, least)
        caution = 4.0 * rates.dimension * (min(h, before) / H) ** 8 / start
        price = rng.random() ** 20 * beta
        after = grown(start, g * z + caution + price, h)
        entropy = min(H, after / start * h) * (1.0 if rng.random() < 0.7 else rng.random())
        N += (after - start) * entropy * (g * z + caution) / (g * z + caution + price)
        allowed += H * (most * beta * z + cautious)
        beta, before = after, entropy
        assert H * beta * (1 + 1e-9) >= N
        assert allowed * (1 + 1e-9) >= N**2
        if beta > 1e30:
            break


@pytest.mark.parametrize(
    ("gain", "least", "caution", "z"), [(1.0, 0.1, 0.0, 1.0), (0.01, 0.1, 0.0, 1.0), (1.0, 0.1, 4.0, 0.0)]
)
def test_penalties_come_near_their_bound(gain: float, least: float, caution: float, z: float) -> None:
    """With the largest entropy and constant beta_t z_t, or caution alone, the square is at least 0.9 of the bound."""
    rates = by_hand(gain=gain, least=least, caution=caution)
    H, beta, N = rates.most_entropy, rates.beta_1, 0.0
    most, cautious = shares_of_penalties(rates)
    for _ in range(20_000):
        after = grown(beta, (max(gain, least) * z + caution * rates.dimension) / beta, H)
        beta, N = after, N + (after - beta) * H
    allowed = 20_000 * H * (most * z + cautious)
    assert 0.9 * allowed <= N**2 <= allowed


@given(seeds, st.sampled_from([0.3, 0.6, 60.0]))
def test_prices_from_b_on(seed: int, price: float) -> None:
    """Bounded by the cube root of the number of rounds; early rounds may come first."""
    rng = np.random.default_rng(seed)
    rates = by_hand(price=price)
    H, b = rates.most_entropy, rates.covered_from
    often, more = rng.random(), rng.choice([0.0, 0.01, 1.0])
    beta, total, cubes = float(b * rng.choice([0.9, 1.0, 3.0])), 0.0, 0.0
    for t in range(1, 300):
        late = beta >= b
        P = min(1.0, (b / beta) ** 2) * rng.choice([1.0, rng.random()]) * (rng.random() < often)
        total += P if late else 0.0
        assert total <= rates.late_prices(np.array([float(t)]))[0]
        cubes += 3.0 * price * beta**2 * P / H if late else 0.0
        due = price * P * (1.0 if late else beta / b) + more * rng.random()
        beta = grown(beta, due, H * rng.choice([1.0, rng.uniform(0.1, 1.0)]))
        assert cubes <= beta**3 * (1 + 1e-9)


@given(seeds, st.sampled_from([0.1, 4.0]))
def test_caution_with_small_entropies(seed: int, most: float) -> None:
    """Bounded by the sum of squared entropies."""
    rng = np.random.default_rng(seed)
    rates = by_hand(caution=most)
    H, T, power = rates.most_entropy, 300, rng.choice([0.001, 0.1, 10.0])
    beta, before, total, squares = rates.beta_1, H, 0.0, 0.0
    for _ in range(T):
        h = H * rng.random() ** power
        caution = most * rates.dimension * (min(h, before) / H) ** 8 / beta
        total, squares = total + caution, squares + before**2
        beta = grown(beta, caution + rng.random() ** 20, h)
        before = h
    misses = np.array([squares / (4.0 * (rates.n_arms - 1.0))])  # h^2 <= 4 (K - 1) omega'
    assert total <= rates._caution_of(np.array([float(T)]), misses)[0] * (1 + 1e-9)


def test_caution_comes_near_its_bound() -> None:
    """With the largest entropy in every round and little caution, the sum is at least 0.9 of the bound."""
    rates, rounds = by_hand(caution=0.1), 20_000
    H, beta, total = rates.most_entropy, rates.beta_1, 0.0
    for _ in range(rounds):
        total += 0.1 * rates.dimension / beta
        beta = grown(beta, 0.1 * rates.dimension / beta, H)
    misses = np.array([rounds * H**2 / (4.0 * (rates.n_arms - 1.0))])
    bound = rates._caution_of(np.array([float(rounds)]), misses)[0]
    assert 0.9 * bound <= total <= bound


@given(seeds, st.sampled_from([0.001, 0.1, 0.5]))
def test_prices_while_beta_is_below_b(seed: int, often: float) -> None:
    """Plays multiply beta, exploration raises it by its share or faster."""
    rng = np.random.default_rng(seed)
    rates = by_hand(price=0.5)
    H, b, largest = rates.most_entropy, rates.covered_from, rates.covering.largest
    beta, total, paid = rates.beta_1, 0.0, 0.0
    while beta < b:
        u = largest if rng.random() < often else largest * rng.random() ** 8
        sure = rng.random() ** rng.choice([0.01, 5.0])  # 2 gamma_t
        jumped = beta * (1.0 + 0.5 * u / (b * H))
        total += u + sure
        assert total <= rates.early_prices * (1 + 1e-9)
        due = 0.5 * jumped / b * sure
        paid += H * (jumped - beta) + due  # upper bound on the penalty
        assert paid <= rates.early_penalties * (1 + 1e-9)
        beta = grown(jumped, due, H * (1.0 if rng.random() < 0.5 else rng.uniform(0.2, 1.0)))


@given(seeds, st.sampled_from([0.0, 0.03, 1.0]))
def test_costs_of_a_path_are_below_the_bound(seed: int, often: float) -> None:
    """Stability, prices and penalties of random paths with admissible z_t, P_t and u_t."""
    rng = np.random.default_rng(seed)
    rates = by_hand()
    m, H, b, M = rates.matching, rates.most_entropy, rates.covered_from, lemmas.stability_share(rates.matching.c)
    bounds = matched.adversarial(rates, np.arange(1.0, 201.0))
    stable, explored, uniform = rng.choice([0.0, 0.5, 1.0], size=3)
    beta, before, total = rates.beta_1, H, H * rates.beta_1
    for bound in bounds:
        early = beta < b
        sure = min(1.0, (b / beta) ** 2) * (rng.random() < explored)  # 2 gamma_t, or a price from b on
        u = rates.covering.largest if early and rng.random() < often else 0.0
        most = min(M * beta * before, rates.variance * (1.0 + sure) / beta)
        z = most if u == 0.0 and rng.random() < stable else 0.0
        total += z + u + sure
        assert total <= bound
        start = beta * (1.0 + m.price * u / (b * H))
        h = H * (1.0 if rng.random() < uniform else rng.uniform(0.1, 1.0))
        caution = m.caution * rates.dimension * (min(h, before) / H) ** 8 / start
        due = max(m.gain * (h / H) ** 2, m.least) * z + caution + m.price * (start / b if early else 1.0) * sure
        after = grown(start, due, h)
        before = min(H, after / start * h)
        total, beta = total + (after - beta) * before, after


def test_prices_below_b_come_near_their_bound() -> None:
    """With the most expensive play in every round and the largest entropy, the sum is at least 0.8 of the bound."""
    rates = by_hand(price=0.1)
    H, b, most = rates.most_entropy, rates.covered_from, rates.covering.largest
    beta, total = rates.beta_1, 0.0
    while beta < b:
        total += most
        beta *= 1.0 + 0.1 * most / (b * H)
    assert 0.8 * rates.early_prices <= total <= rates.early_prices


def test_constants_of_the_regression_drift_by_hand() -> None:
    """All costs count 1 + drift_cap times; drift_cap = 0 changes nothing."""
    plain, drift_cap = by_hand(), by_hand(drift_cap=0.2)
    assert (plain.drift_factor, drift_cap.drift_factor) == (1.0, 1.2)
    assert drift_cap.variance == plain.variance
    T = np.array([1e4, 1e9])
    sums = drift_cap.most_entropy * drift_cap.beta_1 + drift_cap.worst_case_costs(T) + drift_cap.early_prices
    assert matched.adversarial(drift_cap, T) == pytest.approx(1.2 * (sums + drift_cap.early_penalties))
