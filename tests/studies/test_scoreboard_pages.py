"""The tables of the scoreboard's pages are those of its results."""

import re
from pathlib import Path

import pytest

import bothworlds as bw
from board import page, records, table
from scoreboard import main

ROOT = Path(__file__).parents[2]
CURRENT = "nineteenth"
PLAYERS = {
    "`matched`": "LC-Tsallis-INF matched",
    "`adaptive`": "LC-Tsallis-INF adaptive",
    "`certified`": "LC-Tsallis-INF certified",
}
TUNINGS = {"matched", "certified"}
REGIMES = {"rare, changing": "rare clicks, changing favourite"}
FAMILIES = ["nineteenth", "eighteenth", "seventeenth", "sixteenth", "fifteenth", "fourteenth", "eleventh"]
FAMILIES += ["tenth", "ninth", "eighth", "seventh", "fifth"]


def board_of(family: str, grain: str = "regime") -> table.Board:
    """Return the board of a family of held-out instances, from the file of its results."""
    conditions = records.Conditions(f"{family} held-out", 20_000, 8)
    lines = records.read(ROOT / f"studies/board/{family}-held-out.csv", conditions)
    return table.board(lines, list(dict.fromkeys(player for _, player in lines)), 20_000, grain=grain)


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("family", FAMILIES)
def test_ratios_and_scores_of_a_family_are_those_of_its_lines(family: str) -> None:
    board = board_of(family)
    text = (ROOT / "research/scoreboard.md").read_text(encoding="utf-8")
    part = re.split(rf"## All twelve regimes, an? {family} family", text)[1]
    columns = cells_of(next(line for line in part.splitlines() if "| low noise" in line))
    order = [[regime for (regime,) in board.cells].index(REGIMES.get(name, name)) for name in columns[1:-1]]
    for name in PLAYERS if family == "fifth" else ("`matched`", "`certified`"):
        i = board.players.index(PLAYERS[name])
        shown = cells_of(next(line for line in part.splitlines() if line.startswith(f"| {name} |")))[1:]
        values = [float(cell.strip(" *")) for cell in shown]
        assert values[:-1] == [round(float(board.ratios[i][place]), 2) for place in order], name
        assert values[-1] == round(board.scores[i].value, 2), name


def test_the_table_of_the_current_family_is_not_stale() -> None:
    text = (ROOT / "docs/explanation/scoreboard.md").read_text(encoding="utf-8")
    assert "\n".join(page.ratio_rows(board_of(CURRENT))) in text, "python studies/scoreboard.py --played --ratios"


def test_the_table_is_written_from_what_was_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "page.md"
    target.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    words = ["scoreboard.py", "--instances", f"{CURRENT} held-out", "--played", "--ratios", str(target)]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 0
    written = target.read_text()
    assert "\n".join(page.ratio_rows(board_of(CURRENT))) in written
    assert written.startswith("before\n")
    assert "old" not in written


def test_the_regrets_of_the_explanation_are_those_of_the_lines() -> None:
    board = board_of(CURRENT)
    text = (ROOT / "docs/explanation/best-of-both-worlds.md").read_text(encoding="utf-8")
    head, _, *rows = [cells_of(line) for line in text.splitlines() if line.startswith("|")]
    players = [board.players.index(page.OURS + name if name in TUNINGS else name) for name in head[1:]]
    assert len(rows) == 4
    for regime, *shown in rows:
        column = [name for (name,) in board.cells].index(regime)
        assert shown == [f"{board.regrets[i, column]:,.0f}" for i in players], regime


def test_the_default_of_the_library_is_the_rule_with_the_lowest_score() -> None:
    board = board_of(CURRENT)
    best = min(range(len(board.players)), key=lambda i: board.scores[i].value)
    assert board.players[best] == f"LC-Tsallis-INF {type(bw.LCTsallisINF().tuning).__name__.lower()}"
