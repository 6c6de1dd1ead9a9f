"""Columns from the rows of a log, in batches: in memory, or in files so that memory does not grow with the rows."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.logs import Row
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number
from bothworlds.problem.file_format import write_bytes

BATCH = 1 << 14  # rows
KINDS: dict[str, Any] = {
    "context": np.int64,
    "arm": np.int64,
    "propensity": np.float64,
    "reward": np.float64,
    "probabilities": np.float64,
    "holdout": np.bool_,
    "version": np.int64,
}
WRITTEN = "columns.json"  # written last: the columns are complete if it exists
Missing = float | Literal["refuse", "drop"]
Columns: TypeAlias = dict[str, Any]


def columns_of(problem: Problem, rows: Iterable[Row], *, unique: bool = True) -> Iterator[Columns]:
    """Yield the columns of batches of rows.

    A missing reward is not a number; probabilities are None for a batch in which a row has no whole vector of them.

    Raises a ValueError that names the row's id if a row does not fit the problem and, with ``unique``, if an id occurs
    twice, for example because a table was joined twice; all ids are then kept in memory.
    """
    arm_index, remaining, ids = {name: a for a, name in enumerate(problem.arms)}, iter(rows), set[str]()
    while batch := list(islice(remaining, BATCH)):
        table = np.zeros((len(batch), problem.n_arms))
        for line, row in zip(table, batch, strict=True):
            _check_row(row, arm_index)
            if unique and row.id in ids:
                raise ValueError(f"id {row.id!r} occurs twice: every decision counts once")
            ids.update([row.id] if unique else [])
            if row.probabilities:
                line[[arm_index[name] for name in row.offered]] = row.probabilities
        yield {
            "context": np.array([_context_of(row, problem) for row in batch], dtype=np.int64),
            "arm": np.array([arm_index[row.arm] for row in batch], dtype=np.int64),
            "propensity": np.array([row.propensity for row in batch], dtype=np.float64),
            "reward": _rewards_of(batch, problem.reward_range or (-1.0, 1.0)),
            "probabilities": table if all(row.probabilities for row in batch) else None,
            "holdout": np.array([row.holdout for row in batch], dtype=np.bool_),
            "version": np.array([row.version for row in batch], dtype=np.int64),
        }


def _check_row(row: Row, arm_index: dict[str, int]) -> None:
    if not isinstance(row, Row):
        raise ValueError(
            f"rows must be bothworlds.logs.Row, as logs.read and logs.from_records return; got {type(row).__name__}"
        )
    if row.context is None:
        has = "features and no context" if row.features is not None else "no context"
        raise ValueError(f"row {row.id!r} has {has}; evaluation needs listed contexts")
    if row.probabilities and len(row.probabilities) != len(row.offered):
        raise ValueError(
            f"row {row.id!r} has {len(row.probabilities)} probabilities for {len(row.offered)} arms offered"
        )
    unknown = [name for name in (*row.offered, row.arm) if name not in arm_index]
    if unknown:
        raise ValueError(f"row {row.id!r}: unknown arm {unknown[0]!r}; the arms are {', '.join(list(arm_index)[:8])}")


def _context_of(row: Row, problem: Problem) -> int:
    try:
        return problem.context_index(row.context)
    except ValueError as error:
        raise ValueError(f"row {row.id!r}: {error}") from None


def _rewards_of(rows: Sequence[Row], limits: tuple[float, float]) -> Floats:
    """Return the rewards of rows, not a number where one is missing; refuse rewards out of range, naming an id."""
    rewards = np.array([np.nan if row.reward is None else row.reward for row in rows], dtype=np.float64)
    wrong = np.flatnonzero((rewards < limits[0]) | (rewards > limits[1]))
    if len(wrong):
        first, (low, high) = rows[wrong[0]], limits
        raise ValueError(
            f"row {first.id!r}: reward {first.reward!r} is not in [{low:g}, {high:g}], the range of rewards; "
            f"{len(wrong)} such among {len(rows)} rows"
        )
    return rewards


def with_rewards(parts: Iterable[Columns], missing: Missing) -> Iterator[Columns]:
    """Yield columns in which every row has a reward; ``missing`` says what becomes of rows without one."""
    if missing not in ("refuse", "drop") and not np.isfinite(_number(missing)):
        raise ValueError(f"missing must be 'refuse', 'drop' or a number: the reward to assume; got {missing!r}")
    count = unrewarded = 0
    for columns in parts:
        known = ~np.isnan(columns["reward"])
        count, unrewarded = count + len(known), unrewarded + int((~known).sum())
        if missing == "drop":
            yield {name: None if column is None else column[known] for name, column in columns.items()}
        else:
            filled = columns["reward"] if missing == "refuse" else np.where(known, columns["reward"], float(missing))
            yield {**columns, "reward": filled}
    if unrewarded and missing == "refuse":
        raise ValueError(
            f"{unrewarded} of {count} rows have no reward; use missing=0 to assume a reward of 0, or missing='drop' to "
            "leave them out (of a command: --missing)"
        )


def _number(value: Any) -> float:
    return float(value) if is_number(value) else np.nan


def rescaled(parts: Iterable[Columns], tolerance: float) -> Iterator[Columns]:
    """Yield columns with rounded rows of probabilities rescaled to sum to one; rows further off are not changed."""
    if not 0.0 <= _number(tolerance) < 1.0:
        raise ValueError(
            f"tolerance must be in [0, 1), the largest distance of a rounded sum from one; got {tolerance!r}"
        )
    for columns in parts:
        yield _rescaled(columns, tolerance) if tolerance and columns["probabilities"] is not None else columns


def _rescaled(columns: Columns, tolerance: float) -> Columns:
    table, p = columns["probabilities"], columns["propensity"]
    chosen, total = np.take_along_axis(table, columns["arm"][:, None], axis=1)[:, 0], table.sum(axis=1)
    scale = np.where(np.abs(total - 1.0) <= tolerance, total, 1.0)
    near = (np.abs(chosen - p) <= tolerance) & (chosen > 0.0)
    return {**columns, "probabilities": table / scale[:, None], "propensity": np.where(near, chosen / scale, p)}


def in_memory(parts: Iterable[Columns], problem: Problem) -> Columns:
    """Return the columns of all batches as arrays."""
    batches = list(parts)
    whole = all(batch["probabilities"] is not None for batch in batches)
    return {
        name: np.concatenate([_empty(name, problem), *(batch[name] for batch in batches)])
        if whole or name != "probabilities"
        else None
        for name in KINDS
    }


def in_files(parts: Iterable[Columns], problem: Problem, folder: Path) -> None:
    """Write the columns of all batches to a folder, one file for each column, and finally an index."""
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
    index = {"rows": count, "whole": whole, "problem": problem.fingerprint}
    write_bytes(folder / WRITTEN, json.dumps(index).encode())


def from_files(folder: Path, problem: Problem) -> Columns:
    """Return the columns in a folder as memory-mapped files."""
    try:
        index = json.loads((folder / WRITTEN).read_text(encoding="utf-8"))
    except OSError:
        raise ValueError(f"{folder} has no complete columns of a log: {WRITTEN} is missing") from None
    if index["problem"] != problem.fingerprint:
        raise ValueError(f"{folder} has the columns of a log for another problem")
    names = [name for name in KINDS if index["whole"] or name != "probabilities"]
    columns = {name: _mapped(folder / name, index["rows"], problem) for name in names}
    return {"probabilities": None, **columns}


def _mapped(path: Path, rows: int, problem: Problem) -> Any:
    empty = _empty(path.name, problem)
    shape = (rows, *empty.shape[1:])
    return empty if not rows else np.asarray(np.memmap(path, dtype=empty.dtype, mode="r", shape=shape))


def _empty(name: str, problem: Problem) -> Any:
    return np.empty((0, problem.n_arms) if name == "probabilities" else 0, dtype=KINDS[name])
