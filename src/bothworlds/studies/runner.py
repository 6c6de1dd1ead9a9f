"""Run a study cell by cell; finished cells are saved, and the same command resumes."""

import contextlib
import contextvars
import json
import os
import threading
import warnings
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from bothworlds.errors import StudyError, UserCodeError
from bothworlds.problem.checks import whole
from bothworlds.simulation.engine import Device, Progress, compilable, simulate
from bothworlds.simulation.results import Results
from bothworlds.studies.executors import Finished, run_on
from bothworlds.studies.fixed_policy_baselines import KIND, fixed_policies, replayed_cell
from bothworlds.studies.folder import CELLS, check_folder, finished_cell, write_study
from bothworlds.studies.instances import by_instances
from bothworlds.studies.precompile_cells import compiled_ahead
from bothworlds.studies.progress import Watch, shown
from bothworlds.studies.references import reference_cells
from bothworlds.studies.study import Cell, Study
from bothworlds.user_code import hashes_by_name

LANES = 8  # replications that one thread plays in about the time of two


def run_study(
    study: Study,
    output: str | Path,
    *,
    threads: int | None = None,
    quiet: bool = False,
    executor: Executor | None = None,
    device: Device = "cpu",
    shard: tuple[int, int] | None = None,
) -> list[tuple[Cell, Results]]:
    """Run the cells of a study that are not yet in the output folder; return all cells with results, in order.

    Every finished cell is written atomically, so that an interrupted run loses no finished cell. A damaged cell is run
    again, with a warning. A cell that fails does not stop the others; at the end `StudyError` lists the failures. The
    folder also contains the study, fixed policies replayed in environments that react to the arms played, and reference
    players if the study has them.

    Several processes, on several machines, may run the same study in the same folder: files are written atomically, and
    all processes compute the same numbers. Without ``shard`` they may play a cell twice.

    Parameters
    ----------
    study, output
        The study, and its results folder; a folder with results of a study of another name is refused.
    threads
        Threads per cell, by default all cores; with an executor threads per task, by default one.
    quiet
        Show no progress.
    executor
        Anything with the ``submit`` of `concurrent.futures`: processes or a cluster. Tasks are slices of replications;
        arrays are byte for byte the same as without an executor.
    device
        As in `simulate`; not together with an executor.
    shard
        (i, n): run the i-th of n disjoint parts, i from 1. The part of a cell depends on the set of cells only. The
        return value contains all cells that are finished by then.
    """
    _check_study(study)
    mine = check_shard(shard)
    check_device(device, executor)
    check_folder(study, output)
    folder = Path(output) / CELLS
    folder.mkdir(parents=True, exist_ok=True)
    write_study(study, output)
    cells = list(study.cells())
    every: dict[str, Cell] = {}
    for cell in [*cells, *replayed_cells(study), *reference_cells(study)]:
        every.setdefault(cell.key, cell)
    finished = {key: finished_cell(output, cell) for key, cell in every.items()}
    ours = sorted(every)[mine]  # by hash, which spreads slow algorithms over all parts
    open_cells = [cell for key, cell in every.items() if finished[key] is None and key in ours]
    failures: list[tuple[Cell, Exception]] = []
    with (
        shown(sum(map(_work, open_cells)), len(by_instances(open_cells)), quiet=quiet) as watch,
        contextlib.ExitStack() as stack,
    ):
        for cell, done in _all(
            open_cells, folder, threads=threads, watch=watch, executor=executor, device=device, stack=stack
        ):
            if isinstance(done, Exception):
                failures.append((cell, done))
                continue
            kinds = cell.environment_options.get("kind"), cell.algorithm_options.get("kind")
            own = hashes_by_name(*kinds, hashes=cell.texts)
            done.manifest.update({"own": own} if own else {})
            done.save(folder / f"{cell.key}.npz")
            finished[cell.key] = done
    if failures:
        raise StudyError(_failure(failures, len(open_cells)), failures) from failures[0][1]
    # Files contain no labels, so that an algorithm may be renamed or listed twice without being run again.
    return [(cell, results.relabelled(cell.algorithm)) for cell in cells if (results := finished[cell.key]) is not None]


