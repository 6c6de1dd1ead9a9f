"""`bothworlds health`: how a saved policy is doing, from its counts or from a log."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import LEVEL, Place, answer, json_option, reading
from bothworlds.loading import load
from bothworlds.logs import Log
from bothworlds.logs import health as health_of_log
from bothworlds.policy.health import Health


@click.command()
@click.argument("policy", type=Place())
@click.option("--log", type=Place(), help="Count the decisions of the policy in this log instead.")
@click.option("--alpha", type=LEVEL, default=0.05, show_default=True,
              help="The probability that any interval is ever wrong.")  # fmt: skip
@json_option
def health(policy: Path, log: Path | None, alpha: float, as_json: bool) -> None:
    r"""Tell how POLICY (an .npz file written by `policy.save`) is doing.

    Mean rewards by arm and context with intervals that hold at any time, what the policy earns more than uniform play
    (where decisions are held out), and sentences about exploration, missing feedback and the traffic; `!` asks for a
    look. A policy knows of the decisions of plans when they are answered; a log has them all.

    \b
    Examples:
      bothworlds health ads.npz
      bothworlds health ads.npz --log decisions.jsonl --json
    """
    with reading():
        found = load(policy, interpreted=True)
        if log is None:
            told = found.health(alpha=alpha)
        elif log.exists():
            told = health_of_log(Log(log), found.problem, policy=found.name, alpha=alpha)
        else:
            raise FileNotFoundError(f"no such file: {log}")
    if as_json:
        answer(_data(told))
    else:
        click.echo(str(told))


def _data(told: Health) -> dict[str, Any]:
    """Return everything as plain values."""
    rates = {name: [asdict(rate) for rate in getattr(told, name)] for name in ("who", "arms", "contexts")}
    readings = {reading.name: asdict(reading) for reading in told.readings}
    return {"alpha": told.alpha, "since": told.since, **rates, "readings": readings}
