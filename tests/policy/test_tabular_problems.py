"""Tabular problems: closed forms give what the general code gives, and large problems take seconds."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.policy import feature_map
from bothworlds.policy.feature_map import Pairs, coordinate_change
from bothworlds.problem import feature_space, one_hot
from bothworlds.problem.block_features import block_features, undo_blocks
from bothworlds.problem.feature_space import span_of
from bothworlds.theory import coordinates, designs
from bothworlds.theory.design import KINDS, Kind, design

OFFERED = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 1, 1]], dtype=bool)
G = np.array([0.5, 0.3, 0.2])
ALL = np.ones_like(OFFERED)


def tabular(arms: list[str], *, available: Any = None, contexts: Any = ("x", "y", "z")) -> bw.Problem:
    """Return a problem with a constant and an indicator of each context, for every arm."""
    rows = np.hstack([np.ones((len(contexts), 1)), np.eye(len(contexts))])
    g = G[: len(contexts)] / G[: len(contexts)].sum()
    return bw.Problem.from_arm_independent(rows, probabilities=g, arms=arms, contexts=contexts, available=available)


def general(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be computed without closed forms."""

    def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(feature_space, "tabular_basis", nothing)
    monkeypatch.setattr(feature_map, "one_hot", nothing)
    monkeypatch.setattr(coordinates, "one_hot", nothing)
    monkeypatch.setattr(designs, "is_tabular", lambda *_: False)


@pytest.mark.parametrize("available", [ALL, OFFERED])
def test_every_offered_pair_has_a_coordinate_of_its_own(available: Any) -> None:
    problem = tabular(list("abcd"), available=available)
    z = problem.span.coordinates[available]
    n = int(available.sum())
    assert np.array_equal(z, np.sqrt(n) * np.eye(n))
    assert np.abs(problem.features[available] @ problem.span.basis - z).max() < 1e-12


