"""The plain form of a log, lines of JSON, read row by row with rewards joined and little kept in memory."""

import json
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.logs.checking import TOLERANCE, Limits, Numbered, checked_rows, fault_of, is_finite, sound_rows
from bothworlds.logs.faults import LogError, shown
from bothworlds.logs.lines import numbered_lines, written_lines
from bothworlds.logs.schema import BEGINNING, Change, Record, Reward, RewardError, Row, is_before, line_of, record_of

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

    The file is read twice: for rewards, which may stand in lines of their own, and for decisions. Kept in memory are
    24 bytes for each reward that has a line of its own, and 16 for each id.

    Parameters
    ----------
    path
        A file of JSON lines, as `Log` and `write_jsonl` leave it.
    rewards
        Which one counts where an id has several: the "last", a correction, or the "first", from which was learnt.
    strict
        If false, three things are passed over that are refused otherwise: pieces of lines that killed processes have
        left, decisions whose id stood there before (about 90 bytes for each id are kept then), and rewards without a
        decision, or that cannot have one: their id is no text, or their time not finite. That is how a `Learner` reads.
    reward_range, tolerance
        As `checked` has them.

    >>> write_jsonl([Row(id="visit 9", arm="red", propensity=0.5)], "log.jsonl")
    1
    >>> from bothworlds.logs import Log
    >>> Log("log.jsonl").append(Reward(id="visit 9", time=7.0, reward=1.0))
    >>> [(row.arm, row.reward, row.reward_time) for row in read_jsonl("log.jsonl")]
    [('red', 1.0, 7.0)]
    """
    if rewards not in ("last", "first"):
        raise ValueError(f"rewards must be 'last' or 'first'; got {rewards!r}")
    found = Rewards(path, rewards, strict=strict)
    rows = joined_rows(path, found, strict=strict)
    return checked_rows(rows if strict else without_repeats(rows), path, reward_range, tolerance)


def read_of_now(path: str | Path, *, reward_range: Limits = None, tolerance: float = TOLERANCE) -> Iterator[Row]:
    """Read a log as `read_jsonl` does that is not strict, but only what its policies decided on their present problems.

    What was decided before a `Change` of its policy is left out. Of several rewards of an id the last one counts that
    lies in ``reward_range``; where none does, the last one.
    """
    found = Rewards(path, "last", strict=False, limits=reward_range)
    rows = without_repeats(joined_rows(path, found, strict=False))
    return (row for row in checked_rows(rows, path, None, tolerance) if not is_before(row, found.began))


def write_jsonl(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows as lines of JSON, rewards with them; return how many. A file that is there is replaced as a whole."""
    return written_lines((line_of(row) for _, row in sound_rows(rows, "the rows")), path)


