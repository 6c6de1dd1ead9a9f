"""`bothworlds check`: an algorithm of your own, or a study."""

import sys
from typing import Any

import click

from bothworlds.cli.common import BAD_INPUT, FAILED, answer, json_option, leave, reading
from bothworlds.problem import Problem
from bothworlds.simulation.conformance import check_algorithm
from bothworlds.simulation.own import loaded
from bothworlds.simulation.study import Study


@click.command()
@click.argument("target")
@json_option
def check(target: str, as_json: bool) -> None:
    r"""Check TARGET: a study (FILE.toml), or an algorithm of your own (MODULE:NAME or FILE.py:NAME).

    An algorithm is a class that can be made without arguments, or an object; it is played on small problems, and what
    is wrong with it is said in sentences. Exit code 1 if something is wrong, 3 if TARGET cannot be read. The file is
    imported, that is, run.

    \b
    Examples:
      bothworlds check studies/first.toml
      bothworlds check mine.py:Greedy
      bothworlds check my_package.bandits:Greedy --json
    """
    if target.endswith(".toml"):
        with reading():
            study = Study.from_toml(target)
        _tell(target, [], f"{len(list(study.cells()))} cells", as_json=as_json)
        return
    algorithm = _loaded(target)
    findings = check_algorithm(algorithm)
    good = "" if findings else f"conforms; {_speed(algorithm)}"
    _tell(target, findings, good, as_json=as_json)
    if findings:
        sys.exit(FAILED)


def _speed(algorithm: Any) -> str:
    """Say how fast the simulator can play an algorithm, and what keeps it from more."""
    if not hasattr(algorithm, "machine"):
        return "plain Python, one decision at a time: written as kernel text it would run compiled"
    text = algorithm.machine(Problem(features=[[[1.0], [-1.0]]], probabilities=[1.0])).text
    if not text.wide:
        return "replications play one by one: kernel_text(together=True) would let many play at once"
    if not text.together:
        return "many replications plan at once and play one by one: kernel_text(together=True) would do all at once"
    return "many replications play at once"


def _tell(target: str, findings: list[str], good: str, *, as_json: bool) -> None:
    """Say what was found."""
    if as_json:
        answer({"target": target, "ok": not findings, "findings": findings})
    elif findings:
        click.echo("\n".join([f"{target}: {len(findings)} findings", *(f"  {finding}" for finding in findings)]))
    else:
        click.echo(f"{target}: good, {good}")


def _loaded(target: str) -> Any:
    """Import what a target names, and make an object of it if it is a class."""
    _, colon, name = target.rpartition(":")
    if not colon or not name:
        leave(f"{target!r} is neither FILE.toml nor MODULE:NAME nor FILE.py:NAME", BAD_INPUT)
    with reading():
        found = loaded(target)
    if not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        leave(f"{target} cannot be made without arguments: {type(error).__name__}: {error}", BAD_INPUT)
