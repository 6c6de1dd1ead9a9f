"""`bothworlds bounds`: what the theorems promise for a problem, in numbers."""

from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import NUMBER, WHOLE, Place, Whole, answer, json_option, reading, working
from bothworlds.problem import Problem
from bothworlds.simulation.comparison import SETTINGS, SIZES
from bothworlds.simulation.study import make_environment
from bothworlds.theory.bounds import bounds as make_bounds
from bothworlds.theory.design import KINDS, Kind


@click.command()
@click.argument("problem", type=Place(), required=False)
@click.option("--horizon", type=WHOLE, default=SETTINGS["horizon"], show_default=True, help="Rounds T.")
@click.option("--gap", type=NUMBER, help="Delta_*, the smallest gap [0.2 without PROBLEM, else not assumed].")
@click.option("--margin", type=float, help="beta of the margin condition [every gap is at least Delta_*].")
@click.option("--corruption", type=NUMBER, help="C, the total corruption [none].")
@click.option("--contexts", type=WHOLE, help=f"Contexts S of a random instance [{SIZES['contexts']}].")
@click.option("--arms", type=Whole(min=2), help=f"Its arms K [{SIZES['arms']}].")
@click.option("--dimension", type=WHOLE, help=f"Its features d [{SIZES['dimension']}].")
@click.option("--rarity", type=NUMBER, help="Its L, one over the probability of the rarest context [uniform contexts].")
@click.option("--seed", type=Whole(min=0), help=f"Its seed [{SETTINGS['seed']}].")
@click.option("--design", type=click.Choice(KINDS), default="joint-g", show_default=True, help="Exploration policy.")
@click.option("--name", default="", help="Only bounds whose name contains this.")
@click.option("--all", "everything", is_flag=True, help="Also rates whose constants nobody has published.")
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
    r"""Evaluate the regret bounds for PROBLEM (a .json or .npz file written by `Problem.save`).

    Without PROBLEM, for a random instance of the given sizes, drawn as `compare` and studies draw it. Bounds are in
    units of loss (losses in [-1, 1]); what is not given is not assumed: without a gap only adversarial bounds are
    stated.

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
        what = _random(given, gap, margin)
    elif given:
        raise click.UsageError(f"PROBLEM has its own sizes; leave out --{next(iter(given))}")
    else:
        with reading():
            what = Problem.load(problem)
    with working():
        try:
            table = make_bounds(what, horizon=horizon, gap=gap, margin=margin, corruption=corruption, design=design)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    known = table.select(name=name, constants_known=None if everything else True)
    if not len(known):
        names = "; ".join(sorted({b.name for b in table}))
        raise click.UsageError(f"no bound with {name!r} in its name; there are (some with --all): {names}")
    if as_json:
        answer(known.to_dict())
    else:
        click.echo(str(known))


def _random(given: dict[str, Any], gap: float, margin: float | None) -> Problem:
    """Return the problem of a random instance, drawn as a study draws it."""
    seed = given.pop("seed", SETTINGS["seed"])
    sizes = {**SIZES, **given, "gap": gap, "margin": margin}
    try:
        return make_environment({"kind": "stochastic"}, sizes, {"seed": seed}).problem
    except ValueError as error:
        raise click.UsageError(str(error)) from None
