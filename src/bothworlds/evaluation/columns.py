"""Rows of a log turned into columns, some at a time: in memory, or in files, so that memory does not grow with rows."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.logs import Row
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number
from bothworlds.problem.storage import write_bytes

AT_ONCE = 1 << 14  # rows
KINDS: dict[str, Any] = {
    "context": np.int64,
    "arm": np.int64,
    "propensity": np.float64,
    "reward": np.float64,
    "probabilities": np.float64,
    "holdout": np.bool_,
    "version": np.int64,
}
WRITTEN = "columns.json"  # there when all columns are
Missing = float | Literal["refuse", "drop"]
Columns: TypeAlias = dict[str, Any]


def columns_of(problem: Problem, rows: Iterable[Row], *, once: bool = True) -> Iterator[Columns]:
    """Yield the columns of some rows after the other; a row that does not fit the problem is refused by its id.

    So is one whose id stands there twice, where they are to stay in memory (``once``): a table joined twice, say.

    Rewards are not numbers where none came; probabilities are None where a row has no whole vector of them.
    """
    place, remaining, seen = {name: a for a, name in enumerate(problem.arms)}, iter(rows), set[str]()
    while some := list(islice(remaining, AT_ONCE)):
        table = np.zeros((len(some), problem.n_arms))
        for line, row in zip(table, some, strict=True):
            _check_row(row, place)
            if once and row.id in seen:
                raise ValueError(f"id {row.id!r} stands there twice: every decision counts once")
            seen.update([row.id] if once else [])
            if row.probabilities:
                line[[place[name] for name in row.offered]] = row.probabilities
        yield {
            "context": np.array([_context_of(row, problem) for row in some], dtype=np.int64),
            "arm": np.array([place[row.arm] for row in some], dtype=np.int64),
            "propensity": np.array([row.propensity for row in some], dtype=np.float64),
            "reward": _rewards_of(some, problem.reward_range or (-1.0, 1.0)),
            "probabilities": table if all(row.probabilities for row in some) else None,
            "holdout": np.array([row.holdout for row in some], dtype=np.bool_),
            "version": np.array([row.version for row in some], dtype=np.int64),
        }


def _check_row(row: Row, place: dict[str, int]) -> None:
    if not isinstance(row, Row):
        raise ValueError(
            f"rows are those of bothworlds.logs, which logs.read and logs.from_records give; got {type(row).__name__}"
        )
    if row.context is None:
        has = "features and no context" if row.features is not None else "no context"
        raise ValueError(f"row {row.id!r} has {has}; evaluation needs listed contexts")
    if row.probabilities and len(row.probabilities) != len(row.offered):
        raise ValueError(
            f"row {row.id!r} has {len(row.probabilities)} probabilities for {len(row.offered)} arms offered"
        )
    unknown = [name for name in (*row.offered, row.arm) if name not in place]
    if unknown:
        raise ValueError(f"row {row.id!r}: unknown arm {unknown[0]!r}; the arms are {', '.join(list(place)[:8])}")


def _context_of(row: Row, problem: Problem) -> int:
    try:
        return problem.context_index(row.context)
    except ValueError as error:
        raise ValueError(f"row {row.id!r}: {error}") from None


def _rewards_of(rows: Sequence[Row], limits: tuple[float, float]) -> Floats:
    """Return the rewards of rows, not a number where none came; refuse those out of range, by the id."""
    found = np.array([np.nan if row.reward is None else row.reward for row in rows], dtype=np.float64)
    wrong = np.flatnonzero((found < limits[0]) | (found > limits[1]))
    if len(wrong):
        first, (low, high) = rows[wrong[0]], limits
        raise ValueError(
            f"row {first.id!r}: reward {first.reward!r} is not in [{low:g}, {high:g}], the range of rewards; "
            f"{len(wrong)} such among {len(rows)} rows"
        )
    return found


def answered(parts: Iterable[Columns], missing: Missing) -> Iterator[Columns]:
    """Yield columns in which every row has a reward: what a row without one means is for the caller to say."""
    if missing not in ("refuse", "drop") and not np.isfinite(_number(missing)):
        raise ValueError(f"missing is 'refuse', 'drop', or the reward that silence stands for; got {missing!r}")
    count = silent = 0
    for columns in parts:
        known = ~np.isnan(columns["reward"])
        count, silent = count + len(known), silent + int((~known).sum())
        if missing == "drop":
            yield {name: None if column is None else column[known] for name, column in columns.items()}
        else:
            filled = columns["reward"] if missing == "refuse" else np.where(known, columns["reward"], float(missing))
            yield {**columns, "reward": filled}
    if silent and missing == "refuse":
        raise ValueError(
            f"{silent} of {count} rows have no reward; say what that means: missing=0 where silence is a "
            "reward of 0, missing='drop' to leave them out (of a command: --missing)"
        )


def _number(value: Any) -> float:
    return float(value) if is_number(value) else np.nan


def rescaled(parts: Iterable[Columns], tolerance: float) -> Iterator[Columns]:
    """Yield columns in which rounded rows of probabilities sum to one; what is further off than that stays as it is."""
    if not 0.0 <= _number(tolerance) < 1.0:
        raise ValueError(f"tolerance is how far from one a rounded sum may be, from 0 to below 1; got {tolerance!r}")
    for columns in parts:
        yield _rescaled(columns, tolerance) if tolerance and columns["probabilities"] is not None else columns


def _rescaled(columns: Columns, tolerance: float) -> Columns:
    table, p = columns["probabilities"], columns["propensity"]
    own, total = np.take_along_axis(table, columns["arm"][:, None], axis=1)[:, 0], table.sum(axis=1)
    scale = np.where(np.abs(total - 1.0) <= tolerance, total, 1.0)
    near = (np.abs(own - p) <= tolerance) & (own > 0.0)
    return {**columns, "probabilities": table / scale[:, None], "propensity": np.where(near, own / scale, p)}


def in_memory(parts: Iterable[Columns], problem: Problem) -> Columns:
    """Return all of them as arrays."""
    found = list(parts)
    whole = all(one["probabilities"] is not None for one in found)
    return {
        name: np.concatenate([_empty(name, problem), *(one[name] for one in found)])
        if whole or name != "probabilities"
        else None
        for name in KINDS
    }


def in_files(parts: Iterable[Columns], problem: Problem, folder: Path) -> None:
    """Write all of them to files in a folder, one for each column, and at the end what is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WRITTEN).unlink(missing_ok=True)
    for name in KINDS:
        (folder / name).write_bytes(b"")
    count, whole = 0, True
    for columns in parts:
        count, whole = count + len(columns["arm"]), whole and columns["probabilities"] is not None
        for name in KINDS:
            if name != "probabilities" or whole:
                with (folder / name).open("ab") as file:
                    columns[name].tofile(file)
    found = {"rows": count, "whole": whole, "problem": problem.fingerprint}
    write_bytes(folder / WRITTEN, json.dumps(found).encode())


def from_files(folder: Path, problem: Problem) -> Columns:
    """Return the columns in a folder, read from the files where they are looked at."""
    try:
        about = json.loads((folder / WRITTEN).read_text(encoding="utf-8"))
    except OSError:
        raise ValueError(f"{folder} has no whole log in columns: {WRITTEN} is missing") from None
    if about["problem"] != problem.fingerprint:
        raise ValueError(f"{folder} has the columns of a log for another problem")
    names = [name for name in KINDS if about["whole"] or name != "probabilities"]
    found = {name: _mapped(folder / name, about["rows"], problem) for name in names}
    return {"probabilities": None, **found}


def _mapped(path: Path, rows: int, problem: Problem) -> Any:
    empty = _empty(path.name, problem)
    shape = (rows, *empty.shape[1:])
    return empty if not rows else np.asarray(np.memmap(path, dtype=empty.dtype, mode="r", shape=shape))


def _empty(name: str, problem: Problem) -> Any:
    return np.empty((0, problem.n_arms) if name == "probabilities" else 0, dtype=KINDS[name])
