"""The theorem of the matched tuning: its constants by hand, its sums, and regret below it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.arrays import Floats
from bothworlds.theory import lemmas
from bothworlds.theory.bounds import matched
from bothworlds.theory.bounds.facts import facts_of
from bothworlds.theory.bounds.own import matched_rates
from bothworlds.theory.schedules import Matching
from worlds import random_problem

MATCHED = bw.LCTsallisINF(tuning="matched")
seeds = st.integers(0, 10**6)


def by_hand(**options: float) -> matched.MatchedRates:
    """K = 4 (H = 2), d = 2, L = 12, lambda = 0.3."""
    return matched.MatchedRates(
        n_arms=4, dimension=2, rarity=12.0, coverage=0.3, matching=Matching(**{"recency": 0.0, **options})
    )


def test_the_constants_of_the_theorem_by_hand() -> None:
    """The adversarial display, written out with gain = least = 1, caution 3 and c = 1/4."""
    rates, T = by_hand(gain=1.0, least=1.0, caution=3.0, price=0.5, c=0.25), np.array([1e8])
    assert rates.most_entropy == 2.0
    assert rates.first == pytest.approx(1.0)
    assert rates.variance == pytest.approx(4.0 * 2.0 / 0.75)
    u = 2.0 * lemmas.centring(4) ** 2 * 12.0 / (0.0625 * 0.3)
    assert rates.covering.curved == pytest.approx(u)
    assert rates.covering.largest == pytest.approx(96.0 / 0.3)
    share = 0.0625 / 0.75 * (1.0 + math.sqrt(0.5))
    f = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * share))
    assert rates.stability_scale == pytest.approx(rates.variance * (2.0 * f + share))
    assert rates.penalty_scale == pytest.approx((2.0 + share) * (rates.variance + 3.0 * 2.0))
    X = rates.prices(T)[0]
    late = 3.0 * (2.0 / 1.5) ** (2 / 3) * (2.0 * u * 1e8) ** (1 / 3)
    b, most = math.sqrt(2.0 * u), 96.0 / 0.3
    even = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * 0.5 / (b * 2.0)))  # the factor of 2 gamma_t = 1
    jump = 1.0 + 0.5 * most / (b * 2.0)  # that of the dearest play
    slowest = max(1.0 / math.log(even), most / math.log(jump))
    early = slowest * math.log(even * jump * b) + most + 1.0
    assert rates.early_prices(0.0) == pytest.approx(early)
    grown = 2.0 * b * jump * even**2
    assert rates.early_penalties(0.0) == pytest.approx(grown)
    assert early + late <= X <= early + 1.1 * late
    stability = math.sqrt((1e8 + X) * 2.0 * rates.variance * (2.0 * f + share))
    penalty = math.sqrt((1e8 + X) * 2.0 * (2.0 + share) * (rates.variance + 6.0))
    assert matched.adversarial(rates, T)[0] == pytest.approx(stability + penalty + X + 0.5 * (X - early) + grown + 2.0)


def test_price_may_be_dear_where_covering_is_cheap() -> None:
    """The step in front of the first covered round is price/(H b), also above 1."""
    rates = by_hand(price=1e6)
    H, b, price = 2.0, rates.covered_from, 1e6
    late = 3.0 * ((1.0 + 3.0 * price / (H * b)) * H / (3.0 * price)) ** (2 / 3) * (b * b * 1e8) ** (1 / 3)
    assert rates.prices(np.array([1e8]))[0] == pytest.approx(rates.early_prices(0.0) + late)


@given(seeds, st.floats(0.1, 5.0), st.floats(0.01, 5.0), st.sampled_from([0.0, 0.3, 1.0]))
def test_penalties_of_stability_and_caution(seed: int, gain: float, least: float, a: float) -> None:
    """Their weighted squares grow by no more than `penalty_scale` says, whatever entropies and steps are."""
    rng = np.random.default_rng(seed)
    rates = by_hand(gain=gain, least=least, caution=4.0, c=0.4, recency=a)
    H, M = rates.most_entropy, lemmas.stability_share(0.4)
    most = max(2.0 * gain, 2.0 * least + least**2 * M)
    beta, before, W, N, allowed = rates.first, H, 1.0, 0.0, 0.0
    for t in range(1, 200):
        z = M * beta * before * rng.random() ** rng.choice([0.01, 5.0])
        kept = t / (t + a)
        faded = max(kept * beta, rates.first)
        h = H * rng.random() ** rng.choice([0.01, 1.0, 10.0])
        g = max(gain * (h / H) ** 2, least)
        caution = 4.0 * rates.dimension * (min(h, before) / H) ** 8 / faded
        price = rng.random() ** 20 * beta
        due = kept * (g * z + caution + price)
        grown = 0.5 * faded * (1.0 + math.sqrt(1.0 + 4.0 * due / (h * faded)))
        after = min(H, grown / faded * h) * (1.0 if rng.random() < 0.7 else rng.random())
        paid = (grown - faded) * after * (g * z + caution) / (g * z + caution + price) * (W / kept)
        allowed += H * (most * W * (W / kept) * beta * z + (2.0 + least * M) * W * (W / kept) * 4.0 * rates.dimension)
        W, beta, before, N = W / kept, grown, after, N + paid
        assert H * W * beta * (1 + 1e-9) >= N
        assert allowed * (1 + 1e-9) >= N**2
        if beta > 1e30:
            break


@given(seeds, st.floats(0.0, 2.0))
def test_caution_where_plans_are_decided(seed: int, a: float) -> None:
    """Its sum without weights, by what the squares of entropies sum to."""
    rng = np.random.default_rng(seed)
    rates = by_hand(caution=4.0, recency=a)
    H, T, power = rates.most_entropy, 300, rng.choice([0.001, 0.1, 10.0])
    beta, before, total, squares = rates.first, H, 0.0, 0.0
    for t in range(1, T + 1):
        kept = t / (t + a)
        faded = max(kept * beta, rates.first)
        h = H * rng.random() ** power
        caution = 4.0 * rates.dimension * (min(h, before) / H) ** 8 / faded
        total, squares = total + caution, squares + before**2
        beta = 0.5 * faded * (1.0 + math.sqrt(1.0 + 4.0 * kept * (caution + rng.random() ** 20) / (h * faded)))
        before = h
    misses = np.array([squares / (4.0 * (rates.n_arms - 1.0))])  # h^2 = 4 (K - 1) omega' at most
    assert total <= rates._caution_of(np.array([float(T)]), misses)[0] * (1 + 1e-9)


@pytest.mark.parametrize("a", [0.0, 0.1, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_sums_of_powers_of_the_weights(a: float, power: float) -> None:
    t = np.arange(1.0, 3001.0)
    weights = np.concatenate([[1.0], np.cumprod((t[:-1] + a) / t[:-1])]) ** power
    bound = matched.weighted_rounds(t, a, power=power)
    assert (np.cumsum(weights) / weights <= bound * (1 + 1e-12)).all()
    assert bound[-1] == pytest.approx(np.cumsum(weights)[-1] / weights[-1], rel=0.01)


@given(seeds, st.floats(0.01, 3.0))
def test_sums_of_what_fades(seed: int, a: float) -> None:
    """Sums of z_t by a_t z_t, a_t the faded sum before; sums of growths of x_t by those of x_t^3."""
    rng = np.random.default_rng(seed)
    T = int(rng.integers(2, 200))
    z = rng.random(T) ** rng.uniform(0.1, 20.0) * (rng.random(T) < rng.random())
    F = a / np.arange(1.0, T)
    squares = cubes = sums = before = x = 0.0
    for t in range(1, T + 1):
        squares += 2.0 * before * z[t - 1] + z[t - 1] ** 2
        before = t / (t + a) * (before + z[t - 1])
        grown = np.cbrt(x**3 + z[t - 1])
        sums, cubes, x = sums + grown - x, cubes + z[t - 1], t / (t + a) * grown
    assert z.sum() <= math.sqrt((1.0 + F.sum() / 2.0) * squares) * (1 + 1e-9) + 1e-12
    assert sums <= (1.0 + F.sum() / math.sqrt(3.0)) ** (2 / 3) * np.cbrt(cubes) * (1 + 1e-9) + 1e-12
    assert F.sum() <= by_hand(recency=a).fades(np.array([float(T)]))[0]


@given(seeds, st.floats(0.0, 3.0))
def test_prices_of_rounds_in_which_the_cube_of_beta_doubles(seed: int, a: float) -> None:
    """At most 1/beta^2 each, beta in units of b, from 1 on; between them beta fades or grows."""
    rng = np.random.default_rng(seed)
    beta, total, F = rng.uniform(0.5, 1.5), 0.0, 0.0
    for t in range(1, 300):
        if beta >= 1.0 and rng.random() < 0.7:
            total += beta**-2.0
            beta *= 2.0 ** (1 / 3)
        beta = max(beta * t / (t + a), rng.uniform(0.5, 1.0))
        F += a / t
    assert total <= (1.0 + 2.0 * F) * matched.DOUBLING * (1 + 1e-9)


@given(seeds, st.sampled_from([0.0, 0.2, 1.0]), st.sampled_from([0.001, 0.1, 0.5]))
def test_prices_that_find_beta_below_b(seed: int, a: float, often: float) -> None:
    """Plays multiply it, exploration raises it by its share or faster; with weights, over W_T, and without."""
    rng = np.random.default_rng(seed)
    rates = by_hand(recency=a, price=0.5)
    H, b, largest, T = rates.most_entropy, rates.covered_from, rates.covering.largest, 400
    scale = b * H / 0.5
    beta, weight, weighted, plain, paid = rates.first, 1.0, 0.0, [0.0], [0.0]
    weighted_paid, most_weighted = 0.0, rates.early_prices(1.0 if a else 0.0) * (1 + 1e-9)
    for t in range(1, T + 1):
        early, kept = beta < b, t / (t + a)
        u = (largest if rng.random() < often else largest * rng.random() ** 8) if early else 0.0
        sure = rng.random() ** rng.choice([0.01, 5.0])  # 2 gamma_t, or a price from b on
        faded = max(kept * beta, rates.first)
        before = max(kept * beta * (1.0 + u / scale), rates.first)
        below = u + sure if faded < b else 0.0
        due = kept * 0.5 * (before / b if early else 1.0) * sure
        entropy = H * (1.0 if rng.random() < 0.5 else rng.uniform(0.2, 1.0))
        jumped = H * (before - faded) + due if faded < b else 0.0  # the penalty, at most
        beta = 0.5 * before * (1.0 + math.sqrt(1.0 + 4.0 * due / (entropy * before)))
        weighted, plain = weighted + weight * below, [*plain, plain[-1] + below]
        weight = weight / kept
        weighted_paid, paid = weighted_paid + weight * jumped, [*paid, paid[-1] + jumped]
        assert weighted * kept / weight <= most_weighted
        assert weighted_paid / weight <= rates.early_penalties(0.0) * (1 + 1e-9)
    for F, sums, penalties in zip(rates.fades(np.arange(1.0, T + 1.0, 7.0)), plain[1::7], paid[1::7], strict=True):
        assert sums <= rates.early_prices(F) * (1 + 1e-9)
        assert penalties <= rates.early_penalties(F) * (1 + 1e-9)


@given(seeds, st.sampled_from([0.0, 0.3, 2.0]), st.sampled_from([0.0, 0.03, 1.0]))
def test_what_a_path_costs_is_below_the_bound(seed: int, a: float, often: float) -> None:
    """Stability, prices and penalties as they come, without weights; z_t, P_t and u_t no larger than they can be."""
    rng = np.random.default_rng(seed)
    rates = by_hand(recency=a)
    m, H, b, M = rates.matching, rates.most_entropy, rates.covered_from, lemmas.stability_share(rates.matching.c)
    bounds = matched.adversarial(rates, np.arange(1.0, 201.0))
    stable, explored, undecided = rng.choice([0.0, 0.5, 1.0], size=3)
    beta, before, total = rates.first, H, H * rates.first
    for t, bound in enumerate(bounds, start=1):
        early, kept = beta < b, t / (t + a)
        sure = min(1.0, (b / beta) ** 2) * (rng.random() < explored)  # 2 gamma_t, or a price from b on
        u = rates.covering.largest if early and rng.random() < often else 0.0
        most = min(M * beta * before, rates.variance * (1.0 + sure) / beta)
        z = most if u == 0.0 and rng.random() < stable else 0.0
        total += z + u + sure
        assert total <= bound
        start = max(kept * beta * (1.0 + m.price * u / (b * H)), rates.first)
        h = H * (1.0 if rng.random() < undecided else rng.uniform(0.1, 1.0))
        caution = m.caution * rates.dimension * (min(h, before) / H) ** 8 / start
        due = max(m.gain * (h / H) ** 2, m.least) * z + caution + m.price * (start / b if early else 1.0) * sure
        grown = 0.5 * start * (1.0 + math.sqrt(1.0 + 4.0 * kept * due / (h * start)))
        before = min(H, grown / start * h)
        total, beta = total + (grown - kept * beta) * before, grown


def test_early_prices_are_taken_without_weights() -> None:
    """All the rest with them: Psi(T) + sum_{t < T} a/(t + a) Psi(t), Psi as without early prices."""
    a, T = 0.5, np.array([60.0, 1e6])
    rates = by_hand(recency=a)
    H, b, price = rates.most_entropy, rates.covered_from, rates.matching.price
    steepest = ((1.0 + 3.0 * price / (H * b)) * H / (3.0 * price)) ** (2 / 3)
    roots = math.sqrt(rates.stability_scale) + math.sqrt(rates.penalty_scale)

    def psi(t: Floats) -> Floats:
        later = 3.0 * steepest * np.cbrt(b * b * (t + 3.0 * a) / (1.0 + 3.0 * a))
        seen = np.sqrt(((t + 2.0 * a) / (1.0 + 2.0 * a) + rates.early_prices(1.0) + later) * H)
        return np.asarray(roots * seen + (1.0 + price) * later + H * rates.first)

    for F, horizon, found in zip(a * (1.0 + np.log(T)), T, matched.adversarial(rates, T), strict=True):
        early = rates.early_prices(F) + rates.early_penalties(F)
        assert found == pytest.approx(early + matched.faded(psi, np.array([horizon]), a)[0])


def test_prices_below_b_come_near_their_bound() -> None:
    """The dearest play in every round, plans undecided: three quarters of the bound and more."""
    rates = by_hand(price=0.5)
    H, b, most = rates.most_entropy, rates.covered_from, rates.covering.largest
    beta, total = rates.first, 0.0
    while beta < b:
        total += most
        beta *= 1.0 + 0.5 * most / (b * H)
    assert 0.7 * rates.early_prices(0.0) <= total <= rates.early_prices(0.0)


def test_fading_sums_by_parts() -> None:
    """For Psi = sqrt T the factor is 1 + 2a, for a constant 1 + a log T; the weighted sum has sqrt(1 + 2a) less."""
    T = np.array([1e3, 1e6, 1e9])
    grown = matched.faded(np.sqrt, T, 0.1) / np.sqrt(T)
    assert grown == pytest.approx(1.2, rel=0.03)
    assert (grown >= 1.2 * (1 - 1e-2)).all()
    flat = matched.faded(np.ones_like, T, 0.1)
    assert flat == pytest.approx(1.0 + 0.1 * np.log((T - 1.0 + 0.1) / 0.1))  # the integral, which bounds the sum
    late = np.array([1e14])
    plain, faded = by_hand(), by_hand(recency=0.1)
    assert matched.adversarial(faded, late) / matched.adversarial(plain, late) == pytest.approx(
        math.sqrt(1.2), rel=0.03
    )


@pytest.mark.parametrize(
    ("sizes", "rarity"), [((2, 3, 3), None), ((5, 4, 4), None), ((10, 5, 5), None), ((20, 10, 5), 100.0)]
)
def test_the_adversarial_bound_is_at_most_three_times_that_of_certified(
    sizes: tuple[int, int, int], rarity: float | None
) -> None:
    """2.97, 2.76, 2.58, 1.74 times, and 2.03, 1.80, 1.64, 0.98 times without fading; with gaps less at long last."""
    S, K, d = sizes
    instance = en.random_instance(contexts=S, arms=K, dimension=d, gap=0.3, rarity=rarity, seed=1)
    problem = instance.problem
    values = {bound.name: bound.value for bound in bw.bounds(problem, horizon=10**6)}
    known = matched_rates(facts_of(problem, horizon=1, gap=None, margin=None, corruption=None, design="joint-g"))
    plain = matched.MatchedRates(**{**vars(known), "matching": Matching(recency=0.0)})
    assert matched.adversarial(plain, np.array([1e6]))[0] <= 2.1 * values["LC-Tsallis-INF, certified"]
    assert values["LC-Tsallis-INF, matched"] <= 3.0 * values["LC-Tsallis-INF, certified"]  # with fading
    late = np.array([1e12, 1e15])
    gapped = [
        matched.self_bounding(rates, late, gap=0.3) / matched.adversarial(rates, late) for rates in (plain, known)
    ]
    assert gapped[0][0] <= 0.75 or S == 20
    assert max(found[1] for found in gapped) <= 0.5


@pytest.mark.parametrize("recency", [0.0, 0.5])
def test_the_inequality_of_optimistic_ftrl_holds_on_every_path(recency: float) -> None:
    """`diagnose` checks it for every context and arm; the account of the path is finite and not below the estimates."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    world = en.alternating(instance.problem, en.opposite(instance.theta), every=20)
    algorithm = bw.LCTsallisINF(tuning=bw.Matched(recency=recency))
    found = bw.diagnose(world, algorithm, horizon=300, checkpoints=20)
    assert (found.slack >= -1e-9 * (1.0 + found.bound)).all()
    assert (found.bound >= found.estimated_regret).all()


