"""Blocks of coordinates that have nothing to do with each other, as contexts in problems without shared features."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Bools, Floats, Ints


class Block(NamedTuple):
    """Indices of coordinates that belong together: before a change and after it."""

    old: Ints
    new: Ints


def blocks_of(gram: Floats, matrix: Floats, unknown: Floats) -> list[Block]:
    """Return the finest blocks in which a regression can be moved, each with new coordinates.

    ``gram`` is the Gram matrix before, ``matrix`` (before, after) and ``unknown`` (after, directions) are those of a
    `CoordinateChange`. No entry of them connects two blocks.

    >>> [block.new.tolist() for block in blocks_of(np.eye(2), np.array([[1.0, 0, 1], [0, 1, 0]]), np.zeros((3, 0)))]
    [[0, 2], [1]]
    """
    before, after = matrix.shape
    both = np.zeros((before + after,) * 2, dtype=bool)
    both[:before, :before] = gram != 0.0
    both[:before, before:] = matrix != 0.0
    both[before:, :before] = both[:before, before:].T
    both[before:, before:] = _connected(unknown != 0.0)
    blocks = [Block(part[part < before], part[part >= before] - before) for part in _components(both)]
    return [block for block in blocks if len(block.new)]


def _connected(directions: Bools) -> Bools:
    """Return which rows have an entry in the same column: each row of a column with the first one is enough."""
    count = len(directions)
    together = np.zeros((count, count), dtype=bool)
    rows, columns = np.nonzero(directions)
    if len(rows):
        first = directions.argmax(axis=0)[columns]
        together[rows, first] = together[first, rows] = True
    return together


def _components(linked: Bools) -> Iterator[Ints]:
    """Yield the connected components of a symmetric relation, each in ascending order."""
    left = np.ones(len(linked), dtype=bool)
    while left.any():
        reached = np.zeros(len(linked), dtype=bool)
        edge = np.array([int(left.argmax())])
        while len(edge):
            reached[edge] = True
            edge = np.flatnonzero(linked[edge].any(axis=0) & ~reached)
        left &= ~reached
        yield np.flatnonzero(reached)
