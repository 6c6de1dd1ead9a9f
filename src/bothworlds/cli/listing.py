"""`bothworlds list`: algorithms, environments, tunings and regimes with their options."""

import inspect
from collections.abc import Callable
from typing import Any

import click

from bothworlds import environments
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TUNINGS
from bothworlds.algorithms.registry import algorithms
from bothworlds.cli.common import bold, json_option, print_json
from bothworlds.environments.registry import WORLDS
from bothworlds.report.regime_descriptions import known_sentence
from bothworlds.studies.comparison import ON_REQUEST, REGIMES

SUBJECTS = ("algorithms", "environments", "tunings", "regimes")


def described(make: Callable[..., Any]) -> dict[str, Any]:
    """Return the first sentence of a docstring, the options, and the names of the required ones.

    >>> from bothworlds import RobustLinExp3
    >>> described(RobustLinExp3)["required"]
    ['horizon']
    """
    about = (inspect.getdoc(make) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")
    parameters = inspect.signature(make).parameters.values()
    defaults = {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    required = [name for name, value in defaults.items() if value is inspect.Parameter.empty]
    return {"about": about, "options": {**defaults, **dict.fromkeys(required)}, "required": required}


def catalogue() -> dict[str, dict[str, dict[str, Any]]]:
    """Return all descriptions, by subject and name."""
    makers = {kind: getattr(environments, kind.replace("-", "_")) for kind in WORLDS}
    named = {**REGIMES, **ON_REQUEST}
    regimes = {name: {"about": known_sentence(options), "options": options} for name, options in named.items()}
    return {
        "algorithms": {name: described(make) for name, make in algorithms().items()},
        "environments": {name: _in_a_study(described(make)) for name, make in makers.items()},
        "tunings": {name: described(make) for name, make in TUNINGS.items()},
        "regimes": regimes,
    }


@click.command(name="list")
@click.argument("subject", type=click.Choice(SUBJECTS), required=False)
@json_option
def list_(subject: str | None, as_json: bool) -> None:
    r"""List algorithms, environments, tunings and regimes.

    Each is listed with a sentence and its options: algorithms and environments for studies, the tunings of
    LC-Tsallis-INF, and the regimes of `bothworlds compare`. Without an argument, lists all four.

    \b
    Examples:
      bothworlds list
      bothworlds list regimes
      bothworlds list algorithms --json
    """
    everything = catalogue()
    if as_json:
        print_json(everything if subject is None else everything[subject])
        return
    for name in SUBJECTS if subject is None else (subject,):
        click.echo(bold(name))
        for kind, description in everything[name].items():
            click.echo(f"  {kind}: {description['about']}")
            if description["options"]:
                click.echo(f"      {_options_text(description)}")


def _in_a_study(description: dict[str, Any]) -> dict[str, Any]:
    """Mark the required options of an environment as set by the study, from its sizes, horizon and seed."""
    return {**description, "required": [], "set_by_study": description["required"]}


def _options_text(description: dict[str, Any]) -> str:
    """Return options with their defaults, or with a note: required, or set by the study."""
    notes = dict.fromkeys(description.get("required", []), "required")
    notes |= dict.fromkeys(description.get("set_by_study", []), "set by the study")
    return ", ".join(
        f"{option} ({notes[option]})" if option in notes else f"{option} = {value!r}"
        for option, value in description["options"].items()
    )
