"""The tables of research/scoreboard.md and docs/explanation/scoreboard.md, written between two markers of each page."""

from pathlib import Path

import numpy as np

from board.table import Board

BEGIN, END = "<!-- tables: begin, made by studies/scoreboard.py -->", "<!-- tables: end -->"
OURS = "LC-Tsallis-INF "  # its tunings are known by their own names


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


def ratio_rows(found: Board) -> list[str]:
    """Return the ratios as a Markdown table: a row for each cell, a column for each player, smallest score first."""
    order = np.argsort([score.value for score in found.scores])
    rows = ["| regime | " + " | ".join(found.players[i].removeprefix(OURS) for i in order) + " |"]
    rows.append("|---" * (len(order) + 1) + "|")
    for column, name in enumerate(found.cells):
        ratios = " | ".join(f"{found.ratios[i, column]:.2f}" for i in order)
        rows.append(f"| {', '.join(str(part) for part in name)} | {ratios} |")
    scores = " | ".join(f"**{found.scores[i].value:.2f}**" for i in order)
    return [*rows, f"| **score**, the largest | {scores} |"]


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
    """Put the parts between the markers."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n\n{END}{after}", encoding="utf-8")
