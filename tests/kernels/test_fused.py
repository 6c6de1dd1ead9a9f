"""Fused multiply-add of floats, packs and mixtures of both, against fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.kernels.arithmetic import WIDTH, fused

FLOATS = st.floats(-1e100, 1e100)


def rounded_once(left: float, right: float, addend: float) -> float:
    """Return left * right + addend, computed exactly and rounded once."""
    return float(Fraction(left) * Fraction(right) + Fraction(addend))


@given(left=FLOATS, right=FLOATS, addend=FLOATS)
def test_floats_are_rounded_once(left: float, right: float, addend: float) -> None:
    result = fused(left, right, addend)
    assert type(result) is float
    assert result == rounded_once(left, right, addend)
    assert fused(np.float64(left), right, np.float64(addend)) == result


@given(left=FLOATS, right=st.lists(FLOATS, min_size=WIDTH, max_size=WIDTH), addend=FLOATS)
def test_packs_have_the_bits_of_their_numbers(left: float, right: list[float], addend: float) -> None:
    one_by_one = [fused(left, number, addend) for number in right]
    pack = np.array(right)
    for parts in ((left, pack, addend), (np.full(WIDTH, left), pack, addend), (left, pack, np.full(WIDTH, addend))):
        assert fused(*parts).tolist() == one_by_one


@pytest.mark.parametrize(("parts", "expected"), [((2, 3.0, 1), 7.0), ((np.array(2.0), 3.0, 1.0), 7.0)])
def test_integers_and_arrays_without_axes_are_converted(parts: tuple[Any, Any, Any], expected: float) -> None:
    assert fused(*parts) == expected


def test_overflow_and_nan_cause_no_warning() -> None:
    assert fused(1e200, 1e200, 0.0) == np.inf
    assert np.isnan(fused(np.inf, 0.0, 1.0))
    with np.errstate(all="ignore"):
        assert fused(np.full(WIDTH, 1e200), 1e200, 0.0).tolist() == [np.inf] * WIDTH
