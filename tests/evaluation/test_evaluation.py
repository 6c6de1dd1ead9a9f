"""Evaluation against slow versions and an oracle; what cannot be evaluated; what must not change a number."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.evaluation import (
    Logged,
    NormalIntervalWarning,
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
from bothworlds.evaluation.averages import both_averages
from bothworlds.evaluation.bands import band_of, checkpoints_for
from bothworlds.evaluation.bets import SHARE, both_bounds
from bothworlds.evaluation.histogram import gathered, places_for
from bothworlds.evaluation.ladder import Ladder
from bothworlds.evaluation.regression import blocks
from bothworlds.evaluation.summands import Contrast, Question
from bothworlds.logs import Log, Reward, row_of
from evaluated import ORACLES, slow_bound, slow_ridge, slow_sum, small_log, some_table, written_log
from worlds import random_problem

seeds = st.integers(0, 10**6)
LADDERS = {1.0: Ladder(b=0.0, a=1.0, share=SHARE, peak=3.0), -1.0: Ladder(b=1.0, a=0.0, share=SHARE, peak=3.0)}


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


def test_dr_is_unbiased_by_enumeration_whatever_is_predicted() -> None:
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
            rows = Question(log, contrast, constant(log, predicted[None])).rows(slice(0, 6))  # type: ignore[arg-type]
            fast = np.where(rows.need > k, rows.cut(np.full(6, k), np.arange(6)), rows.whole)
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


# --- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("spread", [0.3, 5.0])
def test_bounds_are_just_below_the_slow_ones(sign: float, spread: float) -> None:
    log = small_log(4, 350, spread=spread)
    table, fit, at = some_table(log), ridge(log), np.array([40, 120, 350])
    low, high = both_bounds(Question(log, Contrast(of=Target(table=table)), fit), at, alpha=0.1)
    found = np.array(low if sign > 0.0 else high)
    slow = np.maximum.accumulate([slow_bound(log, sign * table, fit, LADDERS[sign], int(t), 0.1) for t in at])
    assert (found <= slow + 1e-9).all()
    assert (slow - found).max() < 0.004  # measured: 0.0016


@given(seeds)
def test_places_keep_means_and_lose_little(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ladder = Ladder(b=0.5, a=1.0, share=0.9, peak=3.0)
    x = rng.standard_t(2, size=200) * 3.0
    places = places_for(ladder, float(np.abs(x).max()))
    place, part = places.divided(x)
    assert ((places.nodes[place] <= x + 1e-9) & (x <= places.nodes[place + 1] + 1e-9)).all()
    counts = gathered(np.zeros(200, dtype=np.int64), 1, place, part, places.count)[0]
    assert counts.sum() == pytest.approx(200.0)
    assert counts @ places.nodes == pytest.approx(x.sum(), rel=1e-9, abs=1e-9)
    for bet in (1e-4, 1e-3, 0.9 / (np.abs(x).max() + 2.0)):
        exact, found = np.log(1.0 + bet * (x - 0.3)).sum(), counts @ np.log(1.0 + bet * (places.nodes - 0.3))
        assert found <= exact + 1e-9


def test_factors_of_capital_are_fair_by_enumeration() -> None:
    """One row, every outcome: each component's factor has mean 1 at the value and is positive at all candidates."""
    rng = np.random.default_rng(8)
    for _ in range(50):
        h, rates, predicted = rng.dirichlet(np.full(3, 0.3)) * 0.97 + 0.01, rng.random(3), rng.random(3)
        q = rng.dirichlet(np.ones(3))
        for sign, ladder in LADDERS.items():
            for step in range(12):
                k, bet = float(ladder.cut(step)), float(ladder.bet(step))
                x = {(a, y): slow_sum(sign * q, h, predicted, a, y, k) for a in range(3) for y in (0, 1)}
                value = sign * float(q @ rates)
                fair = sum(
                    h[a] * (rates[a] if y else 1 - rates[a]) * (1 + bet * (z - value)) for (a, y), z in x.items()
                )
                assert fair == pytest.approx(1.0)
                assert min(1 + bet * (z - ladder.a) for z in x.values()) >= 1.0 - SHARE - 1e-9


