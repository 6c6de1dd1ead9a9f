"""The command `bothworlds` and how it finds its subcommands."""

import contextlib
import os
import sys
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from bothworlds.cli.common import FAILED, INTERRUPTED, leave, sentence_of, talk

FILES = {  # of the commands, in the order of the reference; each is read when its command is called
    **{name: name for name in ("compare", "new", "run", "report", "show")},
    "list": "listing",
    **{name: name for name in ("evaluate", "check", "design", "bounds", "health", "warm", "serve")},
    "token": "serve",
    **dict.fromkeys(("verify", "export", "rollback", "erase"), "store"),
    "completion": "completion",
}


class Commands(click.Group):
    """A group that finds its commands, knows what a mistyped one was meant to be, and how Ctrl-C ends."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*FILES, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; it is read from its file when it is first asked for."""
        if cmd_name in FILES and cmd_name not in self.commands:
            inside = vars(import_module(f"bothworlds.cli.{FILES[cmd_name]}")).values()
            found = next(one for one in inside if isinstance(one, click.Command) and one.name == cmd_name)
            self.add_command(_readable(found))
        return super().get_command(ctx, cmd_name)

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
        """Run the command; Ctrl-C ends with 130 wherever it comes, a full disk with 1, a reader who has left with 0."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            leave("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _say_no_more()
            sys.exit(0)
        except (OSError, MemoryError) as error:  # no place to write to, a folder that may not be read
            _say_no_more()
            leave(sentence_of(error), FAILED)


def _say_no_more() -> None:
    """Send what is left of stdout nowhere, so that nothing fails when Python flushes it at the end."""
    with contextlib.suppress(OSError, AttributeError, ValueError):  # where there is no stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told_once() -> Callable[..., None]:
    """Return what shows warnings: each text once, wherever in the code it comes from."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            talk(f"warning: {message}")

    return tell


def _readable(command: click.Command) -> click.Command:
    """Return a command with the help that click wants: docstrings are raw, and have two letters for one character."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    return command


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
    130 interrupted. With --json, numbers that are not finite are null. NO_COLOR is honoured;
    `bothworlds completion bash` prints a completion script.
    """
    ctx.with_resource(warnings.catch_warnings())
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _told_once()
    if os.environ.get("NO_COLOR"):
        ctx.color = False


_readable(main)
