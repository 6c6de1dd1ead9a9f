"""Upper bounds on sums over rounds of non-increasing terms, block by block, for many horizons at once."""

from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats, Ints

RESOLUTION = 200  # blocks are single rounds up to here; later ones have at most 1/RESOLUTION of the rounds before them


class Blocks(NamedTuple):
    """Blocks of consecutive rounds: first rounds, lengths, and the index of the last block of each horizon."""

    first: Floats
    length: Floats
    ends: Ints

    def sums(self, terms: Floats) -> Floats:
        """Bound sum_{t<=T} f(t) for every horizon T, f non-increasing; ``terms`` is f at the first rounds (n, ...)."""
        lengths = self.length.reshape(-1, *([1] * (terms.ndim - 1)))
        return np.asarray(np.cumsum(terms * lengths, axis=0)[self.ends])


def blocks_until(horizons: Floats) -> Blocks:
    """Divide the rounds up to the longest horizon so that every horizon ends a block.

    >>> blocks = blocks_until(np.array([3.0, 100_000.0]))
    >>> exact = np.cumsum(1.0 / np.sqrt(np.arange(1, 100_001)))[[2, 99_999]]
    >>> (blocks.sums(1.0 / np.sqrt(blocks.first)) / exact).round(3).tolist()
    [1.0, 1.001]
    """
    longest = float(horizons.max())
    count = int(np.ceil(np.log(max(longest / RESOLUTION, 1.0)) * RESOLUTION)) + 2
    grown = np.floor(RESOLUTION * np.exp(np.arange(count) / RESOLUTION))
    edges = np.unique(np.concatenate([np.arange(RESOLUTION + 1.0), grown, horizons]))
    edges = edges[edges <= longest]
    ends = np.searchsorted(edges, horizons) - 1
    return Blocks(edges[:-1] + 1.0, np.diff(edges), np.asarray(ends, dtype=np.int64))
