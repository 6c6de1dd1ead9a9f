"""The page docs/command-line.md, made from the commands themselves: python -m bothworlds.cli.reference."""

import click

from bothworlds.cli.group import FILES, main

WIDTH = 100
HEAD = """# Command line

Made from the code by `python -m bothworlds.cli.reference > docs/command-line.md`; a test fails when it is stale.
"""


def reference() -> str:
    """Return the help of every command as one Markdown page."""
    parent = click.Context(main, info_name="bothworlds")
    parts = [HEAD, _section("bothworlds", main, None)]
    found = [(name, main.get_command(parent, name)) for name in FILES]
    parts += [_section(f"bothworlds {name}", command, parent) for name, command in found if command is not None]
    return "\n".join(parts)


def _section(title: str, command: click.Command, parent: click.Context | None) -> str:
    """Return the help of one command under its name."""
    name = title.split()[-1]
    ctx = click.Context(
        command,
        info_name=name,
        parent=parent,
        max_content_width=WIDTH,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    text = "\n".join(line.rstrip() for line in command.get_help(ctx).splitlines())
    return f"## {title}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    print(reference(), end="")
