"""The linear map between the coordinates of two problems that share pairs of contexts and arms.

Only inner products matter. So a matrix A with z_old = A z_new on every pair that both problems offer transfers what was
learned in the old coordinates: <z_old, theta> = <z_new, A^T theta>. Shared pairs do not determine A in all directions,
for example in the coordinate of a new arm. There A is chosen so that a new pair gets the mean of the other pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bothworlds.arrays import Bools, Floats, Ints
from bothworlds.kernels.contract import Machine
from bothworlds.problem import Problem
from bothworlds.problem.one_hot import one_hot

EXACT = 1e-7  # relative to the largest coordinate: far above rounding, far below any feature that matters
RANK = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Pairs:
    """The pairs that a problem offers: names, the mask ``offered``, and coordinates z, shape (contexts, arms, d)."""

    contexts: tuple[str, ...]
    arms: tuple[str, ...]
    offered: Bools
    z: Floats

    @cached_property
    def places(self) -> tuple[dict[str, int], dict[str, int]]:
        """Indices of contexts and arms by name."""
        return {name: i for i, name in enumerate(self.contexts)}, {name: i for i, name in enumerate(self.arms)}


def pairs_of(problem: Problem, machine: Machine) -> Pairs:
    """Return the pairs that a problem offers, in the coordinates of a machine."""
    return Pairs(contexts=problem.contexts, arms=problem.arms, offered=problem.available, z=machine.known.z)


@dataclass(frozen=True, eq=False)
class CoordinateChange:
    """A change of coordinates: z_old = matrix z_new on shared pairs.

    ``unknown`` is an orthonormal basis (d_new, m) of the directions about which nothing was learned. ``open`` is one of
    those among them that are orthogonal to all shared pairs. ``new`` is the mask (contexts, arms) of new pairs.
    """

    matrix: Floats
    unknown: Floats
    open: Floats
    new: Bools

    @property
    def is_identity(self) -> bool:
        """Whether the matrix is the identity, so that everything learned stays bit for bit."""
        d, m = self.matrix.shape
        return d == m and np.array_equal(self.matrix, np.eye(d))


def coordinate_change(old: Pairs, new: Pairs) -> CoordinateChange:
    """Return the change of coordinates between two problems; raise ValueError if there is none.

    >>> before = Pairs(contexts=("x",), arms=("a", "b"), offered=np.ones((1, 2), bool), z=np.eye(2)[None])
    >>> after = Pairs(contexts=("x",), arms=("b", "a", "c"), offered=np.ones((1, 3), bool), z=np.eye(3)[None])
    >>> coordinate_change(before, after).matrix.round(9).tolist()  # the new arm gets the mean of a and b
    [[0.0, 1.0, 0.5], [1.0, 0.0, 0.5]]
    """
    new_xs, new_arms = _indices(old.contexts, new.places[0]), _indices(old.arms, new.places[1])
    shared = old.offered & (new_xs >= 0)[:, None] & (new_arms >= 0)[None, :]
    is_new = new.offered.copy()
    xs, arms = np.nonzero(shared)
    both = new.offered[new_xs[xs], new_arms[arms]]
    xs, arms = xs[both], arms[both]
    if not len(xs):
        raise ValueError(
            "the two problems share no pair of a context and an arm by name, so nothing that was learned can be "
            "transferred: start a new policy"
        )
    is_new[new_xs[xs], new_arms[arms]] = False
    before, after = old.z[xs, arms], new.z[new_xs[xs], new_arms[arms]]
    if before.shape == after.shape and np.array_equal(before, after) and _rank(after) == after.shape[1]:
        empty = np.zeros((after.shape[1], 0))
        return CoordinateChange(np.eye(after.shape[1]), empty, empty, is_new)
    determined, spanned = _least_squares_map(after, before)
    _refuse_inexact(determined, before, after, old, (xs, arms))
    open_part = _complement(spanned)
    matrix = determined + _open_extension(determined, open_part, old, new, is_new).T
    return CoordinateChange(matrix, _complement(_row_space(determined)), open_part, is_new)


def _indices(names: Sequence[str], places: dict[str, int]) -> Ints:
    """Return the indices of names in another list, -1 for names that it lacks."""
    return np.array([places.get(name, -1) for name in names])


def _rank(rows: Floats) -> int:
    if one_hot(rows) is not None:
        return len(rows)
    values = np.linalg.svd(rows, compute_uv=False)
    return int((values > RANK * values.max(initial=0.0)).sum())


def _least_squares_map(after: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Return the smallest least-squares solution A of before = A after, and a basis (d, rank) of the span of after."""
    axes = one_hot(after)
    if axes is not None:
        return axes.solve(before, after.shape[1]).T, axes.axes(after.shape[1])
    left, values, rows = np.linalg.svd(after, full_matrices=False)
    rank = int((values > RANK * values.max(initial=0.0)).sum())
    spanned = rows[:rank].T
    solved = spanned @ ((left[:, :rank].T @ before) / values[:rank, None])
    return np.asarray(solved.T), spanned


