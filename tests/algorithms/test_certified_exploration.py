"""The search for the smallest rate: skipping leverages that cannot be the largest changes nothing."""

from typing import Any

import numpy as np
import pytest

from bothworlds.algorithms.lc_tsallis import certified_exploration
from bothworlds.arrays import Floats
from bothworlds.kernels.linalg import invert_mixture, leverage

RATES = (0.3, 0.285, 0.31, 0.0, 1e-3, 9.5e-4, 5e-10, 2e-4, 2e-4)
NOTHING = certified_exploration.LastTrial(0.0, 0.0, 0.0)


def whitened(S: int, K: int, d: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Features in coordinates where even play has the identity, nearly deterministic plans, and their covariance."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(S, K, d))
    values, vectors = np.linalg.eigh(np.einsum("xai,xaj->ij", z, z) / (S * K))
    z = z @ (vectors / np.sqrt(values))
    q = rng.dirichlet(np.full(K, 0.1), size=S)
    return z, q, np.einsum("xa,xai,xaj->ij", q, z, z) / S


def trial_of(z: Floats, q: Floats, sigma: Floats) -> Any:
    d = len(sigma)
    space = np.full((d, d), np.nan), np.full((d, d), np.nan), np.full(d, np.nan), np.ones(q.shape)
    return certified_exploration.Trial(sigma, z, q, 0.5, *space)


@pytest.mark.parametrize("seed", range(4))
def test_conditions_are_the_same_whatever_was_tried_before(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    z, q, sigma = whitened(6, 5, 14, seed)
    trial, computed = trial_of(z, q, sigma), []

    def counted(*args: Any) -> Any:
        computed.append(1)
        return leverage(*args)

    monkeypatch.setattr(certified_exploration, "leverage", counted)
    last = NOTHING
    for rate in RATES:
        found, last = certified_exploration.condition(trial, rate, last)
        fresh, _ = certified_exploration.condition(trial_of(z, q, sigma), rate, NOTHING)
        assert found == fresh
        inverse = np.linalg.inv((1.0 - rate) * sigma + rate * np.eye(14))
        lev = np.einsum("xai,ij,xaj->xa", z, inverse, z)
        assert fresh == pytest.approx(lev.max() * (q * lev).max(), rel=1e-6)
    everything = len(RATES) * q.size
    assert everything < len(computed) < 2 * everything - 3 * q.size


def test_bounds_hold_between_any_two_rates() -> None:
    z, q, sigma = whitened(6, 5, 14, 9)
    for rate in RATES[:3]:
        for other in (1e-4, 0.1, 0.29, 0.3, 0.5):
            before, after = (
                np.einsum("xai,ij,xaj->xa", z, np.linalg.inv((1.0 - g) * sigma + g * np.eye(14)), z)
                for g in (rate, other)
            )
            last = certified_exploration.LastTrial(rate, before.max(), (q * before).max())
            bounds = certified_exploration.bounds_at(last, other)
            assert (after <= bounds.ratio * before).all()
            assert bounds.highest <= after.max() * (1.0 + 1e-12)
            assert bounds.weighted <= (q * after).max() * (1.0 + 1e-12)


@pytest.mark.parametrize("d", [certified_exploration.SELECTIVE_FROM - 1, certified_exploration.SELECTIVE_FROM, 14])
@pytest.mark.parametrize("start", [0.02, 0.2, 0.0, 0.5])
def test_the_factor_of_the_result_is_stored(d: int, start: float) -> None:
    """Wherever the search starts and ends, bit for bit; small factors have to be computed again."""
    z, q, sigma = whitened(6, 5, d, 2)
    trial, alone, factor = trial_of(z, q, sigma), np.full((d, d), np.nan), np.full((d, d), np.nan)
    middle, _ = certified_exploration.condition(trial_of(z, q, sigma), 0.11, NOTHING)
    rate, inverted = certified_exploration.smallest_rate(trial, middle, start, 0.6)
    assert 0.11 <= rate * (1.0 + 1e-9) <= 0.11 / certified_exploration.WIDTH * (1.0 + 1e-6)
    assert inverted == (d >= certified_exploration.SELECTIVE_FROM)
    if inverted:
        assert invert_mixture(sigma, rate, alone, factor)
        np.testing.assert_array_equal(np.tril(trial.factor), np.tril(factor))


def test_no_factor_is_stored_if_no_smaller_rate_is_feasible() -> None:
    z, q, sigma = whitened(6, 5, 14, 2)
    found = certified_exploration.smallest_rate(trial_of(z, q, sigma), 1e-9, 0.3, 0.4)
    assert found == (0.4, 0.0)
