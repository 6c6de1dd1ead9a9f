"""Predicted rewards from earlier rows: ridge regression on the problem's features, in blocks.

For row t the prediction may use earlier rows only. Then it is known before the arm is drawn, which is all that doubly
robust sums need to be unbiased under any logging policy, including adaptive ones, and what anytime-valid intervals
need. (Splitting the rows into folds at random assumes that rows are independent; under adaptive logging they are
not.) So rows are divided into blocks of geometrically growing size, and a block uses the fit on all rows before it.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats, Ints
from bothworlds.evaluation.logged import Logged, chunks

FIRST, GROWTH = 20, 1.25
UNFITTED = 0.5  # scaled reward predicted before the first fit


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """Predicted rewards, scaled to [0, 1]: a table (contexts, arms) for each block of rows.

    ``starts`` has the first row of each block, ``tables`` has shape (blocks, contexts, arms). A block's table must be
    computed from earlier rows or from other data.
    """

    starts: Ints
    tables: Floats

    def __post_init__(self) -> None:
        starts, shape = np.asarray(self.starts), np.shape(self.tables)
        if len(shape) != 3 or starts.shape != shape[:1]:
            raise ValueError(
                f"a regression needs one table (contexts, arms) for each start of a block; got tables of shape {shape} "
                f"for starts of shape {starts.shape}"
            )
        if not np.issubdtype(starts.dtype, np.integer) or starts[:1].tolist() != [0] or (np.diff(starts) < 1).any():
            raise ValueError(f"the blocks of a regression begin at 0 and at rows that increase; got {starts.tolist()}")
        if not ((self.tables >= 0.0) & (self.tables <= 1.0)).all():
            raise ValueError("a regression predicts rewards scaled to [0, 1]; constant(logged, table) scales your own")

    @internal
    def rows(self, logged: Logged, where: slice) -> Floats:
        """Return the predictions for all arms in some rows, shape (arms, rows)."""
        parts = [np.take(table.T, logged.context[part], axis=1) for table, part in self._blocks(logged, where)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    @internal
    def chosen(self, logged: Logged, where: slice) -> Floats:
        """Return the predictions for the arms logged in some rows, shape (rows,)."""
        blocks_here = self._blocks(logged, where)
        return np.concatenate([table[logged.context[part], logged.arm[part]] for table, part in blocks_here])

    @internal
    def under(self, q: Floats, logged: Logged, where: slice) -> Floats:
        """Return sum_a q(a | x) r^(a) in some rows, shape (rows,), for one table q (contexts, arms)."""
        blocks_here = self._blocks(logged, where)
        return np.concatenate([(q * table).sum(axis=1)[logged.context[part]] for table, part in blocks_here])

    def _blocks(self, logged: Logged, where: slice) -> list[tuple[Floats, slice]]:
        """Return the tables that apply to some rows, each with its rows."""
        shape = logged.problem.n_contexts, logged.problem.n_arms
        if self.tables.shape[1:] != shape:
            raise ValueError(f"the log has {shape} contexts and arms, the regression {self.tables.shape[1:]}")
        start, stop, _ = where.indices(logged.rows)
        first, last = (int(b) for b in np.searchsorted(self.starts, [start, max(start, stop - 1)], side="right") - 1)
        cuts = [start, *self.starts[first + 1 : last + 1].tolist(), stop]
        return [(self.tables[first + i], slice(*ends)) for i, ends in enumerate(itertools.pairwise(cuts))]

    @property
    @internal
    def fitted_from(self) -> int:
        """The first row that is predicted by a fit; 0 if there is one block only."""
        return int(self.starts[1]) if len(self.starts) > 1 else 0


def ridge(logged: Logged, *, penalty: float = 1.0) -> Regression:
    """Return the ridge regression on the problem's features, fitted for each block on the rows before it.

    theta = (sum phi phi' + penalty s I)^-1 sum phi (y - 1/2), where s is the mean of |phi|^2/d over contexts and
    arms, and y_hat = 1/2 + <phi, theta>, clipped to [0, 1]. Before the first fit the prediction is 1/2.

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> columns = {"context": ["0"] * 24, "arm": ["a", "b"] * 12, "reward": [1, 0] * 12, "propensity": [0.5] * 24}
    >>> fitted = ridge(Logged.from_columns(problem, **columns))
    >>> fitted.starts.tolist(), fitted.tables.round(3).tolist()
    ([0, 20], [[[0.5, 0.5]], [[0.976, 0.024]]])
    """
    if not 0.0 < penalty < np.inf:
        raise ValueError(f"the penalty of ridge regression must be positive; got {penalty!r}")
    S, K, d = logged.problem.features.shape
    phi = logged.problem.features.reshape(S * K, d)
    shrinkage = penalty * max(float((phi**2).sum(axis=1).mean()) / d, 1e-12)
    starts = blocks(logged.rows)
    tables = np.full((len(starts), S, K), UNFITTED)
    counts, sums = np.zeros(S * K), np.zeros(S * K)
    for b in range(1, len(starts)):
        for new in chunks(int(starts[b]), start=int(starts[b - 1])):
            cell, y = logged.context[new] * K + logged.arm[new], logged.scaled(new) - UNFITTED
            counts += np.bincount(cell, minlength=S * K)
            sums += np.bincount(cell, weights=y, minlength=S * K)
        theta = np.linalg.solve((phi * counts[:, None]).T @ phi + shrinkage * np.eye(d), phi.T @ sums)
        tables[b] = np.clip(UNFITTED + phi @ theta, 0.0, 1.0).reshape(S, K)
    return Regression(starts=starts, tables=tables)


def blocks(rows: int) -> Ints:
    """Return the first row of every block: 0, 20, 25, 31, ..., independent of the number of rows.

    >>> blocks(60).tolist()
    [0, 20, 25, 31, 39, 49]
    """
    starts, end = [0], FIRST
    while end < rows:
        starts.append(end)
        end = max(end + 1, round(end * GROWTH))
    return np.array(starts, dtype=np.int64)


def constant(logged: Logged, table: Floats | float) -> Regression:
    """Return constant predictions: a number or a table (contexts, arms), in the problem's units.

    They must come from other data, not from the rows they are used on.
    """
    low, high = logged.reward_range
    shape = logged.problem.n_contexts, logged.problem.n_arms
    scaled = np.broadcast_to((np.asarray(table, dtype=np.float64) - low) / (high - low), shape)
    if not ((scaled >= 0.0) & (scaled <= 1.0)).all():
        raise ValueError(f"predicted rewards must lie in [{low:g}, {high:g}]; got {np.asarray(table)!r}")
    return Regression(starts=np.zeros(1, dtype=np.int64), tables=scaled[None].copy())
