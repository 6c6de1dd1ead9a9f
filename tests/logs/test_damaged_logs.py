"""Truncated, damaged or mixed files, and invalid rows: an error with the row number, and no row lost."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds import logs
from bothworlds.logs import LogError, Row
from bothworlds.logs.validation import Ids
from support.log_rows import DIGITS, ROW, one_row, package, shared_only, some_rows

Reader = Callable[[Any], Iterator[Row]]


WRITERS: dict[str, Callable[[list[Row], str], int]] = {
    "jsonl": logs.write,
    "dsjson": logs.write,
    "csv": logs.write_open_bandit,
}
FUZZED: dict[str, Reader] = {
    "jsonl": logs.read,
    "dsjson": logs.read,
    "csv": logs.read_open_bandit,
    "named.csv": lambda path: logs.read_csv(path, arm="item_id", reward="click", propensity="propensity_score"),
}
damages = st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=8), st.integers(0, 40)), max_size=3)


def damaged(content: bytes, changes: list[tuple[int, bytes, int]], cut: int | None) -> bytes:
    for place, new, length in changes:
        place %= len(content) + 1
        content = content[:place] + new + content[place + length :]
    return content if cut is None else content[: cut % (len(content) + 1)]


@pytest.mark.parametrize("kind", FUZZED)
@given(
    rows=some_rows(names=DIGITS, features=None, offered=DIGITS, probabilities=(0.25, 0.25, 0.5), propensity=0.25)
    .map(lambda rows: [replace(row, arm="0", time=1.5, reward=0.5) for row in rows])
    .filter(len),
    other=st.sampled_from(sorted(WRITERS)),
    changes=damages,
    cut=st.none() | st.integers(0, 10_000),
    mixed=st.booleans(),
)
def test_damaged_files(
    kind: str, rows: list[Row], other: str, changes: list[tuple[int, bytes, int]], cut: int | None, mixed: bool
) -> None:
    suffix = kind.rpartition(".")[2]
    path = f"log.{suffix}"
    WRITERS[suffix](rows, path)
    content = Path(path).read_bytes()
    if mixed:
        WRITERS[other]([replace(row, id=f"other {row.id}") for row in rows], f"other.{other}")
        content += Path(f"other.{other}").read_bytes()
    content = damaged(content, changes, cut)
    Path(path).write_bytes(content)
    try:
        found = list(FUZZED[kind](path))
    except LogError as error:
        assert re.match(rf"{path}(, row \d+)?: \S", str(error))  # noqa: PT017
        return
    lines = [line for line in re.split(rb"[\r\n]+" if suffix == "csv" else rb"\n", content) if line.strip()]
    if suffix == "csv" and b'"' in content:
        return  # a quoted cell may have line feeds
    assert len(found) == len(lines) - (suffix == "csv")


@given(st.binary(max_size=300), st.integers(0, 4000))
def test_damaged_parquet(noise: bytes, place: int) -> None:
    package("pyarrow", "Parquet is not tested")
    rows = [replace(ROW, id=str(number)) for number in range(20)]
    logs.write(rows, "whole.parquet")
    content = Path("whole.parquet").read_bytes()
    place %= len(content)
    for broken in (content[:place], content[:place] + noise + content[place + len(noise) :], noise):
        Path("log.parquet").write_bytes(broken)
        try:
            assert len(list(logs.read("log.parquet"))) == len(rows)
        except LogError as error:
            assert str(error).startswith("log.parquet")  # noqa: PT017


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_values_of_any_kind_in_the_fields_of_an_event(data: Any) -> None:
    """A field at any depth is replaced by another value: an error with the row number, or one row."""
    row = data.draw(one_row())
    logs.write([replace(row, reward=0.5)], "log.dsjson")
    logs.write([replace(row, reward=0.5)], "log.jsonl")
    for path in ("log.dsjson", "log.jsonl"):
        event = json.loads(Path(path).read_text(encoding="utf-8"))
        inner = event["c"] if path == "log.dsjson" and data.draw(st.booleans()) else event
        inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(anything)
        Path(path).write_text(json.dumps(event) + "\n", encoding="utf-8")
        one_row_or_an_error(logs.read(path), f"{path}, row 1: ")
    made = next(logs.to_coba(shared_only([row])))
    made[data.draw(st.sampled_from(sorted(made)))] = data.draw(anything)
    one_row_or_an_error(logs.from_coba([made]), "the coba interactions, row 1: ")
    feedback = logs.to_obp(shared_only([row]))
    feedback[data.draw(st.sampled_from(sorted(feedback)))] = data.draw(anything)
    one_row_or_an_error(logs.from_obp(feedback), "the obp feedback")


def one_row_or_an_error(rows: Iterator[Row], beginning: str) -> None:
    try:
        assert len(list(rows)) == 1
    except LogError as error:
        assert str(error).startswith(beginning)  # noqa: PT017


# What a log lacks.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"propensity": 0.0}, r"propensity 0.0 is not in \(0, 1\]"),
        ({"propensity": 1.5}, r"propensity 1.5 is not in \(0, 1\]"),
        ({"probabilities": (0.25, 0.7)}, "sum to 0.95, not to 1; give the whole vector"),
        ({"probabilities": (0.25, 0.7499)}, r"or tolerance=0.0002 if it was rounded"),
        ({"probabilities": (0.5, 0.5)}, "propensity 0.75 of arm '1' contradicts its probability 0.5"),
        ({"probabilities": (0.25, 0.5, 0.25)}, "3 probabilities for 2 offered arms"),
        ({"probabilities": (-0.25, 1.25)}, "none negative"),
        ({"arm": "2"}, "'2' is not among the offered arms"),
        ({"offered": ("1", "1")}, "distinct names"),
        ({"reward": 7.0}, r"reward 7.0 is outside \[0, 1\]; is the reward_range right"),
        ({"reward": float("nan")}, "reward must be a finite number"),
        ({"time": "noon"}, "time must be a finite number"),
        ({"id": ""}, "at least one character"),
        ({"context": 5}, "the context must be a name"),
        ({"version": -1}, "version must be a whole number"),
        ({"policy": None}, "policy and digest"),
        ({"features": ((1.0,), (1.0, 2.0))}, "the same length"),
        ({"features": ((1.0,), (1.0,), (1.0,))}, "features of 3 arms, but 2 are offered"),
        ({"direction": (None,)}, "direction must be a list"),
        ({"baseline": "x"}, "baseline must be a list"),
    ],
)
def test_an_invalid_row_is_refused_with_its_number(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LogError, match=rf"^the log, row 2: .*{words}") as caught:
        list(logs.checked([replace(ROW, id="first"), replace(ROW, **changes)], reward_range=(0, 1)))
    assert caught.value.row == 2


def test_rounded_logs_are_read_with_a_tolerance() -> None:
    row = replace(ROW, probabilities=(0.25, 0.7499))
    assert list(logs.checked([row], tolerance=1e-3)) == [row]


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 20))
def test_repeated_ids_are_detected_at_any_distance(numbers: list[int], recent: int) -> None:
    ids = Ids("log", recent=recent)
    try:
        for row, number in enumerate(numbers, 1):
            ids.add(f"visit {number}", row)
        ids.compare()
    except LogError as error:
        row = error.row or 0
        assert numbers[row - 1] in numbers[: row - 1]
    else:
        assert len(set(numbers)) == len(numbers)


def test_rewards_in_separate_lines() -> None:
    log = logs.Log("log.jsonl")
    log.append(logs.Reward(id="b", time=1.0, reward=0.5))  # before its decision: another process was faster
    log.append(*(replace(ROW, id=name, reward=None) for name in "abc"))
    log.append(logs.Reward(id="a", time=2.0, reward=0.0), logs.Reward(id="a", time=3.0, reward=1.0))
    log.append(logs.Batch(version=1, digest="5e", through=5, time=4.0, policy="p"))
    expected = {"a": (1.0, 3.0), "b": (0.5, 1.0), "c": (None, None)}
    assert {row.id: (row.reward, row.reward_time) for row in logs.read("log.jsonl")} == expected
    first = {row.id: row.reward for row in logs.read("log.jsonl", rewards="first")}
    assert first == {"a": 0.0, "b": 0.5, "c": None}
    with pytest.raises(ValueError, match="rewards must be 'last' or 'first'"):
        logs.read("log.jsonl", rewards="best")
    log.append(logs.Reward(id="z", time=2.0, reward=0.0))
    with pytest.raises(LogError, match=r"log.jsonl, row 8: a reward whose decision is not in the log"):
        list(logs.read("log.jsonl"))
    log.append(replace(ROW, id="a"))
    with log.path.open("ab") as file:
        file.write(log.path.read_bytes()[:200])
    assert len(list(logs.read("log.jsonl", strict=False))) == 3
    with pytest.raises(LogError, match=r"row 9: id 'a' occurs twice"):
        list(logs.read("log.jsonl"))
    log.append(replace(ROW, id="d"))
    assert [row.id for row in logs.read("log.jsonl", strict=False)] == ["a", "b", "c", "d"]


def test_fragments_of_lines() -> None:
    log = logs.Log("log.jsonl")
    log.append(ROW)
    with log.path.open("ab") as file:
        file.write(log.path.read_bytes()[:-1])  # whole but for its line feed
    with pytest.raises(LogError, match=r"log.jsonl, row 2: the last line is not finished"):
        list(logs.read("log.jsonl"))
    assert list(logs.read("log.jsonl", strict=False)) == [ROW]
    log.append(replace(ROW, id="d"))
    with pytest.raises(LogError, match=r"row 2: a fragment of a line precedes a record"):
        list(logs.read("log.jsonl"))
    assert [row.id for row in logs.read("log.jsonl", strict=False)] == ["a", "d"]
    with log.path.open("ab") as file:
        file.write(b'{"schema": "bothworlds-log-1", {"schema": "bothworlds-log-1", "kind": 5}\n')
    with pytest.raises(LogError, match=r"row 3: not a line of a log with schema"):
        list(logs.read("log.jsonl", strict=False))


def test_a_reward_behind_a_fragment_of_a_decision_is_read() -> None:
    log = logs.Log("log.jsonl")
    log.append(ROW, *(replace(ROW, id=name, reward=None, reward_time=None) for name in "bc"))
    with log.path.open("ab") as file:
        file.write(log.path.read_bytes()[:70])
    log.append(logs.Reward(id="b", time=1.0, reward=0.5), logs.Reward(id="c", time=1.0, reward=0.25))
    found = {row.id: row.reward for row in logs.read("log.jsonl", strict=False)}
    assert found == {"a": ROW.reward, "b": 0.5, "c": 0.25}
    with pytest.raises(LogError, match=r"row 4: a fragment of a line precedes a record"):
        list(logs.read("log.jsonl"))
