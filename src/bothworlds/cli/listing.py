"""`bothworlds list`: what there is to choose from."""

import inspect
from collections.abc import Callable
from typing import Any

import click

from bothworlds import environments
from bothworlds.algorithms.tunings import TUNINGS
from bothworlds.cli.common import answer, json_option, strong
from bothworlds.simulation.comparison import REGIMES
from bothworlds.simulation.study import ALGORITHMS, WORLDS

SUBJECTS = ("algorithms", "environments", "tunings", "regimes")


def described(make: Callable[..., Any]) -> dict[str, Any]:
    """Return the first sentence and the options of whatever is made.

    >>> from bothworlds import MGR
    >>> described(MGR)["options"]
    {'samples': None, 'bias': None}
    """
    about = (inspect.getdoc(make) or "").split("\n\n")[0].replace("\n", " ")
    options = {
        name: None if parameter.default is inspect.Parameter.empty else parameter.default
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    return {"about": about, "options": options}


def catalogue() -> dict[str, dict[str, dict[str, Any]]]:
    """Return everything that can be listed, by subject and name."""
    worlds = {kind: getattr(environments, kind.replace("-", "_")) for kind in WORLDS}
    regimes = {name: {"about": f"the environment {o['kind']!r}", "options": o} for name, o in REGIMES.items()}
    return {
        "algorithms": {name: described(make) for name, make in ALGORITHMS.items()},
        "environments": {name: described(make) for name, make in worlds.items()},
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
            options = ", ".join(f"{option} = {value!r}" for option, value in found["options"].items())
            if options:
                click.echo(f"      {options}")
