"""`bothworlds design`: the exploration policy of a problem, and what it costs."""

from pathlib import Path

import click

from bothworlds.cli.common import Place, answer, json_option, reading, working
from bothworlds.problem import Problem
from bothworlds.report.terminal import aligned
from bothworlds.theory.design import KINDS, Kind
from bothworlds.theory.design import design as make_design

MOST_SHOWN = 20


@click.command()
@click.argument("problem", type=Place())
@click.option("--kind", type=click.Choice(KINDS), default="joint-g", show_default=True, help="How it is made.")
@json_option
def design(problem: Path, kind: Kind, as_json: bool) -> None:
    r"""Make the exploration policy e* of PROBLEM (a .json or .npz file written by `Problem.save`).

    Prints its coverage lambda, how far it is from the best at most, and the table e*(arm | context).

    \b
    Examples:
      bothworlds design ads.json
      bothworlds design ads.json --kind per-context --json
    """
    with reading():
        given = Problem.load(problem)
    with working():
        made = make_design(given, kind)
    if as_json:
        table = {name: row.tolist() for name, row in zip(given.contexts, made.exploration, strict=True)}
        found = {"coverage": made.coverage, "coverage_limit": made.coverage_limit, "gap": made.gap}
        answer({"kind": kind, **found, "arms": given.arms, "exploration": table})
        return
    click.echo(f"{given.describe()}\n")
    click.echo(f"{kind}: coverage lambda = {made.coverage:.6g}, 1/lambda within {made.gap:.2%} of the best\n")
    rows = [["context", *given.arms]]
    for name, row in list(zip(given.contexts, made.exploration, strict=True))[:MOST_SHOWN]:
        rows.append([name, *(f"{share:.3f}" for share in row)])
    click.echo(aligned(rows))
    if given.n_contexts > MOST_SHOWN:
        click.echo(f"... and {given.n_contexts - MOST_SHOWN} more contexts (--json has them all)")
