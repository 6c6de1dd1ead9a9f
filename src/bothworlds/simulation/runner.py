"""Running a study: cell by cell, finished cells kept, the same command resumes."""

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Generator, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from bothworlds.errors import StudyError
from bothworlds.simulation.engine import Progress, simulate
from bothworlds.simulation.results import Results, load_results
from bothworlds.simulation.spread import Finished, spread
from bothworlds.simulation.study import Cell, Study


def run_study(
    study: Study,
    output: str | Path,
    *,
    threads: int | None = None,
    quiet: bool = False,
    executor: Executor | None = None,
) -> list[tuple[Cell, Results]]:
    """Run the cells of a study that are not yet in the output folder; return all of them, in order.

    A cell is written whole when it is finished, so that nothing finished is lost when the run is stopped. A cell that
    cannot be read any more is run again, with a warning. A cell that fails does not stop the others; at the end
    `StudyError` names those that failed.

    Parameters
    ----------
    study, output
        What to run, and the folder for results.
    threads
        Threads for a cell, all cores if left out; with an executor threads for a task, one if left out.
    quiet
        Show no progress.
    executor
        Anything with the ``submit`` of `concurrent.futures`: processes, or a cluster. Tasks are slices of replications;
        the arrays are the same, byte for byte, as without an executor.
    """
    folder = Path(output) / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    cells = list(study.cells())
    finished: dict[str, Results | None] = {cell.key: _finished(folder / f"{cell.key}.npz", cell) for cell in cells}
    open_cells = list({cell.key: cell for cell in cells if finished[cell.key] is None}.values())
    work = sum(cell.numbers["horizon"] * cell.numbers["replications"] for cell in open_cells)
    failures: list[tuple[Cell, Exception]] = []
    with shown_progress(work, quiet=quiet) as advance:
        if executor is None:
            work_done = _in_turn(open_cells, threads=threads, progress=advance)
        else:
            work_done = spread(executor, open_cells, threads=threads, progress=advance)
        with contextlib.closing(work_done):
            for cell, done in work_done:
                if isinstance(done, Exception):
                    failures.append((cell, done))
                    continue
                done.save(folder / f"{cell.key}.npz")
                finished[cell.key] = done
    if failures:
        raise StudyError(_failure(failures, len(open_cells)), failures) from failures[0][1]
    # Files know nothing of labels: an algorithm may be renamed, or stand twice, without being run again.
    return [(cell, results.relabelled(cell.algorithm)) for cell in cells if (results := finished[cell.key]) is not None]


def _in_turn(cells: list[Cell], *, threads: int | None, progress: Progress) -> Generator[Finished]:
    """Run cells one after the other in this process; yield each with its results or with what went wrong."""
    for cell in cells:
        done: Results | Exception
        try:
            done = run_cell(cell, threads=threads, progress=progress)
        except Exception as error:
            done = error
        yield cell, done


def _failure(failures: list[tuple[Cell, Exception]], tried: int) -> str:
    """Say which cells failed, with all that is needed to run them alone."""
    lines = [f"{len(failures)} of {tried} cells failed; the others are finished and kept"]
    for cell, error in failures:
        options = {"environment": cell.environment_options, "algorithm": cell.algorithm_options, **cell.numbers}
        lines.append(f"{cell.name}, seed {cell.numbers['seed']}: {type(error).__name__}: {error}")
        lines.append(f"  {json.dumps(options)}")
    return "\n".join(lines)


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
