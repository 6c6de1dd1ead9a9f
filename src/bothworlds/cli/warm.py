"""`bothworlds warm`: compile ahead of time."""

from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import (
    PathType,
    exit_on_bad_input,
    exit_on_failure,
    json_option,
    print_json,
    print_message,
    split_names,
)
from bothworlds.precompile import warm_up
from bothworlds.problem import Problem
from bothworlds.report.terminal import aligned
from bothworlds.studies.comparison import OURS, comparison


@click.command()
@click.argument("problem", type=PathType(), required=False)
@click.option(
    "--algorithms",
    callback=split_names,
    metavar="A,B,...",
    help="Algorithms to compile [tunings of LC-Tsallis-INF].",
)
@json_option
def warm(problem: Path | None, algorithms: list[str] | None, as_json: bool) -> None:
    r"""Compile algorithms ahead of time.

    The first start of an algorithm on a machine compiles for a few seconds to half a minute; later starts load the
    compiled code from the cache on disk. During compilation small policies interpret their first decisions, while large
    policies, services and simulations wait. Run this command when you set up a machine or build an image. The
    environment variable BOTHWORLDS_CACHE_DIR sets the path of the cache.

    PROBLEM is a file written by `Problem.save`. Without it, a small random problem is used, which does as well because
    the machine code does not depend on sizes.

    \b
    Examples:
      bothworlds warm
      bothworlds warm --algorithms matched,LinUCB
      bothworlds warm ads.json --json
    """
    chosen = list(OURS) if algorithms is None else algorithms
    try:
        study = comparison(algorithms=chosen, regimes=["stochastic"], instances=1)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with exit_on_bad_input():
        loaded = None if problem is None else Problem.load(problem)
    seconds: dict[str, float] = {}
    for cell in study.cells():
        print_message(f"compiling {cell.algorithm}, unless it is in the cache")
        with exit_on_failure():
            target = cell.make_environment().problem if loaded is None else loaded
            seconds[cell.algorithm] = warm_up(target, cell.make_algorithm())
    if as_json:
        print_json({"seconds": seconds})
        return
    rows: list[list[Any]] = [[name, f"{spent:.1f}"] for name, spent in seconds.items()]
    click.echo(aligned([["ready", "seconds"], *rows]))
