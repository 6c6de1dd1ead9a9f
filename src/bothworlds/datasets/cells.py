"""Cells of a stream as listed contexts: k-means on features, or categories that are given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.datasets.rounds import Rounds
from bothworlds.datasets.streams import Stream
from bothworlds.kernels.random import Seed, key_from
from bothworlds.problem import Problem
from bothworlds.problem.checks import frozen_array, whole

STEPS = 100  # of Lloyd's algorithm, at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Centres (S, p) and the shares (S,) of the rows of a sample that lie in their cells.

    >>> cells = Cells.of_sample([[0.0], [0.2], [5.0], [5.2]], count=2, rng=1)
    >>> sorted(cells.centres.round(3).ravel().tolist()), cells.shares.tolist()
    ([0.1, 5.1], [0.5, 0.5])
    >>> bool(cells.number([0.3]) == cells.numbers([[-1.0], [9.0]])[0])
    True
    """

    centres: Floats
    shares: Floats

    @classmethod
    def of_sample(cls, rows: Any, *, count: int = 32, rng: Seed = 0) -> "Cells":
        """Return the cells that k-means finds in rows (n, p); fewer than ``count`` if there are fewer distinct rows.

        Lloyd's algorithm from centres drawn as by k-means++ (Arthur and Vassilvitskii 2007).
        """
        sample = frozen_array(rows, "rows")
        if sample.ndim != 2 or not len(sample):
            raise ValueError(f"rows must have shape (rows, features), with at least one row; got {sample.shape}")
        generator = np.random.default_rng(key_from(rng))
        centres = _first_centres(sample, whole(count, 1, "count"), generator)
        nearest = _nearest(sample, centres)
        for _ in range(STEPS):
            centres = np.array([sample[nearest == i].mean(axis=0) for i in np.unique(nearest)])
            moved = _nearest(sample, centres)
            if np.array_equal(moved, nearest):
                break
            nearest = moved
        kept, counts = np.unique(nearest, return_counts=True)
        return cls(centres=centres[kept], shares=counts / len(sample))

    def number(self, row: Any) -> int:
        """Return the number of the cell of one row (p,): that of the nearest centre."""
        return int(((self.centres - row) ** 2).sum(axis=1).argmin())

    def numbers(self, rows: Any) -> Ints:
        """Return the numbers of the cells of rows (n, p)."""
        return _nearest(np.asarray(rows, dtype=np.float64), self.centres)

    def problem(self, arms: int) -> Problem:
        """Return the problem with the cells as contexts; every arm has its own linear model of a cell's centre."""
        return Problem.from_arm_independent(self.centres, probabilities=self.shares, arms=arms, reward_range=(0, 1))


def listed_by_cells(rows: Stream, cells: Cells) -> Rounds:
    """Return a stream as rounds of a listed problem, with the cells as contexts.

    Cells that come from the stream's own rows have seen them before they are played. For an honest comparison make
    them of rows that are not played, or leave the rounds of the sample out:
    ``listed_by_cells(rows.from_round(500), Cells.of_sample(rows.contexts[:500]))`` has 500 rounds fewer.

    >>> rows = Stream.labelled("toy", contexts=[[0.0], [5.0], [0.2]], labels=[0, 1, 0], arms=2)
    >>> rounds = listed_by_cells(rows.from_round(1), Cells.of_sample(rows.contexts, count=2, rng=1))
    >>> rounds.problem.n_contexts, len(rounds), rounds.best_total()
    (2, 2, 2.0)
    """
    return Rounds(problem=cells.problem(rows.arms), contexts=cells.numbers(rows.contexts), rewards=rows.rewards)


def listed_by_category(rows: Stream, categories: Sequence[str]) -> Rounds:
    """Return a stream as rounds of a listed problem, with a given category of every row as context.

    Every arm has its own reward in every category. The shares of the categories are those of the whole stream.

    >>> rows = Stream.labelled("toy", contexts=[[0.0], [1.0], [2.0]], labels=[1, 0, 1], arms=2)
    >>> rounds = listed_by_category(rows, ["night", "day", "night"])
    >>> rounds.problem.contexts, rounds.contexts.tolist(), rounds.best_total()
    (('night', 'day'), [0, 1, 0], 3.0)
    """
    names = list(categories)
    if len(names) != len(rows):
        raise ValueError(f"categories must have one entry for each of the {len(rows)} rounds; got {len(names)}")
    problem = Problem.from_sample(names, arms=rows.arms, reward_range=(0, 1))
    indices = np.array([problem.context_index(name) for name in names], dtype=np.int64)
    return Rounds(problem=problem, contexts=indices, rewards=rows.rewards)


def _first_centres(rows: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return centres among the rows, each drawn in proportion to the squared distance to those before it."""
    chosen = [int(rng.integers(len(rows)))]
    far = ((rows - rows[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < count and far.max() > 0.0:
        chosen.append(int(rng.choice(len(rows), p=far / far.sum())))
        far = np.minimum(far, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
    return rows[chosen]


def _nearest(rows: Floats, centres: Floats) -> Ints:
    """Return the number of the nearest centre of every row."""
    squares = (centres**2).sum(axis=1) - 2.0 * rows @ centres.T
    return np.asarray(squares.argmin(axis=1), dtype=np.int64)
