"""`bothworlds warm`: compile ahead."""

from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import Place, answer, json_option, names, reading, talk, working
from bothworlds.problem import Problem
from bothworlds.report.terminal import aligned
from bothworlds.simulation.comparison import OURS, comparison
from bothworlds.warming import warm_up


@click.command()
@click.argument("problem", type=Place(), required=False)
@click.option("--algorithms", callback=names, help="Names, with commas [default: the tunings of LC-Tsallis-INF].")
@json_option
def warm(problem: Path | None, algorithms: list[str] | None, as_json: bool) -> None:
    r"""Compile what policies need ahead of their first start, and keep the machine code on disk.

    The first start of an algorithm compiles for seconds to half a minute, later ones load what was compiled. The first
    decisions of small policies are interpreted meanwhile; large policies, services and simulations wait. Do this when
    a machine or an image is built; BOTHWORLDS_CACHE_DIR says where the code is kept. PROBLEM is a file written by
    `Problem.save`; a small random one if left out, which serves as well: machine code does not depend on sizes.

    \b
    Examples:
      bothworlds warm
      bothworlds warm --algorithms matched,LinUCB
      bothworlds warm ads.json --json
    """
    try:
        study = comparison(algorithms=list(OURS) if algorithms is None else algorithms, regimes=["stochastic"])
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with reading():
        given = None if problem is None else Problem.load(problem)
    seconds: dict[str, float] = {}
    for cell in study.cells():
        talk(f"{cell.algorithm}, compiled if need be")
        with working():
            target = cell.make_environment().problem if given is None else given
            seconds[cell.algorithm] = warm_up(target, cell.make_algorithm())
    if as_json:
        answer({"seconds": seconds})
        return
    rows: list[list[Any]] = [[name, f"{spent:.1f}"] for name, spent in seconds.items()]
    click.echo(aligned([["ready", "seconds"], *rows]))
