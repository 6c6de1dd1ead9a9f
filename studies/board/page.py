"""The tables of docs/scoreboard.md, written between two marks so that the words around them stay."""

from pathlib import Path

import numpy as np

from board.table import Board

BEGIN, END = "<!-- tables: begin, made by studies/scoreboard.py -->", "<!-- tables: end -->"


def rows_of(found: Board) -> list[str]:
    """Return the board as a Markdown table, smallest score first: regret with its 95 % interval, and the ratio."""
    heads = [", ".join(str(part) for part in name) for name in found.cells]
    rows = ["| player | score | " + " | ".join(heads) + " |", "|---" * (len(heads) + 2) + "|"]
    for i in np.argsort([score.value for score in found.scores]):
        score = f"**{found.scores[i].value:.2f}**"
        cells = [
            f"{regret:,.0f} ± {1.96 * error:,.0f}: {ratio:.2f}"
            for regret, error, ratio in zip(found.regrets[i], found.errors[i], found.ratios[i], strict=True)
        ]
        rows.append(f"| {found.players[i]} | {score} | " + " | ".join(cells) + " |")
    return rows


def worst_rows(boards: dict[str, Board]) -> list[str]:
    """Return every player's score for cells of several sizes, with the cell where it is worst."""
    rows = ["| player | " + " | ".join(f"by {grain}" for grain in boards) + " |", "|---" * (len(boards) + 1) + "|"]
    first = next(iter(boards.values()))
    for i in np.argsort([score.value for score in first.scores]):
        words = []
        for found in boards.values():
            score = found.scores[i]
            words.append(f"{score.value:.2f} ({', '.join(str(part) for part in found.cells[score.cell])})")
        rows.append(f"| {first.players[i]} | " + " | ".join(words) + " |")
    return rows


def write(path: Path, parts: list[str]) -> None:
    """Put the parts between the marks."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n\n{END}{after}", encoding="utf-8")
