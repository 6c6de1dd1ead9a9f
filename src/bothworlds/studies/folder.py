"""The results folder of a study: study.toml, and a pair of files per finished cell."""

import shlex
import tomllib
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bothworlds.problem.file_format import read_text, write_bytes
from bothworlds.simulation.results import Results, load_results
from bothworlds.studies.fixed_policy_baselines import replayed_cell
from bothworlds.studies.references import references_of
from bothworlds.studies.study import Cell, Study
from bothworlds.studies.toml import to_toml
from bothworlds.user_code import file_of, keep_copy, with_copied_file

CELLS, STUDY = "cells", "study.toml"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """Content of a folder of results: the study, its finished cells in order, and its unfinished cells."""

    study: Study
    folder: Path
    cells: list[tuple[Cell, Results]]
    missing: list[Cell]

    @cached_property
    def _by_key(self) -> dict[str, Results]:
        return {cell.key: results for cell, results in self.cells}

    def replayed(self, cell: Cell) -> Results | None:
        """Return the fixed policies replayed in the environment of a cell, if that reacts to the arms played."""
        return finished_cell(self.folder, replayed_cell(cell), otherwise="is left out")

    def references(self, cell: Cell) -> dict[str, Results]:
        """Return the results of the reference players in the environment of a cell; empty if any is missing."""
        if not self.study.references:
            return {}
        cells = references_of(cell)
        found = {label: self._by_key.get(one.key) or finished_cell(self.folder, one) for label, one in cells.items()}
        finished = {label: results for label, results in found.items() if results is not None}
        return finished if len(finished) == len(cells) else {}


def write_study(study: Study, output: str | Path) -> None:
    """Write the study into its results folder, with copies of the user's files.

    An existing file of the same study, perhaps with comments, is not changed.
    """
    for options in [*study.environments.values(), *study.algorithms.values()]:
        path = file_of(options.get("kind"))
        if path is not None:
            keep_copy(path, Path(output), study.texts)
    if not (Path(output) / STUDY).is_file() or has_another_study(study, output):
        write_bytes(Path(output) / STUDY, to_toml(kept(study)).encode())


def check_folder(study: Study, output: str | Path) -> None:
    """Raise ValueError if the folder contains another study.

    Another study is one with another name, or one without results. An edited study may continue in its folder.
    """
    path = Path(output) / STUDY
    if not has_another_study(study, output):
        return
    if not (Path(output) / CELLS).is_dir():
        raise ValueError(f"{path} is another study and would be overwritten; choose another folder for the results")
    name = _name_in(path)
    if name not in (None, study.name):
        raise ValueError(
            f"{output} has the results of another study, {name!r}; choose another folder for those of {study.name!r}, "
            f"or remove {path} if they belong together"
        )


def _name_in(path: Path) -> str | None:
    """Return the name of the study in a file, None if it cannot be read."""
    try:
        return str(tomllib.loads(read_text(path, "a study")).get("name", path.stem))
    except (ValueError, OSError, RecursionError):
        return None


def resuming(output: str | Path) -> str:
    """Return the command that resumes the study in a results folder.

    >>> resuming("my results")
    "bothworlds run 'my results/study.toml' --output 'my results'"
    """
    return shlex.join(["bothworlds", "run", str(Path(output) / STUDY), "--output", str(output)])


def kept(study: Study) -> Study:
    """Return a study as stored in its results folder, where the user's files are copies."""
    environments = {label: with_copied_file(options, study.texts) for label, options in study.environments.items()}
    algorithms = {label: with_copied_file(options, study.texts) for label, options in study.algorithms.items()}
    return replace(study, environments=environments, algorithms=algorithms)


def has_another_study(study: Study, output: str | Path) -> bool:
    """Whether the folder contains a different study, or one that cannot be read."""
    path = Path(output) / STUDY
    if not path.is_file():
        return False
    try:
        mine = to_toml(kept(study))
        return read_text(path, "a study") != mine and to_toml(kept(Study.from_toml(path))) != mine
    except (ValueError, OSError):
        return True


def finished_cell(output: str | Path, cell: Cell, *, otherwise: str = "is run again") -> Results | None:
    """Return the results of a finished cell, or None if they are missing or, with a warning, damaged."""
    path = Path(output) / CELLS / f"{cell.key}.npz"
    if not path.exists():
        return None
    try:
        return load_results(path)
    except (ValueError, OSError) as error:
        warnings.warn(f"{cell.name} {otherwise}: {error}", stacklevel=3)
        return None


def read_folder(output: str | Path) -> Finished:
    """Read the results of a study; refuse a folder without a study or without a finished cell."""
    folder = Path(output)
    if not (folder / STUDY).is_file():
        raise ValueError(f"{folder} is not a results folder: it has no {STUDY}")
    study = Study.from_toml(folder / STUDY)
    cells: list[tuple[Cell, Results]] = []
    missing = []
    for cell in study.cells():
        results = finished_cell(folder, cell, otherwise="is left out")
        if results is None:
            missing.append(cell)
        else:
            cells.append((cell, results.relabelled(cell.algorithm)))
    if not cells:
        raise ValueError(f"no cell of the study in {folder} is finished; run it: {resuming(folder)}")
    return Finished(study=study, folder=folder, cells=cells, missing=missing)
