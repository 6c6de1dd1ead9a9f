"""Read the log of `bothworlds evaluate` into columns, kept in files beside the page until that is written."""

import contextlib
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import print_message, progress_bar, require_service_packages
from bothworlds.evaluation import Logged
from bothworlds.evaluation.log_columns import WRITTEN
from bothworlds.evaluation.logged import decisions
from bothworlds.logs import Log, Row, read
from bothworlds.logs.validation import TOLERANCE
from bothworlds.problem import Problem
from bothworlds.problem.file_format import write_bytes
from bothworlds.service.dsn import location_text

FIELDS = ("arm", "context", "reward", "propensity", "id", "time", "version", "holdout", "policy", "zone")
SOURCE = "source.json"
UPDATE_ROWS = 1000  # rows between two updates of the progress bar
STORE = ".sqlite"


@dataclass(frozen=True, kw_only=True)
class Source:
    """The file of a log, and the options for reading it."""

    path: Path | str
    columns: tuple[str, ...]
    missing: str | None
    holdout: str
    experiment: str | None = None
    tolerance: float = 0.0

    def logged(self, problem: Problem, folder: Path, *, quiet: bool) -> Logged:
        """Return the columns of the log, in files of a folder; reuse columns of the same file and options."""
        identity = {**self._identity(), "problem": problem.fingerprint}
        if (folder / WRITTEN).exists() and _read_json(folder / SOURCE) == identity:
            print_message(f"resuming from {folder}")
            return Logged.from_folder(problem, folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / WRITTEN).unlink(missing_ok=True)
        write_bytes(folder / SOURCE, json.dumps(identity).encode())
        try:
            return self._read(problem, folder, quiet=quiet)
        except BaseException:  # columns of half a log are useless
            shutil.rmtree(folder)
            with contextlib.suppress(OSError):
                folder.parent.rmdir()
            raise

    def _read(self, problem: Problem, folder: Path, *, quiet: bool) -> Logged:
        with progress_bar(
            self._rows(problem), quiet=quiet, label="reading", show_pos=True, update_min_steps=UPDATE_ROWS
        ) as rows:
            missing = _missing(self.missing)
            return Logged.from_rows(problem, rows, missing=missing, tolerance=self.tolerance, folder=folder)

    def _identity(self) -> dict[str, Any]:
        """Return size and time of the files, and the options for reading them."""
        options: dict[str, Any] = {"columns": list(self.columns), "missing": self.missing, "holdout": self.holdout}
        options |= {"experiment": self.experiment, "tolerance": self.tolerance}
        if isinstance(self.path, str):
            return {**options, "store": location_text(self.path), "last": self._last()}
        write_ahead = self.path.with_name(f"{self.path.name}-wal")  # of a store: its last writes
        files = [self.path.stat(), *([write_ahead.stat()] if write_ahead.exists() else [])]
        return {**options, "files": [[file.st_size, file.st_mtime_ns] for file in files if file.st_size]}

    @property
    def suffix(self) -> str:
        """The suffix of the file; a database has that of a store."""
        return STORE if isinstance(self.path, str) else self.path.suffix

    def _last(self) -> int:
        """Return the end of the log of a database."""
        from bothworlds.service.locations import open_store

        with contextlib.closing(open_store(self.path, writes=False)) as store:
            return store.last()

    def stored(self) -> contextlib.AbstractContextManager[tuple[Problem, Iterator[Row]]]:
        """Open the store of a service; yield its problem and the rows since the problem last changed."""
        with require_service_packages():
            from bothworlds.service.export import open_export

        return open_export(self.path, self.experiment, current_only=True)

    def _stored_rows(self) -> Iterator[Row]:
        with self.stored() as (_, rows):
            yield from rows

    def _named(self) -> dict[str, Any]:
        """Return the names of the columns as options of the file's reader."""
        names = _columns(self.columns)
        if self.suffix == ".dsjson":
            if other := [field for field in names if field not in ("arm", "context")]:
                raise click.UsageError(f"--column {other[0]}: of a .dsjson file, only arm and context have a name")
        elif "arm" not in names and (names or self.suffix == ".csv"):
            raise click.UsageError(f"--column arm=NAME is missing: which column of {self.path} has the arm?")
        return names

    def _rows(self, problem: Problem) -> Iterator[Row]:
        """Yield the rows, as --holdout selects them."""
        if self.suffix in (".csv", ".parquet", ".dsjson"):
            tolerance = max(TOLERANCE, self.tolerance)
            rows = read(self.path, reward_range=problem.reward_range, tolerance=tolerance, **self._named())
        elif self.columns:
            raise click.UsageError(f"--column is for tables, .csv and .parquet; {self.path} has fixed column names")
        elif self.suffix == STORE:
            rows = self._stored_rows()
        else:
            limits = problem.reward_range or (-1.0, 1.0)
            rows = decisions(Log(self.path), tolerance=self.tolerance, reward_range=limits)
        return (row for row in rows if self.holdout == "all" or row.holdout == (self.holdout == "only"))


def _read_json(path: Path) -> Any:
    """Return the content of a JSON file, None if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return None


def _columns(given: tuple[str, ...]) -> dict[str, Any]:
    """Return column names by field: ``context`` has a list, and ``probabilities`` has names by arm."""
    names: dict[str, Any] = {}
    for text in given:
        field, equals, name = text.partition("=")
        kind, colon, arm = field.partition(":")
        if not equals or (kind not in FIELDS and kind != "probability") or bool(colon) != (kind == "probability"):
            raise click.UsageError(
                f"--column {text!r} is not FIELD=NAME with FIELD one of {', '.join(FIELDS)} or probability:ARM"
            )
        if kind == "probability":
            names.setdefault("probabilities", {})[arm] = name
        elif kind == "context":
            names["context"] = [*names.get("context", []), name]
        elif kind in names:
            raise click.UsageError(f"--column {kind} is given twice")
        else:
            number = _finite(name) if kind == "propensity" else None
            names[kind] = name if number is None else number
    return names


def _finite(text: str) -> float | None:
    """Return a finite number, None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _missing(given: str | None) -> Any:
    """Return the reader's option ``missing``: "refuse", "drop" or a reward."""
    if given in (None, "drop"):
        return given or "refuse"
    number = _finite(given or "")
    if number is None:
        raise click.UsageError(f"--missing must be a number or 'drop'; got {given!r}")
    return number
