"""Finished pieces of an evaluation in a folder, so that one that was stopped goes on: JSON, in which no bit is lost."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.evaluation.bands import Band
from bothworlds.evaluation.columns import KINDS
from bothworlds.evaluation.diagnostics import Calibration, Diagnostics
from bothworlds.evaluation.estimators import Estimate
from bothworlds.evaluation.gate import Difference
from bothworlds.evaluation.logged import Logged, pieces
from bothworlds.evaluation.results import Evaluated
from bothworlds.evaluation.targets import Target
from bothworlds.evaluation.work import Done, Piece, Work
from bothworlds.problem.storage import write_bytes

FORMAT = "bothworlds-evaluated-3"
KINDS_OF_PIECES: dict[str, type] = {"policy": Evaluated, "difference": Difference, "log": Calibration}


class Kept:
    """The pieces of one evaluation that a folder has; each file is named after all that the piece depends on."""

    def __init__(self, folder: str | Path, work: Work) -> None:
        self._folder, self._work = Path(folder), work
        self._folder.mkdir(parents=True, exist_ok=True)
        self._common = _digest([FORMAT.encode(), *_log_bytes(work.logged), *_option_bytes(work)])

    def has(self, piece: Piece) -> bool:
        """Return whether a piece is finished."""
        return self._file(piece).exists()

    def read(self, piece: Piece) -> Done:
        """Return a finished piece."""
        return done_from(json.loads(self._file(piece).read_text(encoding="utf-8")))

    def write(self, piece: Piece, done: Done) -> None:
        """Keep a finished piece, whole or not at all."""
        write_bytes(self._file(piece), json.dumps(plain(done)).encode())

    def _file(self, piece: Piece) -> Path:
        parts = [part for name in piece for part in (name.encode(), *_policy_bytes(self._work.policies[name]))]
        return self._folder / f"{_digest([self._common.encode(), *parts])}.json"


def plain(done: Done) -> dict[str, Any]:
    """Return a finished piece as plain values."""
    if done is None:
        return {"kind": "none"}
    (kind,) = (word for word, cls in KINDS_OF_PIECES.items() if isinstance(done, cls))
    return {"kind": kind, **_plain(asdict(done))}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def done_from(values: dict[str, Any]) -> Done:
    """Return the finished piece that plain values stand for."""
    kind = values.pop("kind")
    if kind == "none":
        return None
    if kind == "log":
        numbers = {name: np.array(values[name], dtype=np.float64) for name in ("observed", "expected")}
        return Calibration(**{**values, **numbers, "arms": tuple(values["arms"])})
    values["band"] = _band_from(values["band"])
    if kind == "difference":
        return Difference(**values)
    values["estimates"] = {name: Estimate(**one) for name, one in values["estimates"].items()}
    values["diagnostics"] = Diagnostics(**values["diagnostics"])
    return Evaluated(**{**values, "table": np.array(values["table"]), "notes": tuple(values["notes"])})


def _band_from(values: dict[str, Any]) -> Band:
    ends = {name: np.array(values[name], dtype=np.float64) for name in ("estimate", "low", "high")}
    return Band(**{**values, **ends, "rows": np.array(values["rows"], dtype=np.int64)})


def _log_bytes(logged: Logged) -> Iterator[bytes]:
    """Yield all that a log is."""
    yield logged.problem.fingerprint.encode()
    for name in KINDS:
        column = getattr(logged, name)
        yield name.encode()
        if column is not None:
            yield from (column[where].tobytes() for where in pieces(logged.rows))


def _option_bytes(work: Work) -> Iterator[bytes]:
    """Yield all that is common to the pieces beside the log."""
    yield json.dumps([work.interval, work.alpha, work.most_weight]).encode()
    yield work.checkpoints.tobytes()
    if work.regression is not None:
        yield work.regression.starts.tobytes()
        yield work.regression.tables.tobytes()


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
