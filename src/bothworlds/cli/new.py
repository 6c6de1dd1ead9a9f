"""`bothworlds new`: a commented study to start from."""

import shlex
from pathlib import Path

import click

from bothworlds.algorithms.registry import algorithms
from bothworlds.cli.common import FAILED, PathType, exit_on_failure, exit_with, print_message
from bothworlds.environments.registry import WORLDS
from bothworlds.problem.file_format import write_bytes
from bothworlds.serialization import printable
from bothworlds.studies.toml import basic_string

TEMPLATE = """\
# A study: environments x algorithms x sizes, all with the same horizon, replications and seed.
#     bothworlds check {file}       check it
#     bothworlds run {file}         run it; the same command resumes after an interruption
#     bothworlds report FOLDER      write a page of the results

format = 1               # of this file: docs/versions.md
name = {name}
horizon = 10_000         # rounds T
replications = 10        # R; intervals need at least 2
seed = 0                 # of everything: the instance, the contexts, the noise
instances = 1            # this many seeds from the seed on; the reports pool their instances
# checkpoints = 200      # how many rounds are recorded, evenly in log t
# delay = 0              # feedback comes this many rounds late
# batch = 1              # and is learned in batches of this size
references = true        # also play LinUCB, RealFTRL, matched and uniform: pages then compare with the best of them

[sizes]                  # a list makes a grid, say contexts = [5, 50]
contexts = 5
arms = 4
dimension = 4
gap = 0.2                # the smallest gap between the best and the second best arm
# rarity = 50.0          # L: the rarest context has probability 1/L; uniform if left out
# margin = 1.0           # beta of the margin condition; left out: a gap in every context

# Environments, [environments.NAME] with a kind:
{worlds}
# `bothworlds list environments` shows their options.

[environments.stochastic]
kind = "stochastic"

[environments.adversarial]
kind = "adaptive-adversary"

[environments.corrupted]
kind = "corrupted"
budget = 200             # C, spent in the first rounds; or placement = "random", "adaptive"

# Algorithms, [algorithms.NAME] with a kind:
{algorithms}
# `bothworlds list algorithms` shows their options.

[algorithms.matched]
kind = "LCTsallisINF"
tuning = "matched"       # the default; or "certified", "paper"

[algorithms.certified]
kind = "LCTsallisINF"
tuning = {{ kind = "certified", c = 0.125 }}

[algorithms.LinUCB]
kind = "LinUCB"
width = 0.5
"""


def template(file: Path) -> str:
    """Return the commented study, named after its file, with the kinds of this version."""
    name = basic_string(printable(file.stem))
    path = printable(shlex.quote(str(file)))
    return TEMPLATE.format(file=path, name=name, worlds=_wrapped(WORLDS), algorithms=_wrapped(algorithms()))


def _wrapped(kinds: object) -> str:
    """Return kinds as lines of a comment."""
    lines = ["#    "]
    for kind in list(kinds):  # type: ignore[call-overload]
        if len(lines[-1]) + len(kind) > 108:
            lines.append("#    ")
        lines[-1] += f" {kind},"
    return "\n".join(lines).rstrip(",")


@click.command()
@click.argument("file", type=PathType(dir_okay=False), default=Path("study.toml"))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
def new(file: Path, force: bool) -> None:
    r"""Write a commented study to FILE [study.toml].

    Creates the folder of FILE if there is none.

    \b
    Examples:
      bothworlds new
      bothworlds new studies/mine.toml && bothworlds run studies/mine.toml
    """
    with exit_on_failure():
        if file.exists() and not force:
            exit_with(f"{file} exists already; overwrite it with --force", FAILED)
        if not file.parent.exists():
            file.parent.mkdir(parents=True)
            print_message(f"created the folder {file.parent}")
        write_bytes(file, template(file).encode())
    click.echo(file)
    print_message(f"edit it, then: {shlex.join(['bothworlds', 'run', str(file)])}")
