"""`bothworlds health`: the health report of a saved policy, from its counts or from a log."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import LEVEL, PathType, exit_on_bad_input, json_option, print_json
from bothworlds.loading import load
from bothworlds.logs import Log
from bothworlds.logs import health as health_of_log
from bothworlds.open_contexts import OpenPolicy
from bothworlds.policy.health_report import OpenHealth

EARLY = "means are of rewards that have come: if good ones come first, they are too high until the others have come"


@click.command()
@click.argument("policy", type=PathType())
@click.option("--log", type=PathType(), help="Count the decisions of the policy in this log [the counts of POLICY].")
@click.option("--alpha", type=LEVEL, default=0.05, show_default=True,
              help="Probability that any interval is ever wrong.")  # fmt: skip
@json_option
def health(policy: Path, log: Path | None, alpha: float, as_json: bool) -> None:
    r"""Print the health report of a saved policy.

    POLICY is an .npz file written by `policy.save`. The report has mean rewards by arm and context with intervals that
    hold at any time; the gain over uniform play, where decisions are held out; and sentences about exploration, missing
    feedback and context frequencies, with `!` before each one that needs attention. A policy counts a decision of a
    plan when its feedback arrives; a log has all decisions. Where clicks are heard at once and silence later, mean
    rewards are too high at first; the dashboard of a service leaves out decisions whose window has not closed.

    \b
    Examples:
      bothworlds health ads.npz
      bothworlds health ads.npz --log decisions.jsonl --json
    """
    with exit_on_bad_input():
        saved = load(policy, interpreted=True)
        if log is None:
            report: OpenHealth = saved.health(alpha=alpha)
        elif isinstance(saved, OpenPolicy):
            raise ValueError("--log needs a policy on a Problem; without it the counts of the policy are taken")
        elif log.exists():
            report = health_of_log(Log(log), saved.problem, policy=saved.name, alpha=alpha)
        else:
            raise FileNotFoundError(f"no such file: {log}")
    if as_json:
        print_json(_data(report))
    else:
        click.echo(f"{report}\n  rewards: {EARLY}")


def _data(report: OpenHealth) -> dict[str, Any]:
    """Return a health report as plain values."""
    rates = {name: [asdict(rate) for rate in getattr(report, name, ())] for name in ("who", "arms", "contexts")}
    readings = {reading.name: asdict(reading) for reading in report.readings}
    return {"alpha": report.alpha, "since": report.since, **rates, "readings": readings, "note": EARLY}
