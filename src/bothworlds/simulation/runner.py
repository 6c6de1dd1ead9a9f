"""Running a study: cell by cell, finished cells kept, the same command resumes."""

import contextlib
import json
import warnings
from collections.abc import Generator, Iterable
from concurrent.futures import Executor
from itertools import chain
from pathlib import Path
from typing import Any

from bothworlds.errors import StudyError
from bothworlds.problem.checks import whole
from bothworlds.simulation.ahead import compiled_ahead
from bothworlds.simulation.engine import Device, simulate
from bothworlds.simulation.executors import Finished, run_on
from bothworlds.simulation.folder import CELLS, check_folder, finished_cell, write_study
from bothworlds.simulation.own import remembered
from bothworlds.simulation.progress import Watch, shown
from bothworlds.simulation.references import reference_cells
from bothworlds.simulation.replayed import KIND, fixed_policies, replayed_cell
from bothworlds.simulation.results import Results
from bothworlds.simulation.study import Cell, Study


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
    """Run the cells of a study that are not yet in the output folder; return all of them, in order.

    A cell is written whole when it is finished, so that nothing finished is lost when the run is stopped. A cell that
    cannot be read any more is run again, with a warning. A cell that fails does not stop the others; at the end
    `StudyError` names those that failed. The folder also keeps the study, fixed policies replayed in the worlds
    that react to the plays, and reference players if the study has them.

    Several processes, on several machines, may run the same study on the same folder: files are written whole, and
    whoever writes a cell writes the same numbers. Without ``shard`` they may play a cell twice.

    Parameters
    ----------
    study, output
        What to run, and the folder for results; one that has those of a study with another name is refused.
    threads
        Threads for a cell, all cores if left out; with an executor threads for a task, one if left out.
    quiet
        Show no progress.
    executor
        Anything with the ``submit`` of `concurrent.futures`: processes, or a cluster. Tasks are slices of replications;
        the arrays are the same, byte for byte, as without an executor.
    device
        As in `simulate`; not together with an executor.
    shard
        (i, n): run the i-th of n parts, i from 1. The parts are disjoint, together they are the study, and which cell
        is in which depends on nothing but the cell. What is returned are the cells that are finished by then.
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
    ours = sorted(every)[mine]  # by their hashes, so that slow algorithms are in all parts
    open_cells = [cell for key, cell in every.items() if finished[key] is None and key in ours]
    failures: list[tuple[Cell, Exception]] = []
    with (
        shown(sum(_work(cell) for cell in open_cells), len(open_cells), quiet=quiet) as watch,
        contextlib.ExitStack() as stack,
    ):
        for cell, done in _all(
            open_cells, folder, threads=threads, watch=watch, executor=executor, device=device, stack=stack
        ):
            if isinstance(done, Exception):
                failures.append((cell, done))
                continue
            kinds = cell.environment_options.get("kind"), cell.algorithm_options.get("kind")
            own = remembered(*kinds, texts=cell.texts)
            done.manifest.update({"own": own} if own else {})
            done.save(folder / f"{cell.key}.npz")
            finished[cell.key] = done
    if failures:
        raise StudyError(_failure(failures, len(open_cells)), failures) from failures[0][1]
    # Files know nothing of labels: an algorithm may be renamed, or stand twice, without being run again.
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
    """Run cells on the executor, if there is one and it can take them, and the others here."""
    away = [cell for cell in cells if executor is not None and not _is_replayed(cell)]
    turns = _in_turn([cell for cell in cells if cell not in away], folder, threads, watch, device)
    if device == "cpu" and not away:
        stack.enter_context(compiled_ahead(cells, threads))
    here = stack.enter_context(contextlib.closing(turns))
    if executor is None or not away:
        return here
    watch.begin(f"{len(away)} cells on the engine", sum(_work(cell) for cell in away) / sum(map(_rounds, away)))
    there = stack.enter_context(contextlib.closing(run_on(executor, away, threads=threads, progress=watch.advance)))
    return chain(there, here)


def _in_turn(cells: list[Cell], folder: Path, threads: int | None, watch: Watch, device: Device) -> Generator[Finished]:
    """Run cells one after the other in this process; yield each with its results or with what went wrong."""
    for cell in cells:
        watch.begin(cell.short_name, _work(cell) / _rounds(cell))
        done: Results | Exception
        with warnings.catch_warnings():  # a damaged file has been told of already
            warnings.simplefilter("ignore")
            meanwhile = finished_cell(folder.parent, cell)  # by another process on the same folder
        if meanwhile is not None:
            watch.advance(_rounds(cell))
            yield cell, meanwhile
            continue
        try:
            unfinished = folder / f"{cell.key}.unfinished.npz"
            done = _run(cell, threads=threads, progress=watch.advance, device=device, unfinished=unfinished)
        except Exception as error:
            done = error
        yield cell, done


def check_shard(shard: Any) -> slice:
    """Return which of the cells, in some fixed order, belong to a part of the work.

    >>> list(range(7))[check_shard((2, 3))]
    [1, 4]
    """
    if shard is None:
        return slice(None)
    if not isinstance(shard, tuple) or len(shard) != 2:
        raise ValueError(f"shard is (i, n), the i-th of n parts, say (1, 3); got {shard!r}")
    part, parts = (whole(number, 0, "each number of shard") for number in shard)
    if not 1 <= part <= parts:
        raise ValueError(f"shard i/n is the i-th of n parts, i from 1 to n; got {part}/{parts}")
    return slice(part - 1, None, parts)


def _check_study(study: Any) -> None:
    """Refuse what is no study, with what makes one of it."""
    if not isinstance(study, Study):
        makers = "Study.from_toml(path) makes one of a file, Study.from_dict(content) one of a dictionary"
        raise ValueError(f"a study is needed, not {type(study).__name__}: {makers}")


def _failure(failures: list[tuple[Cell, Exception]], tried: int) -> str:
    """Say which cells failed, with all that is needed to run them alone."""
    lines = [f"{len(failures)} of {tried} cells failed; the others are finished and kept"]
    for cell, error in failures:
        options = {"environment": cell.environment_options, "algorithm": cell.algorithm_options, **cell.settings}
        lines.append(f"{cell.name}, seed {cell.settings['seed']}: {type(error).__name__}: {error}")
        lines.append(f"  {json.dumps(options)}")
    return "\n".join(lines)


def replayed_cells(study: Study) -> list[Cell]:
    """Return the cells that replay fixed policies, one for every world that reacts to the plays."""
    found = {(replayed := replayed_cell(cell)).key: replayed for cell in study.cells()}
    return [cell for cell in found.values() if cell.make_environment().reacts]


def _is_replayed(cell: Cell) -> bool:
    return bool(cell.algorithm_options.get("kind") == KIND)


def _rounds(cell: Cell) -> int:
    return int(cell.settings["horizon"] * cell.settings["replications"])


def _work(cell: Cell) -> float:
    """Return how long a cell takes, in some unit; one whose environment cannot be made fails at once."""
    try:
        return float(cell.make_environment().problem.dimension) * _rounds(cell)
    except ValueError:
        return 0.0


def check_device(device: Device, executor: Executor | None = None) -> None:
    """Refuse a device that is not there before any work begins, rather than in every cell."""
    if device != "cpu" and executor is not None:
        raise ValueError(f"device={device!r} is for this process; an executor's tasks run on processors")
    if device == "gpu":
        from bothworlds.simulation import gpu  # slow to import, so only who asks for it pays

        gpu.require_gpu()


def _run(cell: Cell, **how: Any) -> Results:
    """Run one cell, with ``how`` for `simulate`; what comes out depends on nothing outside the cell."""
    environment = cell.make_environment()
    given: dict[str, Any] = dict(cell.settings)
    algorithms = fixed_policies(environment) if _is_replayed(cell) else {"cell": cell.make_algorithm()}
    return simulate(environment, algorithms, rng=given.pop("seed"), **given, **how)
