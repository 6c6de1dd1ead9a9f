"""The pages of the documentation, and the blocks and command lines in them."""

import itertools
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("reference/api", "reference/command-line")
HANDWRITTEN = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.relative_to(DOCS).as_posix() not in GENERATED]
MADE = [page for folder in GENERATED for page in sorted((DOCS / folder).glob("*.md"))]
RESEARCH = sorted((ROOT / "research").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *HANDWRITTEN, *MADE]
SHOWN_FILE = re.compile(r"^<!-- file: .*?^<!-- /file -->$", flags=re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """Return a page's path from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
each_text = pytest.mark.parametrize("page", [*PAGES, *RESEARCH], ids=name_of)


def written(page: Path) -> str:
    """Return the text of a page without the files that it shows."""
    return SHOWN_FILE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language, but for files that the page shows."""
    return re.findall(rf"^```{language}\n(.*?)^```$", written(page), flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Return the command lines of a page, word by word."""
    return [words for block in blocks(page, "bash") for words in command_lines(block)]


def command_lines(block: str) -> list[list[str]]:
    r"""Return the commands of a block of shell, without variables before them and without what goes to files.

    >>> command_lines("A=1 make docs && bothworlds list \\\n  tunings > b.txt\ncurl -s x | python -m json.tool &\n")
    [['make', 'docs'], ['bothworlds', 'list', 'tunings'], ['curl', '-s', 'x'], ['python', '-m', 'json.tool']]
    """
    found, rest = [], ""
    for line in block.replace("\\\n", " ").splitlines():
        rest += f"{line}\n"
        reader = shlex.shlex(rest, posix=True, punctuation_chars=";&|<>")
        reader.whitespace_split = True
        try:
            words = list(reader)
        except ValueError:  # a quotation goes on in the next line
            continue
        rest = ""
        for ends, part in itertools.groupby(words, lambda word: bool(re.fullmatch("[;&|]+", word))):
            if not ends:
                command = itertools.takewhile(lambda word: not re.fullmatch("[<>]+", word), part)
                found.append(list(itertools.dropwhile(re.compile(r"[A-Z_]+=").match, command)))
    return [words for words in found if words]
