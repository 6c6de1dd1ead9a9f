"""Rates and drift from counts: martingales by enumeration, ends against mpmath, error probabilities exactly."""

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.arrays import Floats
from bothworlds.theory.confidence import (
    DriftAlarm,
    average_rate_interval,
    drift_of,
    log_average_evidence,
    log_rate_evidence,
    rate_interval,
)

COUNTS = st.integers(0, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


def exact_evidence(n: int, s: float, m: float, prior: tuple[float, float] = (0.5, 0.5)) -> mpmath.mpf:
    with mpmath.workdps(50):
        (a, b), rate = (mpmath.mpf(part) for part in prior), mpmath.mpf(m)
        mixture = mpmath.beta(a + s, b + n - s) / mpmath.beta(a, b)
        return mixture / (rate**s * (1 - rate) ** (n - s))


@pytest.mark.parametrize("m", [0.02, 0.3, 0.5])
def test_evidence_against_the_true_rate_has_mean_one(m: float) -> None:
    evidence = np.exp(log_rate_evidence(12, np.arange(13), m)).tolist()
    binary = [
        math.prod(m if x else 1.0 - m for x in values) * evidence[sum(values)]
        for values in itertools.product((0, 1), repeat=12)
    ]
    assert math.fsum(binary) == pytest.approx(1.0, rel=1e-12)


def test_evidence_is_smaller_for_observations_between_0_and_1() -> None:
    probability = {0.0: 0.5, 0.5: 0.25, 1.0: 0.25}  # mean 0.375
    evidence = np.exp(log_rate_evidence(7, np.arange(15) / 2, 0.375)).tolist()
    mean = math.fsum(
        math.prod(probability[x] for x in values) * evidence[round(2 * sum(values))]
        for values in itertools.product(probability, repeat=7)
    )
    assert mean == pytest.approx(0.565, abs=0.001)


@given(COUNTS, st.floats(0.01, 0.99), st.sampled_from([(0.5, 0.5), (2.0, 7.5)]))
def test_evidence_is_the_closed_form(counts: tuple[int, int], m: float, prior: tuple[float, float]) -> None:
    exact = float(mpmath.log(exact_evidence(*counts, m, prior)))
    assert float(log_rate_evidence(*counts, m, prior=prior)) == pytest.approx(exact, rel=1e-9, abs=1e-9)


@given(COUNTS, st.sampled_from([0.01, 0.05, 0.5]))
def test_the_ends_are_where_evidence_reaches_one_over_alpha(counts: tuple[int, int], alpha: float) -> None:
    n, s = counts
    low, high = (float(end) for end in rate_interval(n, s, alpha=alpha))
    assert 0.0 <= low <= (s / n if n else 0.5) <= high <= 1.0
    for end in (low, high):
        if 0.0 < end < 1.0:
            assert float(exact_evidence(n, s, end)) == pytest.approx(1.0 / alpha, rel=1e-6)
    mirrored = [float(end) for end in rate_interval(n, n - s, alpha=alpha)]
    assert mirrored == pytest.approx([1.0 - high, 1.0 - low], abs=1e-12)
    wider = rate_interval(n, s, alpha=alpha / 2.0)
    assert wider[0] <= low
    assert wider[1] >= high


@functools.cache
def intervals(rounds: int, alpha: float) -> list[tuple[Floats, Floats]]:
    """Return the intervals after every number of observations, for every sum of them."""
    return [rate_interval(n, np.arange(n + 1), alpha=alpha) for n in range(1, rounds + 1)]


def ever_outside(m: float, rounds: int, alpha: float) -> float:
    """Return the exact probability that the interval of Bernoulli observations misses m at some time."""
    inside = np.array([1.0])  # probability of every number of clicks, never outside so far
    for low, high in intervals(rounds, alpha):
        inside = np.append(inside * (1.0 - m), 0.0) + np.insert(inside * m, 0, 0.0)
        inside[(low > m) | (high < m)] = 0.0
    return 1.0 - float(inside.sum())


@pytest.mark.parametrize(("m", "error"), [(0.02, 0.029), (0.5, 0.035)])
def test_the_rate_is_inside_at_all_times(m: float, error: float) -> None:
    assert ever_outside(m, 400, 0.05) == pytest.approx(error, abs=0.001)  # 0.05 is allowed


def test_rate_intervals_of_tables_and_without_observations() -> None:
    low, high = rate_interval([[0, 10], [100, 10**9]], [[0, 0], [100, 10**6]])
    assert low[0, 0] == 0.0
    assert high[0, 0] == 1.0
    assert low[0, 1] == 0.0
    assert high[1, 0] == 1.0
    assert 0.0009 < low[1, 1] < 0.001 < high[1, 1] < 0.0011
    for n, s in ((3, 4), (-1, 0), (2, math.nan)):
        with pytest.raises(ValueError, match="cannot sum to"):
            rate_interval(n, s)


def test_evidence_of_drift_has_mean_one() -> None:
    g = (0.2, 0.3, 0.5)
    for strength in (None, 0.5, 20.0):
        chances: dict[tuple[int, ...], float] = defaultdict(float)
        for contexts in itertools.product(range(3), repeat=8):
            counts = tuple(contexts.count(x) for x in range(3))
            chances[counts] += math.prod(g[x] for x in contexts)
        mean = math.fsum(p * drift_of(counts, g, strength=strength).evidence for counts, p in chances.items())
        assert mean == pytest.approx(1.0, rel=1e-12)


@given(st.lists(st.integers(0, 50), min_size=3, max_size=3), st.permutations(range(3)))
def test_drift_is_the_closed_form_whatever_the_order(counts: list[int], order: list[int]) -> None:
    g = np.array([0.2, 0.3, 0.5])
    with mpmath.workdps(40):
        exact = mpmath.gamma(3) / mpmath.gamma(3 + sum(counts))
        for n, p in zip(counts, g.tolist(), strict=True):
            exact *= mpmath.gamma(3 * mpmath.mpf(p) + n) / mpmath.gamma(3 * mpmath.mpf(p)) / mpmath.mpf(p) ** n
        expected = float(mpmath.log(exact))
    drift = drift_of(counts, g)
    assert drift.log_evidence == pytest.approx(expected, abs=1e-9)
    assert drift.p_value == pytest.approx(min(1.0, math.exp(-expected)), rel=1e-9)
    assert drift_of(np.array(counts)[order], g[order]).log_evidence == pytest.approx(expected, abs=1e-9)


def test_false_alarms_are_rare_and_a_change_is_detected() -> None:
    g = np.array([0.1, 0.2, 0.3, 0.4])
    alarms, replications, rounds = 0, 400, np.unique(np.geomspace(10, 1999, 60).astype(int))
    for r in range(replications):
        contexts = np.random.default_rng(r).choice(4, size=2000, p=g)
        counts = np.cumsum(np.eye(4)[contexts], axis=0)
        alarms += any(drift_of(counts[n], g).p_value <= 0.05 for n in rounds)
    assert alarms / replications <= 0.05  # measured 0.0325
    fourfold = np.array([0.4, 0.2, 0.3, 0.4]) / 1.3
    counts = np.cumsum(np.eye(4)[np.random.default_rng(0).choice(4, size=300, p=fourfold)], axis=0)
    assert drift_of(counts[-1], g).p_value < 1e-6
    assert drift_of(counts[-1], g).ratios.argmax() == 0


@pytest.mark.parametrize("strength", [1e-30, 1e-3, 1.0, 19.0, 60.0, 1e4, 1e9, 1e14, 1e20, 1e300])
@pytest.mark.parametrize("counts", [(100, 5), (0, 40), (3_000_000, 1_000_000), (1, 0)])
def test_evidence_of_drift_keeps_its_digits_whatever_the_strength(counts: tuple[int, int], strength: float) -> None:
    """A prior worth 1e20 observations leaves no evidence; plain differences of log Gamma give 72 there."""
    g = np.array([0.75, 0.25])
    with mpmath.workdps(340):
        k = mpmath.mpf(strength)
        exact = mpmath.loggamma(k) - mpmath.loggamma(k + sum(counts))
        for n, p in zip(counts, g.tolist(), strict=True):
            exact += mpmath.loggamma(k * p + n) - mpmath.loggamma(k * p) - n * mpmath.log(p)
        expected = float(exact)
    assert drift_of(counts, g, strength=strength).log_evidence == pytest.approx(expected, rel=1e-12, abs=3e-8)


def test_drift_with_a_context_of_tiny_probability() -> None:
    assert drift_of([1, 5], [1e-300, 1.0], strength=1e-30).p_value == pytest.approx(1.0, abs=0.9)
    assert drift_of([2, 5], [1e-300, 1.0]).p_value < 1e-200


def test_drift_at_the_edges() -> None:
    assert drift_of([0, 0], [0.5, 0.5]).p_value == 1.0
    assert drift_of([5, 0], [1.0, 0.0]).p_value == 1.0
    impossible = drift_of([5, 1], [1.0, 0.0])
    assert impossible.p_value == 0.0
    assert impossible.evidence == math.inf
    assert impossible.ratios.tolist() == [5 / 6, math.inf]
    assert drift_of([10**6, 0], [0.5, 0.5]).evidence == math.inf
    for counts, g, strength, words in (
        ([1], [0.5, 0.5], None, "one count"),
        ([1, -1], [0.5, 0.5], None, "none negative"),
        ([1, 1], [0.5, 0.6], None, "sum to 1"),
        ([1, 1], [0.5, 0.5], 0.0, "strength must be"),
    ):
        with pytest.raises(ValueError, match=words):
            drift_of(counts, g, strength=strength)


def test_evidence_of_averages_has_mean_at_most_one_for_any_rates() -> None:
    """Rates that depend on the past: every path of 10 clicks, with the sum of its own rates."""
    rules: list[Callable[[tuple[int, ...]], float]] = [
        lambda past: 0.3,
        lambda past: 0.1 + 0.8 * (sum(past) % 2),
        lambda past: 1.0 / (2 + len(past)),
    ]
    for rule in rules:
        mean = 0.0
        for values in itertools.product((0, 1), repeat=10):
            rates = [rule(values[:i]) for i in range(10)]
            chance = math.prod(rate if x else 1.0 - rate for x, rate in zip(values, rates, strict=True))
            mean += chance * math.exp(log_average_evidence(10, sum(values), sum(rates) / 10))
        assert 0.3 < mean <= 1.0


@given(COUNTS, st.sampled_from([0.01, 0.05, 0.5]))
def test_the_ends_for_averages(counts: tuple[int, int], alpha: float) -> None:
    n, s = counts
    low, high = (float(end) for end in average_rate_interval(n, s, alpha=alpha))
    assert 0.0 <= low <= (s / n if n else 0.5) <= high <= 1.0
    for end in (low, high):
        if 0.0 < end < 1.0:
            assert float(log_average_evidence(n, s, end)) == pytest.approx(-math.log(alpha), rel=1e-6)
    mirrored = [float(end) for end in average_rate_interval(n, n - s, alpha=alpha)]
    assert mirrored == pytest.approx([1.0 - high, 1.0 - low], abs=1e-12)


@given(st.integers(0, 60), st.floats(0.0, 60.0))
def test_evidence_of_averages_is_the_closed_form(s: int, total: float) -> None:
    with mpmath.workdps(40):
        sides = []
        for clicks, rates in ((s, mpmath.mpf(total)), (60 - s, 60 - mpmath.mpf(total))):
            prior = mpmath.sqrt(mpmath.mpf("0.5")) / mpmath.gamma("0.5")
            sides.append(mpmath.exp(rates) * prior * mpmath.gamma(clicks + 0.5) / (rates + 0.5) ** (clicks + 0.5))
        exact = float(mpmath.log(sum(sides) / 2))
    assert float(log_average_evidence(60, s, total / 60)) == pytest.approx(exact, abs=1e-9)


def test_averages_of_rates_that_change_are_inside_at_all_times() -> None:
    """A rate that depends on the last click; 0.1 is allowed, 0.03 measured in 300 replications."""
    wrong, replications = 0, 100
    for r in range(replications):
        rng = np.random.default_rng(r)
        clicks, rates, last = np.zeros(500), np.zeros(500), 0.0
        for i in range(500):
            rates[i] = 0.05 + 0.4 * last + 0.3 * (i > 250)
            clicks[i] = last = float(rng.random() < rates[i])
        n = np.arange(1, 501)
        low, high = average_rate_interval(n, np.cumsum(clicks), alpha=0.1)
        average = np.cumsum(rates) / n
        wrong += bool(((average < low) | (average > high)).any())
    assert wrong / replications <= 0.1


def test_mean_evidence_of_an_alarm_is_the_sum_of_its_weights() -> None:
    """Every sequence of 7 batches of one or two contexts; dropped tests lose their weights."""
    g, mean = (0.3, 0.7), 0.0
    for contexts in itertools.product(range(2), repeat=9):
        chance, alarm = math.prod(g[x] for x in contexts), DriftAlarm.against(g)
        for batch in np.split(np.array(contexts), [1, 3, 4, 6, 7, 8]):
            previous, alarm = alarm, alarm.observe(np.bincount(batch, minlength=2))
        starts = (*previous.starts, previous.batches)
        rows = np.vstack([previous.counts, np.zeros(2)]) + np.bincount(contexts[8:], minlength=2)
        mean += chance * sum(
            drift_of(row, g).evidence / ((j + 1) * (j + 2)) for j, row in zip(starts, rows, strict=True)
        )
    assert starts == (0, 2, 3, 4, 5, 6)
    assert mean == pytest.approx(sum(1 / ((j + 1) * (j + 2)) for j in starts), rel=1e-12)


def test_an_alarm_detects_a_change_that_total_counts_hide() -> None:
    g, changed = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.2, 0.3, 0.4]) / 1.3
    false, delays, replications = 0, [], 20
    for r in range(replications):
        rng, alarm, counts = np.random.default_rng(r), DriftAlarm.against(g), np.zeros(4)
        for _ in range(300):
            batch = rng.multinomial(50, g)
            alarm, counts = alarm.observe(batch), counts + batch
        false += alarm.drift.p_value <= 0.05
        assert len(alarm.starts) <= 2 * math.log2(300) + 4
        delay = 0
        while alarm.drift.p_value > 0.05:
            delay += 50
            batch = rng.multinomial(50, changed)
            alarm, counts = alarm.observe(batch), counts + batch
        delays.append(delay)
        assert drift_of(counts, g).p_value > 0.05
        assert alarm.drift.ratios[0] > 1.5
    assert false == 0
    assert np.mean(delays) < 250  # 140 contexts after 15,000 with the old distribution


