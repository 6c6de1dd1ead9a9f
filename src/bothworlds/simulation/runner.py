"""Running a study: cell by cell, finished cells kept, the same command resumes."""

import contextlib
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bothworlds.simulation.engine import Progress, simulate
from bothworlds.simulation.results import Results, load_results
from bothworlds.simulation.study import Cell, Study


def run_study(
    study: Study, output: str | Path, *, threads: int | None = None, quiet: bool = False
) -> list[tuple[Cell, Results]]:
    """Run the cells of a study that are not yet in the output folder; return all of them, in order.

    A cell is written whole when it is finished, so that nothing finished is lost when the run is stopped. A cell that
    cannot be read any more is run again, with a warning.
    """
    folder = Path(output) / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    cells = list(study.cells())
    finished: dict[str, Results | None] = {cell.key: _finished(folder / f"{cell.key}.npz", cell) for cell in cells}
    open_cells = list({cell.key: cell for cell in cells if finished[cell.key] is None}.values())
    work = sum(cell.numbers["horizon"] * cell.numbers["replications"] for cell in open_cells)
    with shown_progress(work, quiet=quiet) as advance:
        for cell in open_cells:
            done = run_cell(cell, threads=threads, progress=advance)
            done.save(folder / f"{cell.key}.npz")
            finished[cell.key] = done
    # Files know nothing of labels: an algorithm may be renamed, or stand twice, without being run again.
    return [(cell, results.relabelled(cell.algorithm)) for cell in cells if (results := finished[cell.key]) is not None]


def run_cell(cell: Cell, *, threads: int | None = None, progress: Progress | None = None) -> Results:
    """Run one cell; its numbers depend on nothing outside the cell."""
    numbers = cell.numbers
    return simulate(
        cell.make_environment(),
        {"cell": cell.make_algorithm()},
        horizon=numbers["horizon"],
        replications=numbers["replications"],
        rng=numbers["seed"],
        checkpoints=numbers["checkpoints"],
        delay=numbers["delay"],
        batch=numbers["batch"],
        threads=threads,
        progress=progress,
    )


def _finished(path: Path, cell: Cell) -> Results | None:
    """Return the results of a finished cell, or None if it is not there or damaged."""
    if not path.exists():
        return None
    try:
        return load_results(path)
    except (ValueError, OSError) as error:
        warnings.warn(f"{cell.name} is run again: {error}", stacklevel=3)
        return None


@contextlib.contextmanager
def shown_progress(work: int, *, quiet: bool) -> Iterator[Progress]:
    """Show rounds per second and the time left on a terminal's stderr; elsewhere show nothing."""
    if quiet or not sys.stderr.isatty() or work == 0:
        yield lambda rounds: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    ]
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("simulating", total=work, speed="")

        def advance(rounds: int) -> None:
            done = bar.tasks[task].completed + rounds
            speed = f"{done / max(time.monotonic() - began, 1e-9):,.0f} rounds/s"
            bar.update(task, advance=rounds, speed=speed)

        yield advance
