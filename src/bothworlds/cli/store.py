"""Commands on the store of a service: verify, roll back, export, erase."""

import sys
from contextlib import ExitStack
from pathlib import Path

import click

from bothworlds.cli.common import (
    FAILED,
    Place,
    answer,
    bar,
    json_option,
    quiet_option,
    reading,
    serving,
    talk,
    working,
)

store_argument = click.argument("store", type=Place())
experiment_option = click.option("--experiment", help="Which experiment [the only one].")


@click.command()
@store_argument
@experiment_option
@click.option("--processes", type=click.IntRange(min=1), default=2, show_default=True, help="How many at once.")
@quiet_option
@json_option
def verify(*, store: Path, experiment: str | None, processes: int, quiet: bool, as_json: bool) -> None:
    r"""Compute every decision and every version in STORE again, and compare them bit for bit.

    Exit code 1 if anything is not as the log says. A service may go on writing meanwhile.

    \b
    Examples:
      bothworlds verify bothworlds.sqlite
      bothworlds verify bothworlds.sqlite --experiment banners --json
    """
    with serving():
        from bothworlds.service.verifying import verify as verify_store

    with working(), bar(length=1, label="verifying", quiet=quiet) as shown:

        def told(_: int, count: int) -> None:
            shown.length = count
            shown.update(1)

        found = verify_store(store, experiment, processes=processes, told=told)
    if as_json:
        counts = {"decisions": found.decisions, "rewards": found.rewards, "versions": found.versions}
        answer({"verified": not found.faults, **counts, "faults": found.faults})
    else:
        click.echo(str(found))
    if found.faults:
        sys.exit(FAILED)


@click.command()
@store_argument
@click.argument("output", type=Place())
@experiment_option
def export(*, store: Path, output: Path, experiment: str | None) -> None:
    r"""Write the decisions in STORE with their rewards to OUTPUT (.jsonl, .parquet, .dsjson), oldest first.

    A reward that came after its window stands in place of the default one, though it was not learnt.

    \b
    Examples:
      bothworlds export bothworlds.sqlite log.parquet
    """
    with serving():
        from bothworlds.logs import write
        from bothworlds.service.exporting import exported

    with ExitStack() as opened:
        with reading():
            _, rows = opened.enter_context(exported(store, experiment))
        with working():
            count = write(rows, output)
    talk(f"{count:,} rows: {output}")


@click.command()
@store_argument
@click.argument("version", type=click.IntRange(min=0))
@experiment_option
def rollback(*, store: Path, version: int, experiment: str | None) -> None:
    r"""Forget what was learnt after VERSION in STORE, whose service does not run; the log keeps everything.

    A running service takes it by POST /v1/rollback.

    \b
    Examples:
      bothworlds rollback bothworlds.sqlite 1200
    """
    with serving():
        from bothworlds.service.rolling import rolled_back

    with reading(), working():
        made = rolled_back(store, experiment, version)
    talk(f"{made.experiment}: version {made.version} is what version {version} was, digest {made.digest}")


@click.command()
@store_argument
@click.option("--through", type=click.IntRange(min=1), help="A version; erase nothing that was learnt after it.")
@experiment_option
def erase(*, store: Path, through: int | None, experiment: str | None) -> None:
    r"""Erase old decisions in STORE, whose service does not run, with their rewards; what was learnt stays.

    Gone are decisions whose rewards the newest snapshot has learnt, or the newest one not after a version. From then on
    the store is verified from that snapshot on: verify it before.

    \b
    Examples:
      bothworlds verify bothworlds.sqlite
      bothworlds erase bothworlds.sqlite
    """
    with serving():
        from bothworlds.service.erasing import erased

    with reading(), working():
        gone = erased(store, experiment, through=through)
    talk(f"{gone.records:,} records are gone; version {gone.version} has learnt from them")
