"""GPU reciprocals equal those of a CPU up to the last bit: interpreted, compiled, and on a GPU if there is one."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bothworlds.arrays import Floats
from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.linalg import inverse_root, reciprocal
from bothworlds.kernels.tsallis_half import power_sums, shifted_sums
from bothworlds.simulation.gpu import is_available
from bothworlds.simulation.gpu.branchless_reciprocal import (
    LARGEST,
    branchless_inverse_root,
    branchless_reciprocal,
    is_moderate,
    power_sums_separately,
    shifted_sums_separately,
)
from bothworlds.simulation.gpu.kernels import cuda

WAYS = [lambda function: function, compiled]
NUMBERS = np.exp(np.random.default_rng(7).uniform(-50.0, 50.0, size=2_000))


def units_apart(found: float, number: float) -> float:
    """Return the error of 1/number in units in the last place."""
    return float(abs(Fraction(found) - 1 / Fraction(number)) / Fraction(math.ulp(found)))


@pytest.mark.parametrize("make", WAYS)
def test_a_reciprocal_without_a_branch_is_nearly_rounded_as_it_should_be(make: Callable[..., Any]) -> None:
    ours = make(branchless_reciprocal)
    assert max(units_apart(ours(number), number) for number in NUMBERS.tolist()) <= 0.51


@pytest.mark.parametrize("make", WAYS)
def test_an_inverse_root_without_a_branch_is_within_two_units(make: Callable[..., Any]) -> None:
    ours = make(branchless_inverse_root)
    assert all(abs(ours(number) - number**-0.5) <= 2.0 * math.ulp(number**-0.5) for number in NUMBERS.tolist())


@pytest.mark.parametrize("make", WAYS)
def test_an_arm_that_is_not_offered_gets_nothing_and_no_number_stays_none(make: Callable[..., Any]) -> None:
    ours, moderate = make(branchless_reciprocal), make(is_moderate)
    assert ours(math.inf) == 0.0
    assert math.isnan(ours(math.nan))
    below = math.nextafter(LARGEST, 0.0)
    assert [moderate(number) for number in (below, -below, LARGEST, math.inf, math.nan)] == [True] * 2 + [False] * 3


@pytest.mark.parametrize("make", WAYS)
@pytest.mark.parametrize("following", [1.21, 1.9])
def test_sums_of_powers_in_turn_are_those_that_run_along(following: float, make: Callable[..., Any]) -> None:
    """From the same reciprocals, after a short step and after a long one; an arm that is not offered adds nothing."""
    losses = np.array([0.0, 0.3, 2.5, math.inf, 0.01])
    plain, ours = np.full(5, np.nan), np.full(5, np.nan)
    assert make(power_sums_separately)(losses, 0.7, 1.2, ours) == power_sums(losses, 0.7, 1.2, plain)
    np.testing.assert_array_equal(ours, plain)
    moved = shifted_sums(losses, 0.7, 1.2, following, plain)
    assert make(shifted_sums_separately)(losses, 0.7, 1.2, following, ours) == moved
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(1.0 / (0.7 * losses + following), rel=1e-15)


@pytest.mark.skipif(not is_available(), reason="there is no GPU")
def test_a_gpu_takes_its_own_reciprocals() -> None:
    def fill(numbers: Floats, out: Floats) -> None:
        n = cuda.grid(1)
        if n < numbers.shape[0]:
            out[0, n] = reciprocal(numbers[n])
            out[1, n] = inverse_root(numbers[n])

    numbers = np.append(NUMBERS, [math.inf, math.nan])
    out = cuda.to_device(np.full((2, len(numbers)), -1.0))
    cuda.jit(fill)[len(numbers) // 8 + 1, 8](cuda.to_device(numbers), out)  # fewer than 128 blocks bring a warning
    (found, roots), exact = out.copy_to_host(), NUMBERS**-0.5
    assert max(units_apart(*pair) for pair in zip(found[:-2].tolist(), NUMBERS.tolist(), strict=True)) <= 0.51
    assert (np.abs(roots[:-2] - exact) <= 2.0 * np.spacing(exact)).all()
    assert found[-2] == 0.0
    assert math.isnan(found[-1])