def test_the_regret_is_below_the_theorem() -> None:
    """In the mean, with 3 standard errors."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    world = en.stochastic(instance)
    run = bw.simulate(world, {"matched": MATCHED}, horizon=400, replications=200, rng=0, checkpoints=[400])["matched"]
    rates = matched_rates(
        facts_of(instance.problem, horizon=400, gap=None, margin=None, corruption=None, design="joint-g")
    )
    assert run.regret[-1] + 3.0 * run.standard_error[-1] <= matched.adversarial(rates, np.array([400.0]))[0]


def test_growth_of_the_theorem() -> None:
    """Square root of T at first; with a gap logarithmic in the end, and the square root of L where the paper has L."""
    rates = {}
    for rarity in (6.0, 600.0):
        problem = random_problem(1, S=5, K=4, d=3, rarity=rarity)
        stated = matched_rates(facts_of(problem, horizon=1, gap=None, margin=None, corruption=None, design="joint-g"))
        rates[rarity] = matched.MatchedRates(**{**vars(stated), "matching": Matching(recency=0.0), "sure": 0.0})
    T = np.array([1e30, 1e60, 1e120])
    late = matched.adversarial(rates[6.0], T)
    assert late[1:] / late[:-1] == pytest.approx(np.sqrt(T[1:] / T[:-1]), rel=0.05)
    known = matched.self_bounding(rates[6.0], T, gap=0.5)
    assert (known < late).all()
    assert known[1:] / known[:-1] == pytest.approx(2.0, rel=0.2)  # 2.3: T^-nu falls towards 1/T
    rare = matched.self_bounding(rates[600.0], T, gap=0.5)
    assert rare[-1] / known[-1] < 12.0  # about sqrt(100)
    corrupted = matched.self_bounding(rates[6.0], T, gap=0.5, corruption=1e15)
    assert (known < corrupted).all()
    assert (corrupted < late).all()
    assert matched.self_bounding(rates[6.0], T, gap=0.5, margin=1e6) == pytest.approx(known, rel=1e-3)
    faded = matched.MatchedRates(**{**vars(rates[6.0]), "matching": Matching()})
    longer = matched.self_bounding(faded, T, gap=0.5)
    assert (known < longer).all()
    assert (longer < known * (1.0 + 0.3 * (1.0 + np.log(T)))).all()
    rounded = matched.MatchedRates(**{**vars(rates[6.0]), "sure": 1e-13})
    assert matched.self_bounding(rounded, np.array([1e12]), gap=0.5) == pytest.approx(
        matched.self_bounding(rates[6.0], np.array([1e12]), gap=0.5)
    )
