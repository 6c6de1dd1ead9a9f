"""Input of evaluation: inconsistent columns, invalid options, and extreme numbers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.evaluation import Logged, evaluate
from bothworlds.evaluation.estimators import estimates
from bothworlds.evaluation.regression import ridge
from bothworlds.evaluation.targets import target_of
from bothworlds.logs import Log, Reward, Row

PROBLEM = bw.Problem(
    features=[[[1, 0], [0, 1]], [[1, 0], [0, 1]]], probabilities=[0.5, 0.5], arms=["a", "b"], reward_range=(0, 1)
)
COLUMNS: dict[str, Any] = {"context": [0, 1, 0], "arm": ["a", "b", "a"], "reward": [1, 0, 1]}
EVEN = [[0.5, 0.5]] * 3


def logged(**columns: Any) -> Logged:
    return Logged.from_columns(PROBLEM, **{**COLUMNS, "probabilities": EVEN, **columns})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arm": np.array([0, 5, 0])}, "row 1: arm 5 is no arm of the problem"),
        ({"arm": np.array([0, 5, 0]), "propensity": [0.5] * 3, "tolerance": 0.1}, "arm 5 is no arm"),
        ({"arm": [True, False, True]}, "unknown arm True"),
        ({"arm": [["a"], ["b"], ["a"]]}, "unknown arm"),
        ({"probabilities": [[0.5], [0.5], [0.5]]}, r"shape \(3, 2\), rows and arms; got \(3, 1\)"),
        ({"probabilities": [0.5, 0.5, 0.5], "propensity": [0.5] * 3, "tolerance": 0.1}, r"got \(3,\)"),
        ({"probabilities": EVEN[:2]}, r"got \(2, 2\)"),
        ({"context": [0, 1]}, "all columns have one entry per row"),
        ({"holdout": ["false", "true", "false"]}, "holdout must be true or false"),
        ({"holdout": [math.nan, 0, 1]}, "holdout must be true or false"),
        ({"version": [0.5, 1.0, 2.0]}, "version must be a whole number"),
        ({"reward": 1}, "reward must be a column"),
        ({"reward": ["1", "0", "x"]}, "reward must be numbers"),
        ({"propensity": "p"}, "propensity must be numbers"),
        ({"propensity": [0.0, 0.5, 0.5]}, "row 0: propensity 0.0 is not in"),
        ({"probabilities": None, "propensity": [1e-160, 0.5, 0.5]}, "row 0: propensity 1e-160 is not in .*never have"),
        ({"missing": "Drop"}, "missing must be 'refuse', 'drop'"),
        ({"missing": None}, "missing must be 'refuse', 'drop'"),
        ({"tolerance": 2.0}, "tolerance must be in"),
        ({"tolerance": -0.1}, "tolerance must be in"),
        ({"tolerance": "0.1"}, "tolerance must be in"),
    ],
)
def test_inconsistent_columns_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logged(**columns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regression": "lasso"}, "regression must be 'ridge'"),
        ({"most_weight": -1}, "most_weight must be"),
        ({"most_weight": math.nan}, "most_weight must be"),
        ({"checkpoints": 0}, "checkpoints must be a number of at least 1"),
        ({"checkpoints": [1.5, 2.7]}, "checkpoints must be"),
        ({"checkpoints": 20.0}, "checkpoints must be"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(logged(), ["uniform"], **options)


def test_a_single_word_needs_no_list() -> None:
    one, listed = evaluate(logged(), "uniform"), evaluate(logged(), ["uniform"])
    assert list(one.policies) == ["uniform"]
    assert one["uniform"].interval == listed["uniform"].interval
    with pytest.raises(ValueError, match="unknown policy 'unifrom'"):
        evaluate(logged(), "unifrom")


@pytest.mark.parametrize("policies", [bw.FixedPolicy(), [bw.FixedPolicy()], {0: "uniform"}, None, np.eye(2)])
def test_policies_without_names_are_refused(policies: Any) -> None:
    with pytest.raises(ValueError, match=r"policies must be given by name, \{'new': plan"):
        evaluate(logged(), policies)


PARTLY = bw.Problem(
    features=[[[1, 0], [0, 1]], [[1, 0], [0, 1]]], probabilities=[0.5, 0.5], arms=["a", "b"], contexts=["x", "y"],
    reward_range=(0, 1), available=[[True, True], [True, False]],
)  # fmt: skip
OFFERED: dict[str, Any] = {"context": ["x", "x", "y"], "arm": ["a", "b", "a"], "reward": [1, 0, 1]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arm": ["a", "b", "b"], "propensity": [0.5, 0.5, 1.0]}, "row 2: arm 'b' was chosen, .* in context 'y'"),
        ({"probabilities": EVEN}, "row 2: arm 'b' was chosen, or could have been, in context 'y'"),
        ({"context": ["x", "y", "y"], "propensity": [0.5, 0.5, 1.0]}, "row 1: .* does not offer it.*; 1 such rows"),
    ],
)
def test_logged_arms_that_the_problem_does_not_offer_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Logged.from_columns(PARTLY, **{**OFFERED, **columns})


@pytest.mark.parametrize("policy", ["always b", [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [1, 0], [0.5, 0.5]]])
def test_a_target_that_plays_an_arm_not_offered_is_refused(policy: Any) -> None:
    log = Logged.from_columns(PARTLY, **OFFERED, probabilities=[[0.5, 0.5], [0.5, 0.5], [1, 0]])
    assert evaluate(log, ["always a", "uniform", "logging"]).policies
    with pytest.raises(ValueError, match="a target plays arm 'b' in context 'y', where the problem does not offer it"):
        evaluate(log, {"new": policy})


@pytest.mark.parametrize("by", [math.nan, "0.1", None])
def test_the_margin_must_be_a_number(by: Any) -> None:
    with pytest.raises(ValueError, match="by must be a finite number"):
        evaluate(logged(), ["uniform"], against="always a").promotes("uniform", over="always a", by=by)


@pytest.mark.parametrize("kind", ["betting", "bernstein", "betting at the end", "bernstein at the end"])
def test_tiny_and_subnormal_propensities_give_the_same_intervals(kind: Any) -> None:
    rng = np.random.default_rng(0)
    context, reward, draws = rng.integers(2, size=60), rng.integers(2, size=60), rng.random(60)
    found = []
    for p in (1e-300, 5e-324):
        h = np.tile([p, 1 - p], (60, 1))
        h[:30] = 0.5
        arm = (draws >= h[:, 0]).astype(int)
        log = Logged.from_columns(PROBLEM, context=context, arm=arm, reward=reward, probabilities=h)
        found.append(evaluate(log, ["always a", "uniform"], against="uniform", interval=kind))
    for name in ("always a", "uniform"):
        assert found[0][name].interval == found[1][name].interval
        assert found[0][name].diagnostics.weight_p_value == found[1][name].diagnostics.weight_p_value
    assert found[0].difference("always a", "uniform").interval == found[1].difference("always a", "uniform").interval


@pytest.mark.parametrize("low", [0.0, -0.5, 1e6, 1e9, -1e9])
def test_estimates_and_errors_agree_with_rational_arithmetic_at_any_level_of_rewards(low: float) -> None:
    rng = np.random.default_rng(3)
    problem = bw.Problem(features=np.tile(np.eye(3), (2, 1, 1)), probabilities=[0.5, 0.5], reward_range=(low, low + 1))
    h, n = rng.dirichlet(np.ones(3), size=40), 40
    columns: dict[str, Any] = {"context": rng.integers(2, size=n), "reward": low + rng.integers(2, size=n)}
    arm = np.array([rng.choice(3, p=row) for row in h])
    log = Logged.from_columns(problem, arm=arm, probabilities=h, **columns)
    pi, fit = rng.dirichlet(np.ones(3), size=2), ridge(log)
    found = estimates(log, target_of(pi, log), fit)
    for name, (value, error) in by_fractions(log, pi, fit.rows(log, slice(0, n))).items():
        assert abs(found[name].value - value) <= 1e-12 * max(abs(value), 1.0)
        assert abs(found[name].error - error) <= 1e-7 * error  # 3e-9: rows of pi sum to one but for rounding
    alike = estimates(log, target_of("logging", log), None)["ips"].error
    assert abs(alike - log.reward.std(ddof=1) / math.sqrt(n)) < 1e-9


def by_fractions(log: Logged, pi: Any, predicted: Any) -> dict[str, tuple[float, float]]:
    """Return ips, clipped, snips, dr and switch with their standard errors, by rational numbers."""
    line, low = Fraction(math.sqrt(log.rows)), Fraction(log.reward_range[0])
    sums: dict[str, list[Fraction]] = {name: [] for name in ("w", "r", "ips", "clipped", "dr", "switch")}
    for i in range(log.rows):
        a, r = int(log.arm[i]), Fraction(float(log.reward[i]))
        chances = [Fraction(float(p)) for p in pi[log.context[i]]]
        w = chances[a] / Fraction(float(log.propensity[i]))
        guesses = [low + Fraction(float(one)) for one in predicted[:, i]]  # rewards are one wide
        model = sum((p * one for p, one in zip(chances, guesses, strict=True)), Fraction(0))
        rest = w * (r - guesses[a])
        parts = (w, r, w * r, min(w, line) * r, model + rest, model + (rest if w <= line else 0))
        for name, part in zip(sums, parts, strict=True):
            sums[name].append(part)
    ratio = sum(sums["ips"], Fraction(0)) / sum(sums["w"], Fraction(0))
    squares = sum((((r - ratio) * w) ** 2 for w, r in zip(sums["w"], sums["r"], strict=True)), Fraction(0))
    found = {name: _mean(sums[name]) for name in ("ips", "clipped", "dr", "switch")}
    return {**found, "snips": (float(ratio), math.sqrt(squares) / float(sum(sums["w"], Fraction(0))))}


def _mean(values: list[Fraction]) -> tuple[float, float]:
    mean = sum(values, Fraction(0)) / len(values)
    squares = sum(((one - mean) ** 2 for one in values), Fraction(0))
    return float(mean), math.sqrt(squares / len(values) / (len(values) - 1))


def test_results_have_short_representations() -> None:
    log = Logged.from_columns(PROBLEM, context=[0, 0], arm=[0, 1], reward=[0, 1], probabilities=[[0.5, 0.5]] * 2)
    found = evaluate(log, {"new": "always b"}, against="logging", alpha=0.001)
    assert "(99.9% interval, " in found.promotes("new", over="logging").sentence
    assert repr(found["new"]) == f"Evaluated(new: {found['new'].value:.4g} in [0, 1])"
    assert repr(found.difference("new", "logging")).startswith("Difference(new over logging: ")
    assert len(repr(found["new"].band)) < 100


def test_evaluation_of_a_log_uses_the_last_correction_of_a_reward() -> None:
    log = Log("corrected.jsonl")
    log.append(Row(id="1", context="0", offered=("a", "b"), probabilities=(0.5, 0.5), arm="a", propensity=0.5))
    for time, reward in ((1.0, 0.0), (2.0, 1.0)):
        log.append(Reward(id="1", time=time, reward=reward))
    assert Logged.from_log(PROBLEM, log).reward.tolist() == [1.0]
