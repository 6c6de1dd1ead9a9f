"""A product and a sum with one rounding: floats, packs, and what is mixed of them, against fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from bothworlds.kernels.arithmetic import WIDTH, fused

FLOATS = some.floats(-1e100, 1e100)


def rounded_once(left: float, right: float, more: float) -> float:
    """Return left * right + more, computed without an error and rounded at the end."""
    return float(Fraction(left) * Fraction(right) + Fraction(more))


@given(left=FLOATS, right=FLOATS, more=FLOATS)
def test_floats_are_rounded_once(left: float, right: float, more: float) -> None:
    found = fused(left, right, more)
    assert type(found) is float
    assert found == rounded_once(left, right, more)
    assert fused(np.float64(left), right, np.float64(more)) == found


@given(left=FLOATS, right=some.lists(FLOATS, min_size=WIDTH, max_size=WIDTH), more=FLOATS)
def test_a_pack_gets_what_its_numbers_get_alone(left: float, right: list[float], more: float) -> None:
    alone = [fused(left, one, more) for one in right]
    pack = np.array(right)
    for parts in ((left, pack, more), (np.full(WIDTH, left), pack, more), (left, pack, np.full(WIDTH, more))):
        assert fused(*parts).tolist() == alone


@pytest.mark.parametrize(("parts", "found"), [((2, 3.0, 1), 7.0), ((np.array(2.0), 3.0, 1.0), 7.0)])
def test_what_is_no_float_counts_as_one(parts: tuple[Any, Any, Any], found: float) -> None:
    assert fused(*parts) == found


def test_it_overflows_and_has_no_number_without_a_word() -> None:
    assert fused(1e200, 1e200, 0.0) == np.inf
    assert np.isnan(fused(np.inf, 0.0, 1.0))
    with np.errstate(all="ignore"):
        assert fused(np.full(WIDTH, 1e200), 1e200, 0.0).tolist() == [np.inf] * WIDTH
