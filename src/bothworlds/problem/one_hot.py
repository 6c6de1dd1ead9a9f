"""One-hot rows: every row has one entry, in a column of its own.

In a tabular problem, where every pair of a context and an arm has a parameter of its own, coordinates have this form.
Least squares, orthogonal complements and whitening are then selections of columns, without matrix decompositions.
"""

from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Bools, Floats, Ints
from bothworlds.problem.block_features import undo_blocks

LARGEST_CONDITION = 1e6  # of context features; beyond it, tabular coordinates are less exact than those of the SVD


class OneHot(NamedTuple):
    """The column of each row's only entry, and its value."""

    columns: Ints
    values: Floats

    def solve(self, right: Floats, n_columns: int) -> Floats:
        """Return the smallest X, shape (columns, ...), with rows @ X = right.

        >>> one_hot(np.array([[0.0, 2.0, 0.0]])).solve(np.array([3.0]), 3).tolist()
        [0.0, 1.5, 0.0]
        """
        solution = np.zeros((n_columns, *right.shape[1:]))
        solution[self.columns] = (right.T / self.values).T
        return solution

    def axes(self, n_columns: int) -> Floats:
        """Return an orthonormal basis (columns, rows) of the row space: unit vectors in ascending order."""
        return np.ascontiguousarray(np.eye(n_columns)[:, np.sort(self.columns)])

    def other_axes(self, n_columns: int) -> Floats:
        """Return an orthonormal basis of the orthogonal complement of the row space."""
        is_other = np.ones(n_columns, dtype=bool)
        is_other[self.columns] = False
        return np.ascontiguousarray(np.eye(n_columns)[:, is_other])


def one_hot(rows: Floats) -> OneHot | None:
    """Return the structure of one-hot rows; None if a row has no entry or several, or if two rows share a column.

    >>> one_hot(np.array([[0.0, 2.0], [3.0, 0.0]]))
    OneHot(columns=array([1, 0]), values=array([2., 3.]))
    >>> one_hot(np.array([[0.0, 2.0], [0.0, 1.0]])) is None
    True
    """
    if len(rows) > rows.shape[1] or np.count_nonzero(rows) != len(rows):
        return None
    index, columns = np.nonzero(rows)
    if not np.array_equal(index, np.arange(len(rows))) or len(np.unique(columns)) < len(columns):
        return None
    return OneHot(columns, rows[index, columns])


def tabular_basis(features: Floats, available: Bools) -> Floats | None:
    """Return a basis B with phi @ B = sqrt(n) times a unit vector for each of n offered pairs; None if there is none.

    It exists if every arm has its own parameters on the features of the context, and these are linearly independent:
    then every pair has a parameter of its own. Columns are in the order of the offered pairs.
    """
    rows = undo_blocks(features)
    if rows is None or len(rows) > rows.shape[1]:
        return None
    scale = np.abs(rows).max(axis=0)
    if not scale.any() or scale[scale > 0.0].min() < 1e-150:
        return None
    scale = np.where(scale > 0.0, scale, 1.0)
    values = np.linalg.svd(rows / scale, compute_uv=False)
    if values[-1] * LARGEST_CONDITION < values[0]:
        return None
    n, d = int(available.sum()), rows.shape[1]
    column = np.full(available.shape, -1)
    column[available] = np.arange(n)
    basis = np.zeros((features.shape[2], n))
    for offered, arms in _arms_by_offer(available):
        inverse = np.linalg.pinv(rows[offered] / scale) / scale[:, None]  # (d, offered contexts)
        places = arms[:, None] * d + np.arange(d)
        basis[places[:, :, None], column[np.ix_(offered, arms)].T[:, None, :]] = np.sqrt(n) * inverse
    return basis


def _arms_by_offer(available: Bools) -> list[tuple[Ints, Ints]]:
    """Return the arms that are offered in the same contexts: indices of contexts, and indices of arms."""
    offers, group = np.unique(available, axis=1, return_inverse=True)
    contexts = (np.flatnonzero(offers[:, k]) for k in range(offers.shape[1]))
    groups = [(rows, np.flatnonzero(group.ravel() == k)) for k, rows in enumerate(contexts)]
    return [(rows, arms) for rows, arms in groups if len(rows)]
