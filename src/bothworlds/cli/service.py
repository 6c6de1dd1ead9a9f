"""`bothworlds service`: tokens for a decision service, and maintenance of its store."""

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bothworlds.cli.common import (
    FAILED,
    FiniteFloat,
    PathType,
    StoreType,
    exit_on_bad_input,
    exit_on_failure,
    exit_with,
    json_option,
    print_json,
    print_message,
    progress_bar,
    quiet_option,
    require_service_packages,
)
from bothworlds.cli.root import Suggesting

if TYPE_CHECKING:
    from bothworlds.service.replay import VerifyReport

SCOPES = ("decide", "reward", "local", "admin")
store_argument = click.argument("store", type=StoreType())
experiment_option = click.option("--experiment", help="Name of the experiment [the only one in STORE].")


@click.group(cls=Suggesting)
def service() -> None:
    r"""Maintain a decision service: its tokens and its store.

    `bothworlds serve` runs the service. STORE is its SQLite file, or the DSN of its
    PostgreSQL database.

    \b
    Examples:
      bothworlds service token shop --scope decide --scope reward >> ads.toml
      bothworlds service verify bothworlds.sqlite
      bothworlds service export bothworlds.sqlite log.parquet
    """


@service.command()
@click.argument("name")
@click.option("--scope", "scopes", type=click.Choice(SCOPES), multiple=True, required=True,
              help="What the token allows; repeat for several.")  # fmt: skip
@click.option("--rate", type=FiniteFloat(min=0, min_open=True), help="Maximum requests per second [no limit].")
@json_option
def token(*, name: str, scopes: tuple[str, ...], rate: float | None, as_json: bool) -> None:
    r"""Make an access token for the client NAME.

    Prints the secret once, on stderr, and a [[tokens]] table with its hash for the settings file, on stdout.

    Scopes: decide allows decisions and the plan; reward allows rewards and activations; local allows the plan with its
    key, and decisions that were taken from it elsewhere; admin allows the dashboard,
    decisions by id, and changes.

    \b
    Examples:
      bothworlds service token shop --scope decide --scope reward >> ads.toml
      bothworlds service token me --scope admin >> ads.toml
    """
    if not name or not name.isprintable():
        raise click.UsageError("NAME must consist of printable characters")
    with require_service_packages():
        from bothworlds.service.auth import new_token
    secret, hashed = new_token()
    allowed = list(dict.fromkeys(scopes))
    if as_json:
        print_json({"name": name, "secret": secret, "sha256": hashed, "scopes": allowed, "rate": rate})
        return
    lines = [("name", name), ("sha256", hashed), ("scopes", allowed), *([] if rate is None else [("rate", rate)])]
    text = "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in lines)
    click.echo(f"\n[[tokens]]\n{text}")
    print_message(f"the token of {name}, shown only once: {secret}")


@service.command()
@store_argument
@experiment_option
@click.option("--processes", type=click.IntRange(min=1), default=2, show_default=True, help="Worker processes.")
@quiet_option
@json_option
def verify(*, store: Path | str, experiment: str | None, processes: int, quiet: bool, as_json: bool) -> None:
    r"""Recompute the decisions in a store and compare them.

    Recomputes every decision and every version in STORE and compares them with the log, bit for bit. Exits with 1 if
    anything differs. The service may keep running.

    \b
    Examples:
      bothworlds service verify bothworlds.sqlite
      bothworlds service verify bothworlds.sqlite --experiment banners --json
    """
    report = _verified(store, experiment, processes=processes, quiet=quiet, as_json=as_json)
    if report.faults:
        sys.exit(FAILED)


def _verified(
    store: Path | str, experiment: str | None, *, processes: int, quiet: bool, as_json: bool = False
) -> "VerifyReport":
    """Verify an experiment, and print the report."""
    with require_service_packages():
        from bothworlds.service.verification import verify as verify_store

    with exit_on_failure(), progress_bar(length=1, label="verifying", quiet=quiet) as progress:

        def advance(_: int, count: int) -> None:
            progress.length = count
            progress.update(1)

        report = verify_store(store, experiment, processes=processes, on_done=advance)
    if as_json:
        counts = {"decisions": report.decisions, "rewards": report.rewards, "versions": report.versions}
        print_json({"verified": not report.faults, **counts, "faults": report.faults})
    else:
        click.echo(str(report))
    return report


@service.command()
@store_argument
@click.argument("output", type=PathType())
@experiment_option
def export(*, store: Path | str, output: Path, experiment: str | None) -> None:
    r"""Write decisions and rewards of a store to a log file.

    OUTPUT is .jsonl, .parquet or .dsjson; the oldest decision comes first. A reward that arrived after its window is
    exported instead of the default reward, although the policy learned from the default.

    \b
    Examples:
      bothworlds service export bothworlds.sqlite log.parquet
    """
    with require_service_packages():
        from bothworlds.logs import write
        from bothworlds.service.export import open_export

    with ExitStack() as opened:
        with exit_on_bad_input():
            _, rows = opened.enter_context(open_export(store, experiment))
        with exit_on_failure():
            count = write(rows, output)
    print_message(f"wrote {count:,} rows: {output}")


