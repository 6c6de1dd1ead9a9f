"""Running a study: cell by cell, finished cells kept, the same command resumes."""

from pathlib import Path

from bothworlds.simulation.engine import Progress, simulate
from bothworlds.simulation.folder import CELLS, finished_cell, write_study
from bothworlds.simulation.progress import shown
from bothworlds.simulation.replayed import KIND, fixed_policies, replayed_cell
from bothworlds.simulation.results import Results
from bothworlds.simulation.study import Cell, Study


def run_study(
    study: Study, output: str | Path, *, threads: int | None = None, quiet: bool = False
) -> list[tuple[Cell, Results]]:
    """Run the cells of a study that are not yet in the output folder; return all of them, in order.

    A cell is written whole when it is finished, so that nothing finished is lost when the run is stopped. A cell that
    cannot be read any more is run again, with a warning. The folder also keeps the study, and fixed policies replayed
    in the worlds that react to the plays.
    """
    folder = Path(output) / CELLS
    folder.mkdir(parents=True, exist_ok=True)
    write_study(study, output)
    cells = list(study.cells())
    every = {cell.key: cell for cell in [*cells, *replayed_cells(study)]}
    finished = {key: finished_cell(output, cell) for key, cell in every.items()}
    weights = {key: cell.make_environment().problem.dimension for key, cell in every.items() if finished[key] is None}
    work = sum(weight * _rounds(every[key]) for key, weight in weights.items())
    with shown(work, len(weights), quiet=quiet) as watch:
        for key, weight in weights.items():
            watch.begin(f"{every[key].algorithm} in {every[key].environment}", weight)
            done = run_cell(every[key], threads=threads, progress=watch.advance)
            done.save(folder / f"{key}.npz")
            finished[key] = done
    # Files know nothing of labels: an algorithm may be renamed, or stand twice, without being run again.
    return [(cell, results.relabelled(cell.algorithm)) for cell in cells if (results := finished[cell.key]) is not None]


def replayed_cells(study: Study) -> list[Cell]:
    """Return the cells that replay fixed policies, one for every world that reacts to the plays."""
    found = {(replayed := replayed_cell(cell)).key: replayed for cell in study.cells()}
    return [cell for cell in found.values() if cell.make_environment().reacts]


def _rounds(cell: Cell) -> int:
    return cell.numbers["horizon"] * cell.numbers["replications"]


def run_cell(cell: Cell, *, threads: int | None = None, progress: Progress | None = None) -> Results:
    """Run one cell; its numbers depend on nothing outside the cell."""
    numbers, environment = cell.numbers, cell.make_environment()
    replayed = cell.algorithm_options.get("kind") == KIND
    return simulate(
        environment,
        fixed_policies(environment) if replayed else {"cell": cell.make_algorithm()},
        horizon=numbers["horizon"],
        replications=numbers["replications"],
        rng=numbers["seed"],
        checkpoints=numbers["checkpoints"],
        delay=numbers["delay"],
        batch=numbers["batch"],
        threads=threads,
        progress=progress,
    )
