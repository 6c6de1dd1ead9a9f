"""Fixed-time intervals, boundaries of sums, and special functions, checked exactly or against mpmath."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bothworlds.theory.confidence import (
    clopper_pearson,
    empirical_bernstein_interval,
    hoeffding_interval,
    log_average_evidence,
    log_rate_evidence,
    normal_mixture_boundary,
    rate_interval,
    stitched_boundary,
)
from bothworlds.theory.confidence.special import beta_cdf, beta_quantile, log_beta, zeta


@given(st.floats(0.0, 1.0), st.floats(0.5, 400.0), st.floats(0.5, 400.0))
def test_the_beta_distribution(x: float, a: float, b: float) -> None:
    exact = float(mpmath.betainc(a, b, 0, x, regularized=True))
    assert beta_cdf(x, a, b) == pytest.approx(exact, rel=1e-9, abs=1e-13)
    assert log_beta(a, b) == pytest.approx(float(mpmath.log(mpmath.beta(a, b))), rel=1e-12, abs=1e-10)


@given(st.floats(0.001, 0.999), st.integers(1, 10**6), st.integers(1, 10**6))
def test_quantiles_undo_the_distribution(p: float, a: int, b: int) -> None:
    assert beta_quantile(p, a, b) == pytest.approx(stats.beta.ppf(p, a, b), rel=1e-9)


@pytest.mark.parametrize("s", [1.01, 1.4, 2.0, 7.5])
def test_zeta(s: float) -> None:
    assert zeta(s) == pytest.approx(float(mpmath.zeta(s)), rel=1e-13)


def test_zeta_has_a_pole() -> None:
    with pytest.raises(ValueError, match="s > 1"):
        zeta(1.0)


def sample_variance(n: int, s: int) -> float:
    return s * (n - s) / (n * (n - 1))


INTERVALS = {
    "Hoeffding": lambda n, s: hoeffding_interval(n, s / n, alpha=0.1),
    "Bernstein": lambda n, s: empirical_bernstein_interval(n, s / n, sample_variance(n, s), alpha=0.1),
    "Clopper-Pearson": lambda n, s: clopper_pearson(n, s, alpha=0.1),
}


@pytest.mark.parametrize("kind", INTERVALS)
@pytest.mark.parametrize("n", [2, 40, 150])
def test_coverage_is_as_promised(kind: str, n: int) -> None:
    """The exact probability that n clicks give an interval with the rate in it, for many rates."""
    ends = np.array([INTERVALS[kind](n, s) for s in range(n + 1)])
    for m in np.linspace(0.005, 0.995, 199):
        inside = (ends[:, 0] <= m) & (m <= ends[:, 1])
        assert stats.binom.pmf(np.arange(n + 1), n, m)[inside].sum() >= 0.9 - 1e-12


def test_clopper_and_pearson_against_scipy() -> None:
    for n, s in ((20, 0), (20, 7), (20, 20), (10_000, 13)):
        exact = stats.binomtest(s, n).proportion_ci(0.95, method="exact")
        assert clopper_pearson(n, s) == pytest.approx((exact.low, exact.high), rel=1e-9)
    with pytest.raises(ValueError, match="cannot sum to"):
        clopper_pearson(3, 4)


def test_without_observations_the_interval_is_0_to_1() -> None:
    assert (
        hoeffding_interval(0, 0.5) == empirical_bernstein_interval(1, 0.5, 0.0) == clopper_pearson(0, 0) == (0.0, 1.0)
    )


@pytest.mark.parametrize(("v", "best_at"), [(3.0, 10.0), (200.0, 10.0)])
def test_the_normal_mixture_reaches_one_over_alpha_at_the_boundary(v: float, best_at: float) -> None:
    alpha = 0.05
    s = normal_mixture_boundary(v, best_at=best_at, alpha=alpha)
    log_threshold = 2 * math.log(1 / alpha)
    rho = best_at / (log_threshold + math.log(1 + log_threshold))
    density = mpmath.sqrt(rho / (2 * mpmath.pi))
    mixture = mpmath.quad(lambda c: density * mpmath.exp(c * s - c * c * (v + rho) / 2), [-20, 0, s / (v + rho), 20])
    assert float(mixture) == pytest.approx(1 / alpha, rel=1e-9)


def test_the_normal_mixture_is_narrowest_at_best_at() -> None:
    at = 100.0
    tuned = normal_mixture_boundary(at, best_at=at)
    others = [normal_mixture_boundary(at, best_at=at * factor) for factor in (0.25, 0.5, 0.8, 1.25, 2.0, 4.0)]
    assert tuned <= 1.001 * min(others)


def ever_beyond(boundary: list[float]) -> float:
    """Return the exact probability that a random walk with steps +-1 ever reaches a boundary."""
    rounds = len(boundary)
    inside = np.zeros(2 * rounds + 1)
    inside[rounds] = 1.0
    distance = np.abs(np.arange(-rounds, rounds + 1))
    for limit in boundary:
        inside = 0.5 * (np.roll(inside, 1) + np.roll(inside, -1))
        inside[distance >= limit] = 0.0
    return 1.0 - float(inside.sum())


def test_random_walks_stay_below_the_boundaries() -> None:
    """Steps of +-1 are 1-sub-Gaussian: v = n. Probabilities are exact; 0.05 is allowed."""
    rounds = range(1, 2001)
    mixture = ever_beyond([normal_mixture_boundary(float(n), best_at=200.0) for n in rounds])
    stitched = ever_beyond([stitched_boundary(float(n), begins_at=1.0) for n in rounds])
    assert 0.01 < mixture <= 0.05
    assert 0.0 < stitched <= 0.05


def test_the_stitched_boundary_follows_the_iterated_logarithm() -> None:
    v = 1e300
    ratio = stitched_boundary(v, begins_at=1.0) / math.sqrt(2 * v * math.log(math.log(v)))
    assert 1.0 < ratio < 1.6
    assert stitched_boundary(0.1, begins_at=1.0) == stitched_boundary(1.0, begins_at=1.0)
    with mpmath.workdps(30):
        pieces = 1.4 * mpmath.log(mpmath.log(20)) + mpmath.log(mpmath.zeta(1.4) / (0.025 * mpmath.log(2) ** 1.4))
        factor = (mpmath.mpf(2) ** 0.25 + mpmath.mpf(2) ** -0.25) / mpmath.sqrt(2)
        assert stitched_boundary(10.0, begins_at=1.0) == pytest.approx(
            float(factor * mpmath.sqrt(10 * pieces)), rel=1e-12
        )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hoeffding_interval(-1, 0.5), "-1 observations"),
        (lambda: hoeffding_interval(10, 1.5), "cannot sum to 15"),
        (lambda: empirical_bernstein_interval(10, math.nan, 0.1), "cannot sum to nan"),
        (lambda: empirical_bernstein_interval(1, 0.5, 0.0, alpha=95), "alpha is the probability"),
        (lambda: normal_mixture_boundary(1.0, best_at=0.0), "best_at must be a number above 0"),
        (lambda: stitched_boundary(1.0, begins_at=-1.0), "begins_at must be a number above 0"),
        (lambda: stitched_boundary(1.0, begins_at=1.0, growth=1.0), "growth must be a number above 1"),
        (lambda: rate_interval(5, 2, prior=(-1.5, 1.0)), "prior must be a number above 0"),
        (lambda: rate_interval(5, 2, prior=(0, 0)), "prior must be a number above 0"),
    ],
)
def test_invalid_arguments_are_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: empirical_bernstein_interval(10, 0.5, -1.0), "variance must be a number of at least 0; got -1"),
        (lambda: empirical_bernstein_interval(10, 0.5, math.nan), "variance must be .* got nan"),
        (lambda: normal_mixture_boundary(-5.0, best_at=1.0), "variance must be .* got -5"),
        (lambda: stitched_boundary(math.nan, begins_at=1.0), "variance must be .* got nan"),
        (lambda: log_average_evidence(10, 5, 1.5), r"average must lie in \[0, 1\]; got 1.5"),
        (lambda: log_rate_evidence(10, 5, [0.5, math.nan]), r"rate must lie in \[0, 1\]; got nan"),
    ],
)
def test_invalid_variances_and_rates_are_refused(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
