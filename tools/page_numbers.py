"""Fill the marks of the pages: numbers of docs/numbers.toml, and the text of files.

    python tools/page_numbers.py            # fill README.md, docs/**/*.md and research/*.md
    python tools/page_numbers.py --check    # write nothing; print what is wrong, exit 1 if there is anything

A number that more than one page has is a key of docs/numbers.toml, ``score-default = "1.68"``, and on a page stands
between two comments: ``<!-- n:score-default -->1.68<!-- /n -->``. A file that a page shows stands between two lines,
``<!-- file: examples/softmax.py -->`` and ``<!-- /file -->``, as a fenced block; doctests are left out of it,
because they run in their module and lack its names on the page. Marks within code are text. Values that data of the
repository determine (`computed`) must agree with them.
"""

import argparse
import functools
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FENCE = "```"
PIECE = re.compile(
    r"""(?P<block>^<!--\ file:\ *(?P<path>\S+)\ *-->\n(?P<shown>(?:(?!<!--\ /?file).*\n)*?)<!--\ /file\ -->$)
    |(?P<fenced>^(?P<ticks>```+).*\n(?:.*\n)*?(?P=ticks)$)
    |(?P<code>(?P<tick>`+)(?!`).*?(?<!`)(?P=tick)(?!`))
    |(?P<number><!--\ n:\ *(?P<key>[\w.-]+)\ *-->(?P<value>[^<\n]*)<!--\ /n\ -->)
    |(?P<stray><!--\ */?(?:n|file)\b[^>]*>)""",
    flags=re.MULTILINE | re.VERBOSE,
)
ONE_LINE = re.compile(r'("""[^"\n]+)\n *"""$', flags=re.MULTILINE)  # a docstring of which one line is left
DOCTEST = re.compile(r"\n*^ *>>> .*\n(?: *\S.*\n)*?(?=\s*$|\s*\"\"\")", flags=re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".sh": "bash"}
BOARD = "nineteenth"  # the family of the scoreboard's current table
PLAYERS = {
    "default": "LC-Tsallis-INF matched",
    "certified": "LC-Tsallis-INF certified",
    "linucb": "LinUCB 1",
    "oful": "OFUL",
    "realftrl": "RealFTRL",
}
REGIMES = {
    "low-noise": "low noise",
    "noise": "+-1 noise",
    "adversary": "adaptive adversary",
    "flipped": "first T/20 flipped",
    "margin": "margin",
    "alternating": "alternating",
}


class Filled(NamedTuple):
    """A page with its marks filled in, the keys it uses, and what is wrong with its marks."""

    text: str
    keys: frozenset[str]
    errors: list[str]


def fill(text: str, numbers: Mapping[str, str], read: Callable[[str], str]) -> Filled:
    """Return a page with the values of its keys, and with the files that ``read`` returns for their paths.

    >>> fill("a score of <!-- n:score -->?<!-- /n -->, and `<!-- n:key -->`", {"score": "1.68"}, str).text
    'a score of <!-- n:score -->1.68<!-- /n -->, and `<!-- n:key -->`'
    """
    keys, errors = set(), []

    def filled(found: re.Match[str]) -> str:
        line = text.count("\n", 0, found.start()) + 1
        if found["number"]:
            keys.add(found["key"])
            if found["key"] in numbers:
                return f"<!-- n:{found['key']} -->{numbers[found['key']]}<!-- /n -->"
            errors.append(f"line {line}: no key {found['key']!r} in docs/numbers.toml; add it there with its source")
        elif found["block"]:
            try:
                return block(found["path"], read(found["path"]))
            except OSError:
                errors.append(f"line {line}: no file {found['path']}; write its path from the root of the repository")
        elif found["stray"]:
            errors.append(
                f"line {line}: {found['stray']} has no partner; close a number on its line, a file on its own"
            )
        return found[0]

    return Filled(PIECE.sub(filled, text), frozenset(keys), errors)


