"""The numbers of docs/what-is-this.md are those of the scoreboard; the README is short and has a picture."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from board import records, table

ROOT = Path(__file__).parents[2]
PLAYERS = {
    "LinUCB (width 1)": "LinUCB 1",
    "`matched`": "LC-Tsallis-INF matched",
    "`adaptive`": "LC-Tsallis-INF adaptive",
    "`certified`": "LC-Tsallis-INF certified",
}
REGIMES = {
    "±1 noise": "+-1 noise",
    "margin condition": "margin",
    "adversary that sees the policy": "adaptive adversary",
    "rare, changing": "rare clicks, changing favourite",
}
NUMERALS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def rows(page: str, first: str) -> list[list[str]]:
    """Return the cells of the table whose head begins with a word."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {first} |"))
    found = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def lines_of(family: str) -> records.Lines:
    """Return what was played on a family of instances that nobody had looked at."""
    conditions = records.Conditions(f"{family} held-out", 20_000, 8)
    return records.read(ROOT / f"studies/board/{family}-held-out.csv", conditions)


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("eighteenth", ("`matched`", "`certified`")),
        ("seventeenth", ("`matched`", "`certified`")),
        ("sixteenth", ("`matched`", "`certified`")),
        ("fifteenth", ("`matched`", "`certified`")),
        ("fourteenth", ("`matched`", "`certified`")),
        ("eleventh", ("`matched`", "`certified`")),
        ("tenth", ("`matched`", "`certified`")),
        ("ninth", ("`matched`", "`certified`")),
        ("eighth", ("`matched`", "`certified`")),
        ("seventh", ("`matched`", "`certified`")),
        ("fifth", ("`matched`", "`adaptive`", "`certified`")),
    ],
)
def test_ratios_and_scores_of_a_family_are_those_of_its_lines(family: str, names: tuple[str, ...]) -> None:
    lines = lines_of(family)
    players = list(dict.fromkeys(player for _, player in lines))
    board = table.board(lines, players, 20_000, grain="regime")
    text = (ROOT / "docs/scoreboard.md").read_text(encoding="utf-8")
    part = re.split(rf"## All twelve regimes, an? {family} family", text)[1]
    columns = [
        REGIMES.get(name, name) for name in _cells(next(one for one in part.splitlines() if "| low noise" in one))
    ]
    order = [[regime for (regime,) in board.cells].index(name) for name in columns[1:-1]]
    for name in names:
        i = players.index(PLAYERS[name])
        told = _cells(next(line for line in part.splitlines() if line.startswith(f"| {name} |")))[1:]
        values = [float(cell.strip(" *")) for cell in told]
        assert values[:-1] == [round(float(board.ratios[i][place]), 2) for place in order], name
        assert values[-1] == round(board.scores[i].value, 2), name


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_price_in_calm_worlds_is_that_of_the_scoreboard() -> None:
    head, _, *mine = rows("what-is-this.md", "regime")
    lines = lines_of("eighteenth")
    board = table.board(lines, [PLAYERS[name] for name in head[1:]], 20_000, grain="regime")
    regrets = dict(zip([regime for (regime,) in board.cells], board.regrets.T, strict=True))
    for row in mine:
        values = [float(cell.strip("*").replace(",", "")) for cell in row[1:]]
        assert values == np.rint(regrets[REGIMES.get(row[0], row[0])]).tolist(), row
        best = next(value for value, cell in zip(values, row[1:], strict=True) if cell.startswith("**"))
        assert best == min(values)


def test_how_often_matched_has_less_than_a_third_is_counted_in_the_table() -> None:
    head, _, *mine = rows("what-is-this.md", "regime")
    found = [dict(zip(head, row, strict=True)) for row in mine]
    regrets = [[float(row[name].strip("*").replace(",", "")) for name in ("`matched`", "`certified`")] for row in found]
    text = (ROOT / "docs/what-is-this.md").read_text(encoding="utf-8")
    told = re.search(r"less than a third in (\w+) of the (\w+)\s+worlds above", text)
    assert told is not None
    less = sum(matched < certified / 3 for matched, certified in regrets)
    assert told.groups() == (NUMERALS[less], NUMERALS[len(regrets)])


def test_the_readme_has_one_picture_three_blocks_and_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    drawn = ROOT / picture
    assert drawn.stat().st_size < 50_000
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")
    assert len(re.findall(r"^```\w+$", text, flags=re.MULTILINE)) == 3
    assert len(text.splitlines()) < 123  # half of what it was
    assert "make demo" in text
    assert "make test" in text
