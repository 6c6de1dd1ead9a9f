"""Input of logs: cells of other libraries, invalid options, damaged lines, invalid rewards."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import logs
from bothworlds.logs.schema import line_of

ROW = logs.Row(id="1", context="day", offered=("red", "blue"), probabilities=(0.5, 0.5), arm="red", propensity=0.5)
NAMES: dict[str, Any] = {"arm": "a", "propensity": "p"}


class NAType:
    """Like pandas' NA: equal to nothing, and neither true nor false."""

    def __repr__(self) -> str:
        return "<NA>"

    def __eq__(self, other: object) -> Any:
        return self

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize("nothing", [None, "", float("nan"), np.float32("nan"), NAType()], ids=repr)
def test_an_empty_cell_means_no_reward(nothing: Any) -> None:
    (row,) = logs.from_records([{"a": np.str_("red"), "p": np.float32(0.5), "r": nothing}], reward="r", **NAMES)
    assert (row.arm, row.propensity, row.reward) == ("red", 0.5, None)


def test_times_of_numpy_are_times() -> None:
    record = {"a": "red", "p": 0.5, "t": np.datetime64("1970-01-02T00:00:00.5", "ns")}
    (row,) = logs.from_records([record], time="t", zone="UTC", **NAMES)
    assert row.time == 86400.5
    with pytest.raises(logs.LogError, match="has no time zone"):
        next(logs.from_records([record], time="t", **NAMES))


def test_dates_are_times_and_milliseconds_are_refused() -> None:
    (row,) = logs.from_records([{"a": "red", "p": 0.5, "t": date(1970, 1, 2)}], time="t", zone="UTC", **NAMES)
    assert row.time == 86400.0
    for value in (1_700_000_000_000, "1700000000000"):
        with pytest.raises(logs.LogError, match=r"row 1: time 1700000000000 .* are these milliseconds"):
            next(logs.from_records([{"a": "red", "p": 0.5, "t": value}], time="t", **NAMES))


def test_a_log_has_finite_numbers_only() -> None:
    with pytest.raises(ValueError, match=r"all numbers in a log must be finite; got Reward\(id='visit 9'.*nan"):
        logs.Log("log.jsonl").append(logs.Reward(id="visit 9", time=0, reward=float("nan")))


def test_arms_may_be_named_by_numbers() -> None:
    records = [{"a": np.int64(2), "one": 0.25, "two": 0.75}]
    (row,) = logs.from_records(records, arm="a", probabilities={1: "one", 2: "two"})
    assert (row.arm, row.offered, row.propensity) == ("2", ("1", "2"), 0.75)
    (row,) = logs.from_records(records, arm="a", propensity="two", arms=[1, 2])
    assert row.offered == ("1", "2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "delimiter must be one character"),
        ({"delimiter": ""}, "delimiter must be one character"),
        ({"probabilities": ["p"]}, "probabilities= must name a column for each arm"),
        ({"propensity": True}, "propensity= must be the name of a column, or a number"),
        ({"propensity": ["p"]}, "propensity= must be the name of a column, or a number"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    Path("clicks.csv").write_text("a,p\nred,0.5\n")
    with pytest.raises(ValueError, match=message):
        list(logs.read_csv("clicks.csv", **{**NAMES, **options}))


def test_a_propensity_may_be_any_number() -> None:
    Path("clicks.csv").write_text("a,p\nred,0.5\n")
    for number in (np.float32(0.5), np.int64(1)):
        assert next(logs.read_csv("clicks.csv", arm="a", propensity=number)).propensity == float(number)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"version": 2**63}, "version must be"), ({"fingerprint": 7}, "fingerprint must be a text")],
)
def test_rows_that_no_column_can_hold_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(logs.LogError, match=message):
        list(logs.checked([replace(ROW, **changes)]))


def test_text_that_is_not_utf8_is_refused_by_parquet() -> None:
    with pytest.raises(logs.LogError, match="a text cannot be encoded in UTF-8"):
        logs.write([replace(ROW, context="\ud800")], "log.parquet")


@pytest.mark.parametrize("line", [b'{"sch' + line_of(ROW)[:60], b"[" * 200_000], ids=["piece", "deep"])
def test_a_damaged_line_of_a_log_is_named(line: bytes) -> None:
    Path("log.jsonl").write_bytes(line + b"\n")
    with pytest.raises(ValueError, match=r"log.jsonl, line that ends at byte \d+"):
        list(logs.Log("log.jsonl").read())


def test_formats_that_lose_the_fingerprint_say_so() -> None:
    from bothworlds.logs.formats import coba, dsjson, obp, open_bandit

    assert all("fingerprint" in one.LOST for one in (coba, dsjson, obp, open_bandit))
    marked = replace(ROW, fingerprint="mark")
    logs.write([marked], "log.dsjson")
    assert next(logs.read("log.dsjson")) == ROW


def test_an_invalid_reward_does_not_stop_the_learner() -> None:
    problem = bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
    policy, log = bw.LCTsallisINF().start(problem, rng=3, interpreted=True), logs.Log("decisions.jsonl")
    policy.save("start.npz")
    plan = policy.plan()
    made = [plan.act("mobile", id=f"visit {i}") for i in range(5)]
    log.append(*(logs.row_of(one, plan) for one in made))
    log.append(*(logs.Reward(id=one.id, time=1.0, reward=[1.0, 0.0, 7.0, 1.0, 0.0][i]) for i, one in enumerate(made)))
    learner = logs.LogLearner(policy, log)
    with pytest.warns(UserWarning, match=r"reward of 'visit 2' is ignored.*outside \[0, 1\]"):
        assert learner.step() == 4
    assert (policy.updates, learner.waiting) == (4, 1)
    log.append(logs.Reward(id="visit 2", time=2.0, reward=0.7))
    assert (learner.step(), policy.updates) == (1, 5)
    again = logs.LogLearner(bw.load("start.npz"), log)
    with pytest.warns(UserWarning, match="is ignored"):
        again.step()
    assert (again.policy.version, again.policy.digest) == (policy.version, policy.digest)
