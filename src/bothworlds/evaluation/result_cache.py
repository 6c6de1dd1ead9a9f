"""Cache of finished evaluation tasks: lossless JSON files in a folder, from which an interrupted evaluation resumes."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.evaluation.diagnostics import Calibration, Diagnostics
from bothworlds.evaluation.estimators import Estimate
from bothworlds.evaluation.gate import Difference
from bothworlds.evaluation.intervals import Band
from bothworlds.evaluation.log_columns import KINDS
from bothworlds.evaluation.logged import Logged, chunks
from bothworlds.evaluation.results import Evaluated
from bothworlds.evaluation.targets import Target
from bothworlds.evaluation.tasks import EvaluationJob, Task, TaskResult
from bothworlds.problem.file_format import write_bytes

FORMAT = "bothworlds-evaluated-1"
RESULT_TYPES: dict[str, type] = {"policy": Evaluated, "difference": Difference, "log": Calibration}


class ResultCache:
    """Results of an evaluation's tasks in a folder; a file's name is the hash of everything the task depends on."""

    def __init__(self, folder: str | Path, job: EvaluationJob) -> None:
        self._folder, self._job = Path(folder), job
        self._folder.mkdir(parents=True, exist_ok=True)
        self._common = _digest([FORMAT.encode(), *_log_bytes(job.logged), *_option_bytes(job)])

    def has(self, task: Task) -> bool:
        """Return whether a task is finished."""
        return self._file(task).exists()

    def read(self, task: Task) -> TaskResult:
        """Return the result of a finished task."""
        return result_from(json.loads(self._file(task).read_text(encoding="utf-8")))

    def write(self, task: Task, result: TaskResult) -> None:
        """Store the result of a task atomically."""
        write_bytes(self._file(task), json.dumps(plain(result)).encode())

    def _file(self, task: Task) -> Path:
        parts = [part for name in task for part in (name.encode(), *_policy_bytes(self._job.policies[name]))]
        return self._folder / f"{_digest([self._common.encode(), *parts])}.json"


def plain(result: TaskResult) -> dict[str, Any]:
    """Return the result of a task as plain values."""
    if result is None:
        return {"kind": "none"}
    (kind,) = (name for name, cls in RESULT_TYPES.items() if isinstance(result, cls))
    return {"kind": kind, **_plain(asdict(result))}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def result_from(values: dict[str, Any]) -> TaskResult:
    """Return the result of a task from plain values."""
    kind = values.pop("kind")
    if kind == "none":
        return None
    if kind == "log":
        numbers = {name: np.array(values[name], dtype=np.float64) for name in ("observed", "expected")}
        return Calibration(**{**values, **numbers, "arms": tuple(values["arms"])})
    values["band"] = _band_from(values["band"])
    if kind == "difference":
        return Difference(**values)
    values["estimates"] = {name: Estimate(**fields) for name, fields in values["estimates"].items()}
    values["diagnostics"] = Diagnostics(**values["diagnostics"])
    return Evaluated(**{**values, "table": np.array(values["table"]), "notes": tuple(values["notes"])})


def _band_from(values: dict[str, Any]) -> Band:
    ends = {name: np.array(values[name], dtype=np.float64) for name in ("estimate", "low", "high")}
    return Band(**{**values, **ends, "rows": np.array(values["rows"], dtype=np.int64)})


def _log_bytes(logged: Logged) -> Iterator[bytes]:
    """Yield the bytes of a log."""
    yield logged.problem.fingerprint.encode()
    for name in KINDS:
        column = getattr(logged, name)
        yield name.encode()
        if column is not None:
            yield from (column[where].tobytes() for where in chunks(logged.rows))


def _option_bytes(job: EvaluationJob) -> Iterator[bytes]:
    """Yield the bytes of the options that all tasks share."""
    yield json.dumps([job.interval, job.alpha, job.most_weight]).encode()
    yield job.checkpoints.tobytes()
    if job.regression is not None:
        yield job.regression.starts.tobytes()
        yield job.regression.tables.tobytes()


def _policy_bytes(policy: str | Target) -> Iterator[bytes]:
    if isinstance(policy, str):
        yield policy.encode()
    else:
        yield from (policy.about.encode(), *(a.tobytes() for a in (policy.table, policy.by_row) if a is not None))


def _digest(parts: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
