"""Evaluation against slow implementations and an oracle; invalid logs; diagnostics."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.evaluation import (
    Logged,
    Target,
    calibration_of,
    constant,
    diagnostics_of,
    estimates,
    evaluate,
    learning,
    replay,
    ridge,
    target_of,
)
from bothworlds.evaluation.dr_terms import ValueQuery
from bothworlds.evaluation.intervals import checkpoints_for
from bothworlds.evaluation.regression import Regression, blocks
from bothworlds.evaluation.targets import _floors
from bothworlds.logs import Log, Reward, Row, row_of
from support.evaluation_by_row import ORACLES, slow_ridge, slow_sum, small_log, some_table
from support.problems import random_problem

seeds = st.integers(0, 10**6)


# --- estimators ----------------------------------------------------------------------------------------------------


@given(seeds)
def test_estimates_equal_slow_sums(seed: int) -> None:
    log = small_log(seed, 60)
    table, starts = some_table(log, seed), blocks(60).tolist()
    found = estimates(log, Target(table=table), ridge(log))
    w, model, rest = [], [], []
    for t in range(log.rows):
        x, a = int(log.context[t]), int(log.arm[t])
        r = slow_ridge(log, t, starts)[x] if t >= 20 else np.full(3, 0.5)
        w.append(table[x, a] / log.propensity[t])
        model.append(float(table[x] @ r))
        rest.append(w[-1] * (log.reward[t] - r[a]))
    n, line = log.rows, math.sqrt(log.rows)
    slow = {
        "ips": sum(wi * r for wi, r in zip(w, log.reward, strict=True)) / n,
        "clipped": sum(min(wi, line) * r for wi, r in zip(w, log.reward, strict=True)) / n,
        "snips": sum(wi * r for wi, r in zip(w, log.reward, strict=True)) / sum(w),
        "dm": sum(model[20:]) / (n - 20),
        "dr": (sum(model) + sum(rest)) / n,
        "sndr": sum(model) / n + sum(rest) / sum(w),
        "switch": sum(m + (e if wi <= line else 0.0) for m, e, wi in zip(model, rest, w, strict=True)) / n,
    }
    for name, value in slow.items():
        assert found[name].value == pytest.approx(value, abs=1e-9), name


@pytest.mark.skipif(not ORACLES, reason="vw-estimators is not installed: python -m pip install vw-estimators")
@pytest.mark.parametrize("name", ["ips", "snips"])
def test_estimates_equal_an_oracle(name: str) -> None:
    for seed in range(20):
        log = small_log(seed, 300)
        table, oracle = some_table(log, seed), ORACLES[name].Estimator()
        for t in range(log.rows):
            oracle.add_example(log.propensity[t], log.reward[t], table[log.context[t], log.arm[t]])
        assert estimates(log, Target(table=table), None)[name].value == pytest.approx(oracle.get(), abs=1e-12)


def test_dr_is_unbiased_for_any_predictions_by_enumeration() -> None:
    """Every arm and reward of a row, each with its probability: the mean of X is the value, cut or not."""
    problem = random_problem(3, S=1, K=3, d=2, reward_range=(0, 1))
    rng = np.random.default_rng(1)
    h, rates, predicted = rng.dirichlet(np.ones(3)), rng.random(3), rng.random(3)
    for q in (
        rng.dirichlet(np.ones(3)),
        -rng.dirichlet(np.ones(3)),
        rng.dirichlet(np.ones(3)) - rng.dirichlet(np.ones(3)),
    ):
        for k in (0.0, 0.1, 0.7, 3.0, 1e9):
            values = {(a, y): slow_sum(q, h, predicted, a, y, k) for a in range(3) for y in (0, 1)}
            mean = sum(h[a] * (rates[a] if y else 1 - rates[a]) * x for (a, y), x in values.items())
            assert mean == pytest.approx(float(q @ rates))
            assert min(values.values()) >= -k - np.maximum(-q, 0.0).sum() - 1e-12
            log = Logged.from_columns(
                problem, context=np.zeros(6, dtype=int), arm=[a for a, _ in values], reward=[y for _, y in values],
                probabilities=np.tile(h, (6, 1)),
            )  # fmt: skip
            contrast = _Fixed(q)
            rows = ValueQuery(log, contrast, constant(log, predicted[None])).rows(slice(0, 6))  # type: ignore[arg-type]
            fast = np.where(rows.uncut_k > k, rows.cut(np.full(6, k), np.arange(6)), rows.uncut)
            assert fast == pytest.approx(list(values.values()))


class _Fixed:
    """A contrast of any numbers."""

    def __init__(self, q: Any) -> None:
        self.q = q

    def rows(self, logged: Logged, where: slice) -> Any:
        return np.tile(self.q[:, None], (1, where.stop - where.start))


def test_replay_has_the_mean_of_snips() -> None:
    log = small_log(2, 300)
    table = some_table(log)
    kept = [replay(log, table, rng=i) for i in range(400)]
    weights = [one.kept for one in kept]
    mean = np.average([one.value for one in kept], weights=weights)
    assert mean == pytest.approx(
        estimates(log, target_of(table, log), None)["snips"].value, abs=0.006
    )  # measured 0.001


# --- targets -------------------------------------------------------------------------------------------------------


def test_plans_policies_algorithms_and_words_are_targets() -> None:
    log = small_log(3, 300)
    policy = bw.LCTsallisINF(tuning="matched").start(log.problem, rng=1)
    learner = learning(bw.LCTsallisINF(tuning="matched"), log, rng=2)
    found = evaluate(
        log,
        {"plan": policy.plan(), "policy": policy, "fixed": bw.FixedPolicy(), "learner": learner, "logging": "logging"},
    )
    assert found["plan"].value == found["policy"].value
    assert found["fixed"].value == evaluate(log, ["uniform"])["uniform"].value
    assert found["logging"].estimates["ips"].value == pytest.approx(log.reward.mean())
    assert found["logging"].band.kind == found["learner"].band.kind == "bernstein"
    assert found["plan"].band.kind == "betting"
    assert "learning by rejection from" in found["learner"].about
    assert learner.by_row is not None
    assert learner.by_row[0].tolist() == pytest.approx(policy.probabilities(int(log.context[0])).tolist())
    with pytest.raises(ValueError, match="let it learn along the log"):
        evaluate(log, {"one": bw.LCTsallisINF()})
    with pytest.raises(ValueError, match="unknown policy 'best'"):
        evaluate(log, ["best"])
    with pytest.raises(ValueError, match="unknown arm 'x'"):
        evaluate(log, ["always x"])
    with pytest.raises(ValueError, match="must be a distribution"):
        evaluate(log, {"one": np.ones((3, 3))})
    with pytest.raises(ValueError, match="a target needs a table of shape"):
        evaluate(log, {"one": np.ones((2, 3)) / 3})
    with pytest.raises(ValueError, match="for other contexts or arms"):
        evaluate(log, {"one": bw.LCTsallisINF().start(random_problem(1, K=2), rng=1)})
    with pytest.raises(ValueError, match="name at least one policy"):
        evaluate(log, [])


def test_later_rows_do_not_change_earlier_learning() -> None:
    log = small_log(3, 300)
    late = np.array([0.98, 0.01, 0.01])  # lower propensities than any before
    assert log.probabilities is not None
    h = np.where((np.arange(300) < 200)[:, None], log.probabilities, late)
    whole = replace(log, probabilities=h, propensity=h[np.arange(300), log.arm])
    rows, early = (learning(bw.LCTsallisINF(), one).by_row for one in (whole, whole.part(slice(0, 200))))
    assert rows is not None
    assert early is not None
    assert np.array_equal(rows[:200], early)
    given = learning(bw.LCTsallisINF(), whole, floor=1e-9)
    assert "from 0 of 300 rows" in given.about
    for wrong in (0.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="floor must be a probability"):
            learning(bw.LCTsallisINF(), whole, floor=wrong)


def test_floors_are_quantiles_of_earlier_rows() -> None:
    log = small_log(3, 60)
    found = _floors(log)
    assert found[:20].tolist() == [1 / 3] * 20
    for row in range(20, 60):
        start = max(begin for begin in blocks(60).tolist() if begin <= row)
        assert found[row] == np.quantile(log.propensity[:start], 0.05)


def test_a_log_of_the_library_is_read() -> None:
    problem = random_problem(3, reward_range=(0, 1))
    policy, log = bw.LCTsallisINF().start(problem, rng=1), Log("log.jsonl")
    plan = policy.plan()
    made = [plan.act(x % 4) for x in range(40)]
    log.append(*(row_of(one, plan, holdout=i < 10) for i, one in enumerate(made)))
    log.append(*(Reward(id=one.id, time=0.0, reward=1.0) for one in made[:30]))
    with pytest.raises(ValueError, match="10 of 40 rows have no reward"):
        Logged.from_log(problem, log)
    found = Logged.from_log(problem, log, missing=0.0)
    assert found.reward.tolist() == [1.0] * 30 + [0.0] * 10
    assert found.propensity.tolist() == [one.propensity for one in made]
    assert found.probabilities is not None
    assert found.probabilities[0].tolist() == plan.probabilities(0).tolist()
    assert Logged.from_log(problem, log, missing="drop").rows == 30
    assert (found.part(found.holdout).rows, found.part(~found.holdout).rows) == (10, 30)
    with pytest.raises(ValueError, match="unknown arm"):
        Logged.from_log(random_problem(3, K=2), log, missing=0.0)


def test_a_rounded_log_is_rescaled() -> None:
    problem = bw.Problem(features=[np.eye(2)], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    offered: dict[str, Any] = {"context": "0", "offered": ("a", "b"), "reward": 1.0}
    rows = [
        Row(id="1", arm="a", propensity=0.33, probabilities=(0.33, 0.66), **offered),
        Row(id="2", arm="b", propensity=0.667, probabilities=(0.333, 0.67), **offered),
        Row(id="3", arm="b", propensity=0.75, probabilities=(0.25, 0.75), **offered),
    ]
    log, table = Log("log.jsonl"), [[0.33, 0.66], [0.333, 0.67], [0.25, 0.75]]
    log.append(*rows)
    columns: dict[str, Any] = {"context": [0] * 3, "arm": [0, 1, 1], "reward": [1] * 3, "probabilities": table}
    for made in (
        Logged.from_rows(problem, rows, tolerance=0.02),
        Logged.from_rows(problem, rows, tolerance=0.02, folder="columns"),
        Logged.from_log(problem, log, tolerance=0.02),
        Logged.from_columns(problem, **columns, tolerance=0.02),
        Logged.from_columns(problem, **columns, propensity=[0.33, 0.667, 0.75], tolerance=0.02),
    ):
        assert made.probabilities is not None
        assert made.probabilities == pytest.approx(np.array([[1 / 3, 2 / 3], [333 / 1003, 670 / 1003], [0.25, 0.75]]))
        assert made.propensity.tolist() == made.probabilities[[0, 1, 2], [0, 1, 1]].tolist()
    for tolerance in (0.0, 0.005):
        with pytest.raises(ValueError, match=r"row 0: .* not a distribution \(tolerance= if rounded\)"):
            Logged.from_rows(problem, rows, tolerance=tolerance)
    with pytest.raises(ValueError, match="is not the probability"):
        Logged.from_columns(problem, **columns, propensity=[0.33, 0.5, 0.75], tolerance=0.02)
    one: dict[str, Any] = {"context": [0], "arm": [0], "reward": [1], "probabilities": [[0.0, 1.0]]}
    with pytest.raises(ValueError, match=r"propensity .*0\.001.* is not the probability .*0\.0"):
        Logged.from_columns(problem, **one, propensity=[0.001], tolerance=0.02)


# --- degenerate ----------------------------------------------------------------------------------------------------


def test_empty_logs_and_inconsistent_columns_are_refused() -> None:
    log = small_log(1, 20)
    for call in (lambda one: evaluate(one, ["uniform"]), lambda one: estimates(one, target_of("uniform", one), None),
                 lambda one: learning(bw.LCTsallisINF(), one), lambda one: checkpoints_for(one.rows)):  # fmt: skip
        with pytest.raises(ValueError, match="no rows"):
            call(log.part(slice(0, 0)))
    with pytest.raises(ValueError, match="no rows to use"):
        replay(log.part(slice(0, 0)), "uniform")
    problem = log.problem
    columns: dict[str, Any] = {"context": [0], "arm": [0], "reward": [0.5]}
    for more, words in (
        ({}, "give propensity="),
        ({"propensity": [0.0]}, r"row 0: propensity .* is not in \(0, 1\]"),
        ({"propensity": [0.5], "reward": [2.0]}, "the range of rewards"),
        ({"propensity": [0.5, 0.5]}, "one entry per row"),
        ({"probabilities": [[0.5, 0.5]]}, "must have shape"),
        ({"probabilities": [[0.5, 0.4, 0.2]]}, "not a distribution"),
        ({"probabilities": [[0.5, 0.25, 0.25]], "propensity": [0.4]}, "is not the probability"),
        ({"propensity": [0.5], "arm": ["none"]}, "unknown arm 'none'"),
        ({"propensity": [0.5], "context": np.array([7])}, "is no context of the problem"),
    ):
        with pytest.raises(ValueError, match=words):
            Logged.from_columns(problem, **{**columns, **more})
    with pytest.raises(ValueError, match="checkpoints must be"):
        evaluate(log, ["uniform"], checkpoints=[50])


@pytest.mark.parametrize(
    ("starts", "tables", "words"),
    [
        ([0], np.full((1, 3, 3), 1.5), r"scaled to \[0, 1\]"),
        ([0], np.full((1, 3, 3), -0.1), r"scaled to \[0, 1\]"),
        ([0], np.full((1, 3, 3), np.nan), r"scaled to \[0, 1\]"),
        ([0], np.full((3, 3), 0.5), "for each start of a block"),
        ([0, 9], np.full((1, 3, 3), 0.5), "for each start of a block"),
        ([], np.full((0, 3, 3), 0.5), "begin at 0"),
        ([1], np.full((1, 3, 3), 0.5), "begin at 0"),
        ([0, 9, 9], np.full((3, 3, 3), 0.5), r"increase; got \[0, 9, 9\]"),
        ([0.0, 1.5], np.full((2, 3, 3), 0.5), "begin at 0"),
        ([0], np.full((1, 4, 3), 0.5), r"has \(3, 3\) contexts and arms, the regression \(4, 3\)"),
    ],
)
def test_an_invalid_regression_is_refused(starts: list[Any], tables: Any, words: str) -> None:
    log = small_log(1, 20)
    with pytest.raises(ValueError, match=words):
        evaluate(log, ["uniform"], regression=Regression(starts=np.array(starts), tables=tables))


def test_one_row_one_arm_and_rewards_that_are_all_zero() -> None:
    log = small_log(1, 50)
    first = evaluate(log.part(slice(0, 1)), ["uniform"])["uniform"]
    assert 0.0 <= first.interval[0] <= first.interval[1] <= 1.0
    assert math.isnan(first.estimates["dr"].error)
    problem = random_problem(1, S=2, K=2, reward_range=(0, 1), available=[[True, False], [True, True]])
    rows = np.tile([1.0, 0.0], (9, 1))
    alone = Logged.from_columns(problem, context=[0] * 9, arm=[0] * 9, reward=[1.0] * 9, probabilities=rows)
    only = evaluate(alone, ["uniform", "logging"], against="logging")
    assert only["uniform"].estimates["ips"].value == 1.0
    assert only["uniform"].diagnostics.effective_rows == 9.0
    none = evaluate(replace(log, reward=np.zeros(50)), ["uniform"])["uniform"]
    assert none.estimates["ips"].value == none.estimates["snips"].value == none.interval[0] == 0.0
    assert none.interval[1] < 0.35


def test_missing_support_is_reported_and_the_interval_assumes_the_worst_case() -> None:
    """Deterministic logging: arm 0 always, so of arm 1 nothing is known."""
    n = 500
    problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    log = Logged.from_columns(
        problem, context=np.zeros(n, dtype=int), arm=np.zeros(n, dtype=int), reward=np.ones(n),
        probabilities=np.tile([1.0, 0.0], (n, 1)),
    )  # fmt: skip
    found = evaluate(log, ["always b", "always a", "uniform"], against="always a")
    assert found["always b"].interval == (0.0, 1.0)
    assert found["always b"].diagnostics.without_support == 1.0
    assert math.isnan(found["always b"].estimates["snips"].value)
    low, high = found["uniform"].interval
    assert 0.4 < low <= 0.5
    assert high > 0.99
    assert found["always a"].interval[0] > 0.97
    assert any("could not have chosen" in one for one in found.sentences)
    assert found.difference("always b", "always a").interval[0] == pytest.approx(-1.0)


def test_propensities_alone_give_intervals_of_ips() -> None:
    log = small_log(5, 800, spread=5.0)
    bare = replace(log, probabilities=None)
    found = evaluate(bare, ["uniform"])
    assert any("propensities only" in one for one in found.sentences)
    assert found.calibration is None
    assert math.isnan(found["uniform"].diagnostics.without_support)
    assert found["uniform"].interval[0] < found["uniform"].value < found["uniform"].interval[1]
    with pytest.raises(ValueError, match="propensities only"):
        evaluate(bare, ["logging"])


# --- diagnostics ---------------------------------------------------------------------------------------------------


def test_wrong_propensities_are_detected_and_true_ones_pass() -> None:
    log = small_log(6, 4000, spread=5.0)
    true = calibration_of(log)
    assert true is not None
    assert true.p_value > 0.05  # measured: 1
    assert diagnostics_of(log, target_of("uniform", log)).weight_p_value > 0.05
    assert log.probabilities is not None
    false = 0.5 * log.probabilities + 0.5 * np.array([0.6, 0.2, 0.2])
    wrong = replace(log, probabilities=false, propensity=false[np.arange(4000), log.arm])
    found = evaluate(wrong, ["always 0"], against="uniform")
    assert found.calibration is not None
    assert found.calibration.p_value < 1e-6
    assert found["always 0"].diagnostics.weight_p_value < 1e-3
    assert any("do not occur as often as logged" in one for one in found.sentences)
    assert "arms do not occur" in found.promotes("always 0", over="uniform").sentence


def test_rounding_does_not_reject_a_log() -> None:
    """Probabilities in single precision, and others that sum to one up to the tolerance."""
    problem = bw.Problem(features=[np.eye(3)], probabilities=[1], reward_range=(0, 1))
    rng, n = np.random.default_rng(0), 20_000
    for h in (
        np.array([0.6, 0.3, 0.1], dtype=np.float32),
        np.full(3, 0.3333334),
        np.full(3, 0.3333331),
        np.array([1 - 9e-7, 0.0, 0.0]),
    ):
        given = np.tile(h.astype(np.float64), (n, 1))
        arm = rng.choice(3, size=n, p=given[0] / given[0].sum())
        context, reward = np.zeros(n, dtype=int), np.ones(n)
        log = Logged.from_columns(problem, context=context, arm=arm, reward=reward, probabilities=given)
        near = Target(table=np.round(given[:1], 3) / np.round(given[:1], 3).sum())
        for target in (target_of("logging", log), near, target_of("always 0", log)):
            assert diagnostics_of(log, target).weight_p_value > 0.05  # measured: 0.9 and above
        true = calibration_of(log)
        assert true is not None
        assert true.p_value > 0.05


def test_effective_rows_and_weights_by_hand() -> None:
    problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    rows = [[0.5, 0.5], [0.25, 0.75]]
    log = Logged.from_columns(problem, context=[0, 0], arm=["a", "a"], reward=[1, 0], probabilities=rows)
    found = diagnostics_of(log, target_of("always a", log))
    assert (found.effective_rows, found.largest_weight, found.mean_weight) == (36 / 20, 4.0, 3.0)


def test_rounding_does_not_look_like_missing_support() -> None:
    problem = bw.Problem(features=[np.eye(5)], probabilities=[1], reward_range=(0, 1))
    h = [0.5, 0.2, 0.1, 0.1, 0.1]
    log = Logged.from_columns(problem, context=[0] * 9, arm=[0] * 9, reward=[1] * 9, probabilities=[h] * 9)
    assert diagnostics_of(log, target_of("logging", log)).without_support == 0.0
    none = Logged.from_columns(problem, context=[0], arm=[0], reward=[1], probabilities=[[0.5, 0.5, 0.0, 0.0, 0.0]])
    assert diagnostics_of(none, target_of("uniform", none)).without_support == pytest.approx(0.6)