def block(path: str, text: str) -> str:
    """Return the text of a file as a fenced block between its marks."""
    suffix = Path(path).suffix
    shown = ONE_LINE.sub(r'\1"""', DOCTEST.sub("\n", text)) if suffix == ".py" else text
    fence = FENCE + "`" * (FENCE in shown)
    return f"<!-- file: {path} -->\n{fence}{LANGUAGES.get(suffix, 'text')}\n{shown.rstrip()}\n{fence}\n<!-- /file -->"


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages that may have marks."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "research").glob("*.md"))]


def numbers_of(root: Path = ROOT) -> dict[str, str]:
    """Return the keys of docs/numbers.toml and their values, which must be strings: 1.70 and 1.7 differ on a page."""
    path = root / "docs" / "numbers.toml"
    found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for key, value in found.items():
        if not isinstance(value, str):
            raise ValueError(f"docs/numbers.toml: {key} = {value!r} is not a string; put it between quotation marks")
    return found


@functools.cache
def computed(root: Path = ROOT) -> dict[str, float]:
    """Return what the scoreboard's data say of keys: score-default, regret-default-adversary, low-noise-linucb, ...

    Scores and regrets are those of the current family: T = 20,000, means of the instances of a regime.
    """
    sys.path[:0] = [folder for folder in [str(root / "studies")] if folder not in sys.path]
    records, table = import_module("board.records"), import_module("board.table")

    conditions = records.Conditions(f"{BOARD} held-out", 20_000, 8)
    lines = records.read(root / "studies" / "board" / f"{BOARD}-held-out.csv", conditions)
    players = list(dict.fromkeys(player for _, player in lines))
    boards = {grain: table.board(lines, players, conditions.horizon, grain=grain) for grain in table.GRAINS}
    by_regime, places = boards["regime"], [regime for (regime,) in boards["regime"].cells]
    found = {}
    for word, player in PLAYERS.items():
        row = players.index(player)
        found[f"score-{word}"] = by_regime.scores[row].value
        found[f"score-{word}-instance"] = boards["single instance"].scores[row].value
        for name, regime in REGIMES.items():
            regret = float(by_regime.regrets[row][places.index(regime)])
            found |= {f"regret-{word}-{name}": regret, f"{name}-{word}": regret}
    rivals = [score.value for player, score in zip(players, by_regime.scores, strict=True) if "LC-T" not in player]
    return found | {"score-next-rival": min(rivals)}


def disagreements(numbers: Mapping[str, str], data: Mapping[str, float]) -> Iterator[str]:
    """Yield the keys whose values are not what the data say, at the number of decimals written.

    >>> list(disagreements({"score": "1.7", "regret": "1,204"}, {"score": 1.68, "regret": 1203.4}))
    ["docs/numbers.toml: regret = '1,204', but the data say 1,203"]
    """
    for key in sorted(numbers.keys() & data.keys()):
        decimals = len(numbers[key].partition(".")[2])
        said = f"{data[key]:,.{decimals}f}"
        if numbers[key].replace(",", "") != said.replace(",", ""):
            yield f"docs/numbers.toml: {key} = {numbers[key]!r}, but the data say {said}"


def errors(root: Path = ROOT) -> list[str]:
    """Return what is wrong: marks, keys that are missing or unused, pages not filled in, and values against data."""
    numbers, found = numbers_of(root), []
    used: set[str] = set()
    for page in pages(root):
        text, name = page.read_text(encoding="utf-8"), page.relative_to(root)
        filled = fill(text, numbers, lambda path: (root / path).read_text(encoding="utf-8"))
        used |= filled.keys
        found += [f"{name}, {error}" for error in filled.errors]
        if filled.text != text:
            found.append(f"{name} is stale; run python tools/page_numbers.py")
    unused = sorted(numbers.keys() - used)
    found += [f"docs/numbers.toml: no page uses {key}; delete it or use it" for key in unused]
    return found + list(disagreements(numbers, computed() if numbers else {}))


def write(root: Path = ROOT) -> None:
    """Fill in all pages."""
    numbers = numbers_of(root)
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        filled = fill(text, numbers, lambda path: (root / path).read_text(encoding="utf-8")).text
        if filled != text:
            page.write_text(filled, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Fill in the pages, and say what is wrong with their marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args(arguments).check:
        write()
    found = errors()
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
