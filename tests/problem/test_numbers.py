"""Numeric arguments refuse booleans, complex numbers, strings and None with their own messages."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.logs import read_csv
from bothworlds.theory.confidence.checks import checked_above

PROBLEM = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
ARGUMENTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a prior's rounds": (lambda n: bw.Prior(theta=[0, 0], information=np.eye(2), rounds=n), "rounds must be a number"),
    "a design's tolerance": (lambda n: bw.design(PROBLEM, tolerance=n), "tolerance must be a number of at least 0"),
    "a holdout": (lambda n: bw.FixedPolicy().start(PROBLEM, holdout=n), "holdout is the share"),
    "trust in a change": (lambda n: bw.FixedPolicy().start(PROBLEM).change(PROBLEM, trust=n), "trust must lie between"),
    "an end of an interval": (lambda n: checked_above(n, 0.0, "begins_at"), "begins_at must be a number"),
    "a propensity": (
        lambda n: read_csv("none.csv", arm="arm", propensity=n),
        "propensity= must be the name",
    ),
}


@pytest.mark.parametrize("given", [True, np.True_, np.complex128(0.5), 0.5j, "0.5", None])
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_values_that_are_not_numbers_are_refused(argument: str, given: Any) -> None:
    make, words = ARGUMENTS[argument]
    if (argument, given) == ("a propensity", None):
        words = "a log without propensities"
    if (argument, given) == ("a propensity", "0.5"):
        return  # the name of a column
    with pytest.raises(ValueError, match=words):
        make(given)
