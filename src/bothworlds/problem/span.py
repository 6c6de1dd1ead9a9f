"""Well-conditioned coordinates for the features: the span they fill, and what it leaves out.

Only inner products <phi(a, x), theta> matter, so the features may be replaced by their coordinates in any basis of
their span. Columns are first scaled to unit norm (a badly scaled feature would be dropped otherwise); the basis
makes the plain average of z z^T over all offered (context, arm) cells the identity.
"""

from dataclasses import dataclass

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats

RELATIVE_RANK = 1e-10


@dataclass(frozen=True)
class Span:
    """z = phi @ basis: rank-many coordinates of the features, and sentences on what was dropped."""

    basis: Floats
    coordinates: Floats
    notes: tuple[str, ...]

    @property
    def rank(self) -> int:
        """The dimension d that the algorithms see."""
        return int(self.basis.shape[1])


def span_of(features: Floats, available: Bools) -> Span:
    """Find the span of the offered features.

    >>> phi = np.array([[[1.0, 2.0], [2.0, 4.0]]])
    >>> span = span_of(phi, np.ones((1, 2), dtype=bool))
    >>> span.rank, span.notes
    (1, ('the 2 features span 1 dimension: 1 linearly dependent direction was dropped',))
    """
    offered = features[available]
    largest = np.abs(offered).max(axis=0)
    scaled = offered / np.where(largest > 0.0, largest, 1.0)
    norms = np.sqrt((scaled**2).sum(axis=0))
    scale = np.where(norms > 0.0, norms, 1.0)
    left, values, rows = np.linalg.svd(scaled / scale, full_matrices=False)
    rank = int((values > RELATIVE_RANK * values.max(initial=0.0)).sum())
    if rank == 0:
        raise ValueError("all features of all offered arms are zero: there is nothing to learn from")
    with np.errstate(over="ignore"):
        outer = 1.0 / (np.where(largest > 0.0, largest, 1.0) * scale)
    if not np.isfinite(outer).all():
        raise ValueError("a feature column has entries below 1e-300 only: rescale it")
    basis = outer[:, None] * rows[:rank].T * (np.sqrt(len(offered)) / values[:rank])
    # The singular vectors, not features @ basis: orthonormal to rounding however badly conditioned the basis is.
    coordinates = np.zeros((*available.shape, rank))
    coordinates[available] = left[:, :rank] * np.sqrt(len(offered))
    return Span(basis, coordinates, _notes(features.shape[2], rank, largest))


def _notes(d: int, rank: int, largest: Floats) -> tuple[str, ...]:
    """Say which directions do not appear in the coordinates."""
    notes = []
    zero = np.flatnonzero(largest == 0.0).tolist()
    if zero:
        notes.append(f"feature columns {zero} are zero for every offered arm and were dropped")
    dependent = d - len(zero) - rank
    if dependent:
        word, dimension = ("direction was", "dimension" if rank == 1 else "dimensions")
        word = word if dependent == 1 else "directions were"
        notes.append(f"the {d} features span {rank} {dimension}: {dependent} linearly dependent {word} dropped")
    return tuple(notes)


def contains_constant(features: Floats, available: Bools) -> bool:
    """Tell whether some theta gives <phi(a, x), theta> = 1 for every offered arm in every context."""
    columns = features[available]
    if ((columns == columns[0]).all(axis=0) & (columns[0] != 0.0)).any():
        return True
    z = span_of(features, available).coordinates[available]
    theta = z.mean(axis=0)  # the average of z z^T is the identity, so this is least squares
    return bool(np.abs(z @ theta - 1.0).max() <= 1e-8)
