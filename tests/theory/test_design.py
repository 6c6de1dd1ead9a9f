"""The public `design` and `Design`: kinds, bounds, given policies, refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.theory import designs
from bothworlds.theory.design import KINDS, design_for
from support.problems import random_problem


@given(st.integers(0, 500), st.integers(1, 6), st.integers(2, 6), st.integers(1, 4))
def test_every_design_is_a_policy_with_its_coverage_and_limit(seed: int, S: int, K: int, d: int) -> None:
    problem = random_problem(seed, S=S, K=K, d=d)
    for kind in KINDS:
        result = bw.design(problem, kind)
        assert result.exploration.sum(axis=1) == pytest.approx(np.ones(S), abs=1e-9)
        assert (result.exploration >= 0).all()
        assert result.coverage <= 1.0 / problem.dimension * (1 + 1e-9)
        assert result.coverage <= result.coverage_limit * (1 + 1e-9)
        checked = bw.Design.of(problem, result.exploration)
        assert checked.coverage == pytest.approx(result.coverage, rel=1e-6)
        z, g = problem.features, problem.probabilities
        sigma = np.einsum("x,xa,xai,xaj->ij", g, result.exploration, z, z)
        if problem.dimension == problem.features.shape[2]:  # |z| = 1, so lambda is at least the smallest eigenvalue
            assert result.coverage >= np.linalg.eigvalsh(sigma)[0] * (1 - 1e-6)
    per_context = bw.design(problem, "per-context").coverage
    assert per_context >= (1 - 1e-3) / (problem.dimension * problem.rarity)


def test_the_joint_design_is_the_best_of_all() -> None:
    problem = random_problem(2, S=8, K=4, d=4, rarity=50.0)
    coverages = {kind: bw.design(problem, kind).coverage for kind in KINDS}
    assert max(coverages, key=lambda kind: coverages[kind]) == "joint-g"
    assert bw.design(problem).gap <= 1e-3


def test_the_bound_holds_for_the_design_per_context_only() -> None:
    problem = random_problem(3)
    result = bw.design(problem, "per-context", coverage="bound")
    assert result.coverage == pytest.approx(1 / (3 * problem.rarity))
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
    with pytest.raises(ValueError, match="tolerance must be a number of at least 0"):
        bw.design(random_problem(), tolerance=tolerance)


@pytest.mark.parametrize("coverage", [np.nan, 0.0, -0.1])
def test_a_design_with_invalid_coverage_is_refused(coverage: float) -> None:
    problem = random_problem()
    even = problem.available / problem.available.sum(axis=1, keepdims=True)
    result = bw.Design("own", even, coverage, 0.5)
    with pytest.raises(ValueError, match="claims a coverage"):
        bw.LCTsallisINF(tuning="certified", design=result).start(problem, interpreted=True)


def test_designs_are_cached_and_copies_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = designs.joint_g_optimal

    def recording(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(designs, "joint_g_optimal", recording)
    first = design_for(random_problem(41, S=3, K=3, d=2), "joint-g")
    kept = first.exploration.copy()
    first.exploration[...] = 0.0
    second = design_for(random_problem(41, S=3, K=3, d=2), "joint-g")
    assert len(calls) == 1
    assert np.array_equal(second.exploration, kept)
    assert np.array_equal(bw.design(random_problem(41, S=3, K=3, d=2)).exploration, kept)
