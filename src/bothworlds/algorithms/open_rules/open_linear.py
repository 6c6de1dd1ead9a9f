"""LinUCB, D-LinUCB and SquareCB on open problems: one regression with fading weights, and three ways to decide.

The same sums as for listed problems, without a list: an index or a probability is computed for the candidates of a
request when it comes. Plans are made for every row at first, later for several.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.algorithms.open_rules.functions import Functions, functions_of
from bothworlds.algorithms.open_rules.open_linear_kernel import (
    Options,
    State,
    Work,
    decide_by_bounds,
    decide_by_gaps,
    learn_rows,
)
from bothworlds.algorithms.open_rules.pieces import ROW_BY_ROW, ROWS_PER_PIECE, longest_piece
from bothworlds.arrays import Floats, Ints
from bothworlds.errors import NumericalError
from bothworlds.kernels.status import OK, sentence
from bothworlds.open_contexts.rule_contract import Choices, PlanArrays, Rows, no_rows
from bothworlds.problem.open import OpenProblem


@dataclass(frozen=True, kw_only=True)
class OpenLinear:
    """A regression on open problems. ``decide`` is a kernel function, ``strength`` its width or scale."""

    decide: Callable[..., int]
    strength: float
    ridge: float
    discount: float = 1.0

    def learner(self, problem: OpenProblem, *, key: int, interpreted: bool = False) -> "LinearLearner":
        """Return a learner before its first row."""
        blocks, size = problem.shape
        refreshed = blocks if self.discount < 1.0 else 1
        options = Options(
            ridge=self.ridge,
            discount=self.discount,
            row_by_row=float(ROW_BY_ROW),
            rows_per_piece=float(ROWS_PER_PIECE),
            longest_piece=longest_piece(refreshed * size**3 * (3.0 if self.discount < 1.0 else 1.0)),
        )
        functions = functions_of(learn_rows, self.decide, interpreted=interpreted)
        return LinearLearner(options, self.strength, blocks, size, functions)


def rule_by_bounds(*, width: float, ridge: float, discount: float = 1.0) -> OpenLinear:
    """Return the rule of LinUCB, or with a discount that of D-LinUCB."""
    return OpenLinear(decide=decide_by_bounds, strength=width, ridge=ridge, discount=discount)


def rule_by_gaps(*, scale: float, ridge: float) -> OpenLinear:
    """Return the rule of SquareCB."""
    return OpenLinear(decide=decide_by_gaps, strength=scale, ridge=ridge)


class LinearLearner:
    """Learner state of a regression on open problems."""

    def __init__(self, options: Options, strength: float, blocks: int, size: int, functions: Functions) -> None:
        self.options, self.strength, self.functions = options, strength, functions
        vector, matrix = (blocks, size), (blocks, size, size)
        shapes = {"scales": (2,), "changed": (blocks,), "moment": vector, "weights": vector}
        shapes |= {"gram": matrix, "squared": matrix, "covariance": matrix}
        self.state = State(**{name: np.zeros(shapes.get(name, (1,))) for name in State._fields})
        self.state.scales[:], self.state.changed[:] = 1.0, 1.0
        self.work = Work(np.zeros(size), *(np.zeros((size, size)) for _ in range(4)))
        self._run(no_rows(), 0)

    def _run(self, rows: Rows, count: int) -> None:
        status = self.functions.learn(self.options, self.state, self.work, rows, 0, count, 0)
        if status != OK:
            raise NumericalError(
                f"{sentence(status)}, after {int(self.state.rows[0]):,} rows. The update was not applied; more alike "
                "scales of the features, or a larger ridge, avoid this"
            )

    def plan(self) -> PlanArrays:
        """Return the present plan."""
        state = self.state
        numbers = np.array([self.strength, state.rows[0], float(state.moment.size)])
        return PlanArrays(state.weights.copy(), state.covariance.copy(), numbers, np.zeros((1, 0)))

    def decide(self, plan: PlanArrays, z: Floats, offered: Floats, keys: Ints, times: Ints) -> Choices:
        """Decide with any plan for requests."""
        return self.functions.choices(plan, z, offered, keys, times)

    def learn(self, rows: Rows) -> bool:
        """Learn rows in order; return whether there is a new plan."""
        before, due = self.state, bool(self.state.pending[0] + len(rows.arms) >= self.state.piece[0])
        if due:
            before = State(*(part.copy() for part in before))
        try:
            self._run(rows, len(rows.arms))
        except NumericalError:
            self.state = before
            raise
        return due

    def recent(self) -> None:
        """Return None: the regression keeps no requests."""

    def restarts(self) -> None:
        """Return None: the regression never restarts."""

    def arrays(self) -> Mapping[str, Floats]:
        """Return the state as arrays, copies."""
        return {name: part.copy() for name, part in self.state._asdict().items()}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Continue from the arrays of a file."""
        for name, part in self.state._asdict().items():
            if arrays[name].shape != part.shape:
                raise TypeError(f"{name} has shape {arrays[name].shape}, not {part.shape}")
        self.state = State(**{name: np.array(arrays[name], dtype=np.float64) for name in State._fields})