def _all(
    cells: list[Cell],
    folder: Path,
    *,
    threads: int | None,
    watch: Watch,
    executor: Executor | None,
    device: Device,
    stack: contextlib.ExitStack,
) -> Iterable[Finished]:
    """Run cells on the executor, if any; run replayed policies, and all cells without an executor, in this process."""
    away = [cell for cell in cells if executor is not None and not _is_replayed(cell)]
    turns = _in_turn([cell for cell in cells if cell not in away], folder, threads, watch, device)
    if device == "cpu" and not away:
        stack.enter_context(compiled_ahead([group[0] for group in by_instances(cells)], threads))
    here = stack.enter_context(contextlib.closing(turns))
    if executor is None or not away:
        return here
    watch.begin(f"{len(away)} cells on the engine", sum(_work(cell) for cell in away) / sum(map(_rounds, away)))
    there = stack.enter_context(contextlib.closing(run_on(executor, away, threads=threads, progress=watch.advance)))
    return chain(there, here)


def _in_turn(cells: list[Cell], folder: Path, threads: int | None, watch: Watch, device: Device) -> Generator[Finished]:
    """Run cells in this process; yield each with its results or with its error.

    Cells run one after the other, each on all threads. Where there are more instances of a cell than its replications
    keep threads busy, several instances run at a time, each on one thread.
    """
    for group in by_instances(cells):
        first, *others = group
        watch.begin(first.short_name, _work(first) / _rounds(first))
        apart = bool(others) and device == "cpu" and _one_thread_each(group, threads)
        run = partial(_attempt, folder=folder, threads=1 if apart else threads, device=device)
        yield from _one_by_one([first] if apart else group, folder, run, watch)  # the first one compiles
        if apart:
            with contextlib.closing(_side_by_side(others, folder, run, watch, _workers(threads))) as found:
                yield from found


def _workers(threads: int | None) -> int:
    return threads or os.cpu_count() or 1


