"""The table of bounds: completeness, plain values, rows by regime, curves, and refusals."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds import environments as en
from support.problems import random_problem


def test_curves_agree_with_single_horizons_and_grow() -> None:
    problem = random_problem(3, S=4, K=3, d=2)
    horizons = [1, 10, 999, 10_000, 123_456, 10**6]
    for bound in bw.bounds(problem, horizon=10**6, gap=0.3, corruption=10.0):
        curve = bound.at(horizons)
        assert curve[-1] == pytest.approx(bound.value, rel=6e-3) or math.isinf(bound.value)
        assert (np.diff(curve[np.isfinite(curve)]) >= -1e-9).all()
        alone = [float(bound.at(t)[0]) for t in horizons]
        assert alone == pytest.approx(curve.tolist(), rel=6e-3)


def test_informative_from_is_the_first_horizon_below_2t() -> None:
    table = bw.bounds(random_problem(3, S=4, K=3, d=2), horizon=10**6, gap=0.3).select(constants_known=True)
    for bound in table:
        start = bound.informative_from()
        assert bound.at(start)[0] < 2.0 * start
        before = math.floor(start / 1.01) - 1
        assert before < 1 or bound.at(before)[0] >= 2.0 * before


NAMES = {
    "LC-Tsallis-INF, paper",
    "LC-Tsallis-INF, certified",
    "LC-Tsallis-INF, paper, any support",
    "LC-Tsallis-INF, matched",
    "BoBW-RealFTRL",
    "FTRL with Shannon entropy, transformed",
    "BoBW reduction of RealLinExp3",
    "MWU-LC",
    "Logdet-FTRL",
    "Linear EXP4",
    "OFUL",
    "RealLinExp3, transformed",
    "RealLinExp3, arm-dependent features",
    "Tsallis-INF in every context",
    "tabular MDP",
    "every algorithm",
}


def test_the_table_is_complete_and_plain() -> None:
    table = bw.bounds(random_problem(3, S=4, K=3, d=2), horizon=10**6, gap=0.3)
    assert {bound.name for bound in table} == NAMES
    assert len(table) == len({(b.name, b.source, b.regime) for b in table})
    plain = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert len(plain["bounds"]) == len(table)
    assert all(b["statement"] and b["assumptions"] for b in plain["bounds"])
    text = str(table)
    assert text.count("\n") == len(table) + 1
    assert "rate, constant 1" in text
    assert "empty for this problem" in text  # S = 4 < d K = 6
    assert {b.regime for b in table} == {"adversarial", "stochastic"}
    known = {b.name for b in table if b.constants_known}
    assert {"Tsallis-INF in every context", "RealLinExp3, arm-dependent features"} < known
    assert not known & {"OFUL", "MWU-LC", "Logdet-FTRL", "every algorithm"}


@pytest.mark.parametrize(
    ("options", "regime", "source"),
    [
        ({}, "adversarial", "Theorem 4.2"),
        ({"gap": 0.2}, "stochastic", "Theorem 4.4"),
        ({"gap": 0.2, "corruption": 5}, "corrupted", "Theorem 4.4"),
        ({"gap": 0.2, "margin": 1}, "margin", "Theorem 4.3"),
        ({"gap": 0.2, "margin": 1, "corruption": 5}, "margin, corrupted", "Theorem 4.3"),
    ],
)
def test_gap_margin_and_corruption_decide_the_regime(options: dict[str, float], regime: str, source: str) -> None:
    table = bw.bounds(random_problem(3), horizon=1000, **options)  # type: ignore[arg-type]
    bounds = table.select(name="Tsallis-INF, certified", regime=regime)
    assert [b.source for b in bounds] == [source]
    assert {b.regime for b in table} <= {"adversarial", regime}


def test_bounds_for_arm_independent_features_are_finite_for_such_problems() -> None:
    x = np.random.default_rng(0).normal(size=(6, 2))
    independent = bw.Problem.from_arm_independent(x, probabilities=np.full(6, 1 / 6), arms=3)
    native = bw.bounds(independent, horizon=10**6, gap=0.3).select(name="RealLinExp3, transformed")[0]
    assert math.isfinite(native.value)
    lam = np.linalg.eigvalsh(x.T @ x / 6)[0] / (x**2).sum(axis=1).max()
    expected = math.sqrt(1e6 * 3 * max(2.0, math.log(1e6) / lam) * math.log(3))
    assert native.value == pytest.approx(expected)
    dependent = bw.bounds(random_problem(1, S=6, K=3, d=3), horizon=10**6, gap=0.3)
    assert math.isinf(dependent.select(name="RealLinExp3, transformed")[0].value)


@given(st.integers(0, 1000))
def test_theorem_45_both_problems_have_the_same_losses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, thetas = rng.normal(size=(5, 2)), rng.normal(size=(3, 2))
    home = bw.Problem.from_arm_independent(x, probabilities=np.full(5, 0.2), arms=3)
    assert home.features @ bw.block_parameters(thetas) == pytest.approx(x @ thetas.T)
    there = bw.transformation(home)
    assert (there.native, there.independent, there.dependent, there.degenerate) == ("independent", 2, 6, False)
    problem = random_problem(seed, S=9, K=3, d=2)
    theta = rng.normal(size=2)
    stacked = problem.arm_independent_features()
    assert problem.features @ theta == pytest.approx(stacked @ bw.stacked_parameters(theta, 3).T)
    back = bw.transformation(problem)
    assert (back.native, back.independent, back.dependent, back.degenerate) == ("dependent", 6, 2, False)
    assert bw.transformation(random_problem(seed, S=5, K=3, d=2)).degenerate  # five contexts in six dimensions


def test_the_baselines_of_the_discussion() -> None:
    problem = en.random_instance(contexts=4, arms=3, dimension=2, gap=0.3).problem  # even probabilities
    table = bw.bounds(problem, horizon=10**6, gap=0.3)
    alone = table.select(name="in every context")
    assert alone[0].value == pytest.approx(8.0 * math.sqrt(4 * 3 * 1e6) + 8.0)
    assert alone[1].value == pytest.approx(4 * 3 * math.log(1e6 / 4) / 0.3)
    mdp = table.select(name="tabular")
    assert mdp[0].value == pytest.approx(math.sqrt(4 * 3 * 1e6))
    lower = table.select(name="every algorithm")[0]
    assert lower.lower
    assert lower.value == pytest.approx(math.log(2) + math.log(1e6))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"horizon": 1e3}, "horizon must be a whole number"),
        ({"horizon": True}, "horizon must be a whole number"),
        ({"gap": 0.0}, r"in \(0, 2\]"),
        ({"gap": "x"}, "gap must be a number"),
        ({"gap": 0.1, "margin": 0.0}, "Definition 2.5"),
        ({"gap": 0.1, "margin": 5e-324}, "Definition 2.5"),
        ({"gap": 0.1, "corruption": -1.0}, "not negative"),
        ({"gap": 0.1, "corruption": math.nan}, "corruption must be a number"),
        ({"margin": 1.0}, "give gap="),
        ({"design": "best"}, "unknown design"),
        ({"problem": 3}, "for a Problem"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, object], words: str) -> None:
    arguments = {"problem": random_problem(), "horizon": 100, **options}
    with pytest.raises(ValueError, match=words):
        bw.bounds(arguments.pop("problem"), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("horizons", [0, [1.5], [], [[1]], 1e16])
def test_wrong_horizons_are_refused(horizons: object) -> None:
    with pytest.raises(ValueError, match=r"horizon"):
        bw.bounds(random_problem(), horizon=100)[0].at(horizons)


@pytest.mark.parametrize("margin", [0.01, 1e-3, 1e-4, 1e-300])
def test_with_a_margin_near_zero_the_bound_is_the_adversarial_one(margin: float) -> None:
    """2^(1/beta) alone overflows for beta <= 1/1024."""
    table = bw.bounds(random_problem(), horizon=1000, gap=0.1, margin=margin).select(name="Tsallis-INF, certified")
    assert [bound.regime for bound in table] == ["adversarial", "margin"]
    assert table[1].value == pytest.approx(table[0].value)


@pytest.mark.parametrize("rare", [1e-3, 1e-12, 1e-35, 1e-100])
def test_bounds_are_finite_for_very_rare_contexts(rare: float) -> None:
    """The largest price is then below the rounding error of the factor by which it raises beta."""
    problem = bw.Problem(features=np.eye(4).reshape(2, 2, 4), probabilities=[rare, 1.0 - rare])
    for bound in bw.bounds(problem, horizon=10**6, gap=0.1).select(constants_known=True):
        assert 0.0 < bound.value < math.inf


def test_a_table_and_its_curves_can_be_pickled() -> None:
    table = bw.bounds(random_problem(1, S=2, K=3, d=2), horizon=1000)
    copy = pickle.loads(pickle.dumps(table))
    assert (copy, str(copy)) == (table, str(table))
    for bound, other in zip(table, copy, strict=True):
        assert bound.at([10, 1000]).tolist() == other.at([10, 1000]).tolist()
