"""The command `bothworlds` and how it finds its subcommands."""

import contextlib
import os
import sys
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import click

from bothworlds.cli.bounds import bounds
from bothworlds.cli.check import check
from bothworlds.cli.common import INTERRUPTED, leave, talk
from bothworlds.cli.compare import compare
from bothworlds.cli.completion import completion
from bothworlds.cli.design import design
from bothworlds.cli.evaluate import evaluate
from bothworlds.cli.health import health
from bothworlds.cli.listing import list_
from bothworlds.cli.new import new
from bothworlds.cli.report import report
from bothworlds.cli.run import run
from bothworlds.cli.serve import serve, token
from bothworlds.cli.show import show
from bothworlds.cli.store import erase, export, rollback, verify
from bothworlds.cli.warm import warm


class Commands(click.Group):
    """A group that knows what a mistyped command was meant to be, and how Ctrl-C ends."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a subcommand; name the nearest one if there is none."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.list_commands(ctx), n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(self.list_commands(ctx))}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C ends with 130 wherever it comes, a reader who has seen enough with 0."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            leave("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _say_no_more()
            sys.exit(0)


def _say_no_more() -> None:
    """Send what is left of stdout nowhere, so that nothing fails when Python flushes it at the end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told_once() -> Callable[..., None]:
    """Return what shows warnings: each text once, wherever in the code it comes from."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            talk(f"warning: {message}")

    return tell


@click.group(name="bothworlds", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bothworlds")
@click.pass_context
def main(ctx: click.Context) -> None:
    r"""Best-of-both-worlds linear contextual bandits: compare, simulate, report.

    \b
    Examples:
      bothworlds compare                  the paper's algorithm and its rivals, in about a minute
      bothworlds new my.toml              a commented study of your own
      bothworlds run my.toml              run it; the same command resumes
      bothworlds report my-results        one page to send to a colleague
      bothworlds evaluate log.jsonl --policy new=plan.npz --against logging
      bothworlds serve --demo             decisions over HTTP, with a page to look at

    Data goes to stdout, talk to stderr. Exit codes: 0 done, 1 the work failed, 2 usage, 3 bad input file,
    130 interrupted. NO_COLOR is honoured; `bothworlds completion bash` prints a completion script.
    """
    ctx.with_resource(warnings.catch_warnings())
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _told_once()
    if os.environ.get("NO_COLOR"):
        ctx.color = False


COMMANDS = (
    *(compare, new, run, report, show, list_, evaluate, check, design, bounds, health, warm),
    *(serve, token, verify, export, rollback, erase, completion),
)
for command in COMMANDS:
    main.add_command(command)
for command in (main, *main.commands.values()):  # docstrings are raw; click wants the character itself
    command.help = (command.help or "").replace("\\b\n", "\b\n")
