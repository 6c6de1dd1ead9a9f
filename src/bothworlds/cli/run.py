"""`bothworlds run`: run a study, or what is left of it."""

import shlex
from pathlib import Path

import click

from bothworlds.cli.common import (
    Place,
    accounted,
    answer,
    device_option,
    json_option,
    quiet_option,
    reading,
    talk,
    threads_option,
    working,
)
from bothworlds.report.data import headline_data
from bothworlds.report.panels import Summary, summary_of
from bothworlds.report.terminal import reacting_text
from bothworlds.simulation import cluster
from bothworlds.simulation.engine import Device
from bothworlds.simulation.folder import Finished
from bothworlds.simulation.results import Results
from bothworlds.simulation.runner import run_study
from bothworlds.simulation.study import Cell, Study


def _part(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Read which part of how many: I/N."""
    if value is None:
        return None
    part, slash, parts = value.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise click.BadParameter(f"{value!r} is not I/N with I from 1 to N, say 2/8")
    return int(part), int(parts)


@click.command()
@click.argument("study", type=Place())
@click.option("--output", type=Place(file_okay=False), help="Folder for results [STUDY-results].")
@threads_option
@click.option(
    "--engine", metavar="ADDRESS", help="dask (processes on this machine) or dask://HOST:PORT [this process]."
)
@click.option(
    "--shard",
    metavar="I/N",
    callback=_part,
    help="Run the I-th of N parts, I from 1; several jobs on one folder share a study like that.",
)
@device_option
@quiet_option
@json_option
def run(
    *,
    study: Path,
    output: Path | None,
    shard: tuple[int, int] | None,
    threads: int | None,
    engine: str | None,
    device: Device,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Run the cells of STUDY (a TOML file) that are not finished yet, and print a table.

    Finished cells are kept in the output folder; after an interruption the same command goes on. Where nature reacts
    to the plays, total reward is shown beside that of fixed policies replayed. Two or more of these commands may run
    on one folder at the same time: none spoils what another writes, and with --shard none plays what another plays.
    An edited study goes on in its folder; the folder of a study with another name is refused.

    \b
    Examples:
      bothworlds run studies/first.toml
      bothworlds run studies/first.toml --output first --threads 2
      bothworlds run studies/first.toml --json > first.json
      bothworlds run studies/first.toml --engine dask
      bothworlds run studies/first.toml --device gpu
      bothworlds run studies/first.toml --shard 2/8
    """
    if engine is not None and device != "cpu":
        raise click.UsageError("--device is for this process and --engine for others; give one of them")
    with reading():
        plan = Study.from_toml(study)
    folder = output or study.with_name(f"{study.stem}-results")
    with accounted(), working(lambda: f"interrupted; finished cells are in {folder}, the same command goes on"):
        with cluster.engine(engine, threads=threads) as executor:
            done = run_study(plan, folder, threads=threads, quiet=quiet, executor=executor, device=device, shard=shard)
        finished = {cell.key for cell, _ in done}
        left = [cell for cell in plan.cells() if cell.key not in finished]
        summary = summary_of(Finished(study=plan, folder=folder, cells=done, missing=left))
    if as_json:
        answer(headline_data(summary))
    elif done:
        _print_table(done, summary)
    rest = f"{len(left)} are left to other parts" if left else ""
    if done:
        page = shlex.join(["bothworlds", "report", str(folder)])
        talk(f"{len(done)} cells in {folder}{f', {rest}' if rest else ''}; for a page of it: {page}")
    else:
        talk(f"no cells in {folder} yet, {rest}")


def _print_table(done: list[tuple[Cell, Results]], summary: Summary) -> None:
    """Print regret and its 95 % interval cell by cell, and total reward where regret does not tell."""
    reacting = {entry.cell.key for panel in summary.panels if panel.environment.reacts for entry in panel.entries}
    click.echo(f"{'regret':>10} {'± 95 %':>8}  cell")
    for cell, results in done:
        last = results[cell.algorithm]
        mark = "  [not policy regret]" if cell.key in reacting else ""
        click.echo(f"{last.regret[-1]:>10.1f} {last.half_width[-1]:>8.1f}  {cell.name}{mark}")
    for panel in summary.panels:
        if panel.environment.reacts:
            click.echo(f"\n{reacting_text(panel)}")