def test_the_average_is_inside_where_the_world_changes_and_bets_say_that_it_does() -> None:
    rng = np.random.default_rng(5)
    problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], reward_range=(0, 1))
    n = 6000
    arm, rate = rng.integers(2, size=n), np.where(np.arange(n) < n / 2, 0.2, 0.8)
    log = Logged.from_columns(
        problem,
        context=np.zeros(n, dtype=int),
        arm=arm,
        reward=rng.random(n) < rate,
        probabilities=np.full((n, 2), 0.5),
    )
    found = evaluate(log, ["uniform"], interval="bernstein")["uniform"].band
    averages = np.cumsum(rate)[found.rows - 1] / found.rows
    assert ((found.low <= averages) & (averages <= found.high)).all()
    assert found.high[-1] - found.low[-1] < 0.12
    told = evaluate(log, ["uniform"])
    assert told["uniform"].band.contradicted
    assert any("changes with time" in one for one in told.sentences)


def test_a_value_is_inside_at_all_times_under_adaptive_logging() -> None:
    """The coverage study in small: 12 logs, two targets, all checkpoints (docs/evaluation.md has the large one)."""
    problem = random_problem(7, S=3, K=3, d=3, reward_range=(0, 1))
    means = np.random.default_rng(7).uniform(0.2, 0.8, size=(3, 3))
    best, even = np.eye(3)[means.argmax(axis=1)], np.full((3, 3), 1 / 3)
    inside = 0
    for seed in range(12):
        log = written_log(problem, means, "adaptive", 400, seed)
        for table in (best, even):
            value = float(np.einsum("x,xa,xa->", problem.probabilities, table, means))
            band = evaluate(log, {"one": table}, threads=1)["one"].band
            inside += bool(((band.low <= value) & (value <= band.high)).all())
    assert inside >= 23  # of 24; measured: 24


def test_intervals_at_the_end_are_narrower_and_normal_ones_warn() -> None:
    log = small_log(1, 3000)
    table = {"one": some_table(log)}
    widths = {}
    for kind in ("betting", "betting at the end", "bernstein", "bernstein at the end"):
        low, high = evaluate(log, table, interval=kind)["one"].interval
        widths[kind] = high - low
    with pytest.warns(NormalIntervalWarning, match="one time"):
        low, high = evaluate(log, table, interval="normal")["one"].interval
    assert high - low < widths["betting at the end"] < widths["betting"] < widths["bernstein"]
    assert widths["bernstein at the end"] < widths["bernstein"]
    with pytest.raises(ValueError, match="intervals are"):
        evaluate(log, table, interval="exact")  # type: ignore[arg-type]


# --- differences and the gate --------------------------------------------------------------------------------------


def test_differences_have_their_own_interval_and_the_gate_says_why() -> None:
    log = small_log(9, 4000, spread=3.0)
    found = evaluate(log, {"best": _best(log), "same": _best(log)}, against="uniform")
    gap = found.difference("best", "uniform")
    alone = [found[name].interval for name in ("best", "uniform")]
    assert gap.interval[1] - gap.interval[0] < sum(high - low for low, high in alone)
    assert gap.value == pytest.approx(found["best"].value - found["uniform"].value)
    assert found.promotes("best", over="uniform").sentence.startswith(
        "promote 'best': its value less that of 'uniform'"
    )
    no = found.promotes("best", over="uniform", by=0.9)
    assert not no
    assert "below 0.9" in no.sentence
    assert "does not exclude" in found.promotes("best", over="uniform", by=gap.value).sentence
    with pytest.raises(ValueError, match="was not compared"):
        found.difference("uniform", "best")
    with pytest.raises(ValueError, match="no policy 'worst'"):
        found["worst"]
    same = evaluate(log, {"a": _best(log), "b": _best(log)}, against="b").difference("a", "b")
    assert same.interval == (0.0, 0.0)


def _best(log: Logged) -> Any:
    fit = ridge(log)
    return np.eye(log.problem.n_arms)[fit.tables[-1].argmax(axis=1)]


def test_close_policies_are_told_apart_better() -> None:
    log = small_log(9, 2000)
    base, nudge = np.full((3, 3), 1 / 3), np.full((3, 3), 1 / 3) + np.array([0.02, -0.02, 0.0])
    gap = evaluate(log, {"nudge": nudge, "base": base}, against="base").difference("nudge", "base")
    assert gap.interval[1] - gap.interval[0] < 0.02  # the reach is 0.04 at most


# --- targets -------------------------------------------------------------------------------------------------------


