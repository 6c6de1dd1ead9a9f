"""Exploration designs against closed forms, optimality conditions and an independent optimiser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from bothworlds.theory.designs import (
    covariance,
    coverage,
    joint_d_optimal,
    joint_g_optimal,
    leverages,
    lower_bound,
    per_context_g_optimal,
    uniform,
)
from support.design_problems import KINDS, Instance, coordinates, instance

if TYPE_CHECKING:
    from collections.abc import Callable

    from bothworlds.arrays import Bools, Floats

DESIGNS: list[Callable[[Floats, Floats, Bools], Floats]] = [
    uniform,
    per_context_g_optimal,
    joint_d_optimal,
    lambda z, g, offered: joint_g_optimal(z, g, offered).e,
]


def value(z: Floats, g: Floats, e: Floats) -> float:
    return 1.0 / coverage(z, g, e)


problems = st.builds(
    instance,
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(0, 10_000),
    st.sampled_from(KINDS),
)


def slsqp_value(z: Floats, g: Floats, offered: Bools) -> float:
    """Minimise τ subject to every leverage ≤ τ, by sequential quadratic programming from several starts."""
    free = np.argwhere(offered)
    n = len(free)

    def table(v: Floats) -> Floats:
        e = np.zeros(offered.shape)
        e[offered] = v[:n]
        return e

    def room(v: Floats) -> Floats:
        return np.asarray(v[n] - leverages(z, covariance(z, g, table(v)))[offered])

    def room_jacobian(v: Floats) -> Floats:
        flat, mass = z[offered], g[free[:, 0]]
        cross = flat @ np.linalg.solve(covariance(z, g, table(v)), flat.T)
        return np.hstack([cross**2 * mass, np.ones((n, 1))])

    sums = np.zeros((len(g), n + 1))
    sums[free[:, 0], np.arange(n)] = 1.0
    constraints = [
        {"type": "ineq", "fun": room, "jac": room_jacobian},
        {"type": "eq", "fun": lambda v: sums @ v - 1.0, "jac": lambda v: sums},
    ]
    start = uniform(z, g, offered)
    x0 = np.append(start[offered], value(z, g, start))
    bounds = [(1e-9, 1.0)] * n + [(0.0, None)]
    gradient = np.append(np.zeros(n), 1.0)
    optimum = minimize(
        lambda v: v[n],
        x0,
        jac=lambda v: gradient,
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    e = np.maximum(table(optimum.x), 0.0)
    return value(z, g, e / e.sum(axis=1, keepdims=True))


# --- formulas ---------------------------------------------------------------------------------------------------


def test_covariance_is_the_explicit_sum() -> None:
    z, g, offered = instance(4, 3, 2, 0)
    e = uniform(z, g, offered)
    explicit = sum(g[x] * e[x, a] * np.outer(z[x, a], z[x, a]) for x in range(4) for a in range(3))
    np.testing.assert_allclose(covariance(z, g, e), explicit, rtol=1e-13)


def test_leverages_average_to_the_dimension_and_vanish_where_no_arm_is_offered() -> None:
    z, g, offered = instance(6, 5, 4, 1, "masked")
    e = joint_d_optimal(z, g, offered)
    lev = leverages(z, covariance(z, g, e))
    assert np.einsum("x,xa,xa", g, e, lev) == pytest.approx(z.shape[2], rel=1e-12)
    assert (lev[~offered] == 0.0).all()


def test_a_design_that_does_not_span_is_refused() -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        coverage(np.eye(2)[None], np.ones(1), np.array([[1.0, 0.0]]))


def test_a_context_without_arms_is_refused() -> None:
    z, g, offered = instance(3, 2, 2, 0)
    offered[1] = False
    for design in DESIGNS:
        with pytest.raises(ValueError, match="Context 1 offers no arm"):
            design(z, g, offered)


# --- closed forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("K", "d"), [(1, 1), (3, 3), (12, 4), (40, 6)])
def test_in_a_single_context_the_value_is_the_rank(K: int, d: int, kind: str) -> None:
    z, g, offered = instance(1, K, d, K + d, kind)
    rank = z.shape[2]
    assert value(z, g, per_context_g_optimal(z, g, offered)) <= rank * 1.0002
    assert value(z, g, joint_d_optimal(z, g, offered)) <= rank * 1.0002
    best = joint_g_optimal(z, g, offered, tolerance=1e-5)
    assert best.value == pytest.approx(rank, rel=1e-5)
    assert best.lower_bound >= rank


@pytest.mark.parametrize("seed", range(5))
def test_equal_features_in_all_contexts_give_the_dimension_for_any_g(seed: int) -> None:
    single, _, _ = instance(1, 9, 4, seed, "heavy")
    z, offered = np.repeat(single, 7, axis=0), np.ones((7, 9), dtype=bool)
    g = np.random.default_rng(seed).dirichlet(np.full(7, 0.3)) + 1e-9
    g /= g.sum()
    assert joint_g_optimal(z, g, offered).value <= 4 * 1.01
    assert value(z, g, joint_d_optimal(z, g, offered)) == pytest.approx(4.0, rel=1e-2)
    assert value(z, g, per_context_g_optimal(z, g, offered)) == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize(("S", "K"), [(2, 2), (3, 5), (10, 5), (12, 10)])
def test_one_hot_features_give_arms_times_rarity(S: int, K: int) -> None:
    z = np.sqrt(S * K) * np.eye(S * K).reshape(S, K, S * K)
    g = np.random.default_rng(S).dirichlet(np.ones(S))
    offered = np.ones((S, K), dtype=bool)
    best = joint_g_optimal(z, g, offered)
    assert best.value == pytest.approx(K / g.min(), rel=0.01)
    assert best.lower_bound <= K / g.min() * (1.0 + 1e-9)
    assert best.gap <= 0.01


def test_coverage_is_one_over_the_largest_leverage_by_hand() -> None:
    """Two orthogonal arms played with 0.8 and 0.2 have leverages 1.25 and 5, twice that if played half of the time."""
    z, e = np.eye(2)[None], np.array([[0.8, 0.2]])
    assert leverages(z, covariance(z, np.ones(1), e))[0] == pytest.approx([1.25, 5.0])
    assert coverage(z, np.ones(1), e) == pytest.approx(0.2)
    two = np.concatenate([z, [[[1.0, 0.0], [1.0, 0.0]]]])
    assert coverage(two, np.array([0.5, 0.5]), np.array([[0.8, 0.2], [1.0, 0.0]])) == pytest.approx(0.1)


def test_reference_instance_of_two_contexts_solved_by_hand() -> None:
    # Context 0 (probability p) has the first direction only, context 1 has both: e must play the second there.
    z = np.array([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    offered = np.ones((2, 2), dtype=bool)
    best = joint_g_optimal(z, np.array([0.7, 0.3]), offered, tolerance=1e-6)
    assert best.value == pytest.approx(1.0 / 0.3, rel=1e-5)
    best = joint_g_optimal(z, np.array([0.2, 0.8]), offered, tolerance=1e-6)
    assert best.value == pytest.approx(2.0, rel=1e-5)
    assert best.e[1, 1] == pytest.approx(0.625, abs=1e-3)


# --- optimality -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("S", "K", "d"), [(2, 3, 2), (10, 5, 5), (30, 8, 6), (3, 40, 3)])
def test_joint_d_meets_its_optimality_condition(S: int, K: int, d: int, kind: str) -> None:
    z, g, offered = instance(S, K, d, 7, kind)
    e = joint_d_optimal(z, g, offered)
    lev = leverages(z, covariance(z, g, e))
    d = z.shape[2]
    assert g @ lev.max(axis=1) == pytest.approx(d, rel=1.01e-4)
    best = np.linalg.slogdet(covariance(z, g, e))[1]
    for other in (uniform, per_context_g_optimal):
        assert np.linalg.slogdet(covariance(z, g, other(z, g, offered)))[1] <= best + 1.01e-4 * d


@pytest.mark.parametrize("kind", ["unit", "heavy", "sparse", "masked", "flat"])
@pytest.mark.parametrize(("S", "K", "d"), [(2, 3, 2), (3, 4, 3), (4, 3, 4), (6, 2, 3)])
def test_joint_g_agrees_with_sequential_quadratic_programming(S: int, K: int, d: int, kind: str) -> None:
    z, g, offered = instance(S, K, d, 3, kind)
    best = joint_g_optimal(z, g, offered, tolerance=1e-5)
    assert best.gap <= 1e-5
    # Any design is above the certificate; SLSQP is accurate to about 1e-4 on the flattest of these.
    assert slsqp_value(z, g, offered) >= best.lower_bound * (1.0 - 1e-9)
    assert slsqp_value(z, g, offered) == pytest.approx(best.value, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("S", "K", "d"), [(2, 2, 1), (5, 4, 3), (10, 5, 5), (10, 5, 8), (30, 3, 10), (30, 20, 20), (4, 20, 20)]
)
def test_joint_g_closes_the_gap_on_ordinary_problems(S: int, K: int, d: int, kind: str) -> None:
    z, g, offered = instance(S, K, d, 11, kind)
    best = joint_g_optimal(z, g, offered)
    assert best.gap <= 0.01
    assert value(z, g, best.e) == pytest.approx(best.value, rel=1e-9)
    for design in DESIGNS[:3]:
        assert value(z, g, design(z, g, offered)) >= best.lower_bound * (1.0 - 1e-9)


def test_joint_g_reaches_small_gaps_when_asked() -> None:
    z, g, offered = instance(10, 5, 8, 5, "heavy")
    assert joint_g_optimal(z, g, offered, tolerance=1e-6).gap <= 1e-6


def test_an_iteration_cap_shows_in_the_gap() -> None:
    z, g, offered = instance(20, 6, 8, 2, "heavy")
    capped = joint_g_optimal(z, g, offered, tolerance=1e-9, max_iterations=1)
    assert capped.gap > 1e-9
    assert capped.lower_bound <= joint_g_optimal(z, g, offered).value
    with pytest.raises(ValueError, match="off by"):
        joint_d_optimal(z, g, offered, max_iterations=2)
    with pytest.raises(ValueError, match="off by"):
        per_context_g_optimal(np.repeat(z[:, :, :3], 2, axis=1), g, np.ones((20, 12), dtype=bool), max_iterations=1)


def test_the_same_input_gives_the_same_bits() -> None:
    z, g, offered = instance(10, 5, 5, 0, "heavy")
    for design in DESIGNS:
        assert design(z, g, offered).tobytes() == design(z, g, offered).tobytes()


# --- properties -------------------------------------------------------------------------------------------------


@given(problems)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_every_design_is_a_policy_within_the_bounds_of_the_theory(problem: Instance) -> None:
    z, g, offered = problem
    d, rarity = z.shape[2], 1.0 / g.min()
    for design in DESIGNS:
        e = design(z, g, offered)
        np.testing.assert_allclose(e.sum(axis=1), 1.0, rtol=1e-12)
        assert e.min() >= 0.0
        assert (e[~offered] == 0.0).all()
        assert coverage(z, g, e) <= (1.0 + 1e-9) / d
    # Paper, Section 2.2: g(x) Σ_x ⪯ Σ, so a per-context design has leverages of at most rank_x / g(x).
    assert coverage(z, g, per_context_g_optimal(z, g, offered)) >= (1.0 - 2e-4) / (d * rarity)


@given(problems)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_certificate_is_below_every_design(problem: Instance) -> None:
    z, g, offered = problem
    best = joint_g_optimal(z, g, offered)
    bounds = [lower_bound(z, g, design(z, g, offered)) for design in DESIGNS]
    assert max(best.lower_bound, *bounds) <= best.value * (1.0 + 1e-9)
    assert min(bounds) >= z.shape[2]
    weights = np.random.default_rng(0).random(offered.shape) * offered
    assert lower_bound(z, g, best.e, weights=weights) <= best.value * (1.0 + 1e-9)


@given(problems, st.integers(0, 100))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_values_do_not_depend_on_the_coordinates(problem: Instance, seed: int) -> None:
    z, g, offered = problem
    d = z.shape[2]
    mapped = z @ (np.eye(d) + 0.3 * np.random.default_rng(seed).standard_normal((d, d)))
    if np.linalg.cond(covariance(mapped, g, uniform(z, g, offered))) > 1e8:
        return
    for design in (uniform, per_context_g_optimal, joint_d_optimal):
        e = design(z, g, offered)
        assert value(mapped, g, e) == pytest.approx(value(z, g, e), rel=1e-6)
    # The best e need not be unique, its value is; log det shifts by the same constant for every design.
    best, best_mapped = joint_g_optimal(z, g, offered), joint_g_optimal(mapped, g, offered)
    assert max(best.lower_bound, best_mapped.lower_bound) <= min(best.value, best_mapped.value) * (1.0 + 1e-9)
    assert best_mapped.value == pytest.approx(best.value, rel=0.011)
    there, here = joint_d_optimal(mapped, g, offered), joint_d_optimal(z, g, offered)
    difference = np.linalg.slogdet(covariance(z, g, there))[1] - np.linalg.slogdet(covariance(z, g, here))[1]
    assert abs(difference) <= 1.01e-4 * d


@given(problems)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_coverage_beats_the_smallest_eigenvalue_for_features_in_the_unit_ball(problem: Instance) -> None:
    z, g, offered = problem
    z = z / np.linalg.norm(z, axis=2).max()
    for design in DESIGNS:
        e = design(z, g, offered)
        assert coverage(z, g, e) >= np.linalg.eigvalsh(covariance(z, g, e))[0] * (1.0 - 1e-7)


# --- awkward contexts -------------------------------------------------------------------------------------------


def test_zero_features_duplicates_and_single_arms_in_one_problem() -> None:
    z = np.random.default_rng(8).standard_normal((6, 4, 3))
    offered = np.ones((6, 4), dtype=bool)
    z[0] = 0.0
    z[1, 1:] = 0.0
    z[2] = z[2, 0]
    z[3, 2] = 0.0
    offered[4, 1:] = False
    z[4, 1:] = 0.0
    g = np.full(6, 1.0 / 6.0)
    e = per_context_g_optimal(z, g, offered)
    np.testing.assert_allclose(e[0], 0.25)
    np.testing.assert_allclose(e[1], [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(e[4], [1.0, 0.0, 0.0, 0.0])
    assert e[3, 2] == 0.0
    z = coordinates(z, offered)
    assert joint_g_optimal(z, g, offered).gap <= 0.01
    assert np.isfinite(value(z, g, joint_d_optimal(z, g, offered)))


@pytest.mark.parametrize(("K", "d", "rank"), [(5, 8, 2), (8, 3, 1), (30, 6, 6), (60, 4, 4), (3, 5, 3)])
def test_per_context_value_is_the_rank_in_every_context(K: int, d: int, rank: int) -> None:
    rng = np.random.default_rng(K)
    z = rng.standard_normal((50, K, rank)) @ rng.standard_normal((50, rank, d))
    z *= np.abs(rng.standard_t(1.5, (50, K, 1)))
    e = per_context_g_optimal(z, np.full(50, 0.02), np.ones((50, K), dtype=bool))
    for x in range(50):
        # Leverages do not depend on coordinates; a pseudo-inverse of Σ_x itself drops directions (condition 3e9).
        y = np.linalg.svd(z[x])[0][:, :rank]
        inverse = np.linalg.inv(y.T @ (e[x][:, None] * y))
        assert np.einsum("ai,ij,aj->a", y, inverse, y).max() == pytest.approx(rank, rel=1.01e-4)