def numbered_records(path: str | Path, *, strict: bool, skip: bytes | None = None) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file with the numbers of their lines; those that begin with ``skip`` are left out.

    A line may begin with a piece of one that a killed process has left: what stands behind it is the record.
    """
    for number, line, whole in numbered_lines(path):
        if skip is not None and line.startswith(skip) and line.find(BEGINNING, 1) < 0:
            continue
        try:
            if not whole:
                raise ValueError("the line is not finished")
            yield number, record_of(line)
        except (ValueError, RecursionError) as error:
            begins = line.rfind(BEGINNING)
            if not strict and isinstance(error, RewardError):
                continue
            if strict or (whole and begins <= 0):
                raise LogError(path, number, _torn(line, begins, whole, error)) from None
            if whole and not (skip is not None and line.startswith(skip, begins)):
                yield from _after_a_piece(path, number, line[begins:])


def _after_a_piece(path: str | Path, number: int, line: bytes) -> Iterator[tuple[int, Record]]:
    """Yield the record that stands behind a piece of a line."""
    try:
        yield number, record_of(line)
    except RewardError:
        return
    except (ValueError, RecursionError) as error:
        raise LogError(path, number, _torn(line, 0, True, error)) from None


def _torn(line: bytes, begins: int, whole: bool, error: Exception) -> str:
    """Say what is wrong with a line that is no record."""
    if not whole:
        return "the last line is not finished: the file was cut off, or is being written. strict=False leaves it out"
    if begins > 0:
        return "a piece of a line stands before a whole one: a process was killed while it wrote. strict=False reads on"
    said = "it is no JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError) else error
    return f"{said}: {shown(line)}"


def joined_rows(path: str | Path, rewards: "Rewards", *, strict: bool) -> Numbered:
    """Yield the decisions of a file with the number of their line, each with its reward."""
    for number, record in numbered_records(path, strict=strict):
        if isinstance(record, Row):
            yield number, rewards.given_to(record)
    rewards.require_decisions()


def without_repeats(rows: Numbered) -> Numbered:
    """Yield rows whose id has not stood there before."""
    seen: set[int] = set()
    for number, row in rows:
        if (hashed := hash(row.id)) not in seen:
            seen.add(hashed)
            yield number, row


class Rewards:
    """The rewards that have lines of their own, as arrays: hash of the id, value, time, and whether it was asked for.

    Read when the first row is, and with them the version with which the present problem of each policy ``began``.
    Those within ``limits`` go before others of their id.
    """

    def __init__(self, path: str | Path, which: Which, *, strict: bool, limits: Limits = None) -> None:
        self.path, self.which, self.strict = path, which, strict
        self._limits = (-math.inf, math.inf) if limits is None else limits
        self.began: dict[str | None, int] = {}
        self._hashes: Ints | None = None
        self._values: Floats = np.empty((0, 2))
        self._lines: Ints = np.empty(0, dtype=np.int64)
        self._used = np.empty(0, dtype=bool)

    def _read(self) -> Ints:
        """Collect the rewards; of those of one id, the one that counts."""
        hashes, lines, values = array("q"), array("q"), array("d")
        for number, record in numbered_records(self.path, strict=self.strict, skip=DECISION):
            if isinstance(record, Reward):
                self._require_sound(record, number)
                hashes.append(hash(record.id))
                lines.append(number)
                values.extend((record.reward, record.time))
            elif isinstance(record, Change):
                self.began[record.policy] = record.version
        given = np.array(values, dtype=np.float64).reshape(-1, 2)
        order = np.arange(len(given))[:: -1 if self.which == "last" else 1]
        order = order[np.argsort(~self._fits(given[order, 0]), kind="stable")]
        found, places = np.unique(np.array(hashes, dtype=np.int64)[order], return_index=True)
        self._values = given[order[places]]
        self._lines = np.array(lines, dtype=np.int64)[order[places]]
        self._used = np.zeros(len(found), dtype=bool)
        return np.asarray(found)

    def _fits(self, rewards: Any) -> Any:
        """Tell whether rewards, or one, lie within the limits."""
        return (rewards >= self._limits[0]) & (rewards <= self._limits[1])

    def _require_sound(self, record: Reward, number: int) -> None:
        row = Row(id=record.id, arm="", propensity=1.0, reward=record.reward, reward_time=record.time)
        fault, given = fault_of(row, None, TOLERANCE), (record.reward, record.time)
        if fault is None and any(value is None for value in given):
            fault = "a reward needs its value and its time"
        if fault is not None:
            raise LogError(self.path, number, fault)

    def given_to(self, row: Row) -> Row:
        """Return a row with the reward that the log has for it."""
        if self._hashes is None:
            self._hashes = self._read()
        if not len(self._hashes) or type(row.id) is not str:
            return row
        hashed = hash(row.id)
        place = int(self._hashes.searchsorted(hashed))
        if place == len(self._hashes) or self._hashes[place] != hashed:
            return row
        self._used[place] = True
        if row.reward is not None and self.which == "first":
            return row
        reward, when = self._values[place].tolist()
        if not self._fits(reward) and is_finite(row.reward) and self._fits(row.reward):
            return row
        return replace(row, reward=reward, reward_time=when)

    def require_decisions(self) -> None:
        """Refuse rewards of decisions that are not in the log."""
        if self._hashes is None:
            self._hashes = self._read()
        if self.strict and not self._used.all():
            row = int(self._lines[~self._used].min())
            raise LogError(
                self.path,
                row,
                "a reward whose decision is not in the log: is a part of it missing? strict=False leaves it out",
            )