def test_plans_policies_algorithms_and_words_are_targets() -> None:
    log = small_log(3, 300)
    policy = bw.LCTsallisINF(tuning="adaptive").start(log.problem, rng=1)
    learner = learning(bw.LCTsallisINF(tuning="adaptive"), log, rng=2)
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
    with pytest.raises(ValueError, match="a target has a table of shape"):
        evaluate(log, {"one": np.ones((2, 3)) / 3})
    with pytest.raises(ValueError, match="for other contexts or arms"):
        evaluate(log, {"one": bw.LCTsallisINF().start(random_problem(1, K=2), rng=1)})
    with pytest.raises(ValueError, match="name a policy"):
        evaluate(log, [])


def test_a_log_of_the_library_is_read() -> None:
    problem = random_problem(3, reward_range=(0, 1))
    policy, log = bw.LCTsallisINF().start(problem, rng=1), Log("log.jsonl")
    plan = policy.plan()
    made = [plan.act(x % 4) for x in range(40)]
    log.append(*(row_of(one, plan, holdout=i < 10) for i, one in enumerate(made)))
    log.append(*(Reward(id=one.id, time=0.0, reward=1.0) for one in made[:30]))
    with pytest.raises(ValueError, match="10 of 40 rows have no reward"):
        Logged.from_log(log, problem)
    found = Logged.from_log(log, problem, missing=0.0)
    assert found.reward.tolist() == [1.0] * 30 + [0.0] * 10
    assert found.propensity.tolist() == [one.propensity for one in made]
    assert found.probabilities is not None
    assert found.probabilities[0].tolist() == plan.probabilities(0).tolist()
    assert Logged.from_log(log, problem, missing="drop").rows == 30
    assert (found.holdouts("only").rows, found.holdouts("none").rows, found.holdouts("all").rows) == (10, 30, 40)
    with pytest.raises(ValueError, match="holdouts are"):
        found.holdouts("some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown arm"):
        Logged.from_log(log, random_problem(3, K=2), missing=0.0)


# --- degenerate ----------------------------------------------------------------------------------------------------


def test_no_rows_and_columns_that_do_not_fit_are_sentences() -> None:
    log = small_log(1, 20)
    for call in (lambda one: evaluate(one, ["uniform"]), lambda one: estimates(one, target_of("uniform", one), None),
                 lambda one: learning(bw.LCTsallisINF(), one), lambda one: checkpoints_for(one.rows)):  # fmt: skip
        with pytest.raises(ValueError, match="no rows"):
            call(log.part(slice(0, 0)))
    with pytest.raises(ValueError, match="nothing to keep"):
        replay(log.part(slice(0, 0)), "uniform")
    problem = log.problem
    columns: dict[str, Any] = {"context": [0], "arm": [0], "reward": [0.5]}
    for more, words in (
        ({}, "give propensity="),
        ({"propensity": [0.0]}, r"row 0: propensity .* is not in \(0, 1\]"),
        ({"propensity": [0.5], "reward": [2.0]}, "the range of rewards"),
        ({"propensity": [0.5, 0.5]}, "one entry per row"),
        ({"probabilities": [[0.5, 0.5]]}, "must have shape"),
        ({"probabilities": [[0.5, 0.4, 0.2]]}, "no distribution"),
        ({"probabilities": [[0.5, 0.25, 0.25]], "propensity": [0.4]}, "is not the probability"),
        ({"propensity": [0.5], "arm": ["none"]}, "unknown arm 'none'"),
        ({"propensity": [0.5], "context": np.array([7])}, "is no context of the problem"),
    ):
        with pytest.raises(ValueError, match=words):
            Logged.from_columns(problem, **{**columns, **more})
    with pytest.raises(ValueError, match="checkpoints are"):
        evaluate(log, ["uniform"], checkpoints=[50])


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


def test_a_target_without_support_is_told_and_its_interval_takes_the_worst_case() -> None:
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


def test_wrong_propensities_are_found_and_true_ones_are_not() -> None:
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
    assert any("do not come as often as logged" in one for one in found.sentences)
    assert "arms do not come" in found.promotes("always 0", over="uniform").sentence


