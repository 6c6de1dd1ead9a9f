"""The offered pairs of context and arm as a flat list, and sums over the pairs of a context."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bothworlds.kernels.arrays import Bools, Floats

CHUNK = 2048


class Pairs(NamedTuple):
    """The N offered pairs, by context: features, context, g(context); first pair of each context, g."""

    z: Floats
    context: NDArray[np.intp]
    mass: Floats
    start: NDArray[np.intp]
    g: Floats

    def sums(self, values: Floats) -> Floats:
        """Sum over the arms of each context."""
        return np.asarray(np.add.reduceat(values, self.start))

    def maxima(self, values: Floats) -> Floats:
        """Take the largest over the arms of each context."""
        return np.asarray(np.maximum.reduceat(values, self.start))

    def forms(self, matrix: Floats) -> Floats:
        """zᵀAz of every pair."""
        return np.asarray(np.einsum("ij,ij->i", self.z @ matrix, self.z))

    def moment(self, weights: Floats) -> Floats:
        """Σ w z zᵀ over the pairs."""
        return np.asarray((self.z * weights[:, None]).T @ self.z)

    def uniform(self) -> Floats:
        """Return the design that plays the arms of a context alike."""
        return 1.0 / self.sums(np.ones(len(self.mass)))[self.context]

    def normalised(self, e: Floats) -> Floats:
        """Scale to sum one in each context; a context without any weight is played uniformly."""
        total = self.sums(e)[self.context]
        return np.where(total > 0.0, e / np.where(total > 0.0, total, 1.0), self.uniform())

    def chunks(self) -> Iterator[tuple[slice, slice]]:
        """Cut at borders of contexts into (pairs, contexts) of about CHUNK pairs."""
        ends = np.append(self.start[1:], len(self.mass))
        first = 0
        while first < len(ends):
            last = max(first + 1, int(np.searchsorted(ends, self.start[first] + CHUNK, side="right")))
            yield slice(int(self.start[first]), int(ends[last - 1])), slice(first, last)
            first = last


def flatten(z: Floats, g: Floats, offered: Bools) -> Pairs:
    """List the offered pairs; every context must offer an arm."""
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
