"""Tables of the scoreboard: ratios of players in cells that are averages over sizes and instances."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from board.records import Lines
from board.worlds import Cell
from bothworlds.report.scores import ratios, slack

GRAINS: dict[str, Callable[[Cell], Any]] = {
    "regime": lambda cell: (cell.regime,),
    "regime and size": lambda cell: (cell.regime, cell.size),
    "single instance": lambda cell: cell,
}


class Score(NamedTuple):
    """The largest ratio of an algorithm, and the number of the cell where it has it."""

    value: float
    cell: int


class Board(NamedTuple):
    """Regrets, their standard errors and ratios (players, cells), cells being averages over some worlds."""

    players: list[str]
    cells: list[Any]
    regrets: np.ndarray
    errors: np.ndarray
    ratios: np.ndarray
    scores: list[Score]


def board(lines: Lines, players: Sequence[str], horizon: int, *, grain: str) -> Board:
    """Average lines over the worlds of each cell and rate the players against each other."""
    worlds = list(dict.fromkeys(cell for cell, _ in lines))
    key = GRAINS[grain]
    names = list(dict.fromkeys(key(cell) for cell in worlds))
    groups = [[cell for cell in worlds if key(cell) == name] for name in names]
    regrets, errors = _means(lines, players, groups)
    slacks = np.array([np.mean([slack(lines[c, players[0]].learnable, horizon) for c in group]) for group in groups])
    table = ratios(regrets, slacks)
    return Board(list(players), names, regrets, errors, table, worst_cells(table))


def worst_cells(table: np.ndarray) -> list[Score]:
    """Return the score of every algorithm from its ratios (algorithms, cells).

    >>> worst_cells(np.array([[1.0, 1.2], [2.0, 1.0]]))
    [Score(value=1.2, cell=1), Score(value=2.0, cell=0)]
    """
    return [Score(float(row.max()), int(row.argmax())) for row in table]


def _means(lines: Lines, players: Iterable[str], groups: Sequence[Sequence[Cell]]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean regrets (players, groups) and the standard errors of these means, worlds being as they are."""
    found = [[[lines[cell, player] for cell in group] for group in groups] for player in players]
    regrets = [[np.mean([line.regret for line in group]) for group in row] for row in found]
    errors = [[np.sqrt(np.sum([line.error**2 for line in group])) / len(group) for group in row] for row in found]
    return np.array(regrets), np.array(errors)


def plain(found: Board) -> str:
    """Return the board as text: one row a player, mean regret and ratio in every cell, the score first."""
    width = max(len(name) for name in found.players)
    heads = [", ".join(str(part) for part in name)[:16] for name in found.cells]
    rows = [" ".join([f"{'':>{width}}   score", *(f"{head:>17}" for head in heads)])]
    for i in np.argsort([score.value for score in found.scores]):
        parts = [
            f"{regret:>8.1f} ({ratio:>6.2f})" for regret, ratio in zip(found.regrets[i], found.ratios[i], strict=True)
        ]
        rows.append(" ".join([f"{found.players[i]:>{width}} {found.scores[i].value:>7.2f}", *parts]))
    return "\n".join(rows)
