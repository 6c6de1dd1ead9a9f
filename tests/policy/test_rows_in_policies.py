"""Contexts as rows, in policies and plans: the same decisions as by name, and files that know the rows."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bothworlds as bw

VISITS = pd.DataFrame({"device": ["mobile", "desktop", "mobile", "mobile"], "age": [25, 40, 40, 25]})


def make(**options: Any) -> bw.Policy:
    return bw.LCTsallisINF().start(bw.Problem.from_sample(VISITS, arms=["red", "blue"], **options), rng=7)


@pytest.mark.parametrize(
    "row", [{"device": "mobile", "age": 40, "hour": 9}, ("mobile", 40), VISITS.iloc[2], "mobile, 40", 2]
)
def test_one_context_in_any_form(row: Any) -> None:
    policy = make()
    made, named = policy.act(row), make().act("mobile, 40")
    assert isinstance(made, bw.Decision)
    assert (made.context, made.context_name, made.arm) == (2, "mobile, 40", named.arm)
    plan = policy.plan()
    assert plan.act(row, id="visit").to_dict() == policy.act(row, id="visit").to_dict()
    assert plan.act(row).context == 2
    assert plan.probabilities(row).tolist() == policy.probabilities(row).tolist() == [0.5, 0.5]


def test_several_contexts_in_any_form() -> None:
    policy = make()
    in_any_form: tuple[Any, ...] = (VISITS, ["mobile, 25", ("desktop", 40), {"device": "mobile", "age": 40}, 0])
    for several in in_any_form:
        assert [made.context for made in policy.act(several)] == [0, 1, 2, 0]
    assert [made.context for made in policy.act(("mobile, 40", "desktop, 40"))] == [2, 1]
    column = pd.Series(["desktop, 40", "mobile, 25"])
    assert [made.context for made in policy.act(column)] == [1, 0]
    listed = bw.LCTsallisINF().start(bw.Problem.from_sample(["mobile", "desktop"], arms=2))
    assert [made.context for made in listed.act(pd.Series(["desktop", "mobile", "desktop"]))] == [1, 0, 1]
    with pytest.raises(ValueError, match="id= takes exactly one context"):
        policy.act(VISITS, id="visit")


def test_a_row_that_was_never_seen() -> None:
    policy = make(other="the rest", rare=0.3)
    assert policy.act(("tablet", 70)).context_name == "the rest"
    assert policy.plan().act({"device": "tablet", "age": 70}).context_name == "the rest"
    strict = make()
    for act in (strict.act, strict.plan().act):
        with pytest.raises(ValueError, match="unknown context"):
            act(("tablet", 70))
        with pytest.raises(ValueError, match="the row has no 'age'"):
            act({"device": "mobile"})
    assert strict.rounds == 0


def test_files_know_the_rows(tmp_path: Path) -> None:
    policy = make(other="the rest", rare=0.3)
    policy.save(tmp_path / "policy.npz")
    policy.plan().save(tmp_path / "plan.npz")
    policy.save(tmp_path / "small.npz", frame=False)
    read: list[Any] = [
        bw.load(tmp_path / "policy.npz"),
        bw.load(tmp_path / "small.npz", frame=tmp_path / "plan.npz"),
        bw.load_plan(tmp_path / "plan.npz"),
        policy.copy(),
    ]
    for again in read:
        assert (again.problem.rows, again.problem.other) == (policy.problem.rows, "the rest")
        assert again.act(("mobile", 25)).context_name == "mobile, 25"
        assert again.act({"device": "tablet", "age": 70}).context_name == "the rest"
        assert again.digest == policy.digest


def test_contexts_are_looked_up_as_the_latest_problem_has_it(tmp_path: Path) -> None:
    """Another way to look up contexts is no other problem: what is learnt, and the version, stay."""
    policy = make()
    policy.update(policy.act("mobile, 25"), loss=0.5)
    waiting, plan, before = policy.act(0), policy.plan(), (policy.version, policy.digest)
    policy.change(bw.Problem.from_sample(VISITS, arms=["red", "blue"], other="desktop, 40"))
    assert (policy.version, policy.digest) == before
    policy.plan().save(tmp_path / "plan.npz")
    for act in (policy.act, policy.plan().act, policy.copy().act, bw.load_plan(tmp_path / "plan.npz").act):
        assert act(("tablet", 70)).context_name == act("tablet").context_name == "desktop, 40"
    with pytest.raises(ValueError, match="unknown context"):
        plan.act("tablet")
    policy.update(waiting, loss=0.5)
    policy.update(plan.act(1), loss=0.5)
    assert policy.updates == policy.version == 3
    policy.change(bw.Problem.from_sample(VISITS, arms=["red", "blue"]))
    with pytest.raises(ValueError, match="unknown context"):
        policy.act("tablet")
    same = policy.plan()
    policy.change(bw.Problem.from_sample(VISITS, arms=["red", "blue"]))
    assert policy.plan() is same
