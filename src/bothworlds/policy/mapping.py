"""From the coordinates of one problem to those of another that shares pairs of contexts and arms with it.

Only inner products matter, so what was learnt in the old coordinates is carried over by a matrix A with z_old =
A z_new on every pair that both problems offer: <z_old, theta> = <z_new, A^T theta>. What shared pairs leave open, the
coordinate of a new arm say, is where nothing is known. There A is chosen so that a new pair is taken for the mean of
the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats, Ints
from bothworlds.kernels.contract import Machine
from bothworlds.problem import Problem

EXACT = 1e-7  # relative to the largest coordinate: far above rounding, far below any feature that matters
RANK = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Pairs:
    """What a problem offers: names, and coordinates (contexts, arms, d) where ``offered``."""

    contexts: tuple[str, ...]
    arms: tuple[str, ...]
    offered: Bools
    z: Floats

    @cached_property
    def places(self) -> tuple[dict[str, int], dict[str, int]]:
        """Indices of contexts and arms by name."""
        return {name: i for i, name in enumerate(self.contexts)}, {name: i for i, name in enumerate(self.arms)}


def pairs_of(problem: Problem, machine: Machine) -> Pairs:
    """Return what a problem offers, in the coordinates of a learner."""
    return Pairs(contexts=problem.contexts, arms=problem.arms, offered=problem.available, z=machine.known.z)


@dataclass(frozen=True, eq=False)
class CoordinateChange:
    """How coordinates change: z_old = matrix z_new on shared pairs.

    ``unknown`` is an orthonormal basis (d_new, m) of the directions of which what was learnt says nothing, and ``open``
    of those among them that no shared pair has a part in; ``new`` tells which pairs (contexts, arms) are new.
    """

    matrix: Floats
    unknown: Floats
    open: Floats
    new: Bools

    @property
    def is_identity(self) -> bool:
        """Whether nothing is to be computed: what was learnt stays bit for bit."""
        d, m = self.matrix.shape
        return d == m and np.array_equal(self.matrix, np.eye(d))


def change_of(old: Pairs, new: Pairs) -> CoordinateChange:
    """Find the change of coordinates between two problems, or refuse in a sentence.

    >>> before = Pairs(contexts=("x",), arms=("a", "b"), offered=np.ones((1, 2), bool), z=np.eye(2)[None])
    >>> after = Pairs(contexts=("x",), arms=("b", "a", "c"), offered=np.ones((1, 3), bool), z=np.eye(3)[None])
    >>> change_of(before, after).matrix.round(9).tolist()  # the new arm is taken for the mean of a and b
    [[0.0, 1.0, 0.5], [1.0, 0.0, 0.5]]
    """
    there, here = _found(old.contexts, new.places[0]), _found(old.arms, new.places[1])
    shared = old.offered & (there >= 0)[:, None] & (here >= 0)[None, :]
    fresh = new.offered.copy()
    xs, arms = np.nonzero(shared)
    both = new.offered[there[xs], here[arms]]
    xs, arms = xs[both], arms[both]
    if not len(xs):
        raise ValueError(
            "the two problems share no pair of a context and an arm by their names, so nothing that was learnt can be "
            "carried over: start a new policy"
        )
    fresh[there[xs], here[arms]] = False
    before, after = old.z[xs, arms], new.z[there[xs], here[arms]]
    if before.shape == after.shape and np.array_equal(before, after) and _rank(after) == after.shape[1]:
        nothing = np.zeros((after.shape[1], 0))
        return CoordinateChange(np.eye(after.shape[1]), nothing, nothing, fresh)
    known, spanned = _solved(after, before)
    _refuse_inexact(known, before, after, old, (xs, arms))
    open_part = _complement(spanned)
    matrix = known + _where_open(known, open_part, old, new, fresh).T
    return CoordinateChange(matrix, _complement(_row_space(known)), open_part, fresh)


def _found(names: Sequence[str], places: dict[str, int]) -> Ints:
    """Return where names are in another list, -1 where they are not."""
    return np.array([places.get(name, -1) for name in names])


def _rank(rows: Floats) -> int:
    values = np.linalg.svd(rows, compute_uv=False)
    return int((values > RANK * values.max(initial=0.0)).sum())


def _solved(after: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Return the smallest A with before = A after in least squares, and a basis of what ``after`` spans, (d, rank)."""
    left, values, rows = np.linalg.svd(after, full_matrices=False)
    rank = int((values > RANK * values.max(initial=0.0)).sum())
    spanned = rows[:rank].T
    solved = spanned @ ((left[:, :rank].T @ before) / values[:rank, None])
    return np.asarray(solved.T), spanned


def _row_space(matrix: Floats) -> Floats:
    """Return an orthonormal basis (d, rank) of the directions that a matrix does not map to zero."""
    _, values, rows = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(rows[values > RANK * values.max(initial=0.0)].T)


def _complement(basis: Floats) -> Floats:
    """Return an orthonormal basis of what is orthogonal to an orthonormal basis (d, rank)."""
    d, rank = basis.shape
    left, _, _ = np.linalg.svd(basis, full_matrices=True)
    return np.asarray(left[:, rank:]) if rank else np.eye(d)


def _refuse_inexact(matrix: Floats, before: Floats, after: Floats, old: Pairs, places: tuple[Ints, Ints]) -> None:
    """Refuse features of kept pairs from which the old ones do not follow."""
    errors = np.abs(after @ matrix.T - before).max(axis=1) / np.abs(before).max()
    worst = int(errors.argmax())
    if errors[worst] > EXACT:
        x, a = old.contexts[places[0][worst]], old.arms[places[1][worst]]
        raise ValueError(
            f"the old features of arm {a!r} in context {x!r} are not a linear function of the new ones, as those of "
            f"all kept pairs must be (off by {errors[worst]:.2g} of the largest): what was learnt says nothing about "
            "such features. Give an arm that has changed a new name, or start a new policy with Prior.from_rows"
        )


def _where_open(known: Floats, open_part: Floats, old: Pairs, new: Pairs, fresh: Bools) -> Floats:
    """Return what to add to A^T so that, in open directions, new pairs are taken for the mean of the others."""
    d_old, d_new = known.shape
    xs, arms = np.nonzero(fresh)
    if not open_part.shape[1] or not len(xs):
        return np.zeros((d_new, d_old))
    z = new.z[xs, arms]
    rest = means_for(old, new, xs, arms) - z @ known.T
    found, *_ = np.linalg.lstsq(z @ open_part, rest, rcond=RANK)
    return np.asarray(open_part @ found)


def means_for(old: Pairs, new: Pairs, xs: Ints, arms: Ints) -> Floats:
    """Return for each new pair the mean of the old pairs it is taken for: of its context, of its arm, or of all."""
    by_context, by_arm = _found(new.contexts, old.places[0]), _found(new.arms, old.places[1])
    weight = old.offered.astype(np.float64)
    of_context = np.einsum("xa,xad->xd", weight, old.z) / weight.sum(axis=1)[:, None]
    counts = weight.sum(axis=0)
    of_arm = np.einsum("xa,xad->ad", weight, old.z) / np.where(counts > 0.0, counts, 1.0)[:, None]
    of_all = np.einsum("xa,xad->d", weight, old.z) / weight.sum()
    made = np.repeat(of_all[None], len(xs), axis=0)
    x, a = by_context[xs], by_arm[arms]
    has_arm = (a >= 0) & (counts[a] > 0.0)
    made[has_arm] = of_arm[a[has_arm]]
    made[x >= 0] = of_context[x[x >= 0]]
    return made
