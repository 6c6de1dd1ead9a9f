"""`bothworlds run`: run the unfinished cells of a study."""

import shlex
from pathlib import Path

import click

from bothworlds.cli.common import (
    PathType,
    device_option,
    exit_on_bad_input,
    exit_on_failure,
    json_option,
    print_json,
    print_message,
    quiet_option,
    report_time,
    threads_option,
    unused_folder,
)
from bothworlds.report.data import headline_data
from bothworlds.report.summary import Summary, summary_of
from bothworlds.report.terminal import reacting_text
from bothworlds.simulation.engine import Device
from bothworlds.studies import executors
from bothworlds.studies.folder import Finished, check_folder
from bothworlds.studies.runner import run_study
from bothworlds.studies.study import Study


def _part(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Parse I/N: part I of N."""
    if value is None:
        return None
    part, slash, parts = value.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise click.BadParameter(f"{value!r} is not I/N with I from 1 to N, such as 2/8")
    return int(part), int(parts)


@click.command()
@click.argument("study", type=PathType())
@click.option(
    "--output",
    type=PathType(file_okay=False),
    help="Folder for results [STUDY-results, or STUDY-results-2, ... if that has another study].",
)
@threads_option
@click.option("--engine", metavar="ADDRESS", help="Run on Dask: dask (processes on this machine) or dask://HOST:PORT.")
@click.option(
    "--shard",
    metavar="I/N",
    callback=_part,
    help="Run part I of N, counted from 1, so that several jobs share a study and its folder.",
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
    r"""Run the unfinished cells of a study.

    STUDY is a TOML file; `bothworlds new` writes one. Prints a table of the results. Finished cells are kept in the
    output folder, and the same command resumes after an interruption. In environments that react to the learner, the
    table also has total rewards, with those of fixed policies for comparison. Several of these commands may share a
    folder at the same time; with --shard no two of them run the same cell. An edited study continues in its folder;
    --output refuses the folder of a study with another name.

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
        raise click.UsageError("--device applies to this process, --engine to other processes; give one of them")
    with exit_on_bad_input():
        plan = Study.from_toml(study)
    folder = output or unused_folder(study.with_name(f"{study.stem}-results"), lambda path: _fits(plan, path))
    with (
        report_time(),
        exit_on_failure(lambda: f"interrupted; finished cells are in {folder}; the same command resumes"),
    ):
        with executors.engine(engine, threads=threads) as executor:
            done = run_study(plan, folder, threads=threads, quiet=quiet, executor=executor, device=device, shard=shard)
        finished = {cell.key for cell, _ in done}
        left = [cell for cell in plan.cells() if cell.key not in finished]
        summary = summary_of(Finished(study=plan, folder=folder, cells=done, missing=left))
    if as_json:
        print_json(headline_data(summary))
    elif done:
        _print_table(summary)
    rest = f"{len(left)} are left to other parts" if left else ""
    if done:
        page = shlex.join(["bothworlds", "report", str(folder)])
        print_message(f"{len(done)} cells in {folder}{f', {rest}' if rest else ''}; for a page of it: {page}")
    else:
        print_message(f"no cells in {folder} yet, {rest}")


def _fits(plan: Study, folder: Path) -> bool:
    """Return whether the results of a study may go to a folder."""
    try:
        check_folder(plan, folder)
    except ValueError:
        return False
    return True


def _print_table(summary: Summary) -> None:
    """Print the regret by which each algorithm is judged, with its 95 % interval; total rewards where nature reacts."""
    click.echo(f"{'regret':>10} {'± 95 %':>8}  cell")
    for panel in summary.panels:
        mark = "  [dynamic regret]" if panel.environment.changing else ""
        mark = "  [not policy regret]" if panel.environment.reacts else mark
        pool = f"  [{panel.instances} instances]" if panel.instances > 1 else ""
        for entry in panel.entries:
            run = entry.run
            click.echo(f"{run.regret[-1]:>10.1f} {run.half_width[-1]:>8.1f}  {entry.cell.name}{pool}{mark}")
    for panel in summary.panels:
        if panel.environment.reacts:
            click.echo(f"\n{reacting_text(panel)}")
