"""The bias of a wrong law, by enumeration, against its closed form and its bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.kernels.arrays import Floats
from bothworlds.theory.designs import covariance
from bothworlds.theory.traffic import (
    expected_estimate,
    law_bias,
    law_bias_bound,
    law_error,
    law_error_bound,
    loss_bias_bound,
)

S, K, D = 4, 3, 3


def world(seed: int) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    z, theta, predicted = rng.normal(size=(S, K, D)), rng.normal(size=D), rng.normal(size=D)
    pi = 0.9 * rng.dirichlet(np.ones(K), S) + 0.1 / K
    stated, true = (0.9 * rng.dirichlet(np.ones(S)) + 0.1 / S for _ in range(2))
    return z, pi, stated, true, theta, predicted


@given(st.integers(0, 10_000))
def test_the_bias_is_the_closed_form(seed: int) -> None:
    z, pi, stated, true, theta, predicted = world(seed)
    sigma = covariance(z, stated, pi)
    mean = np.zeros(D)
    for x in range(S):  # every play, one by one
        for a in range(K):
            residual = z[x, a] @ theta - z[x, a] @ predicted
            mean += true[x] * pi[x, a] * (predicted + np.linalg.solve(sigma, z[x, a]) * residual)
    found = expected_estimate(z, pi, z @ theta, stated=stated, true=true, predicted=predicted)
    assert found == pytest.approx(mean)
    assert found - theta == pytest.approx(law_bias(z, pi, theta - predicted, stated=stated, true=true))


@given(st.integers(0, 10_000))
def test_no_bias_where_the_law_or_the_prediction_is_right(seed: int) -> None:
    z, pi, stated, true, theta, predicted = world(seed)
    right_law = expected_estimate(z, pi, z @ theta, stated=stated, true=stated, predicted=predicted)
    right_prediction = expected_estimate(z, pi, z @ theta, stated=stated, true=true, predicted=theta)
    assert right_law == pytest.approx(theta)
    assert right_prediction == pytest.approx(theta)


@given(st.integers(0, 10_000))
def test_the_bounds_hold(seed: int) -> None:
    z, pi, stated, true, theta, predicted = world(seed)
    residual, error = theta - predicted, law_error(stated, true)
    bias = law_bias(z, pi, residual, stated=stated, true=true)
    size = np.sqrt(bias @ covariance(z, stated, pi) @ bias)
    assert size <= law_bias_bound(z, pi, residual, stated=stated, error=error) * (1 + 1e-9)
    assert (np.abs(z @ bias) <= loss_bias_bound(z, pi, residual, stated=stated, error=error) * (1 + 1e-9)).all()


def test_the_bound_is_attained() -> None:
    """Two contexts with features of their own: each loss is off by its own ratio less one."""
    z, pi, stated, true = np.eye(2)[:, None], np.ones((2, 1)), np.array([0.5, 0.5]), np.array([0.8, 0.2])
    residual = np.array([1.0, 0.0])
    bias = law_bias(z, pi, residual, stated=stated, true=true)
    assert bias == pytest.approx([0.6, 0.0])
    bound = law_bias_bound(z, pi, residual, stated=stated, error=law_error(stated, true))
    assert np.sqrt(bias @ covariance(z, stated, pi) @ bias) == pytest.approx(bound)


def test_a_device_four_times_as_busy() -> None:
    """All losses are 1; the old law estimates them wrongly, with predictions of 0.9 ten times less so."""
    rng = np.random.default_rng(0)
    z = np.concatenate([np.ones((6, K, 1)), rng.normal(size=(6, K, 2))], axis=2)
    z[:3, :, 1] += 2.0  # the device
    stated = np.full(6, 1 / 6)
    true = stated * [4, 4, 4, 1, 1, 1]
    true /= true.sum()
    pi, losses = np.full((6, K), 1 / K), np.ones((6, K))
    theta = np.array([1.0, 0.0, 0.0])
    plain = z @ expected_estimate(z, pi, losses, stated=stated, true=true)
    predicted = z @ expected_estimate(z, pi, losses, stated=stated, true=true, predicted=0.9 * theta)
    assert np.abs(plain - 1.0).max() > 0.4
    assert np.abs(predicted - 1.0).max() == pytest.approx(0.1 * np.abs(plain - 1.0).max())


def test_the_error_of_a_law_is_bounded_from_counts_at_all_times() -> None:
    true, wrong, replications = np.array([0.1, 0.3, 0.6]), 0, 100
    for r in range(replications):
        contexts = np.random.default_rng(r).choice(3, size=600, p=true)
        counts = np.cumsum(np.eye(3)[contexts], axis=0)
        for n in (20, 32, 51, 81, 130, 208, 333, 532):
            stated = (counts[n] + 1) / (counts[n] + 1).sum()
            if law_error(stated, true) > law_error_bound(counts[n], stated, alpha=0.1):
                wrong += 1
                break
    assert wrong / replications <= 0.1  # 0.02 seen
