"""The command line. Data on stdout, talk on stderr; exit 0 done, 1 failed, 2 usage, 3 bad input, 130 interrupted."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from bothworlds.errors import StudyError
from bothworlds.simulation import cluster
from bothworlds.simulation.runner import run_study
from bothworlds.simulation.study import Study

BAD_INPUT, INTERRUPTED = 3, 130


@click.group(name="bothworlds", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bothworlds")
def main() -> None:
    """Best-of-both-worlds linear contextual bandits: simulate, compare, report."""


@main.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for results [STUDY-results].")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use [all cores].")
@click.option(
    "--engine", metavar="ADDRESS", help="dask (processes on this machine) or dask://HOST:PORT [this process]."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
def run(study: Path, output: Path | None, threads: int | None, engine: str | None, quiet: bool) -> None:
    r"""Run the cells of STUDY (a TOML file) that are not finished yet, and print a table.

    Finished cells are kept in the output folder; after an interruption the same command goes on.

    \b
    Example:
      bothworlds run studies/first.toml --output first
    """
    try:
        plan = Study.from_toml(study)
    except (ValueError, OSError) as error:
        _leave(str(error), BAD_INPUT)
    folder = output or study.with_name(f"{study.stem}-results")
    try:
        with cluster.engine(engine, threads=threads) as executor:
            done = run_study(plan, folder, threads=threads, quiet=quiet, executor=executor)
    except KeyboardInterrupt:
        _leave(f"interrupted; finished cells are in {folder}, the same command goes on", INTERRUPTED)
    except ValueError as error:
        _leave(str(error), BAD_INPUT)
    except (StudyError, OSError) as error:
        _leave(str(error), 1)
    click.echo(f"{'regret':>10} {'+-':>8}  cell")
    for cell, results in done:
        last = results[cell.algorithm]
        click.echo(f"{last.regret[-1]:>10.1f} {last.standard_error[-1]:>8.1f}  {cell.name}")
    click.echo(f"{len(done)} cells in {folder}; the same command shows them again", err=True)


def _leave(message: str, code: int) -> NoReturn:
    """Say what is wrong on stderr and exit."""
    click.echo(message, err=True)
    sys.exit(code)
