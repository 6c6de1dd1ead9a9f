"""Fixed policies: a table of probabilities that never changes. Yardsticks for the others."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.numbers import matrix_of, row_of
from bothworlds.kernels.plan import choose_only, plain_numbers
from bothworlds.kernels.random import Seed
from bothworlds.kernels.status import OK
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole
from bothworlds.theory.frame import world_of


class State(NamedTuple):
    """The clock and the table."""

    t: Floats
    pi: Floats
    sigma: Floats


def sizes(B: int, K: int, d: int) -> tuple[int, int]:  # noqa: ARG001
    """Return how many numbers the memory takes."""
    return 2, B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:  # noqa: ARG001
    """Name the parts of the memory."""
    return State(row_of(memory, 0, 1), matrix_of(cells, 0, B, K), matrix_of(memory, 1, 1, 1))


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Floats:  # noqa: ARG001
    """Return the scratch space: nothing is needed."""
    return memory


@kernel
def refresh(world: World, numbers: Floats, state: State, work: Floats) -> int:  # noqa: ARG001
    """Leave the table as it is."""
    return OK


@kernel
def learn(
    world: World,  # noqa: ARG001
    numbers: Floats,  # noqa: ARG001
    state: State,
    x: int,  # noqa: ARG001
    a: int,  # noqa: ARG001
    loss: float,  # noqa: ARG001
    direction: Floats,  # noqa: ARG001
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Count the observation."""
    state.t[0] += 1.0


TEXT = KernelText(sizes, plain_numbers, state_of, work_of, refresh, choose_only, learn)


@dataclass(frozen=True, eq=False)
class FixedPolicy:
    """Play a fixed table of probabilities, shape (contexts, arms); uniform over the offered arms if left out.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> FixedPolicy().start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    table: Floats | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", "uniform" if self.table is None else "table")

    @classmethod
    def always(cls, arms: Any, n_arms: int, *, label: str = "fixed arms") -> Self:
        """Make the policy that always plays the given arm of each context, arms being numbered from 0."""
        count = whole(n_arms, 1, "n_arms")
        chosen = [whole(arm, 0, f"the arm of context {x}") for x, arm in enumerate(arms)]
        for x, arm in enumerate(chosen):
            if arm >= count:
                raise ValueError(f"the arm of context {x} is {arm}, but there are {count}, numbered from 0")
        return cls(np.eye(count)[chosen], label)

    def table_for(self, problem: Problem) -> Floats:
        """Return the table for a problem; refuse one that does not fit."""
        offered = problem.available
        if self.table is None:
            return np.asarray(offered / offered.sum(axis=1, keepdims=True))
        table = np.array(self.table, dtype=np.float64)
        if table.shape != offered.shape:
            raise ValueError(f"the table must have shape {offered.shape}; got {table.shape}")
        if not (table >= 0.0).all() or np.abs(table.sum(axis=1) - 1.0).max() > 1e-9 or table[~offered].any():
            raise ValueError("each row of the table must be a distribution over the arms offered in that context")
        return table

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:
        """Make the policy ready for a problem."""
        table = self.table_for(problem) if frame is None else frame["table"]

        def begin(state: State) -> None:
            state.t[...] = state.sigma[...] = 1.0
            state.pi[...] = table

        return Machine(
            text=TEXT,
            world=world_of(problem, table, np.zeros((*table.shape, 1))),
            numbers=np.zeros(0),
            begin=begin,
            learnt=("t",),
            frame={"table": table},
            has_baseline=False,
        )

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def __repr__(self) -> str:
        return f"FixedPolicy({self.label})"