@service.command()
@store_argument
@click.argument("version", type=click.IntRange(min=0))
@experiment_option
def rollback(*, store: Path | str, version: int, experiment: str | None) -> None:
    r"""Return to an earlier version of the policy in a store.

    The policy continues with what it had learned at VERSION; the log keeps everything. Stop the service first; of
    several hosts, those that learn. To roll back a running service, call POST /v1/rollback.

    \b
    Examples:
      bothworlds service rollback bothworlds.sqlite 1200
    """
    with require_service_packages():
        from bothworlds.service.maintenance import roll_back

    with exit_on_bad_input(), exit_on_failure():
        snapshot = roll_back(store, experiment, version)
    print_message(
        f"{snapshot.experiment}: version {snapshot.version} equals version {version}, digest {snapshot.digest}"
    )


@service.command("set")
@click.argument("url")
@click.option("--experiment", help="Name of the experiment [the only one].")
@click.option("--holdout", type=FiniteFloat(0, 1, max_open=True), help="Share of decisions drawn uniformly.")
@click.option("--window", help='Reward window, such as "2 hours".')
@click.option("--algorithm", help="Name of a tuning, or a table of options in JSON.")
def set_(*, url: str, experiment: str | None, holdout: float | None, window: str | None, algorithm: str | None) -> None:
    r"""Change settings of an experiment while its service runs.

    URL is the address of the service; of several hosts, of the one that learns. The secret of an admin token is read
    from BOTHWORLDS_TOKEN. What was learned stays, as the prior of a new algorithm, but a rollback cannot go back beyond
    a new holdout or algorithm. The change outlasts restarts until the settings file says something new.

    \b
    Examples:
      bothworlds service set http://127.0.0.1:8080 --holdout 0.1 --window "2 hours"
      bothworlds service set http://127.0.0.1:8080 --algorithm '{"kind": "LinTS"}'
    """
    if holdout is None and window is None and algorithm is None:
        raise click.UsageError("nothing to change: give --holdout, --window or --algorithm")
    from bothworlds.service.client import Client, ServiceError

    try:
        table = json.loads(algorithm) if algorithm is not None and algorithm.startswith("{") else algorithm
    except ValueError as error:
        raise click.UsageError(f"--algorithm is not valid JSON: {error}") from None
    with exit_on_bad_input(), Client(url, token=os.environ.get("BOTHWORLDS_TOKEN"), experiment=experiment) as client:
        try:
            changed = client.change_settings(holdout=holdout, window=window, algorithm=table, timeout=600.0)
        except ServiceError as error:
            exit_with(str(error), FAILED)
    print_message(f"{changed.experiment}: from version {changed.version} on, digest {changed.digest}")


@service.command()
@store_argument
@click.argument("target", type=StoreType())
@click.option("--processes", type=click.IntRange(min=1), default=2, show_default=True, help="Worker processes.")
@quiet_option
def copy(*, store: Path | str, target: Path | str, processes: int, quiet: bool) -> None:
    r"""Copy a store from a file to a database, or back.

    TARGET is a new file, or the DSN of a PostgreSQL database whose current schema has no store. Stop the service first;
    of several hosts, all. Compares both sides row by row, then recomputes the decisions in TARGET as `verify` does.
    Exits with 1 if anything differs.

    \b
    Examples:
      bothworlds service copy ads.sqlite postgresql://service@db.example/ads
      bothworlds service copy postgresql://service@db.example/ads ads.sqlite
    """
    with require_service_packages():
        from bothworlds.service.copying import copy_store
        from bothworlds.service.dsn import location_text

    with exit_on_failure():
        copied = copy_store(store, target)
    print_message(
        f"copied {copied.records:,} records and {copied.snapshots} snapshots to {location_text(target)}; all rows are "
        "equal"
    )
    faults = [
        _verified(target, experiment, processes=processes, quiet=quiet).faults for experiment in copied.experiments
    ]
    if any(faults):
        sys.exit(FAILED)


@service.command()
@store_argument
@click.option("--through", type=click.IntRange(min=1), help="Erase nothing that was learned after this version.")
@experiment_option
def erase(*, store: Path | str, through: int | None, experiment: str | None) -> None:
    r"""Erase old decisions and rewards from a store.

    What the policy learned from them stays. Stop the service first; of several hosts, all. Erases the decisions whose
    rewards are part of the newest snapshot (with --through: the newest snapshot up to that version). Later
    verifications of the store start from that snapshot, so verify first.

    \b
    Examples:
      bothworlds service verify bothworlds.sqlite
      bothworlds service erase bothworlds.sqlite
    """
    with require_service_packages():
        from bothworlds.service.maintenance import erase_decisions

    with exit_on_bad_input(), exit_on_failure():
        result = erase_decisions(store, experiment, through=through)
    print_message(f"erased {result.records:,} records; version {result.version} has learned from them")
