"""The numbers of docs/what-is-this.md are those of the scoreboard; the README is short and has a picture."""

import re
from pathlib import Path
from xml.etree import ElementTree

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
}


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


def test_the_price_in_calm_worlds_is_that_of_the_scoreboard() -> None:
    head, _, *mine = rows("what-is-this.md", "regime")
    titles, _, *board = rows("scoreboard.md", "player")
    by_player = {row[0]: dict(zip(titles, row, strict=True)) for row in board}
    for row in mine:
        regime = REGIMES.get(row[0], row[0])
        values = [float(cell.strip("*").replace(",", "")) for cell in row[1:]]
        for name, value in zip(head[1:], values, strict=True):
            expected = by_player[PLAYERS[name]][regime].split(" ±")[0]
            assert value == float(expected.replace(",", "")), (regime, name)
        best = next(value for value, cell in zip(values, row[1:], strict=True) if cell.startswith("**"))
        assert best == min(values)


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
