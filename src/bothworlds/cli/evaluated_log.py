"""The log that `bothworlds evaluate` is given, as columns in files beside the page until that is written."""

import contextlib
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import bar, serving, talk
from bothworlds.evaluation import Logged
from bothworlds.evaluation.columns import WRITTEN
from bothworlds.evaluation.logged import decisions
from bothworlds.logs import Log, Row, read
from bothworlds.logs.checking import TOLERANCE
from bothworlds.problem import Problem
from bothworlds.problem.storage import write_bytes

FIELDS = ("arm", "context", "reward", "propensity", "id", "time", "version", "holdout", "policy", "zone")
SOURCE = "source.json"
SHOWN = 1000  # rows between two moves of the bar
STORE = ".sqlite"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file and how to read it."""

    path: Path
    columns: tuple[str, ...]
    missing: str | None
    holdout: str
    experiment: str | None = None
    tolerance: float = 0.0

    def logged(self, problem: Problem, folder: Path, *, quiet: bool) -> Logged:
        """Return its columns, in files of a folder; if they are there, of the same file read alike, it is not read."""
        now = {**self._identity(), "problem": problem.fingerprint}
        if (folder / WRITTEN).exists() and _noted(folder / SOURCE) == now:
            talk(f"goes on from {folder}")
            return Logged.from_folder(problem, folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / WRITTEN).unlink(missing_ok=True)
        write_bytes(folder / SOURCE, json.dumps(now).encode())
        try:
            return self._read(problem, folder, quiet=quiet)
        except BaseException:  # half a log is of no use
            shutil.rmtree(folder)
            with contextlib.suppress(OSError):
                folder.parent.rmdir()
            raise

    def _read(self, problem: Problem, folder: Path, *, quiet: bool) -> Logged:
        with bar(self._rows(problem), quiet=quiet, label="reading", show_pos=True, update_min_steps=SHOWN) as rows:
            missing = _missing(self.missing)
            return Logged.from_rows(problem, rows, missing=missing, tolerance=self.tolerance, folder=folder)

    def _identity(self) -> dict[str, Any]:
        """Return what tells whether it is the same file, read in the same way."""
        beside = self.path.with_name(f"{self.path.name}-wal")  # of a store: what was written last
        found = [self.path.stat(), *([beside.stat()] if beside.exists() else [])]
        how: dict[str, Any] = {"columns": list(self.columns), "missing": self.missing, "holdout": self.holdout}
        how |= {"experiment": self.experiment, "tolerance": self.tolerance}
        return {**how, "files": [[one.st_size, one.st_mtime_ns] for one in found if one.st_size]}

    def stored(self) -> contextlib.AbstractContextManager[tuple[Problem, Iterator[Row]]]:
        """Open the store of a service for its problem, and what was decided since it was last changed."""
        with serving():
            from bothworlds.service.exporting import exported

        return exported(self.path, self.experiment, of_now=True)

    def _stored_rows(self) -> Iterator[Row]:
        with self.stored() as (_, rows):
            yield from rows

    def _named(self) -> dict[str, Any]:
        """Return which column is what, as the reader of the file takes it."""
        found = _columns(self.columns)
        if self.path.suffix == ".dsjson":
            if more := [field for field in found if field not in ("arm", "context")]:
                raise click.UsageError(f"--column {more[0]}: of a .dsjson file, arm and context are all that is named")
        elif "arm" not in found and (found or self.path.suffix == ".csv"):
            raise click.UsageError(f"--column arm=NAME is missing: which column of {self.path} has the arm?")
        return found

    def _rows(self, problem: Problem) -> Iterator[Row]:
        """Yield the rows that count."""
        if self.path.suffix in (".csv", ".parquet", ".dsjson"):
            tolerance = max(TOLERANCE, self.tolerance)
            rows = read(self.path, reward_range=problem.reward_range, tolerance=tolerance, **self._named())
        elif self.columns:
            raise click.UsageError(f"--column is for tables, .csv and .parquet; the columns of {self.path} have names")
        elif self.path.suffix == STORE:
            rows = self._stored_rows()
        else:
            limits = problem.reward_range or (-1.0, 1.0)
            rows = decisions(Log(self.path), tolerance=self.tolerance, reward_range=limits)
        return (row for row in rows if self.holdout == "all" or row.holdout == (self.holdout == "only"))


def _noted(path: Path) -> Any:
    """Return what is noted of a file whose columns are kept, None if that cannot be read any more."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return None


def _columns(given: tuple[str, ...]) -> dict[str, Any]:
    """Return which column is what: several of a context stand together, and so do the probabilities of arms."""
    found: dict[str, Any] = {}
    for text in given:
        field, equals, name = text.partition("=")
        kind, colon, arm = field.partition(":")
        if not equals or (kind not in FIELDS and kind != "probability") or bool(colon) != (kind == "probability"):
            raise click.UsageError(
                f"--column {text!r}: it is FIELD=NAME, FIELD one of {', '.join(FIELDS)} or probability:ARM"
            )
        if kind == "probability":
            found.setdefault("probabilities", {})[arm] = name
        elif kind == "context":
            found["context"] = [*found.get("context", []), name]
        elif kind in found:
            raise click.UsageError(f"--column {kind} is given twice")
        else:
            number = _finite(name) if kind == "propensity" else None
            found[kind] = name if number is None else number
    return found


def _finite(text: str) -> float | None:
    """Return a finite number, None for any other text."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _missing(given: str | None) -> Any:
    """Return what a missing reward means."""
    if given in (None, "drop"):
        return given or "refuse"
    number = _finite(given or "")
    if number is None:
        raise click.UsageError(f"--missing is a number or 'drop'; got {given!r}")
    return number