def test_effective_rows_and_weights_by_hand() -> None:
    problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    rows = [[0.5, 0.5], [0.25, 0.75]]
    log = Logged.from_columns(problem, context=[0, 0], arm=["a", "a"], reward=[1, 0], probabilities=rows)
    found = diagnostics_of(log, target_of("always a", log))
    assert (found.effective_rows, found.largest_weight, found.mean_weight) == (36 / 20, 4.0, 3.0)


# --- what must not matter ------------------------------------------------------------------------------------------


@given(seeds, st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
def test_rewards_in_other_units_give_values_in_other_units(seed: int, scale: float, shift: float) -> None:
    log = small_log(seed, 80)
    moved = small_log(seed, 80, limits=(shift, shift + scale))
    # A constant feature may have been added for the shift: compare with the same features.
    moved = Logged(**{**_columns(moved), "problem": _with_limits(log.problem, (shift, shift + scale))})
    table = {"one": some_table(log)}
    a, b = (evaluate(one, table, threads=1, checkpoints=4)["one"] for one in (log, moved))
    for name in ("snips", "dm", "dr", "sndr", "switch"):
        assert b.estimates[name].value == pytest.approx(shift + scale * a.estimates[name].value, abs=1e-7)
    assert b.estimates["ips"].value - shift * b.diagnostics.mean_weight == pytest.approx(
        scale * a.estimates["ips"].value, abs=1e-7
    )
    assert b.band.low == pytest.approx(shift + scale * a.band.low, abs=1e-4 * scale)
    assert b.band.high == pytest.approx(shift + scale * a.band.high, abs=1e-4 * scale)


def _with_limits(problem: bw.Problem, limits: tuple[float, float]) -> bw.Problem:
    return bw.Problem(features=problem.features, probabilities=problem.probabilities, reward_range=limits)


def _columns(log: Logged) -> dict[str, Any]:
    names = ("problem", "context", "arm", "propensity", "reward", "probabilities", "holdout", "version")
    return {name: getattr(log, name) for name in names}


@given(seeds, st.permutations([0, 1, 2]))
def test_names_of_arms_do_not_matter(seed: int, order: list[int]) -> None:
    log = small_log(seed, 80)
    assert log.probabilities is not None
    problem = bw.Problem(
        features=log.problem.features[:, order], probabilities=log.problem.probabilities, reward_range=(0, 1)
    )
    other = replace(log, problem=problem, arm=np.argsort(order)[log.arm], probabilities=log.probabilities[:, order])
    table = some_table(log)
    a = evaluate(log, {"one": table}, against="uniform", threads=1, checkpoints=4)
    b = evaluate(other, {"one": table[:, order]}, against="uniform", threads=1, checkpoints=4)
    for name in a["one"].estimates:
        assert b["one"].estimates[name].value == pytest.approx(a["one"].estimates[name].value, abs=1e-9)
    assert b["one"].band.low == pytest.approx(a["one"].band.low, abs=1e-6)
    assert b.difference("one", "uniform").band.high == pytest.approx(a.difference("one", "uniform").band.high, abs=1e-6)


@given(seeds, st.integers(1, 199))
def test_what_comes_later_does_not_change_what_was_known(seed: int, cut: int) -> None:
    """A log cut at a checkpoint has the same bands up to it: bets and predictions come from the past alone."""
    log = small_log(seed, 200)
    table, at = Contrast(of=Target(table=some_table(log))), np.unique([cut, 200])
    for make in (both_bounds, both_averages):
        whole = make(Question(log, table, ridge(log)), at, alpha=0.05)
        part = log.part(slice(0, cut))
        early = make(Question(part, table, ridge(part)), np.array([cut]), alpha=0.05)
        for one, other in zip(whole, early, strict=True):
            assert one[0] == pytest.approx(other[0], abs=2e-5)


def test_no_threads_and_some_give_the_same_bits() -> None:
    log = small_log(1, 300)
    tables = {str(i): some_table(log, i) for i in range(4)}
    a, b = (evaluate(log, tables, threads=n) for n in (1, 3))
    assert [one.interval for one in a.policies.values()] == [one.interval for one in b.policies.values()]


def test_bands_end_where_values_can_be() -> None:
    log = small_log(1, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        band = band_of(Question(log, Contrast(of=target_of("uniform", log)), ridge(log)), checkpoints_for(100))
    assert ((band.low >= 0.0) & (band.high <= 1.0) & (np.diff(band.low, prepend=0.0) >= 0.0)).all()
    assert "same in all rows" in band.about
