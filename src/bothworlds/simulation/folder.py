"""The folder of a study's results: study.toml, and one pair of files per finished cell."""

import shlex
import tomllib
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

from bothworlds.problem.storage import read_text, write_bytes
from bothworlds.simulation.own import file_of, keep_copy, portable
from bothworlds.simulation.references import references_of
from bothworlds.simulation.replayed import replayed_cell
from bothworlds.simulation.results import Results, load_results
from bothworlds.simulation.study import Cell, Study
from bothworlds.simulation.toml import to_toml

CELLS, STUDY = "cells", "study.toml"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What is in a folder: the study, its finished cells in order, and the cells that are not finished yet."""

    study: Study
    folder: Path
    cells: list[tuple[Cell, Results]]
    missing: list[Cell]

    def replayed(self, cell: Cell) -> Results | None:
        """Return the fixed policies replayed in the environment of a cell, if it reacts to the plays."""
        return finished_cell(self.folder, replayed_cell(cell), otherwise="is left out")

    def references(self, cell: Cell) -> dict[str, Results]:
        """Return the reference players in the environment of a cell: all of them, or none."""
        if not self.study.references:
            return {}
        found = {label: finished_cell(self.folder, one) for label, one in references_of(cell).items()}
        whole = {label: results for label, results in found.items() if results is not None}
        return whole if len(whole) == len(found) else {}


def write_study(study: Study, output: str | Path) -> None:
    """Keep the study in the folder of its results, with copies of files of the user's own.

    A file there that says the same, perhaps with comments, is left as it is.
    """
    for options in [*study.environments.values(), *study.algorithms.values()]:
        path = file_of(options.get("kind"))
        if path is not None:
            keep_copy(path, Path(output), study.texts)
    if not (Path(output) / STUDY).is_file() or has_another_study(study, output):
        write_bytes(Path(output) / STUDY, to_toml(kept(study)).encode())


def check_folder(study: Study, output: str | Path) -> None:
    """Refuse a folder where results would be written over a study that is not theirs.

    That is one with another name, or one without results. A study that was edited goes on in its folder.
    """
    path = Path(output) / STUDY
    if not has_another_study(study, output):
        return
    if not (Path(output) / CELLS).is_dir():
        raise ValueError(f"{path} is another study and would be written over; give results a folder of their own")
    name = _name_in(path)
    if name not in (None, study.name):
        raise ValueError(
            f"{output} has the results of another study, {name!r}; give those of {study.name!r} a folder of their own, "
            f"or remove {path} if they belong together"
        )


def _name_in(path: Path) -> str | None:
    """Return the name of a study in a file, None if it cannot be read."""
    try:
        return str(tomllib.loads(read_text(path, "a study")).get("name", path.stem))
    except (ValueError, OSError, RecursionError):
        return None


def resuming(output: str | Path) -> str:
    """Return the command that goes on with the study in a folder of results.

    >>> resuming("my results")
    "bothworlds run 'my results/study.toml' --output 'my results'"
    """
    return shlex.join(["bothworlds", "run", str(Path(output) / STUDY), "--output", str(output)])


def kept(study: Study) -> Study:
    """Return a study as its folder of results keeps it: files of the user's own are copies there."""
    environments = {label: portable(options, study.texts) for label, options in study.environments.items()}
    algorithms = {label: portable(options, study.texts) for label, options in study.algorithms.items()}
    return replace(study, environments=environments, algorithms=algorithms)


def has_another_study(study: Study, output: str | Path) -> bool:
    """Tell whether a folder keeps a study that is not this one, or one that cannot be read."""
    path = Path(output) / STUDY
    if not path.is_file():
        return False
    try:
        mine = to_toml(kept(study))
        return read_text(path, "a study") != mine and to_toml(kept(Study.from_toml(path))) != mine
    except (ValueError, OSError):
        return True


def finished_cell(output: str | Path, cell: Cell, *, otherwise: str = "is run again") -> Results | None:
    """Return the results of a finished cell, or None if it is not there or damaged."""
    path = Path(output) / CELLS / f"{cell.key}.npz"
    if not path.exists():
        return None
    try:
        return load_results(path)
    except (ValueError, OSError) as error:
        warnings.warn(f"{cell.name} {otherwise}: {error}", stacklevel=3)
        return None


def read_folder(output: str | Path) -> Finished:
    """Read the results of a study from its folder; one without a study or without a finished cell is refused."""
    folder = Path(output)
    if not (folder / STUDY).is_file():
        raise ValueError(f"{folder} is not a folder of results: it has no {STUDY}")
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
