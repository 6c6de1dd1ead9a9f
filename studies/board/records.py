"""Results of the scoreboard as lines of text: one line a cell and player, appended as soon as it is played."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import bothworlds as bw
from board.worlds import FEEDBACK, LATE_FROM, Cell, world
from bothworlds.studies.progress import Watch, shown


class Conditions(NamedTuple):
    """What all lines of a file have in common."""

    family: str
    horizon: int
    replications: int


class Line(NamedTuple):
    """Regret at T of one player in one cell: mean over replications, and its standard error.

    In the regimes of `board.worlds.CHANGING` it is dynamic regret.
    """

    regime: str
    contexts: int
    arms: int
    dimension: int
    number: int
    player: str
    learnable: int  # d of the world: clicks and moving levels have their own
    regret: float
    error: float

    @property
    def cell(self) -> Cell:
        """The world it was played in."""
        return Cell(self.regime, (self.contexts, self.arms, self.dimension), self.number)


Lines = dict[tuple[Cell, str], Line]


def read(path: Path, conditions: Conditions) -> Lines:
    """Read what is there already; refuse a file of other conditions."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        if head != _head(conditions):
            raise ValueError(f"{path} was made under other conditions: {', '.join(head)}")
        next(rows, None)
        lines = [_line(row) for row in rows]
    return {(line.cell, line.player): line for line in lines}


def play(
    path: Path, conditions: Conditions, cells: Iterable[Cell], players: dict[str, Any], *, threads: int, quiet: bool
) -> Lines:
    """Play what is missing, and return the lines of these cells and players."""
    done = read(path, conditions)
    wanted = [(cell, label) for cell in cells for label in players]
    missing = [key for key in wanted if key not in done]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _append(path, [_head(conditions), Line._fields])
    rounds = conditions.horizon * conditions.replications
    with shown(rounds * len(missing), len(missing), quiet=quiet) as watch:
        for cell, label in missing:
            watch.begin(f"{cell.regime}, {cell.size}, {label}", 1.0)
            line = play_one(cell, label, players[label], conditions, threads, watch)
            _append(path, [(*line[:-2], f"{line.regret:.4f}", f"{line.error:.4f}")])
            done[cell, label] = line
    return {key: done[key] for key in wanted}


def kept(path: Path, conditions: Conditions, cells: Iterable[Cell], labels: Iterable[str]) -> Lines:
    """Return the lines of players that are gone, of those that have played all of these cells."""
    done, worlds = read(path, conditions), list(cells)
    whole = [label for label in labels if all((cell, label) in done for cell in worlds)]
    return {(cell, label): done[cell, label] for label in whole for cell in worlds}


def play_one(cell: Cell, label: str, player: Any, conditions: Conditions, threads: int, watch: Watch) -> Line:
    """Play one player in one cell; the seed is the number of the instance."""
    made = world(cell, conditions.family, conditions.horizon)
    batch, delay = FEEDBACK.get(cell.regime, (1, 0)) if conditions.horizon >= LATE_FROM else (1, 0)
    results = bw.simulate(
        made,
        {label: player},
        horizon=conditions.horizon,
        replications=conditions.replications,
        rng=cell.number,
        checkpoints=[conditions.horizon],
        threads=threads,
        progress=watch.advance,
        batch=batch,
        delay=delay,
    )
    run = results.judged()[label]
    numbers = (made.problem.dimension, float(run.regret[-1]), float(run.standard_error[-1]))
    return Line(cell.regime, *cell.size, cell.number, label, *numbers)


def _head(conditions: Conditions) -> list[str]:
    return [f"{name}={value}" for name, value in conditions._asdict().items()]


def _line(row: list[str]) -> Line:
    kinds = (str, int, int, int, int, str, int, float, float)
    return Line(*(kind(word) for kind, word in zip(kinds, row, strict=True)))


def _append(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
