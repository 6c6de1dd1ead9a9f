"""The pages docs/reference/command-line/*.md, made from the commands themselves: python tools/reference.py."""

from collections.abc import Iterator

import click

from bothworlds.cli import main

WIDTH = 100
NOTE = "Generated from the commands by `python tools/reference.py`."
INDEX = """# Command line

The pages of this section are what `--help` prints after each command.

"""


def pages() -> dict[str, str]:
    """Return the Markdown of every command, and of every subcommand of a group, by file name."""
    context = click.Context(main, info_name="bothworlds", **main.context_settings)  # click keeps the first help option
    found = list(commands(main, context))
    lines = [f"- [`{path}`]({file_of(path)}): {summary(command)}" for path, command, _ in found]
    top = f"```text\n{help_of(main, None, 'bothworlds')}\n```\n"
    index = f"{INDEX}{chr(10).join(lines)}\n\n{top}\n{NOTE}\n"
    return {"index.md": index} | {file_of(path): markdown(path, command, above) for path, command, above in found}


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield the path of every command below a group, the command, and the context of its group."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        path = f"{context.command_path} {name}"
        yield path, command, context
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, info_name=name, parent=context))


def file_of(path: str) -> str:
    """Return the file of a command's page.

    >>> file_of("bothworlds service token")
    'service-token.md'
    """
    return "-".join(path.split()[1:]) + ".md"


def summary(command: click.Command) -> str:
    """Return the first sentence of a command's help, with its full stop."""
    return f"{command.get_short_help_str(1000).rstrip('.')}."


def markdown(path: str, command: click.Command, parent: click.Context) -> str:
    """Return the page of one command: what it does in a sentence, and its help."""
    shown = help_of(command, parent, path.split()[-1])
    return f"# {path}\n\n{summary(command)}\n\n```text\n{shown}\n```\n\n{NOTE}\n"


def help_of(command: click.Command, parent: click.Context | None, name: str) -> str:
    """Return what ``--help`` prints, on lines of at most WIDTH characters."""
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        max_content_width=WIDTH,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
