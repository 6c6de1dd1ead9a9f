"""The command `bothworlds` and how it finds its subcommands."""

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from bothworlds.cli.common import FAILED, INTERRUPTED, error_message, exit_with, print_message
from bothworlds.errors import UserCodeError

SECTIONS = {  # of the help text: commands and their modules, which are imported when a command is called
    "Compare algorithms": {
        "compare": "compare",
        "show": "show",
        "report": "report",
    },
    "Run studies": {
        "new": "new",
        "run": "run",
        "check": "check",
        "list": "listing",
    },
    "Evaluate logs and saved policies": {
        "evaluate": "evaluate",
        "health": "health",
    },
    "Analyze problems": {
        "design": "design",
        "bounds": "bounds",
    },
    "Serve decisions": {
        "serve": "serve",
        "service": "service",
    },
    "Set up this machine": {
        "warm": "warm",
        "completion": "completion",
    },
}
FILES = {name: module for section in SECTIONS.values() for name, module in section.items()}


class Suggesting(click.Group):
    """A group of commands that suggests the nearest command for a mistyped one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; fail with the nearest name if there is no such command."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}. {self._hint(ctx, args[0])}")
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: click.Context, word: str) -> str:
        """Return a suggestion: a command of an inner group, the nearest one of this group, or all of its commands."""
        names = self.list_commands(ctx)
        near = get_close_matches(word, names, n=1, cutoff=0.5)
        inner = [" ".join(path) for path, _ in commands_of(self, ctx) if path[-1] == word]
        suggestions = inner or near
        return f"Did you mean {suggestions[0]!r}?" if suggestions else f"The commands are {', '.join(names)}."


def commands_of(group: click.Group, ctx: click.Context) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield path, such as ("service", "verify"), and command of all commands of a group and its inner groups."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None:
            continue
        yield (name,), command
        if isinstance(command, click.Group):
            yield from (((name, *path), inner) for path, inner in commands_of(command, ctx))


class Commands(Suggesting):
    """The top group: imports commands when they are called, and turns interrupts and I/O errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help text."""
        return list(dict.fromkeys([*FILES, *super().list_commands(ctx)]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; its module is imported when it is first asked for."""
        if cmd_name in FILES and cmd_name not in self.commands:
            members = vars(import_module(f"bothworlds.cli.{FILES[cmd_name]}")).values()
            command = next(each for each in members if isinstance(each, click.Command) and each.name == cmd_name)
            self.add_command(_with_help(command))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of the help text, section by section."""
        limit = formatter.width - 6 - max(map(len, FILES))
        for title, names in SECTIONS.items():
            commands = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in commands])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 130 after Ctrl-C, 1 after an I/O error, 0 when the reader of stdout is gone."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            exit_with("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _discard_stdout()
            sys.exit(0)
        except UserCodeError as error:  # in a user's own algorithm or world
            exit_with(str(error), FAILED)
        except (OSError, MemoryError) as error:  # a full disk, a folder without permission
            _discard_stdout()
            exit_with(error_message(error), FAILED)


def _discard_stdout() -> None:
    """Redirect stdout to the null device, so that nothing fails when Python flushes it at exit."""
    with contextlib.suppress(OSError, AttributeError, ValueError):  # without a stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn_once() -> Callable[..., None]:
    """Return a function that prints each warning once, wherever in the code it was raised."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            print_message(f"warning: {message}")

    return show


def _with_help(command: click.Command) -> click.Command:
    r"""Return a command with \b as one character in its help, as click expects; in our raw docstrings it is two."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _with_help(inner)
    return command


@click.group(name="bothworlds", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bothworlds")
@click.pass_context
def main(ctx: click.Context) -> None:
    r"""Best-of-both-worlds linear contextual bandits: decide, compare, simulate, evaluate, serve.

    \b
    Examples:
      bothworlds compare                  compare the paper's algorithm with others, in about a minute
      bothworlds new my.toml              write a commented study
      bothworlds run my.toml              run it; the same command resumes it
      bothworlds report my-results        write its results as one HTML page
      bothworlds evaluate log.jsonl --policy new=plan.npz --against logging
      bothworlds serve --demo             serve decisions over HTTP, with a dashboard

    Results go to stdout, messages to stderr. Exit codes: 0 success, 1 the work failed, 2 wrong usage, 3 bad input
    file, 130 interrupted. With --json, numbers that are not finite are null. Output has no color if NO_COLOR is set.
    `bothworlds completion bash` prints a completion script.
    """
    ctx.with_resource(warnings.catch_warnings())
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _warn_once()
    if os.environ.get("NO_COLOR"):
        ctx.color = False


_with_help(main)
