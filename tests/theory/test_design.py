"""Designs as users meet them: kinds, bounds, own policies, refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.theory import designs
from bothworlds.theory.design import KINDS, design_for
from worlds import random_problem


@given(st.integers(0, 500), st.integers(1, 6), st.integers(2, 6), st.integers(1, 4))
def test_every_design_is_a_policy_with_its_coverage_and_limit(seed: int, S: int, K: int, d: int) -> None:
    problem = random_problem(seed, S=S, K=K, d=d)
    for kind in KINDS:
        made = bw.design(problem, kind)
        assert made.exploration.sum(axis=1) == pytest.approx(np.ones(S), abs=1e-9)
        assert (made.exploration >= 0).all()
        assert made.coverage <= 1.0 / problem.dimension * (1 + 1e-9)
        assert made.coverage <= made.coverage_limit * (1 + 1e-9)
        again = bw.Design.of(problem, made.exploration)
        assert again.coverage == pytest.approx(made.coverage, rel=1e-6)
        z, g = problem.features, problem.probabilities
        sigma = np.einsum("x,xa,xai,xaj->ij", g, made.exploration, z, z)
        if problem.dimension == problem.features.shape[2]:  # |z| = 1, so lambda is at least the smallest eigenvalue
            assert made.coverage >= np.linalg.eigvalsh(sigma)[0] * (1 - 1e-6)
    per_context = bw.design(problem, "per-context").coverage
    assert per_context >= (1 - 1e-3) / (problem.dimension * problem.rarity)


def test_the_joint_design_is_the_best_of_all() -> None:
    problem = random_problem(2, S=8, K=4, d=4, rarity=50.0)
    coverages = {kind: bw.design(problem, kind).coverage for kind in KINDS}
    assert max(coverages, key=lambda kind: coverages[kind]) == "joint-g"
    assert bw.design(problem).gap <= 1e-3


def test_the_bound_holds_for_the_design_per_context_only() -> None:
    problem = random_problem(3)
    made = bw.design(problem, "per-context", coverage="bound")
    assert made.coverage == pytest.approx(1 / (3 * problem.rarity))
    for kind in ("joint-g", "joint-d", "uniform"):
        with pytest.raises(ValueError, match="per-context"):
            bw.design(problem, kind, coverage="bound")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.ones((2, 2)), "shape"),
        (np.full((4, 3), 0.3), "probability distribution"),
        (np.tile([0.5, 0.7, -0.2], (4, 1)), "probability distribution"),
        (np.tile([1.0, 0.0, 0.0], (4, 1)), "not offered"),
    ],
)
def test_own_designs_are_checked(table: object, words: str) -> None:
    available = np.ones((4, 3), dtype=bool)
    available[2, 0] = False
    with pytest.raises(ValueError, match=words):
        bw.Design.of(random_problem(1, available=available), table)


def test_a_design_that_misses_a_direction_is_refused() -> None:
    problem = bw.Problem(features=np.eye(2)[None], probabilities=[1.0])
    with pytest.raises(ValueError, match="positive definite"):
        bw.Design.of(problem, [[1.0, 0.0]])


def test_unknown_kinds_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="joint-g, joint-d, per-context, uniform"):
        bw.design(random_problem(), "optimal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'computed' or 'bound'"):
        bw.design(random_problem(), coverage="guess")  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [-1.0, np.nan, np.inf, "0.1"])
def test_a_tolerance_is_a_fraction(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="tolerance is by which fraction"):
        bw.design(random_problem(), tolerance=tolerance)


@pytest.mark.parametrize("coverage", [np.nan, 0.0, -0.1])
def test_a_design_whose_coverage_is_none_is_refused(coverage: float) -> None:
    problem = random_problem()
    even = problem.available / problem.available.sum(axis=1, keepdims=True)
    made = bw.Design("own", even, coverage, 0.5)
    with pytest.raises(ValueError, match="claims a coverage"):
        bw.LCTsallisINF(tuning="certified", design=made).start(problem, interpreted=True)


def test_a_problem_is_explored_by_one_design_and_nobody_changes_it_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    plain = designs.joint_g_optimal

    def noting(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        return plain(*arguments, **options)

    monkeypatch.setattr(designs, "joint_g_optimal", noting)
    first = design_for(random_problem(41, S=3, K=3, d=2), "joint-g")
    kept = first.exploration.copy()
    first.exploration[...] = 0.0
    second = design_for(random_problem(41, S=3, K=3, d=2), "joint-g")
    assert len(asked) == 1
    assert np.array_equal(second.exploration, kept)
    assert np.array_equal(bw.design(random_problem(41, S=3, K=3, d=2)).exploration, kept)
