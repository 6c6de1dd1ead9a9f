"""`bothworlds new`: a commented study to start from."""

import shlex
from pathlib import Path

import click

from bothworlds.algorithms.registry import algorithms
from bothworlds.cli.common import FAILED, Place, leave, talk, working
from bothworlds.plain import printable
from bothworlds.problem.storage import write_bytes
from bothworlds.simulation.study import WORLDS
from bothworlds.simulation.toml import basic_string

TEMPLATE = """\
# A study: environments x algorithms x sizes, every one with the same horizon, replications and seed.
#     bothworlds check {file}       is it right?
#     bothworlds run {file}         run it; the same command goes on after an interruption
#     bothworlds report FOLDER      a page of the results

format = 1               # of this file: docs/versions.md
name = {name}
horizon = 10_000         # rounds T
replications = 10        # R; intervals need at least 2
seed = 0                 # decides everything: the instance, the contexts, the noise
# checkpoints = 200      # how many rounds are recorded, evenly in log t
# delay = 0              # feedback comes this many rounds late
# batch = 1              # and is learnt in batches of this size
references = true        # play LinUCB, RealFTRL, matched and uniform, too: pages then say who is near the best

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
    """Return the commented study, called as its file, with the kinds that this version knows."""
    name = basic_string(printable(file.stem))
    place = printable(shlex.quote(str(file)))
    return TEMPLATE.format(file=place, name=name, worlds=_wrapped(WORLDS), algorithms=_wrapped(algorithms()))


def _wrapped(kinds: object) -> str:
    """Return kinds as lines of a comment."""
    lines = ["#    "]
    for kind in list(kinds):  # type: ignore[call-overload]
        if len(lines[-1]) + len(kind) > 108:
            lines.append("#    ")
        lines[-1] += f" {kind},"
    return "\n".join(lines).rstrip(",")


@click.command()
@click.argument("file", type=Place(dir_okay=False), default=Path("study.toml"))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def new(file: Path, force: bool) -> None:
    r"""Write a commented study to FILE [study.toml]; a folder that is not there is made, and said.

    \b
    Examples:
      bothworlds new
      bothworlds new studies/mine.toml && bothworlds run studies/mine.toml
    """
    with working():
        if file.exists() and not force:
            leave(f"{file} is there already; --force writes over it", FAILED)
        if not file.parent.exists():
            file.parent.mkdir(parents=True)
            talk(f"made the folder {file.parent}")
        write_bytes(file, template(file).encode())
    click.echo(file)
    talk(f"edit it, then: {shlex.join(['bothworlds', 'run', str(file)])}")