def least_squares(rows: Floats, right: Floats) -> Floats:
    """Return the smallest least-squares solution X of rows @ X = right."""
    axes = one_hot(rows)
    if axes is not None:
        return axes.solve(right, rows.shape[1])
    solution, *_ = np.linalg.lstsq(rows, right, rcond=RANK)
    return np.asarray(solution)


def _row_space(matrix: Floats) -> Floats:
    """Return an orthonormal basis (d, rank) of the directions that a matrix does not map to zero."""
    axes = one_hot(matrix[matrix.any(axis=1)])
    if axes is not None:
        return axes.axes(matrix.shape[1])
    _, values, rows = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(rows[values > RANK * values.max(initial=0.0)].T)


def _complement(basis: Floats) -> Floats:
    """Return an orthonormal basis of the orthogonal complement of an orthonormal basis (d, rank)."""
    d, rank = basis.shape
    axes = one_hot(basis.T)
    if axes is not None:
        return axes.other_axes(d)
    left, _, _ = np.linalg.svd(basis, full_matrices=True)
    return np.asarray(left[:, rank:]) if rank else np.eye(d)


def _refuse_inexact(matrix: Floats, before: Floats, after: Floats, old: Pairs, places: tuple[Ints, Ints]) -> None:
    """Refuse features of shared pairs that do not determine the old features linearly."""
    errors = np.abs(after @ matrix.T - before).max(axis=1) / np.abs(before).max()
    worst = int(errors.argmax())
    if errors[worst] > EXACT:
        x, a = old.contexts[places[0][worst]], old.arms[places[1][worst]]
        raise ValueError(
            f"the old features of arm {a!r} in context {x!r} are not a linear function of the new ones, as must hold "
            f"for all shared pairs (off by {errors[worst]:.2g} of the largest): nothing was learned about such "
            "features. Give an arm that has changed a new name, or start a new policy with Prior.from_rows"
        )


def _open_extension(determined: Floats, open_part: Floats, old: Pairs, new: Pairs, is_new: Bools) -> Floats:
    """Return the term to add to A^T so that, in open directions, new pairs get the mean of the others."""
    d_old, d_new = determined.shape
    xs, arms = np.nonzero(is_new)
    if not open_part.shape[1] or not len(xs):
        return np.zeros((d_new, d_old))
    z = new.z[xs, arms]
    residual = means_for(old, new, xs, arms) - z @ determined.T
    return np.asarray(open_part @ least_squares(z @ open_part, residual))


def means_for(old: Pairs, new: Pairs, xs: Ints, arms: Ints) -> Floats:
    """Return for each new pair the mean of old pairs: of its context, else of its arm, else of all."""
    by_context, by_arm = _indices(new.contexts, old.places[0]), _indices(new.arms, old.places[1])
    weight = old.offered.astype(np.float64)
    of_context = np.einsum("xa,xad->xd", weight, old.z) / weight.sum(axis=1)[:, None]
    counts = weight.sum(axis=0)
    of_arm = np.einsum("xa,xad->ad", weight, old.z) / np.where(counts > 0.0, counts, 1.0)[:, None]
    of_all = np.einsum("xa,xad->d", weight, old.z) / weight.sum()
    means = np.repeat(of_all[None], len(xs), axis=0)
    x, a = by_context[xs], by_arm[arms]
    has_arm = (a >= 0) & (counts[a] > 0.0)
    means[has_arm] = of_arm[a[has_arm]]
    means[x >= 0] = of_context[x[x >= 0]]
    return means
