"""The small statistics of a report, against scipy and known curves."""

import numpy as np
import pytest
from scipy import stats

from bothworlds.report.statistics import growth_exponent, local_exponents, mean_of
from bothworlds.theory.confidence.student import student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 19, 99])
def test_student_quantiles(freedom: int) -> None:
    # measured: at most 0.4 % off, at three degrees of freedom
    assert student_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.005)


def test_growth_exponents_of_known_curves() -> None:
    t = np.unique(np.geomspace(1, 100_000, 200).astype(np.int64))
    for exponent in (0.25, 0.5, 1.0):
        paths = np.outer([1.0, 2.0, 3.0], t**exponent)
        assert growth_exponent(t, paths) == pytest.approx((exponent, 0.0), abs=1e-9)
    assert growth_exponent(t, np.log(t + 1.0)[None, :]).value < 0.11
    assert np.isnan(growth_exponent(t, -np.ones((2, len(t)))).value)
    assert np.isnan(growth_exponent(t[:3], np.ones((2, 3))).value)


def test_local_exponents_see_a_bend() -> None:
    """Linear up to a thousand rounds, constant from then on: the exponent falls from 1 to 0."""
    t = np.unique(np.geomspace(1, 100_000, 200).astype(np.int64))
    rounds, found = local_exponents(t, np.minimum(t, 1000.0)[None, :])
    assert rounds[0] == pytest.approx(100, rel=0.05)
    assert rounds[-1] == 100_000
    assert found[rounds <= 1000, 0] == pytest.approx(1.0)
    assert found[rounds > 10_100, 0] == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(found[:, 0]) <= 1e-12).all()


def test_growth_interval_covers_the_truth() -> None:
    """R_t = a sqrt(t) with random a and random wiggles: the 95 % interval covers 1/2 about as often as it says."""
    rng, t = np.random.default_rng(1), np.geomspace(100, 10_000, 40).astype(np.int64)
    hits = 0
    for _ in range(400):
        powers = 0.5 + 0.05 * rng.normal(size=(12, 1))
        hits += abs((e := growth_exponent(t, (t / 1000.0) ** powers)).value - 0.5) <= e.half
    assert 0.91 <= hits / 400 <= 0.98  # measured 0.945


def test_means() -> None:
    value, half = mean_of(np.array([1.0, 2.0, 3.0]))
    assert value == 2.0
    assert half == pytest.approx(stats.t.ppf(0.975, 2) / np.sqrt(3.0))
