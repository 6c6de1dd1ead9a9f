"""`bothworlds bounds`: values of the regret bounds for a problem."""

from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import (
    FINITE,
    POSITIVE,
    Integer,
    PathType,
    exit_on_bad_input,
    exit_on_failure,
    json_option,
    print_json,
)
from bothworlds.environments.registry import make_environment
from bothworlds.problem import Problem
from bothworlds.studies.comparison import SETTINGS, SIZES
from bothworlds.theory.bounds import bounds as make_bounds
from bothworlds.theory.design import KINDS, Kind


@click.command()
@click.argument("problem", type=PathType(), required=False)
@click.option("--horizon", type=POSITIVE, default=SETTINGS["horizon"], show_default=True, help="Rounds T.")
@click.option("--gap", type=FINITE, help="Delta_*, the smallest gap [0.2 without PROBLEM, else no assumption].")
@click.option("--margin", type=float, help="beta of the margin condition [every gap is at least Delta_*].")
@click.option("--corruption", type=FINITE, help="C, the total corruption [none].")
@click.option("--contexts", type=POSITIVE, help=f"Contexts S of the random instance [{SIZES['contexts']}].")
@click.option("--arms", type=Integer(min=2), help=f"Arms K of the random instance [{SIZES['arms']}].")
@click.option("--dimension", type=POSITIVE, help=f"Features d of the random instance [{SIZES['dimension']}].")
@click.option("--rarity", type=FINITE, help="L, the inverse probability of its rarest context [uniform contexts].")
@click.option("--seed", type=Integer(min=0), help=f"Seed of the random instance [{SETTINGS['seed']}].")
@click.option(
    "--design", type=click.Choice(KINDS), default="joint-g", show_default=True, help="Design of the exploration policy."
)
@click.option("--name", default="", help="Print only bounds whose name contains this text.")
@click.option("--all", "everything", is_flag=True, help="Also print rates without published constants.")
@json_option
def bounds(
    *,
    problem: Path | None,
    horizon: int,
    gap: float | None,
    margin: float | None,
    corruption: float | None,
    design: Kind,
    name: str,
    everything: bool,
    as_json: bool,
    **sizes: Any,
) -> None:
    r"""Evaluate the regret bounds for a problem.

    PROBLEM is a .json or .npz file written by `Problem.save`; without it, a random instance of the given sizes, drawn
    as in `compare` and in studies. Bounds are in units of loss, with losses in [-1, 1]. An option that is left out
    assumes nothing: without a gap there are only adversarial bounds.

    \b
    Examples:
      bothworlds bounds
      bothworlds bounds --contexts 10 --arms 5 --dimension 5 --gap 0.1 --horizon 1000000
      bothworlds bounds --gap 0.2 --corruption 2000 --name Tsallis
      bothworlds bounds ads.json --horizon 100000 --json
    """
    given = {key: value for key, value in sizes.items() if value is not None}
    if problem is None:
        gap = SIZES["gap"] if gap is None else gap
        instance = _random_problem(given, gap, margin)
    elif given:
        raise click.UsageError(f"--{next(iter(given))} is for random instances; leave it out with PROBLEM")
    else:
        with exit_on_bad_input():
            instance = Problem.load(problem)
    with exit_on_failure():
        try:
            table = make_bounds(instance, horizon=horizon, gap=gap, margin=margin, corruption=corruption, design=design)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    selected = table.select(name=name, constants_known=None if everything else True)
    if not len(selected):
        names = "; ".join(sorted({b.name for b in table}))
        raise click.UsageError(f"no bound has {name!r} in its name; the names are (some need --all): {names}")
    if as_json:
        print_json(selected.to_dict())
    else:
        click.echo(str(selected))


def _random_problem(given: dict[str, Any], gap: float, margin: float | None) -> Problem:
    """Return the problem of a random instance, drawn as in studies."""
    seed = given.pop("seed", SETTINGS["seed"])
    sizes = {**SIZES, **given, "gap": gap, "margin": margin}
    try:
        return make_environment({"kind": "stochastic"}, sizes, {"seed": seed}).problem
    except ValueError as error:
        raise click.UsageError(str(error)) from None
