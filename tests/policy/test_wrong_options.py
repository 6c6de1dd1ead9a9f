"""Options that an algorithm does not have: the sentence names the one that was meant."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.algorithms.registry import algorithms, make_algorithm


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (bw.LinUCB, {"alpha": 1}, "LinUCB has no option 'alpha'; its exploration width is width="),
        (bw.LinUCB, {"lambda_": 1}, "LinUCB has no option 'lambda_'; its ridge penalty is ridge="),
        (bw.LinUCB, {"widht": 1}, "LinUCB has no option 'widht'; did you mean width=?"),
        (bw.LinUCB, {"something": 1}, "LinUCB has no option 'something'; its options are width=, ridge="),
        (bw.LinUCB, {"seed": 1}, r"LinUCB has no option 'seed'; the seed goes to start\(problem, rng=...\)"),
        (bw.LinUCB, {"n_arms": 3}, "LinUCB has no option 'n_arms'; sizes and features are those of the problem"),
        (bw.LinTS, {"v": 1}, "LinTS has no option 'v'; the spread of its samples is spread="),
        (bw.RealFTRL, {"T": 100}, "RealFTRL has no option 'T'; the number of rounds is horizon="),
        (
            bw.LCTsallisINF,
            {"learning_rate": 1},
            "LCTsallisINF has no option 'learning_rate'; the choice of its rates is tuning=",
        ),
        (bw.PerContextExp3, {"gamma": 1}, "PerContextExp3 has no option 'gamma'; it has no options"),
    ],
)
def test_an_unknown_option(make: Callable[..., Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=f"^{words}"):
        make(**options)


def test_an_option_by_position() -> None:
    make: Any = bw.LinUCB
    with pytest.raises(TypeError, match=r"LinUCB takes its options by name: LinUCB\(width=1\)"):
        make(1)
    assert bw.FixedPolicy(np.full((1, 2), 0.5)).table is not None


def test_a_study_says_the_same() -> None:
    with pytest.raises(ValueError, match="algorithm LinUCB: LinUCB has no option 'alpha'; its exploration width"):
        make_algorithm({"kind": "LinUCB", "alpha": 1})


def test_algorithms_are_copied_as_before() -> None:
    for make in algorithms().values():
        needs = {"horizon": 50} if "horizon" in getattr(make, "__dataclass_fields__", {}) else {}
        made = make(**needs)
        for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), replace(made)):
            assert repr(other) == repr(made)


def test_a_users_class_may_take_anything() -> None:
    class Mine(bw.Algorithm):
        def __init__(self, **options: Any) -> None:
            self.options = options

        def machine(self, problem: Any, frame: Any = None) -> Any:
            return bw.FixedPolicy().machine(problem)

    class Plain(bw.Algorithm):
        def machine(self, problem: Any, frame: Any = None) -> Any:
            return bw.FixedPolicy().machine(problem)

    assert Mine(alpha=1).options == {"alpha": 1}
    make: Any = Plain
    with pytest.raises(TypeError, match="Plain has no option 'alpha'; it has no options"):
        make(alpha=1)
    with pytest.raises(TypeError, match="Plain has no options"):
        make(1)
