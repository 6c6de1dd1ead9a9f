"""`bothworlds list`: what there is to choose from."""

import inspect
from collections.abc import Callable
from typing import Any

import click

from bothworlds import environments
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TUNINGS
from bothworlds.algorithms.registry import algorithms
from bothworlds.cli.common import answer, json_option, strong
from bothworlds.simulation.comparison import ON_REQUEST, REGIMES
from bothworlds.simulation.study import WORLDS

SUBJECTS = ("algorithms", "environments", "tunings", "regimes")


def described(make: Callable[..., Any]) -> dict[str, Any]:
    """Return the first sentence and the options of whatever is made, and which of them must be given.

    >>> from bothworlds import RobustLinExp3
    >>> described(RobustLinExp3)["required"]
    ['horizon']
    """
    about = (inspect.getdoc(make) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")
    found = inspect.signature(make).parameters.values()
    default = {one.name: one.default for one in found if one.kind is inspect.Parameter.KEYWORD_ONLY}
    required = [name for name, value in default.items() if value is inspect.Parameter.empty]
    return {"about": about, "options": {**default, **dict.fromkeys(required)}, "required": required}


def catalogue() -> dict[str, dict[str, dict[str, Any]]]:
    """Return everything that can be listed, by subject and name."""
    worlds = {kind: getattr(environments, kind.replace("-", "_")) for kind in WORLDS}
    named = {**REGIMES, **ON_REQUEST}
    regimes = {name: {"about": f"the environment {o['kind']!r}", "options": o} for name, o in named.items()}
    return {
        "algorithms": {name: described(make) for name, make in algorithms().items()},
        "environments": {name: _in_a_study(described(make)) for name, make in worlds.items()},
        "tunings": {name: described(make) for name, make in TUNINGS.items()},
        "regimes": regimes,
    }


@click.command(name="list")
@click.argument("subject", type=click.Choice(SUBJECTS), required=False)
@json_option
def list_(subject: str | None, as_json: bool) -> None:
    r"""List algorithms, environments, tunings of LC-Tsallis-INF, or the regimes of `compare`, with their options.

    \b
    Examples:
      bothworlds list
      bothworlds list algorithms --json
    """
    everything = catalogue()
    if as_json:
        answer(everything if subject is None else everything[subject])
        return
    for name in SUBJECTS if subject is None else (subject,):
        click.echo(strong(name))
        for kind, found in everything[name].items():
            click.echo(f"  {kind}: {found['about']}")
            if found["options"]:
                click.echo(f"      {_options_text(found)}")


def _in_a_study(found: dict[str, Any]) -> dict[str, Any]:
    """Say of an environment's required options that a study fills them in, from its sizes, horizon and seed."""
    return {**found, "required": [], "set_by_study": found["required"]}


def _options_text(found: dict[str, Any]) -> str:
    """Return options with their defaults, or with who has to give them."""
    notes = dict.fromkeys(found.get("required", []), "required")
    notes |= dict.fromkeys(found.get("set_by_study", []), "set by the study")
    return ", ".join(
        f"{option} ({notes[option]})" if option in notes else f"{option} = {value!r}"
        for option, value in found["options"].items()
    )
