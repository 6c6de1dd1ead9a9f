"""Commands of the pages: those on files run after the Python lines before them; those within sentences are right."""

import doctest
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bothworlds.cli import main
from documentation import ROOT, commands, each_page

TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


def run_lines(page: str, *, before: str) -> None:
    """Run the Python lines of a page up to one that begins like this."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples((ROOT / "docs" / page).read_text(encoding="utf-8")):
        if example.source.startswith(before):
            return
        exec(compile(example.source, page, "single"), names)
    raise AssertionError(f"no line of {page} begins with {before}")


@pytest.mark.parametrize(
    ("page", "before", "of", "begins"),
    [
        ("practitioners.md", "policy = ", "practitioners.md", "design ads.json"),
        ("practitioners.md", "policy = ", "practitioners.md", "bounds ads.json"),
        ("production.md", "import numpy", "production.md", "health ads.npz"),
        ("production.md", "import numpy", "evaluation.md", "evaluate log.jsonl"),
        ("evaluation.md", "found = ", "evaluation.md", "evaluate clicks.csv"),
    ],
)
def test_commands_run_on_the_files_that_lines_before_them_wrote(page: str, before: str, of: str, begins: str) -> None:
    ours = [words for program, *words in commands(ROOT / "docs" / of) if program == "bothworlds"]
    chosen = [words for words in ours if " ".join(words).startswith(begins)]
    assert chosen
    run_lines(page, before=before)
    for words in chosen:
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, (words, done.output)


def within_sentences(page: Path) -> list[list[str]]:
    """Return the commands that stand in running text, word by word."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [found.split() for found in re.findall(r"`((?:bothworlds|make|python) [^`]+)`", text)]


@each_page
def test_commands_within_sentences_are_right(page: Path) -> None:
    """Commands, options, targets and scripts that a page names are there."""
    context = click.Context(main, info_name="bothworlds")
    for program, name, *words in [*within_sentences(page), *commands(page)]:
        options = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
        if program == "bothworlds" and not name.startswith("-"):
            command = main.get_command(context, name)
            assert command is not None, name
            assert options <= {option for one in command.params for option in [*one.opts, *one.secondary_opts]}, name
        elif program == "make":
            assert {name} <= set(TARGETS)
        elif program == "python" and not name.startswith("-"):
            script = (ROOT / name).read_text(encoding="utf-8")
            assert not [option for option in options if f'"{option}"' not in script and 'f"--{' not in script], name
