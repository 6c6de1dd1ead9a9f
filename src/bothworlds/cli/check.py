"""`bothworlds check`: check a study, or a user's algorithm or environment."""

import inspect
import sys
from typing import Any

import click

from bothworlds.cli.common import BAD_INPUT, FAILED, exit_on_bad_input, exit_with, json_option, print_json
from bothworlds.environments import Environment, random_instance
from bothworlds.problem import Problem
from bothworlds.simulation.checks.algorithm import check_algorithm
from bothworlds.simulation.checks.environment import check_environment
from bothworlds.studies.comparison import SETTINGS, SIZES
from bothworlds.studies.study import Study
from bothworlds.user_code import load_object

NEITHER = (
    "it is neither an algorithm nor an environment: an algorithm has a method start(problem, rng=...) or "
    "machine(problem), an environment is made by a function of bothworlds.environments, such as from_function"
)


@click.command()
@click.argument("target")
@json_option
def check(target: str, as_json: bool) -> None:
    r"""Check a study, or your own algorithm or environment.

    TARGET is a study (FILE.toml), or an algorithm or an environment (MODULE:NAME or FILE.py:NAME): an object, or a
    class or function that makes one. A function of an environment may have the parameters instance, horizon and seed,
    and the sizes of a study. Algorithms are played on small problems, environments for a few hundred rounds; each
    finding is one sentence. Exits with 1 if there are findings, with 3 if TARGET cannot be read. The Python file is
    imported, so its code runs.

    \b
    Examples:
      bothworlds check studies/first.toml
      bothworlds check mine.py:Greedy
      bothworlds check my_package.bandits:Greedy --json
      bothworlds check examples/own_world.py:world
    """
    if target.endswith(".toml"):
        with exit_on_bad_input():
            study = Study.from_toml(target)
        _print(target, "study", [], f"{len(list(study.cells()))} cells", as_json=as_json)
        return
    subject = _load(target)
    kind, findings = _findings(subject)
    good = "" if findings else f"conforms; {_speed(subject) if kind == 'algorithm' else subject.problem}"
    _print(target, kind, findings, good, as_json=as_json)
    if findings:
        sys.exit(FAILED)


def _findings(subject: Any) -> tuple[str | None, list[str]]:
    """Return the kind of an object, "algorithm", "environment" or None, and the findings about it."""
    if isinstance(subject, Environment):
        return "environment", check_environment(subject)
    if hasattr(subject, "start") or hasattr(subject, "machine"):
        return "algorithm", check_algorithm(subject)
    return None, [NEITHER]


def _speed(algorithm: Any) -> str:
    """Return a sentence on how fast the simulator runs an algorithm, and what would make it faster."""
    if not hasattr(algorithm, "machine"):
        return "runs in plain Python, one decision at a time; as a kernel it would run compiled"
    kernel = algorithm.machine(Problem(features=[[[1.0], [-1.0]]], probabilities=[1.0])).kernel
    if not kernel.wide:
        return "replications play one by one; with build_kernel(together=True) many would play at once"
    if not kernel.together:
        return "many replications plan at once but play one by one; build_kernel(together=True) would do all at once"
    return "many replications play at once"


def _print(target: str, kind: str | None, findings: list[str], good: str, *, as_json: bool) -> None:
    """Print the findings, or ``good`` if there are none."""
    if as_json:
        print_json({"target": target, "kind": kind, "ok": not findings, "findings": findings})
    elif findings:
        count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
        click.echo("\n".join([f"{target}: {count}", *(f"  {finding}" for finding in findings)]))
    else:
        click.echo(f"{target}: good, {good}")


def _load(target: str) -> Any:
    """Import the object that a target names; if it is a class or a function, return its result."""
    _, colon, name = target.rpartition(":")
    if not colon or not name:
        exit_with(f"{target!r} is neither FILE.toml nor MODULE:NAME nor FILE.py:NAME", BAD_INPUT)
    with exit_on_bad_input():
        named = load_object(target)
    if not isinstance(named, type) and not inspect.isroutine(named):
        return named
    try:
        return named(**_arguments(named))
    except Exception as error:
        exit_with(f"{target} cannot be called without arguments: {type(error).__name__}: {error}", BAD_INPUT)


def _arguments(maker: Any) -> dict[str, Any]:
    """Return the arguments that a study passes to the function of an environment, for the parameters it has."""
    if isinstance(maker, type):
        return {}
    parameters = inspect.signature(maker).parameters
    required = {name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    arguments: dict[str, Any] = {name: SETTINGS[name] for name in ("horizon", "seed") if name in parameters}
    arguments |= {name: value for name, value in SIZES.items() if name in required}
    sizes: dict[str, Any] = SIZES
    return {**arguments, **({"instance": random_instance(**sizes)} if "instance" in parameters else {})}
