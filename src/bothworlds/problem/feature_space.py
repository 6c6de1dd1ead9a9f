"""The span of the features: rank, coordinates, whitening, and whether it contains a constant."""

from dataclasses import dataclass

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.problem.block_features import undo_blocks
from bothworlds.problem.one_hot import tabular_basis


def _has_constant(phi: Floats, offered: Bools) -> bool:
    """Return whether features can express a constant; of block features, a single block is checked first."""
    original = undo_blocks(phi)
    in_block = original is not None and contains_constant(original[:, None, :], np.ones((len(phi), 1), dtype=bool))
    return in_block or contains_constant(phi, offered)


def with_constant(phi: Floats, offered: Bools, limits: tuple[float, float] | None) -> tuple[Floats, tuple[str, ...]]:
    """Add a constant feature if the shift from rewards to losses needs one; return features and notes."""
    if limits is None or limits[0] + limits[1] == 0.0 or _has_constant(phi, offered):
        return phi, ()
    wider = np.concatenate([phi, np.ones((*phi.shape[:2], 1))], axis=2)
    wider.setflags(write=False)
    note = (
        f"a constant feature was added as column {phi.shape[2]}: rewards in [{limits[0]:g}, {limits[1]:g}] "
        "become losses in [-1, 1] by a shift, which the given features cannot express"
    )
    return wider, (note,)


PASSES = 3  # each pass reduces the rounding error of the previous one


def whitening(moment: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues of M in ascending order, and W with W^T M W = I, finite where they are positive.

    >>> values, whitener = whitening(np.diag([9.0, 4.0]))
    >>> values.tolist(), abs(whitener).round(3).tolist()
    ([4.0, 9.0], [[0.0, 0.333], [0.5, 0.0]])
    """
    values, vectors = np.linalg.eigh(moment)
    with np.errstate(divide="ignore", invalid="ignore"):
        return values, vectors / np.sqrt(values)


RELATIVE_RANK = 1e-10


@dataclass(frozen=True)
class Span:
    """Coordinates z = phi @ basis of the features, as many as the rank, and notes on dropped directions."""

    basis: Floats
    coordinates: Floats
    notes: tuple[str, ...]

    @property
    def rank(self) -> int:
        """The dimension d for the algorithms."""
        return int(self.basis.shape[1])


def span_of(features: Floats, available: Bools) -> Span:
    """Return the span of the offered features; raise ValueError if all are zero.

    >>> phi = np.array([[[1.0, 2.0], [2.0, 4.0]]])
    >>> span = span_of(phi, np.ones((1, 2), dtype=bool))
    >>> span.rank, span.notes
    (1, ('the 2 features span 1 dimension: 1 linearly dependent direction was dropped',))
    """
    offered = features[available]
    largest = np.abs(offered).max(axis=0)
    tabular = tabular_basis(features, available)
    if tabular is not None:
        return _tabular_span(tabular, available, largest)
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
    # Singular vectors, unlike features @ basis, are orthonormal up to rounding for ill-conditioned bases too.
    coordinates = np.zeros((*available.shape, rank))
    coordinates[available] = left[:, :rank] * np.sqrt(len(offered))
    return Span(basis, coordinates, _notes(features.shape[2], rank, largest))


def _tabular_span(basis: Floats, available: Bools, largest: Floats) -> Span:
    """Return the span of a tabular problem, in which every offered pair has a coordinate of its own."""
    n = basis.shape[1]
    coordinates = np.zeros((*available.shape, n))
    coordinates[available] = np.sqrt(n) * np.eye(n)
    return Span(basis, coordinates, _notes(len(basis), n, largest))


def _notes(d: int, rank: int, largest: Floats) -> tuple[str, ...]:
    """Return notes on the directions that are not in the coordinates."""
    notes = []
    zero = np.flatnonzero(largest == 0.0).tolist()
    if zero:
        notes.append(f"feature columns {zero} are zero for every offered arm and were dropped")
    dependent = d - len(zero) - rank
    if dependent:
        dimensions = "dimension" if rank == 1 else "dimensions"
        directions = "direction was" if dependent == 1 else "directions were"
        notes.append(f"the {d} features span {rank} {dimensions}: {dependent} linearly dependent {directions} dropped")
    return tuple(notes)


def contains_constant(features: Floats, available: Bools) -> bool:
    """Return whether some theta gives <phi(a, x), theta> = 1 for every offered arm in every context."""
    columns = features[available]
    if ((columns == columns[0]).all(axis=0) & (columns[0] != 0.0)).any():
        return True
    z = span_of(features, available).coordinates[available]
    theta = z.mean(axis=0)  # the average of z z^T is the identity, so this is least squares
    return bool(np.abs(z @ theta - 1.0).max() <= 1e-8)
