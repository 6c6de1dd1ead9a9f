"""Round trips of formats, files of other libraries, and what they cannot express."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bothworlds import logs
from bothworlds.logs import LogError, Row
from bothworlds.logs.formats import coba, dsjson, obp, open_bandit
from support.log_rows import DIGITS, ROW, kept, package, shared_only, some_rows

ours = some_rows()


@given(ours)
def test_json_lines_round_trip(rows: list[Row]) -> None:
    assert logs.write(rows, "log.jsonl") == len(rows)
    assert list(logs.read("log.jsonl")) == rows


@given(ours)
def test_parquet_round_trip(rows: list[Row]) -> None:
    package("pyarrow", "Parquet is not tested")
    assert logs.write(rows, "log.parquet") == len(rows)
    assert list(logs.read("log.parquet")) == rows


@given(ours)
def test_dsjson_round_trip(rows: list[Row]) -> None:
    assert logs.write(rows, "log.dsjson") == len(rows)
    found = list(logs.read("log.dsjson"))
    one_arm = [row for row in rows if len(row.offered) == 1]  # then features of each arm are features of all
    assert [kept(row, dsjson.LOST) for row in found] == [kept(row, dsjson.LOST) for row in rows] or one_arm
    assert [(row.id, row.arm, row.reward) for row in found] == [(row.id, row.arm, row.reward) for row in rows]


@given(ours)
def test_obp_round_trip(rows: list[Row]) -> None:
    rows = shared_only(rows)
    feedback = logs.to_obp(rows)
    assert feedback["n_rounds"] == len(rows) == len(feedback["context"])
    found = [kept(row, obp.LOST) for row in logs.from_obp(feedback)]
    for again, row in zip(found, rows, strict=True):
        same = dict(zip(row.offered, row.probabilities, strict=True))
        assert dict(zip(again.offered, again.probabilities, strict=True)) == same
        assert replace(again, offered=row.offered, probabilities=row.probabilities) == kept(row, obp.LOST)


@given(ours)
def test_coba_round_trip(rows: list[Row]) -> None:
    rows = shared_only(rows)
    found = list(logs.from_coba(logs.to_coba(rows)))
    assert [kept(row, coba.LOST) for row in found] == [kept(row, coba.LOST) for row in rows]


@given(some_rows(names=DIGITS, dimension=1), st.booleans())
def test_open_bandit_round_trip(rows: list[Row], uniform: bool) -> None:
    made = [
        replace(
            row,
            offered=DIGITS,
            probabilities=(1 / 3,) * 3 if uniform else (),
            propensity=1 / 3 if uniform else row.propensity,
            features=None if row.features is None else ((0.5,), (-1.0,), (2e-9,)),
            time=row.time or 0.0,
            reward=0.25,
        )
        for row in rows
    ]
    assume(made)
    assert logs.write_open_bandit(made, "log.csv") == len(made)
    found = list(logs.read_open_bandit("log.csv", context=["user_feature_0"], uniform=uniform))
    lost = open_bandit.LOST[1:] if uniform else open_bandit.LOST
    assert [kept(row, lost) for row in found] == [kept(row, lost) for row in made]


# Files cut off, with bytes changed, or put together from two formats: a sentence, or every line a row.


def test_files_by_suffix() -> None:
    with pytest.raises(ValueError, match=r"unknown format of a log '.xml'; the formats are .jsonl"):
        logs.read("log.xml")
    with pytest.raises(LogError, match=r"none.jsonl: cannot be read: No such file"):
        list(logs.read("none.jsonl"))
    with pytest.raises(LogError, match=r"none.csv: cannot be read: No such file"):
        list(logs.read("none.csv", arm="banner", propensity=0.5))


def test_parquet_of_another_schema_and_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = package("pyarrow", "Parquet is not tested")
    files = importlib.import_module("pyarrow.parquet")
    files.write_table(arrow.table({"banner": ["red", "blue"], "p": [0.5, 0.25], "click": [1, None]}), "log.parquet")
    rows = list(logs.read("log.parquet", arm="banner", propensity="p", reward="click"))
    assert [(row.id, row.arm, row.propensity, row.reward) for row in rows] == [
        ("1", "red", 0.5, 1.0),
        ("2", "blue", 0.25, None),
    ]
    other: dict[str, Any] = {"arm": "ad", "propensity": "p"}
    for options, words in (({}, "its schema is none"), (other, "no column 'ad'")):
        with pytest.raises(LogError, match=words):
            list(logs.read_parquet("log.parquet", **options))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install '.\[parquet\]'"):
        logs.write([], "log.parquet")


CSV = """when,who,device,hour,banner,p_red,p_blue,click,held
2025-01-31T12:00:00Z,a,mobile,am,red,0.25,0.75,1,no
2025-01-31T12:00:01Z,b,desktop,pm,blue,,1,,yes
"""
NAMES: dict[str, Any] = {
    "time": "when",
    "id": "who",
    "context": ["device", "hour"],
    "arm": "banner",
    "probabilities": {"red": "p_red", "blue": "p_blue"},
    "reward": "click",
    "holdout": "held",
}


def test_a_csv_with_columns_named_by_the_caller() -> None:
    lines = [f"{line},{number}" for line, number in zip(CSV.splitlines(), ("n", 7, 1), strict=True)]
    Path("log.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    first, second = logs.read_csv("log.csv", **NAMES)
    assert (first.id, first.context, first.offered, first.probabilities) == (
        "a",
        "mobile, am",
        ("red", "blue"),
        (0.25, 0.75),
    )
    assert (first.time, first.propensity, first.reward, first.holdout) == (1738324800.0, 0.25, 1.0, False)
    assert (second.offered, second.probabilities, second.reward, second.holdout) == (("blue",), (1.0,), None, True)
    plain: dict[str, Any] = {
        "arm": "banner",
        "arms": ["red", "blue"],
        "features": ["p_blue"],
        "version": "n",
        "policy": "held",
    }
    row = list(logs.read_csv("log.csv", **plain, propensity=0.5))[1]
    assert (row.id, row.propensity, row.offered, row.features) == ("2", 0.5, ("red", "blue"), ((1.0,),))
    assert (row.version, row.policy) == (1, "yes")


@pytest.mark.parametrize(
    ("old", "new", "options", "words"),
    [
        (",0.75,", ",0.7,", {}, "log.csv, row 1: the probabilities sum to 0.95"),
        (",0.75,1,", ",0.75,one,", {}, "row 1: 'one' is not a number"),
        (",0.75,1,", ",0.75,inf,", {}, "row 1: 'inf' is not finite"),
        (",yes", ",perhaps", {}, "row 2: 'perhaps' in column 'held' is neither true nor false"),
        ("blue,,1", "red,,1", {}, "row 2: the chosen arm 'red' has no probability"),
        ("12:00:01Z", "12:00:01", {}, "row 2: time 2025-01-31T12:00:01 has no time zone"),
        ("2025-01-31T12:00:01Z", "noon", {}, "row 2: 'noon' is not a time"),
        (",b,", ",a,", {}, "row 2: id 'a' occurs twice"),
        (",b,", ",,", {}, "row 2: column 'who' is empty"),
        (",yes", "", {}, r"row 2: 8 cells, but the header has 9 \(line 3\)"),
        ("yes\n", "yes", {}, "row 2: the last line does not end with a line feed"),
        (CSV, "when,who", {}, "log.csv: there is no column 'banner'"),
        (CSV, "", {}, "log.csv: the file is empty"),
        (CSV, CSV.splitlines()[0], {}, "the header does not end with a line feed"),
        ("when,who", "who,who", {}, "two columns are called 'who'"),
        ("", "", {"arm": "ad"}, "there is no column 'ad'; the columns are"),
        ("", "", {"version": "p_red"}, "row 1: version 0.25 is not a whole number"),
        ("", "", {"features": ["p_red"]}, "row 2: column 'p_red' is empty; a number is required"),
        ("mobile", '"mobile', {}, "row 1: not CSV in UTF-8"),
    ],
)
def test_what_is_wrong_with_a_csv(old: str, new: str, options: dict[str, Any], words: str) -> None:
    Path("log.csv").write_text(CSV.replace(old, new) if old else CSV, encoding="utf-8")
    with pytest.raises(LogError, match=words):
        list(logs.read_csv("log.csv", **{**NAMES, **options}))


def test_invalid_column_options_are_refused() -> None:
    with pytest.raises(ValueError, match="a log without propensities cannot be evaluated"):
        logs.read_csv("log.csv", arm="banner", reward="click")
    with pytest.raises(ValueError, match="arms= is for logs without probabilities="):
        logs.read_csv("log.csv", **NAMES, arms=["red"])
    with pytest.raises(ValueError, match="unknown time zone 'Mars'"):
        logs.read_csv("log.csv", **NAMES, zone="Mars")
    with pytest.raises(LogError, match=r"the table, row 1: there is no column 'p'; the columns are \['banner'\]"):
        list(logs.from_records([{"banner": "red"}], arm="banner", propensity="p"))


EVENT = (
    '{"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"o":[{"v":1.0,"EventId":"9"}],'
    '"Timestamp":"2021-02-18T21:28:17.9920000Z","Version":"1","EventId":"9","a":[2,1],"c":{"User":{"device":"mobile"},'
    '"_multi":[{"Ad":{"id":"red"}},{"Ad":{"id":"blue"}}]},"p":[0.8,0.2],"VWState":{"m":"5e/7f"},"pdrop":0.0}\n'
)


def test_dsjson_of_other_programs() -> None:
    Path("log.dsjson").write_text(EVENT, encoding="utf-8")
    row = next(logs.read_dsjson("log.dsjson", arm="Ad.id", context=["User.device"]))
    assert (row.id, row.arm, row.propensity, row.reward, row.context) == ("9", "blue", 0.8, 1.0, "mobile")
    assert (row.offered, row.probabilities, row.policy) == (("red", "blue"), (0.2, 0.8), "5e/7f")
    assert row.time == 1613683697.992
    row = next(logs.read_dsjson("log.dsjson"))
    assert (row.arm, json.loads(row.context or "")["User"]) == ("2", {"device": "mobile"})
    for old, new, words in (
        ('"p":[0.8,0.2]', '"q":0', r"row 1: there are no probabilities \(p\), and they cannot be guessed"),
        ('"a":[2,1]', '"a":[1,2]', "_label_Action is 2, but the first of a is arm 1"),
        ('"a":[2,1]', '"a":[2,2]', "a must list the 2 arms from 1"),
        ("0.8,0.2", "0.8,0.1", "_label|sum to 0.9"),
        ('ty":0.8', 'ty":0.7', "_label_probability is 0.7, but p has 0.8"),
        ('"pdrop":0.0', '"pdrop":0.5', "the log was subsampled"),
        ('"pdrop":0.0', '"_skipLearn":true', "the decision was not shown"),
        ('"_multi"', '"_slots":[],"_multi"', "several slots"),
        ('"EventId":"9","a"', '"a"', "there is no EventId"),
        ('"_multi":', '"arms":', "no c with a list _multi"),
        ("}\n", "", "the last line is not finished"),
    ):
        Path("log.dsjson").write_text(EVENT.replace(old, new), encoding="utf-8")
        with pytest.raises(LogError, match=words):
            list(logs.read_dsjson("log.dsjson"))
    with pytest.raises(LogError, match="has no vector of probabilities"):
        logs.write_dsjson([replace(ROW, probabilities=())], "log.dsjson")
    with pytest.raises(LogError, match="cannot be written as a date"):
        logs.write_dsjson([replace(ROW, time=1e300)], "log.dsjson")


def test_vowpal_wabbit_reads_our_dsjson() -> None:
    vw = package("vowpalwabbit", "whether it reads our dsjson is not tested: pip install vowpalwabbit")
    rows = [
        replace(ROW, id=str(k), arm=str(k % 2), propensity=(0.25, 0.75)[k % 2], reward=float(k % 3), time=1.0 * k)
        for k in range(6)
    ]
    logs.write(rows, "log.dsjson")
    lines = Path("log.dsjson").read_text(encoding="utf-8").splitlines()
    learner = vw.Workspace("--cb_adf --dsjson --quiet")
    for line, row in zip([*lines, EVENT.strip()], [*rows, replace(ROW, propensity=0.8)], strict=True):
        examples = learner.parse(line)
        costs = [cost for example in examples for cost in example.get_label().costs]
        labels = [cost for cost in costs if cost.probability > 0.0]  # the shared part, and arms not chosen, have none
        assert [(cost.cost, round(cost.probability, 6)) for cost in labels] == [(-(row.reward or 0), row.propensity)]
        learner.learn(examples)
        learner.finish_example(examples)
    assert learner.get_sum_loss() != 0.0
    learner.finish()


def test_coba_reads_our_interactions_and_we_read_its() -> None:
    package("coba", "whether it takes our interactions is not tested: pip install coba")
    cb = importlib.import_module("coba")
    rows = [replace(ROW, id=str(k), arm=str(k % 2), propensity=(0.25, 0.75)[k % 2]) for k in range(8)]
    simulated = cb.Environments.from_linear_synthetic(50, n_actions=3, seed=1).logged(cb.RandomLearner())
    its = list(logs.from_coba(simulated[0].read()))
    assert len(its) == 50
    assert {round(row.propensity, 9) for row in its} == {round(1 / 3, 9)}
    primitives = importlib.import_module("coba.primitives")
    made = [primitives.LoggedInteraction(**interaction) for interaction in logs.to_coba(rows)]
    assert list(logs.from_coba(made)) == rows


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"probability": None}, "there is no probability, and it cannot be guessed"),
        ({"reward": None}, "there is no reward"),
        ({"reward": "much"}, "'much' is not a number"),
        ({"actions": "red"}, "actions must be a list"),
        ({"action": {1, 2}}, "cannot be a name"),
    ],
)
def test_what_is_wrong_with_an_interaction(changes: dict[str, Any], words: str) -> None:
    made = next(logs.to_coba([ROW]))
    with pytest.raises(LogError, match=f"the coba interactions, row 2: .*{words}"):
        list(logs.from_coba([made, {**made, "id": "b", **changes}]))


def test_rows_that_coba_and_obp_cannot_express_are_refused() -> None:
    simulated: Any = {"context": None, "actions": ["red"], "rewards": [1]}
    wrong: Any = 5
    for given_, words in ((simulated, "that is a simulation, not a log"), (wrong, "must be a dictionary")):
        with pytest.raises(LogError, match=words):
            list(logs.from_coba([given_]))
    of_arms = replace(ROW, features=((1.0,), (2.0,)))
    for row, words in ((replace(ROW, reward=None), "there is no reward"), (of_arms, "features of each arm")):
        with pytest.raises(LogError, match=words):
            list(logs.to_coba([row]))
        with pytest.raises(LogError, match=words):
            logs.to_obp([row])
    for other in (ROW, replace(ROW, features=((1.0, 2.0),))):
        with pytest.raises(LogError, match="row 2: its features are missing, or differ in length from those of other"):
            logs.to_obp([replace(ROW, features=((1.0,),)), other])
    with pytest.raises(LogError, match=r"arms must be named 0, 1, 2"):
        logs.write_open_bandit([replace(ROW, offered=("1", "0"))], "log.csv")
    with pytest.raises(LogError, match=r"row 2: it offers .* other arms"):
        logs.write_open_bandit([replace(ROW, time=0.0), replace(ROW, time=0.0, offered=("1", "0"))], "log.csv")
    for row, words in (
        (ROW, "time or reward is missing"),
        (replace(ROW, time=0.0, features=((1.0,),)), "one number for each arm"),
        (replace(ROW, time=1e300), "not a date"),
    ):
        with pytest.raises(LogError, match=words):
            logs.write_open_bandit([row], "log.csv")
    assert not Path("log.csv").exists()
    assert not Path("log.csv.unfinished").exists()


def test_what_is_wrong_with_a_feedback() -> None:
    good = logs.to_obp([ROW, replace(ROW, id="b", arm="0", propensity=0.25)])
    for changes, words in (
        ({"pscore": None}, "there is no 'pscore'; propensities cannot be guessed"),
        ({"action": [1, 5]}, "row 2: action 5 is out of range: there are 2"),
        ({"action": [1, 0.5]}, "row 2: 'action' is 0.5, not a whole number"),
        ({"reward": [1]}, r"'reward' has shape \(1,\), but there are 2 rounds"),
        ({"reward": ["much", 1]}, "'reward' must be an array of numbers"),
        ({"n_rounds": -1}, "'n_rounds' must be a whole number"),
        ({"pi_b": np.ones((2, 3, 1))}, r"'pi_b' has shape \(2, 3, 1\)"),
        ({"pi_b": np.full((2, 2, 2), 0.5), "position": [0, 7]}, "beyond the 2 positions"),
        ({"pi_b": np.full((2, 2, 1), 0.4)}, "row 1: the probabilities sum to 0.8"),
        ({"context": [1, 2], "described": True}, r"'context' has shape \(2,\)"),
        ({"arm_names": ["red"]}, "'arm_names' must be a list of 2 names; got 1"),
        ({"context_names": ["day"]}, "'context_names' must be a list of 2 names; got 1"),
        ({"offered": [[True]]}, "'offered' has shape"),
    ):
        with pytest.raises(LogError, match=words):
            list(logs.from_obp({**good, **changes}))
    with pytest.raises(LogError, match="must be a dictionary"):
        list(logs.from_obp([1]))  # type: ignore[arg-type]


def test_positions_of_obp_are_contexts_and_have_their_own_probabilities() -> None:
    pi = np.zeros((2, 2, 2))
    pi[:, :, 0], pi[:, :, 1] = (0.25, 0.75), (0.5, 0.5)
    feedback = {"n_rounds": 2, "n_actions": 2, "action": [0, 0], "reward": [0, 1], "pscore": [0.25, 0.5], "pi_b": pi}
    rows = list(logs.from_obp({**feedback, "position": [0, 1]}))
    assert [(row.context, row.probabilities) for row in rows] == [
        ("position 0", (0.25, 0.75)),
        ("position 1", (0.5, 0.5)),
    ]
