"""Where a number is asked for, truth values and complex numbers are refused in the words of that place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.logs import read_csv
from bothworlds.theory.confidence.checks import checked_above

PROBLEM = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
ASKED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a prior's rounds": (lambda n: bw.Prior(theta=[0, 0], information=np.eye(2), rounds=n), "rounds must be a number"),
    "a design's tolerance": (lambda n: bw.design(PROBLEM, tolerance=n), "tolerance is by which fraction"),
    "a holdout": (lambda n: bw.FixedPolicy().start(PROBLEM, holdout=n), "holdout is the share"),
    "trust in a change": (lambda n: bw.FixedPolicy().start(PROBLEM).change(PROBLEM, trust=n), "trust must lie between"),
    "an end of an interval": (lambda n: checked_above(n, 0.0, "begins_at"), "begins_at must be a number"),
    "a propensity": (lambda n: read_csv("none.csv", arm="arm", propensity=n), "propensity= is the name of a column"),
}


@pytest.mark.parametrize("given", [True, np.True_, np.complex128(0.5), 0.5j, "0.5", None])
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_no_number_is_refused(asked: str, given: Any) -> None:
    make, words = ASKED[asked]
    if (asked, given) == ("a propensity", None):
        words = "a log without propensities"
    if (asked, given) == ("a propensity", "0.5"):
        return  # the name of a column
    with pytest.raises(ValueError, match=words):
        make(given)