def _one_thread_each(group: list[Cell], threads: int | None) -> bool:
    """Tell whether a thread for each instance is the faster way to run the instances of a cell."""
    cell = group[0]
    busy = -(-cell.settings["replications"] // LANES)  # threads that one cell has work for
    try:
        compiled = compilable(cell.make_algorithm(), cell.make_environment())
    except Exception:  # the cell itself will report it
        return False
    return compiled and _workers(threads) > 1 and len(group) >= min(_workers(threads), busy)


def _finished_meanwhile(cell: Cell, folder: Path) -> Results | None:
    """Return the results of a cell that another process on the same folder has finished."""
    with warnings.catch_warnings():  # about a damaged file there was a warning before
        warnings.simplefilter("ignore")
        return finished_cell(folder.parent, cell)


def _attempt(
    cell: Cell, progress: Progress, *, folder: Path, threads: int | None, device: Device
) -> Results | Exception:
    """Run a cell; return its results or its error."""
    try:
        resume_file = folder / f"{cell.key}.unfinished.npz"
        return _run(cell, threads=threads, progress=progress, device=device, resume_file=resume_file)
    except Exception as error:
        return error


def _one_by_one(
    cells: list[Cell], folder: Path, run: Callable[[Cell, Progress], Results | Exception], watch: Watch
) -> Generator[Finished]:
    """Run cells one after the other."""
    for cell in cells:
        done = _finished_meanwhile(cell, folder)
        if done is not None:
            watch.advance(_rounds(cell))
        yield cell, run(cell, watch.advance) if done is None else done


def _side_by_side(
    cells: list[Cell], folder: Path, run: Callable[[Cell, Progress], Results | Exception], watch: Watch, workers: int
) -> Generator[Finished]:
    """Run cells in several threads; closing the generator stops those that run."""
    stop = threading.Event()

    def advance(rounds: int) -> None:
        if stop.is_set():
            raise InterruptedError("the run was stopped")
        watch.advance(rounds)

    with ThreadPoolExecutor(max_workers=workers) as pool:
        waiting: dict[Future[Results | Exception], Cell] = {}
        try:
            for cell in cells:
                done = _finished_meanwhile(cell, folder)
                if done is None:
                    waiting[pool.submit(contextvars.copy_context().run, run, cell, advance)] = cell
                else:
                    watch.advance(_rounds(cell))
                    yield cell, done
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            stop.set()
            for future in waiting:
                future.cancel()


def check_shard(shard: Any) -> slice:
    """Return the slice of the sorted cells that belongs to a shard; all cells for None.

    >>> list(range(7))[check_shard((2, 3))]
    [1, 4]
    """
    if shard is None:
        return slice(None)
    if not isinstance(shard, tuple) or len(shard) != 2:
        raise ValueError(f"shard must be (i, n), the i-th of n parts, for example (1, 3); got {shard!r}")
    part, parts = (whole(number, 0, "each number of shard") for number in shard)
    if not 1 <= part <= parts:
        raise ValueError(f"shard i/n must be the i-th of n parts, i from 1 to n; got {part}/{parts}")
    return slice(part - 1, None, parts)


def _check_study(study: Any) -> None:
    """Raise ValueError if the value is not a study; the message says how to make one."""
    if not isinstance(study, Study):
        makers = "Study.from_toml(path) makes one from a file, Study.from_dict(content) from a dictionary"
        raise ValueError(f"expected a study, got {type(study).__name__}: {makers}")


def _failure(failures: list[tuple[Cell, Exception]], tried: int) -> str:
    """Return the message of failed cells: each distinct error once, with the options of its first cell."""
    lines = [f"{len(failures)} of {tried} cells failed; the others are finished and saved"]
    same: dict[str, list[tuple[Cell, str]]] = {}
    for cell, error in failures:
        said = f"{type(error).__name__}: {error}"
        key, said = (error.place, str(error)) if isinstance(error, UserCodeError) else (said, said)
        same.setdefault(key, []).append((cell, said))
    for cells in same.values():
        cell, said = cells[0]
        options = {"environment": cell.environment_options, "algorithm": cell.algorithm_options, **cell.settings}
        others = f" and {len(cells) - 1} more cells" if len(cells) > 1 else ""
        lines.append(f"{cell.name}, seed {cell.settings['seed']}{others}: {said}")
        lines.append(f"  {json.dumps(options)}")
    return "\n".join(lines)


def replayed_cells(study: Study) -> list[Cell]:
    """Return the cells that replay fixed policies, one for every environment that reacts to the arms played."""
    found = {(replayed := replayed_cell(cell)).key: replayed for cell in study.cells()}
    return [cell for cell in found.values() if cell.make_environment().reacts]


def _is_replayed(cell: Cell) -> bool:
    return bool(cell.algorithm_options.get("kind") == KIND)


def _rounds(cell: Cell) -> int:
    return int(cell.settings["horizon"] * cell.settings["replications"])


def _work(cell: Cell) -> float:
    """Return the estimated work of a cell, in arbitrary units; 0 if its environment cannot be made."""
    try:
        return float(cell.make_environment().problem.dimension) * _rounds(cell)
    except ValueError:
        return 0.0


def check_device(device: Device, executor: Executor | None = None) -> None:
    """Raise an error for an unavailable device before any cell is played."""
    if device != "cpu" and executor is not None:
        raise ValueError(f"device={device!r} cannot be combined with an executor, whose tasks run on CPUs")
    if device == "gpu":
        from bothworlds.simulation import gpu  # a slow import, for runs on a GPU only

        gpu.require_gpu()


def _run(cell: Cell, **how: Any) -> Results:
    """Run one cell, with further options of `simulate`; results depend on the cell only."""
    environment = cell.make_environment()
    given: dict[str, Any] = dict(cell.settings)
    algorithms = fixed_policies(environment) if _is_replayed(cell) else {"cell": cell.make_algorithm()}
    return simulate(environment, algorithms, rng=given.pop("seed"), **given, **how)
