"""Logs as JSON lines: reading row by row, with rewards joined, in little memory."""

import json
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.logs.lines import numbered_lines, write_lines
from bothworlds.logs.schema import BEGINNING, Change, Record, Reward, RewardError, Row, is_before, line_of, record_of
from bothworlds.logs.validation import (
    TOLERANCE,
    Limits,
    LogError,
    Numbered,
    checked_rows,
    fault_of,
    is_finite,
    shown,
    writable_rows,
)

Which: TypeAlias = Literal["last", "first"]
DECISION = BEGINNING + b', "kind": "decision"'


def read_jsonl(
    path: str | Path,
    *,
    rewards: Which = "last",
    strict: bool = True,
    reward_range: Limits = None,
    tolerance: float = TOLERANCE,
) -> Iterator[Row]:
    """Read a log of this package lazily: every decision with its reward, in the order of decisions.

    The file is read twice: for rewards, which may have their own lines, and for decisions. Memory use is 24 bytes for
    each reward with its own line, and 16 for each id.

    Parameters
    ----------
    path
        A file of JSON lines, as `Log` and `write_jsonl` write it.
    rewards
        The reward that counts if an id has several: the "last", a correction, or the "first", which was learned.
    strict
        If false, three things are ignored instead of refused: fragments of lines left by killed processes, decisions
        whose id occurred before (this takes about 90 bytes for each id), and rewards without a decision, or whose id is
        not a text or whose time is not finite. A `LogLearner` reads in this way.
    reward_range, tolerance
        Those of `checked`.

    >>> write_jsonl([Row(id="visit 9", arm="red", propensity=0.5)], "log.jsonl")
    1
    >>> from bothworlds.logs import Log
    >>> Log("log.jsonl").append(Reward(id="visit 9", time=7.0, reward=1.0))
    >>> [(row.arm, row.reward, row.reward_time) for row in read_jsonl("log.jsonl")]
    [('red', 1.0, 7.0)]
    """
    if rewards not in ("last", "first"):
        raise ValueError(f"rewards must be 'last' or 'first'; got {rewards!r}")
    by_id = Rewards(path, rewards, strict=strict)
    rows = joined_rows(path, by_id, strict=strict)
    return checked_rows(rows if strict else without_repeats(rows), path, reward_range, tolerance)


def read_current(path: str | Path, *, reward_range: Limits = None, tolerance: float = TOLERANCE) -> Iterator[Row]:
    """Read a log as `read_jsonl` with strict=False, without decisions from before the last `Change` of their policy.

    If an id has several rewards, the last one in ``reward_range`` counts; if none is, the last one.
    """
    rewards = Rewards(path, "last", strict=False, limits=reward_range)
    rows = without_repeats(joined_rows(path, rewards, strict=False))
    return (row for row in checked_rows(rows, path, None, tolerance) if not is_before(row, rewards.change_versions))


