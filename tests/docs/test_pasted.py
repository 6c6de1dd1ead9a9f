"""Commands of the pages: those on files run after the Python lines before them; those within sentences are right."""

import doctest
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bothworlds.cli import main
from support.documentation import HANDWRITTEN, ROOT, blocks, command_lines, commands, each_page, written

TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


FILE = re.compile(r"[\w.-]+\.(?:npz|jsonl?|csv|parquet)")


def lines_before(page: Path, block: str) -> list[str]:
    """Return the Python lines of a page before a block, in order."""
    text = page.read_text(encoding="utf-8")
    return [example.source for example in doctest.DocTestParser().get_examples(text[: text.index(block)])]


def on_written_files(page: Path) -> list[tuple[list[str], list[str]]]:
    """Return the commands of ours that read files which Python lines before them name, with those lines."""
    found = []
    for block in blocks(page, "bash"):
        lines = lines_before(page, block)
        for program, *words in command_lines(block):
            files = [word for word in words if FILE.fullmatch(word)]
            if program == "bothworlds" and files and all(f'"{file}"' in "".join(lines) for file in files):
                found.append((words, lines))
    return found


FOUND = [(page, *found) for page in HANDWRITTEN for found in on_written_files(page)]
NAMES = [f"{page.name}, {words[0]}" for page, words, _ in FOUND]


@pytest.mark.parametrize(("page", "words", "lines"), FOUND, ids=NAMES)
def test_commands_run_on_the_files_that_lines_before_them_wrote(page: Path, words: list[str], lines: list[str]) -> None:
    names: dict[str, Any] = {}
    for line in lines:
        exec(compile(line, page.name, "single"), names)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (words, done.output)


def test_there_are_such_commands() -> None:
    assert len(FOUND) > 1


def within_sentences(page: Path) -> list[list[str]]:
    """Return the commands that stand in running text, word by word."""
    text = re.sub(r"^```.*?^```$", "", written(page), flags=re.MULTILINE | re.DOTALL)
    return [found.split() for found in re.findall(r"`((?:bothworlds|make|python) [^`]+)`", text)]


@each_page
def test_commands_within_sentences_are_right(page: Path) -> None:
    """Commands, options, targets and scripts that a page names are there."""
    context = click.Context(main, info_name="bothworlds")
    for program, name, *words in [*within_sentences(page), *commands(page)]:
        options = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
        if program == "bothworlds" and not name.startswith("-"):
            command, path = main.get_command(context, name), name
            while isinstance(command, click.Group) and words and not words[0].startswith("-"):
                path, words = f"{path} {words[0]}", words[1:]
                command = command.get_command(click.Context(command, parent=context), path.split()[-1])
            assert command is not None, path
            assert options <= {option for one in command.params for option in [*one.opts, *one.secondary_opts]}, path
        elif program == "make":
            assert {name} <= set(TARGETS)
        elif program == "python" and not name.startswith("-"):
            script = (ROOT / name).read_text(encoding="utf-8")
            assert not [option for option in options if f'"{option}"' not in script and 'f"--{' not in script], name
