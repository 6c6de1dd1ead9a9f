"""The offered pairs of context and arm as flat arrays, with sums and maxima per context."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bothworlds.arrays import Bools, Floats

CHUNK = 2048


class Pairs(NamedTuple):
    """The N offered pairs, ordered by context.

    Of each pair: features ``z`` (N, d), ``context`` (N,), ``mass`` = g(context) (N,). Of each context: its first pair
    ``start`` (S,) and the context distribution ``g`` (S,).
    """

    z: Floats
    context: NDArray[np.intp]
    mass: Floats
    start: NDArray[np.intp]
    g: Floats

    def sums(self, values: Floats) -> Floats:
        """Return the sum over the arms of each context."""
        return np.asarray(np.add.reduceat(values, self.start))

    def maxima(self, values: Floats) -> Floats:
        """Return the maximum over the arms of each context."""
        return np.asarray(np.maximum.reduceat(values, self.start))

    def forms(self, matrix: Floats) -> Floats:
        """Return zᵀAz of every pair."""
        return np.asarray(np.einsum("ij,ij->i", self.z @ matrix, self.z))

    def moment(self, weights: Floats) -> Floats:
        """Return Σ w z zᵀ over the pairs."""
        return np.asarray((self.z * weights[:, None]).T @ self.z)

    def uniform(self) -> Floats:
        """Return the design that plays the offered arms of a context with equal probability."""
        return 1.0 / self.sums(np.ones(len(self.mass)))[self.context]

    def normalised(self, e: Floats) -> Floats:
        """Scale to sum 1 in each context; a context with zero weight is played uniformly."""
        total = self.sums(e)[self.context]
        return np.where(total > 0.0, e / np.where(total > 0.0, total, 1.0), self.uniform())

    def chunks(self) -> Iterator[tuple[slice, slice]]:
        """Yield slices (pairs, contexts) of about CHUNK pairs, cut between contexts."""
        ends = np.append(self.start[1:], len(self.mass))
        first = 0
        while first < len(ends):
            last = max(first + 1, int(np.searchsorted(ends, self.start[first] + CHUNK, side="right")))
            yield slice(int(self.start[first]), int(ends[last - 1])), slice(first, last)
            first = last


def flatten(z: Floats, g: Floats, offered: Bools) -> Pairs:
    """Return the offered pairs; raise ValueError if a context offers no arm."""
    counts = offered.sum(axis=1)
    if counts.min() == 0:
        raise ValueError(f"Context {int(counts.argmin())} offers no arm: every context must offer at least one.")
    context = np.nonzero(offered)[0]
    start = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
    return Pairs(np.ascontiguousarray(z[offered]), context, g[context], start, g)


def unflatten(values: Floats, offered: Bools) -> Floats:
    """Put one number per offered pair back into an (S, K) table, zero elsewhere."""
    table = np.zeros(offered.shape)
    table[offered] = values
    return table
