"""`bothworlds design`: the exploration policy of a problem."""

from pathlib import Path

import click

from bothworlds.cli.common import PathType, exit_on_bad_input, exit_on_failure, json_option, print_json
from bothworlds.problem import Problem
from bothworlds.report.terminal import aligned
from bothworlds.theory.design import KINDS, Kind
from bothworlds.theory.design import design as make_design

MOST_SHOWN = 20


@click.command()
@click.argument("problem", type=PathType())
@click.option(
    "--kind", type=click.Choice(KINDS), default="joint-g", show_default=True, help="Optimality criterion of the design."
)
@json_option
def design(problem: Path, kind: Kind, as_json: bool) -> None:
    r"""Compute the exploration policy e* of a problem.

    PROBLEM is a .json or .npz file written by `Problem.save`. Prints the coverage lambda, a bound on its distance from
    the optimum, and the table e*(arm | context).

    \b
    Examples:
      bothworlds design ads.json
      bothworlds design ads.json --kind per-context --json
    """
    with exit_on_bad_input():
        given = Problem.load(problem)
    with exit_on_failure():
        result = make_design(given, kind)
    if as_json:
        table = {name: row.tolist() for name, row in zip(given.contexts, result.exploration, strict=True)}
        coverage = {"coverage": result.coverage, "coverage_limit": result.coverage_limit, "gap": result.gap}
        print_json({"kind": kind, **coverage, "arms": given.arms, "exploration": table})
        return
    click.echo(f"{given.describe()}\n")
    click.echo(f"{kind}: coverage lambda = {result.coverage:.6g}, 1/lambda within {result.gap:.2%} of the best\n")
    rows = [["context", *given.arms]]
    for name, row in list(zip(given.contexts, result.exploration, strict=True))[:MOST_SHOWN]:
        rows.append([name, *(f"{share:.3f}" for share in row)])
    click.echo(aligned(rows))
    if given.n_contexts > MOST_SHOWN:
        click.echo(f"... and {given.n_contexts - MOST_SHOWN} more contexts (--json has them all)")
