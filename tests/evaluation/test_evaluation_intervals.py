"""Intervals against slow implementations; differences and verdicts; invariances."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.evaluation import (
    Logged,
    NormalIntervalWarning,
    Target,
    evaluate,
    ridge,
    target_of,
)
from bothworlds.evaluation.average_bounds import both_averages
from bothworlds.evaluation.betting_bounds import SHARE, both_bounds
from bothworlds.evaluation.betting_grid import BetGrid, binned, bins_for
from bothworlds.evaluation.dr_terms import Contrast, ValueQuery
from bothworlds.evaluation.intervals import band_of, checkpoints_for
from support.evaluation_by_row import slow_bound, slow_sum, small_log, some_table, written_log
from support.problems import random_problem

seeds = st.integers(0, 10**6)
GRIDS = {1.0: BetGrid(b=0.0, a=1.0, share=SHARE, peak=3.0), -1.0: BetGrid(b=1.0, a=0.0, share=SHARE, peak=3.0)}


# --- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("spread", [0.3, 5.0])
def test_bounds_are_just_below_the_slow_ones(sign: float, spread: float) -> None:
    log = small_log(4, 350, spread=spread)
    table, fit, at = some_table(log), ridge(log), np.array([40, 120, 350])
    low, high = both_bounds(ValueQuery(log, Contrast(of=Target(table=table)), fit), at, alpha=0.1)
    found = np.array(low if sign > 0.0 else high)
    slow = np.maximum.accumulate([slow_bound(log, sign * table, fit, GRIDS[sign], int(t), 0.1) for t in at])
    assert (found <= slow + 1e-9).all()
    assert (slow - found).max() < 0.004  # measured: 0.0016


@given(seeds)
def test_bins_keep_means_and_lose_little(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = BetGrid(b=0.5, a=1.0, share=0.9, peak=3.0)
    x = rng.standard_t(2, size=200) * 3.0
    bins = bins_for(grid, float(np.abs(x).max()))
    node, share = bins.divided(x)
    assert ((bins.nodes[node] <= x + 1e-9) & (x <= bins.nodes[node + 1] + 1e-9)).all()
    mass = binned(np.zeros(200, dtype=np.int64), 1, node, share, bins.count)[0]
    assert mass.sum() == pytest.approx(200.0)
    assert mass @ bins.nodes == pytest.approx(x.sum(), rel=1e-9, abs=1e-9)
    for bet in (1e-4, 1e-3, 0.9 / (np.abs(x).max() + 2.0)):
        exact, found = np.log(1.0 + bet * (x - 0.3)).sum(), mass @ np.log(1.0 + bet * (bins.nodes - 0.3))
        assert found <= exact + 1e-9


def test_factors_of_capital_are_fair_by_enumeration() -> None:
    """One row, every outcome: each component's factor has mean 1 at the value and is positive at all candidates."""
    rng = np.random.default_rng(8)
    for _ in range(50):
        h, rates, predicted = rng.dirichlet(np.full(3, 0.3)) * 0.97 + 0.01, rng.random(3), rng.random(3)
        q = rng.dirichlet(np.ones(3))
        for sign, grid in GRIDS.items():
            for step in range(12):
                k, bet = float(grid.cut(step)), float(grid.bet(step))
                x = {(a, y): slow_sum(sign * q, h, predicted, a, y, k) for a in range(3) for y in (0, 1)}
                value = sign * float(q @ rates)
                fair = sum(
                    h[a] * (rates[a] if y else 1 - rates[a]) * (1 + bet * (z - value)) for (a, y), z in x.items()
                )
                assert fair == pytest.approx(1.0)
                assert min(1 + bet * (z - grid.a) for z in x.values()) >= 1.0 - SHARE - 1e-9


def test_bernstein_covers_the_average_in_a_changing_world_and_betting_contradicts_itself() -> None:
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
    changed = evaluate(log, ["uniform"])
    assert changed["uniform"].band.contradicted
    assert any("changes with time" in one for one in changed.sentences)


def test_a_value_is_inside_at_all_times_under_adaptive_logging() -> None:
    """Coverage in small: 12 logs, two targets, all checkpoints (in large: research/evaluation-coverage.md)."""
    problem = random_problem(7, S=3, K=3, d=3, reward_range=(0, 1))
    means = np.random.default_rng(7).uniform(0.2, 0.8, size=(3, 3))
    best, even = np.eye(3)[means.argmax(axis=1)], np.full((3, 3), 1 / 3)
    inside = 0
    for seed in range(12):
        log = written_log(problem, means, "matched", 400, seed)
        for table in (best, even):
            value = float(np.einsum("x,xa,xa->", problem.probabilities, table, means))
            band = evaluate(log, {"one": table}, threads=1, checkpoints=25)["one"].band
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
    with pytest.raises(ValueError, match="interval must be one of"):
        evaluate(log, table, interval="exact")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["betting", "betting at the end", "bernstein at the end"])