def test_an_alarm_stays_raised_and_starts_without_evidence() -> None:
    alarm = DriftAlarm.against([0.5, 0.5])
    assert alarm.drift.p_value == 1.0
    raised = alarm.observe([100, 0])
    assert raised.drift.p_value < 1e-20
    assert raised.observe([50, 150]).drift.p_value == raised.drift.p_value
    assert repr(raised).startswith("DriftAlarm(2 contexts, 1 batches, p = ")
    with pytest.raises(ValueError, match="one count"):
        alarm.observe([1, 2, 3])
    with pytest.raises(ValueError, match="sum to 1"):
        DriftAlarm.against([0.5, 0.6])


@pytest.mark.parametrize(("n", "s"), [(19, 0), (10**6, 999_999), (10**9, 3 * 10**8), (10**12, 10**9), (10**15, 10**15)])
@pytest.mark.parametrize("alpha", [0.05, 1e-6, 0.9])
def test_ends_lie_outside_however_many_observations_there_are(n: int, s: int, alpha: float) -> None:
    a, log_threshold = mpmath.mpf(0.5), -math.log(alpha)
    with mpmath.workdps(50):
        for end in (float(end) for end in rate_interval(n, s, alpha=alpha)):
            if 0.0 < end < 1.0:
                m, both = mpmath.mpf(end), mpmath.loggamma(a + s) + mpmath.loggamma(a + n - s) - mpmath.loggamma(n + 1)
                evidence = both - mpmath.log(mpmath.pi) - s * mpmath.log(m) - (n - s) * mpmath.log(1 - m)
                assert log_threshold <= evidence
                if 1e-6 < end < 1.0 - 1e-6:  # doubles are too coarse elsewhere
                    assert evidence < log_threshold + 1e-6
        for end in (float(end) for end in average_rate_interval(n, s, alpha=alpha)):
            if 0.0 < end < 1.0:
                mass = n * mpmath.mpf(end)
                sides = [
                    side
                    + a * mpmath.log(a)
                    - mpmath.loggamma(a)
                    + mpmath.loggamma(a + k)
                    - (a + k) * mpmath.log(a + side)
                    for side, k in ((mass, s), (n - mass, n - s))
                ]
                assert log_threshold <= mpmath.log(sum(map(mpmath.exp, sides)) / 2)