def write_jsonl(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows with their rewards as JSON lines; return their number. An existing file is replaced atomically."""
    return write_lines((line_of(row) for _, row in writable_rows(rows, "the rows")), path)


def numbered_records(path: str | Path, *, strict: bool, skip: bytes | None = None) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file with their line numbers; lines that begin with ``skip`` are left out.

    A record may follow the fragment of a line that a killed process has left.
    """
    for number, line, finished in numbered_lines(path):
        if skip is not None and line.startswith(skip) and line.find(BEGINNING, 1) < 0:
            continue
        try:
            if not finished:
                raise ValueError("the line is not finished")
            yield number, record_of(line)
        except (ValueError, RecursionError) as error:
            begins = line.rfind(BEGINNING)
            if not strict and isinstance(error, RewardError):
                continue
            if strict or (finished and begins <= 0):
                raise LogError(path, number, _fault_of_line(line, begins, finished, error)) from None
            if finished and not (skip is not None and line.startswith(skip, begins)):
                yield from _after_fragment(path, number, line[begins:])


def _after_fragment(path: str | Path, number: int, line: bytes) -> Iterator[tuple[int, Record]]:
    """Yield the record behind a fragment of a line."""
    try:
        yield number, record_of(line)
    except RewardError:
        return
    except (ValueError, RecursionError) as error:
        raise LogError(path, number, _fault_of_line(line, 0, True, error)) from None


def _fault_of_line(line: bytes, begins: int, finished: bool, error: Exception) -> str:
    """Return what is wrong with a line that is not a record."""
    if not finished:
        return "the last line is not finished: the file was truncated, or is being written. strict=False ignores it"
    if begins > 0:
        return "a fragment of a line precedes a record: a process was killed while it wrote. strict=False ignores it"
    fault = "not JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError) else error
    return f"{fault}: {shown(line)}"


def joined_rows(path: str | Path, rewards: "Rewards", *, strict: bool) -> Numbered:
    """Yield the decisions of a file with their line numbers and rewards."""
    for number, record in numbered_records(path, strict=strict):
        if isinstance(record, Row):
            yield number, rewards.join(record)
    rewards.require_decisions()


def without_repeats(rows: Numbered) -> Numbered:
    """Yield rows whose id has not occurred before."""
    hashes: set[int] = set()
    for number, row in rows:
        if (hashed := hash(row.id)) not in hashes:
            hashes.add(hashed)
            yield number, row


class Rewards:
    """The rewards with their own lines, as arrays: hash of the id, value, time, line, and whether it has a decision.

    They are read with the first row, together with ``change_versions``: the version after the last `Change` of each
    policy. Of several rewards of an id, those within ``limits`` take precedence.
    """

    def __init__(self, path: str | Path, which: Which, *, strict: bool, limits: Limits = None) -> None:
        self.path, self.which, self.strict = path, which, strict
        self._limits = (-math.inf, math.inf) if limits is None else limits
        self.change_versions: dict[str, int] = {}
        self._hashes: Ints | None = None
        self._values: Floats = np.empty((0, 2))
        self._lines: Ints = np.empty(0, dtype=np.int64)
        self._used = np.empty(0, dtype=bool)

    def _read(self) -> Ints:
        """Read the rewards, one for each id; return the sorted hashes of the ids."""
        hashes, lines, values = array("q"), array("q"), array("d")
        for number, record in numbered_records(self.path, strict=self.strict, skip=DECISION):
            if isinstance(record, Reward):
                self._require_valid(record, number)
                hashes.append(hash(record.id))
                lines.append(number)
                values.extend((record.reward, record.time))
            elif isinstance(record, Change):
                self.change_versions[record.policy] = record.version
        pairs = np.array(values, dtype=np.float64).reshape(-1, 2)
        order = np.arange(len(pairs))[:: -1 if self.which == "last" else 1]
        order = order[np.argsort(~self._fits(pairs[order, 0]), kind="stable")]
        unique, first = np.unique(np.array(hashes, dtype=np.int64)[order], return_index=True)
        self._values = pairs[order[first]]
        self._lines = np.array(lines, dtype=np.int64)[order[first]]
        self._used = np.zeros(len(unique), dtype=bool)
        return np.asarray(unique)

    def _fits(self, rewards: Any) -> Any:
        """Return whether a reward, or each of an array, lies within the limits."""
        return (rewards >= self._limits[0]) & (rewards <= self._limits[1])

    def _require_valid(self, record: Reward, number: int) -> None:
        row = Row(id=record.id, arm="", propensity=1.0, reward=record.reward, reward_time=record.time)
        fault, values = fault_of(row, None, TOLERANCE), (record.reward, record.time)
        if fault is None and any(value is None for value in values):
            fault = "a reward needs its value and its time"
        if fault is not None:
            raise LogError(self.path, number, fault)

    def join(self, row: Row) -> Row:
        """Return a row with its reward in the log, if there is one."""
        if self._hashes is None:
            self._hashes = self._read()
        if not len(self._hashes) or type(row.id) is not str:
            return row
        hashed = hash(row.id)
        index = int(self._hashes.searchsorted(hashed))
        if index == len(self._hashes) or self._hashes[index] != hashed:
            return row
        self._used[index] = True
        if row.reward is not None and self.which == "first":
            return row
        reward, reward_time = self._values[index].tolist()
        if not self._fits(reward) and is_finite(row.reward) and self._fits(row.reward):
            return row
        return replace(row, reward=reward, reward_time=reward_time)

    def require_decisions(self) -> None:
        """Refuse rewards of decisions that are not in the log."""
        if self._hashes is None:
            self._hashes = self._read()
        if self.strict and not self._used.all():
            row = int(self._lines[~self._used].min())
            raise LogError(
                self.path,
                row,
                "a reward whose decision is not in the log: is a part of the log missing? strict=False ignores it",
            )