def test_a_policy_that_changes_gets_the_interval_for_averages(kind: Any) -> None:
    """Early rows have weights near 1 and high rewards, late ones weights of 2 and lower rewards: bets differ by row."""
    problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], reward_range=(0, 1))
    n, rng = 4000, np.random.default_rng(0)
    early = (np.arange(n) < n / 2)[:, None]
    h, pi = np.where(early, [0.98, 0.02], [0.5, 0.5]), np.where(early, [1.0, 0.0], [0.0, 1.0])
    arm = (rng.random(n) > h[:, 0]).astype(np.int64)
    reward = rng.random(n) < np.where(arm == 0, 0.98, 0.5)
    log = Logged.from_columns(problem, context=np.zeros(n, dtype=int), arm=arm, reward=reward, probabilities=h)
    found = evaluate(log, {"one": Target(by_row=pi)}, interval=kind, against="uniform", checkpoints=[n])
    low, high = found["one"].interval
    assert low <= 0.5 * 0.98 + 0.5 * 0.5 <= high
    assert found["one"].band.kind == found.differences["one", "uniform"].band.kind == "bernstein"
    assert any("changes from row to row" in one for one in found["one"].notes)
    assert found["uniform"].band.kind == kind
    assert "a value that is the same in all rows" in found["uniform"].band.about


# --- differences and the gate --------------------------------------------------------------------------------------


def test_differences_have_their_own_interval_and_verdicts_a_reason() -> None:
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


def test_verdicts_say_what_would_help_without_support() -> None:
    """Arm 2 was never chosen: only policies that play it differently leave something open, in units of rewards."""
    n, rng = 300, np.random.default_rng(4)
    problem = random_problem(4, S=1, K=3, d=2, reward_range=(0, 2))
    log = Logged.from_columns(
        problem, context=np.zeros(n, dtype=int), arm=rng.integers(2, size=n), reward=2.0 * (rng.random(n) < 0.3),
        probabilities=np.tile([0.5, 0.5, 0.0], (n, 1)),
    )  # fmt: skip
    tables = {"alike": [[0.2, 0.6, 0.2]], "little": [[0.1, 0.8, 0.1]], "much": [[0.1, 0.0, 0.9]]}
    tables["old"] = [[0.6, 0.2, 0.2]]
    nothing = "more rows of the same logging policy say nothing about the arms that it could not have chosen"
    found = evaluate(log, tables, against="old")
    for name, gap, words in (
        ("alike", 0.0, "more rows may"),
        ("little", 0.2, "more rows may, or a logging policy that plays the arms that the log could not have chosen"),
        ("much", 1.4, f"{nothing}; a policy that plays those arms may"),
    ):
        outcome, (low, high) = found.promotes(name, over="old"), found.difference(name, "old").interval
        assert found.difference(name, "old").left_open == pytest.approx(gap)
        assert high - low > gap
        assert outcome.sentence.endswith(f"which does not exclude 0; {words}")
        assert not outcome
    bare = evaluate(replace(log, probabilities=None), tables, against="old")
    assert math.isnan(bare.difference("much", "old").left_open)
    assert bare.promotes("much", over="old").sentence.endswith("; more rows may")


def _best(log: Logged) -> Any:
    fit = ridge(log)
    return np.eye(log.problem.n_arms)[fit.tables[-1].argmax(axis=1)]


def test_differences_of_similar_policies_have_narrow_intervals() -> None:
    log = small_log(9, 2000)
    base, nudge = np.full((3, 3), 1 / 3), np.full((3, 3), 1 / 3) + np.array([0.02, -0.02, 0.0])
    gap = evaluate(log, {"nudge": nudge, "base": base}, against="base").difference("nudge", "base")
    assert gap.interval[1] - gap.interval[0] < 0.02  # the reach is 0.04 at most


# --- what must not matter ------------------------------------------------------------------------------------------


@given(seeds, st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
@settings(max_examples=30)
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
@settings(max_examples=25)  # for six orders
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
@settings(max_examples=30)
def test_later_rows_do_not_change_earlier_bands(seed: int, cut: int) -> None:
    """A log cut at a checkpoint has the same bands up to it: bets and predictions come from the past alone."""
    log = small_log(seed, 200)
    table, at = Contrast(of=Target(table=some_table(log))), np.unique([cut, 200])
    for make in (both_bounds, both_averages):
        whole = make(ValueQuery(log, table, ridge(log)), at, alpha=0.05)
        part = log.part(slice(0, cut))
        early = make(ValueQuery(part, table, ridge(part)), np.array([cut]), alpha=0.05)
        for one, other in zip(whole, early, strict=True):
            assert one[0] == pytest.approx(other[0], abs=2e-5)


def test_without_predictions_bands_weigh_rewards_less_the_lowest() -> None:
    log = small_log(2, 300, limits=(10.0, 20.0))
    found = evaluate(log, {"one": some_table(log)}, regression=None)["one"]
    shift = 10.0 * (found.diagnostics.mean_weight - 1.0)
    assert abs(shift) > 0.01
    assert found.value - found.band.estimate[-1] == pytest.approx(shift)


def test_one_thread_and_several_give_the_same_bits() -> None:
    log = small_log(1, 300)
    tables = {str(i): some_table(log, i) for i in range(4)}
    a, b = (evaluate(log, tables, threads=n) for n in (1, 3))
    assert [one.interval for one in a.policies.values()] == [one.interval for one in b.policies.values()]


def test_bands_stay_within_the_range_of_values() -> None:
    log = small_log(1, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        band = band_of(ValueQuery(log, Contrast(of=target_of("uniform", log)), ridge(log)), checkpoints_for(100))
    assert ((band.low >= 0.0) & (band.high <= 1.0) & (np.diff(band.low, prepend=0.0) >= 0.0)).all()
    assert "same in all rows" in band.about
