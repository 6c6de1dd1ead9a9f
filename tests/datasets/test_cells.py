"""A stream on a list of contexts: cells by k-means, categories, and policies of the library that play them."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.datasets import Cells, Stream, listed_by_category, listed_by_cells

CORNERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def cloud(rounds: int, seed: int = 1) -> Stream:
    """Points around four corners; the arm is the corner's parity."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(4, size=rounds)
    points = CORNERS[corner] + 0.1 * rng.normal(size=(rounds, 2))
    return Stream.labelled("cloud", contexts=points, labels=corner % 2, arms=2)


def test_kmeans_finds_the_corners() -> None:
    rows = cloud(400)
    cells = Cells.of_sample(rows.contexts, count=4, rng=2)
    assert sorted(cells.centres.round().tolist()) == sorted(CORNERS.tolist())
    numbers = cells.numbers(rows.contexts)
    assert numbers.tolist() == [cells.number(row) for row in rows.contexts]
    assert cells.shares == pytest.approx(np.bincount(numbers) / 400)
    for i, centre in enumerate(cells.centres):  # a fixed point of Lloyd's algorithm
        assert centre == pytest.approx(rows.contexts[numbers == i].mean(axis=0))


def test_fewer_distinct_rows_than_cells() -> None:
    cells = Cells.of_sample([[1.0], [1.0], [2.0]], count=5, rng=1)
    assert sorted(cells.centres.ravel().tolist()) == [1.0, 2.0]
    assert sorted(cells.shares.tolist()) == pytest.approx([1 / 3, 2 / 3])


def test_wrong_rows_are_refused() -> None:
    for rows in ([], [1.0, 2.0]):
        with pytest.raises(ValueError, match="rows must have shape"):
            Cells.of_sample(rows)
    with pytest.raises(ValueError, match="count"):
        Cells.of_sample([[1.0]], count=0)
    with pytest.raises(ValueError, match="one entry for each of the 3 rounds; got 1"):
        listed_by_category(cloud(3), ["all"])


def test_policies_of_the_library_play_the_listed_rounds() -> None:
    rows = cloud(700)
    played = rows.from_round(100)
    rounds = listed_by_cells(played, Cells.of_sample(rows.contexts[:100], count=4, rng=2))
    assert (len(rounds), rounds.problem.n_contexts, rounds.problem.n_arms) == (600, 4, 2)
    assert rounds.rewards.tolist() == played.rewards.tolist()
    assert rounds.best_total() == 600.0
    rehearsal = bw.rehearse(rounds, bw.LinUCB(width=0.5), rng=1)
    assert rehearsal.rewards.mean() > 0.9


def test_given_categories_are_contexts() -> None:
    rows = cloud(50)
    rounds = listed_by_category(rows, ["even" if label == 0 else "odd" for label in rows.labels])
    assert set(rounds.problem.contexts) == {"even", "odd"}
    assert rounds.best_total() == 50.0
