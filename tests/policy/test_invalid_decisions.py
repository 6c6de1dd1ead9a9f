"""What no decision, problem, prior or row can be made of is refused in a sentence."""

from collections.abc import Callable
from typing import Any

import pytest

import bothworlds as bw
from support.named_policies import make
from support.problems import random_problem

NUMBER: Any = 5


def test_a_decision_needs_all_its_fields() -> None:
    values = make().act(0).to_dict()
    del values["direction"]
    with pytest.raises(ValueError, match="direction missing"):
        bw.Decision.from_dict(values)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("round", "x"),
        ("context", 0.5),
        ("arm", None),
        ("arm_name", 5),
        ("propensity", None),
        ("propensity", "0.5"),
        ("direction", "x"),
        ("direction", 5),
        ("direction", [[1.0, 2.0], [3.0]]),
        ("baseline", 5),
        ("version", None),
        ("holdout", "false"),
        ("fingerprint", None),
        ("policy", None),
        ("id", 5),
    ],
)
def test_a_decision_is_not_made_of_what_it_cannot_have(part: str, value: Any) -> None:
    values = make().act(0).to_dict()
    assert bw.Decision.from_dict(values).to_dict() == values
    with pytest.raises(ValueError, match=rf"not a decision: its {part} is|{part} of a decision must be a whole number"):
        bw.Decision.from_dict({**values, part: value})
    with pytest.raises(ValueError, match="from_dict needs the dictionary of a decision"):
        bw.Decision.from_dict(value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda nothing: bw.LinUCB().start(nothing), "a policy starts on a Problem"),
        (lambda nothing: bw.LCTsallisINF().start(nothing), "a policy starts on a Problem"),
        (lambda nothing: bw.LinUCB().start(random_problem(), prior=nothing), "prior= must be a Prior"),
        (lambda nothing: make().change(nothing), "change needs a Problem"),
        (lambda nothing: bw.Prior.from_rows(random_problem(), NUMBER), "rows must be a list or an iterator"),
        (lambda nothing: bw.Prior.from_rows(random_problem(), nothing), "a row needs context, arm and reward"),
    ],
)
def test_what_is_no_problem_no_prior_and_no_row_is_refused(call: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(["nothing"])
