"""The bias of a wrong context distribution, by enumeration, against its closed form and its bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.arrays import Floats
from bothworlds.theory.designs import covariance
from context_distribution_bias import (
    distribution_bias,
    distribution_bias_bound,
    distribution_error,
    distribution_error_bound,
    expected_estimate,
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
    estimate = expected_estimate(z, pi, z @ theta, stated=stated, true=true, predicted=predicted)
    assert estimate == pytest.approx(mean)
    assert estimate - theta == pytest.approx(distribution_bias(z, pi, theta - predicted, stated=stated, true=true))


@given(st.integers(0, 10_000))
def test_no_bias_if_the_distribution_or_the_prediction_is_right(seed: int) -> None:
    z, pi, stated, true, theta, predicted = world(seed)
    right_distribution = expected_estimate(z, pi, z @ theta, stated=stated, true=stated, predicted=predicted)
    right_prediction = expected_estimate(z, pi, z @ theta, stated=stated, true=true, predicted=theta)
    assert right_distribution == pytest.approx(theta)
    assert right_prediction == pytest.approx(theta)


@given(st.integers(0, 10_000))
def test_the_bounds_hold(seed: int) -> None:
    z, pi, stated, true, theta, predicted = world(seed)
    residual, error = theta - predicted, distribution_error(stated, true)
    bias = distribution_bias(z, pi, residual, stated=stated, true=true)
    size = np.sqrt(bias @ covariance(z, stated, pi) @ bias)
    assert size <= distribution_bias_bound(z, pi, residual, stated=stated, error=error) * (1 + 1e-9)
    assert (np.abs(z @ bias) <= loss_bias_bound(z, pi, residual, stated=stated, error=error) * (1 + 1e-9)).all()


def test_the_bound_is_attained() -> None:
    """Two contexts with separate features: the bias of each loss is its own ratio minus one."""
    z, pi, stated, true = np.eye(2)[:, None], np.ones((2, 1)), np.array([0.5, 0.5]), np.array([0.8, 0.2])
    residual = np.array([1.0, 0.0])
    bias = distribution_bias(z, pi, residual, stated=stated, true=true)
    assert bias == pytest.approx([0.6, 0.0])
    bound = distribution_bias_bound(z, pi, residual, stated=stated, error=distribution_error(stated, true))
    assert np.sqrt(bias @ covariance(z, stated, pi) @ bias) == pytest.approx(bound)


def test_a_device_four_times_as_busy() -> None:
    """All losses are 1; predictions of 0.9 make the bias of their estimates ten times smaller."""
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


def test_the_distribution_error_is_bounded_from_counts_at_all_times() -> None:
    true, wrong, replications = np.array([0.1, 0.3, 0.6]), 0, 100
    for r in range(replications):
        contexts = np.random.default_rng(r).choice(3, size=600, p=true)
        counts = np.cumsum(np.eye(3)[contexts], axis=0)
        for n in (20, 32, 51, 81, 130, 208, 333, 532):
            stated = (counts[n] + 1) / (counts[n] + 1).sum()
            if distribution_error(stated, true) > distribution_error_bound(counts[n], stated, alpha=0.1):
                wrong += 1
                break
    assert wrong / replications <= 0.1  # measured 0.02
