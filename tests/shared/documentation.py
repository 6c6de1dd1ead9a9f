"""The pages of the documentation, and the blocks and command lines in them."""

import itertools
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Return the command lines of a page, word by word, without what goes to files."""
    found = []
    for block in blocks(page, "console"):
        for line in re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE):
            for part in line.split("&&"):
                words = shlex.split(part, comments=True)
                found.append(list(itertools.takewhile(lambda word: word not in (">", ">>"), words)))
    return found