def test_the_span_is_that_of_the_general_code(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tabular(list("abcd"), available=OFFERED)
    closed = span_of(problem.features, OFFERED)
    general(monkeypatch)
    other = span_of(problem.features, OFFERED)
    products = [span.coordinates[OFFERED] @ span.coordinates[OFFERED].T for span in (closed, other)]
    assert closed.notes == other.notes
    assert np.abs(products[0] - products[1]).max() < 1e-12


def test_features_of_large_and_small_scale_have_the_same_closed_form() -> None:
    rows = np.array([[1e-9, 0.0, 2e8], [1e-9, 0.0, -1e8]])
    span = span_of(block_features(rows, 3), np.ones((2, 3), dtype=bool))
    assert span.rank == 6
    assert np.abs(block_features(rows, 3).reshape(6, 9) @ span.basis - np.sqrt(6) * np.eye(6)).max() < 1e-9


@pytest.mark.parametrize(
    "rows", [[[1.0, 1.0], [2.0, 2.0]], [[1.0, 1.0], [1.0, 1.0 + 1e-8]], [[1.0], [2.0]], [[0.0, 0.0], [0.0, 0.0]]]
)
def test_dependent_contexts_are_not_tabular(rows: list[list[float]]) -> None:
    phi = block_features(np.array(rows), 2)
    assert one_hot.tabular_basis(phi, np.ones((2, 2), dtype=bool)) is None


@pytest.mark.parametrize("change", ["off the diagonal", "another block", None])
def test_blocks_are_recognised(change: str | None) -> None:
    phi = block_features(np.array([[1.0, 0.0], [2.0, 3.0]]), 3)
    if change == "off the diagonal":
        phi[0, 1, 0], phi[0, 1, 2] = 1.0, 0.0
    if change == "another block":
        phi[1, 2, 5] = 4.0
    found = undo_blocks(phi)
    assert (found is None) == (change is not None)
    assert found is None or found.tolist() == [[1.0, 0.0], [2.0, 3.0]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("available", [ALL, OFFERED])
def test_every_design_is_uniform_with_the_best_coverage(
    kind: Kind, available: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = tabular(list("abcd"), available=available)
    closed = design(problem, kind)
    general(monkeypatch)
    other = design(tabular(list("abcd"), available=available), kind, tolerance=1e-6)
    assert np.abs(closed.exploration - other.exploration).max() < 1e-3
    assert closed.gap == 0.0
    assert closed.coverage == pytest.approx(float((G / available.sum(axis=1)).min()))
    assert closed.coverage == pytest.approx(other.coverage, rel=1e-3)


@pytest.mark.parametrize("own", [np.full((3, 4), 0.25), np.array([[0.7, 0.1, 0.1, 0.1]] * 3)])
def test_the_certificate_is_that_of_the_general_code(own: Floats) -> None:
    problem = tabular(list("abcd"))
    closed, z = bw.Design.of(problem, own), problem.span.coordinates
    assert closed.coverage == pytest.approx(designs.coverage(z, G, own))
    assert 1.0 / closed.coverage_limit >= designs.lower_bound(z, G, own) * (1.0 - 1e-12)
    best = designs.joint_g_optimal(z, G, ALL, tolerance=1e-6)
    assert 1.0 / closed.coverage_limit == pytest.approx(best.value, rel=1e-5)


def test_an_arm_that_is_never_explored_is_refused() -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        bw.Design.of(tabular(list("ab")), [[1.0, 0.0]] * 3)


def test_whitened_coordinates_are_one_hot_and_have_covariance_one() -> None:
    problem = tabular(list("abcd"), available=OFFERED)
    even = designs.uniform(problem.span.coordinates, G, OFFERED)
    z = coordinates.whitened(problem, even)
    assert np.abs(designs.covariance(z, G, even) - np.eye(z.shape[2])).max() < 1e-12
    assert one_hot.one_hot(z[OFFERED]) is not None
    assert not z[~OFFERED].any()


def pairs(problem: bw.Problem) -> Pairs:
    even = designs.uniform(problem.span.coordinates, problem.probabilities, problem.available)
    z = coordinates.whitened(problem, even)
    return Pairs(contexts=problem.contexts, arms=problem.arms, offered=problem.available, z=z)


CHANGES: dict[str, Callable[[], bw.Problem]] = {
    "the same": lambda: tabular(list("abcd")),
    "added and retired": lambda: tabular(list("dbef")),
    "hidden": lambda: tabular(list("abcd"), available=OFFERED),
    "one arm left": lambda: tabular(list("aw")),
    "another context": lambda: tabular(list("bcd"), contexts=["y", "x", "new"]),
}


@pytest.mark.parametrize("new", CHANGES)
def test_a_change_of_coordinates_is_that_of_the_general_code(new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = pairs(tabular(list("abcd"))), pairs(CHANGES[new]())
    closed = coordinate_change(before, after)
    general(monkeypatch)
    other = coordinate_change(before, after)
    assert np.abs(closed.matrix - other.matrix).max() < 1e-10
    for name in ("unknown", "open"):
        bases = getattr(closed, name), getattr(other, name)
        assert bases[0].shape == bases[1].shape
        assert np.abs(bases[0] @ bases[0].T - bases[1] @ bases[1].T).max() < 1e-10
    assert np.array_equal(closed.new, other.new)


def plays(policy: bw.Policy, rounds: int, worth: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(rounds):
        decision = policy.act(policy.problem.contexts[int(rng.integers(3))])
        policy.update(decision, loss=worth[decision.arm_name])


@pytest.mark.parametrize("algorithm", [bw.LinUCB(), bw.RealFTRL()])
def test_policies_are_those_of_the_general_code(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def table() -> Floats:
        policy = algorithm.start(tabular(list("abcd")), rng=1, interpreted=True)
        plays(policy, 20, {"a": -0.5, "b": 0.0, "c": 0.5, "d": 0.25})
        policy.change(tabular(list("bcde")))
        return np.array(policy.plan().probabilities())

    closed = table()
    general(monkeypatch)
    assert np.abs(closed - table()).max() < 1e-8


def test_the_numpy_part_of_a_large_change_takes_seconds() -> None:
    start = time.monotonic()
    problems = [tabular([str(a) for a in range(k)]) for k in (68, 272)]  # 816 dimensions
    assert [design(problem).gap for problem in problems] == [0.0, 0.0]
    change = coordinate_change(pairs(problems[0]), pairs(problems[1]))
    assert change.matrix.shape == (204, 816)
    assert time.monotonic() - start < 5.0
