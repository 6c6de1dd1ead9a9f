"""Limits on sizes: of settings at the start, and of changes before anything large is computed."""

import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

import bothworlds as bw
from bothworlds.service import limits
from bothworlds.service.changes import changed_problem
from bothworlds.service.limits import ProblemSize, check_size, exceeded_limit, most_arms, size_of, tabular_size
from bothworlds.service.messages import Arm, Change, Refusal
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings, tabular_problem
from support.services import settings

SIZES = [
    (ProblemSize(contexts=4, arms=250, own=5), None),
    (ProblemSize(contexts=4, arms=251, own=5), "4 contexts with 251 arms make 1,004 dimensions; at most 1,000"),
    (ProblemSize(contexts=2, arms=1_000, shared=20), None),
    (ProblemSize(contexts=2, arms=1_001, shared=20), "there are 1,001 arms; at most 1,000"),
    (ProblemSize(contexts=10_000, arms=2, shared=3), None),
    (ProblemSize(contexts=10_001, arms=2, shared=3), "there are 10,001 contexts; at most 10,000"),
    (ProblemSize(contexts=5_000, arms=100, shared=25), None),
    (ProblemSize(contexts=5_000, arms=100, shared=26), "make 104,000,000 bytes of features; at most 100,000,000"),
]


@pytest.mark.parametrize(("size", "refusal"), SIZES)
def test_each_limit_is_exact(size: ProblemSize, refusal: str | None) -> None:
    assert (exceeded_limit(size) is None) == (refusal is None)
    if refusal is not None:
        with pytest.raises(ValueError, match=refusal):
            check_size(size)


@pytest.mark.parametrize("size", [size for size, _ in SIZES])
def test_the_most_arms_fit_and_one_more_does_not(size: ProblemSize) -> None:
    arms = most_arms(size)
    assert arms == 0 or exceeded_limit(replace(size, arms=arms)) is None
    assert exceeded_limit(replace(size, arms=arms + 1)) is not None


def test_a_refusal_says_what_would_fit() -> None:
    with pytest.raises(ValueError, match=r"at most 1,000 are allowed: 250 arms would fit\. Retire"):
        check_size(tabular_size(contexts=4, arms=504))
    with pytest.raises(ValueError, match=r"two arms would not fit either\. Use fewer contexts"):
        check_size(tabular_size(contexts=600, arms=2))


def test_the_size_of_a_tabular_problem_is_known_before_it_is_built() -> None:
    shares = {"mobile": 0.5, "desktop": 0.25, "other": 0.25}
    problem = tabular_problem(shares, ["red", "blue"], reward_range=(0, 1), other=None)
    built, declared = size_of(problem), tabular_size(contexts=3, arms=2)
    assert (built.columns, built.dimensions, built.bytes) == (declared.columns, declared.dimensions, declared.bytes)
    assert (problem.dimension, problem.features.nbytes) == (declared.dimensions, declared.bytes)


@pytest.mark.parametrize(("contexts", "arms"), [(4, 400), (4, 30_000), (30_000, 2)])
def test_settings_are_refused_before_anything_is_built(contexts: int, arms: int, tmp_path: Path) -> None:
    names = [f"arm {a}" for a in range(arms)]
    declared = ExperimentSettings(arms=names, contexts=[f"context {x}" for x in range(contexts)])
    with pytest.raises(ValueError, match="are allowed"):
        declared.make_problem(tmp_path)


def test_settings_with_a_file_have_the_same_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bw.Problem(features=[[[1, 0], [0, 1], [1, 1]]], probabilities=[1]).save(tmp_path / "problem.npz")
    chosen = settings(tmp_path, experiments={"from file": ExperimentSettings(problem="problem.npz")})
    chosen.check()
    monkeypatch.setattr(limits, "MOST_ARMS", 2)
    with pytest.raises(ValueError, match="from file: there are 3 arms; at most 2 are allowed: 2 arms would fit"):
        chosen.check()


def test_a_large_change_is_refused_at_once(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    before = service.plan(None)
    request = Change(add=[Arm(f"new {a}") for a in range(30_000)])
    tracemalloc.start()
    start = time.monotonic()
    status, answer = service.change(request)
    took, (_, peak) = time.monotonic() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert status == 422
    assert isinstance(answer, Refusal)
    assert "there are 30,003 arms; at most 1,000 are allowed: 500 arms would fit" in answer.error
    assert took < 3.0
    assert peak < 30_000_000
    assert service.plan(None) == before
    service.close()


def test_arms_with_features_have_limits_and_retired_arms_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = bw.Problem(features=[[[1, 0], [0, 1], [1, 1]]], probabilities=[1])
    monkeypatch.setattr(limits, "MOST_ARMS", 3)
    new = Arm("new", features=[0.5, 1.0])
    with pytest.raises(ValueError, match="there are 4 arms; at most 3"):
        changed_problem(problem, Change(add=[new]))
    changed = changed_problem(problem, Change(add=[new], retire=["0", "0"]))
    assert changed.arms == ("1", "2", "new")


def test_a_problem_above_the_limits_can_be_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tabular_problem({"all": 1.0}, ["a", "b", "c", "d"], reward_range=(0, 1), other=None)
    monkeypatch.setattr(limits, "MOST_ARMS", 2)
    assert changed_problem(problem, Change(probabilities=[1.0])) == problem
    assert changed_problem(problem, Change(retire=["a", "c"])).arms == ("b", "d")
