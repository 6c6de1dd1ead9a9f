"""Fixed policies: a table of probabilities that never changes. Baselines for other algorithms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known, Machine, Play, build_kernel, even_play, known_of
from bothworlds.kernels.exact_ftrl import choose_only
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, recalled
from bothworlds.kernels.status import OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions, whole
from bothworlds.problem.lookup import table_of


class State(NamedTuple):
    """Number of updates, and the table."""

    t: Annotated[Floats, learnt()]
    pi: Annotated[Floats, recalled("S", "K")]


@kernel
def refresh(known: Known, options: Any, state: State, work: Any) -> int:
    """Return OK: the table never changes."""
    return OK


@kernel
def learn(known: Known, options: Any, state: State, play: Play, carried: Any) -> None:
    """Count the update."""
    state.t[0] += 1.0


KERNEL = build_kernel(refresh, choose_only, learn, together=True)


@dataclass(frozen=True, eq=False)
class FixedPolicy(Algorithm):
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
        """Return the policy that always plays the given arm of each context, arms numbered from 0."""
        count = whole(n_arms, 1, "n_arms")
        chosen = [whole(arm, 0, f"the arm of context {x}") for x, arm in enumerate(arms)]
        for x, arm in enumerate(chosen):
            if arm >= count:
                raise ValueError(f"the arm of context {x} is {arm}, but there are {count}, numbered from 0")
        return cls(np.eye(count)[chosen], label)

    @internal
    def table_for(self, problem: Problem) -> Floats:
        """Return the table for a problem; raise ValueError if it does not fit."""
        offered = problem.available
        if self.table is None:
            return even_play(offered)
        table = table_of(self.table, problem.contexts, problem.arms)
        if table.shape != offered.shape:
            raise ValueError(f"the table must have shape {offered.shape}; got {table.shape}")
        if not are_distributions(table, within=1e-9) or table[~offered].any():
            raise ValueError("each row of the table must be a distribution over the arms offered in that context")
        return table

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        table = self.table_for(problem) if frame is None else frame["table"]
        known = known_of(problem, table, np.zeros((*table.shape, 0)))
        return Machine(kernel=KERNEL, known=known, begin={"pi": table}, frame={"table": table})

    def __repr__(self) -> str:
        return f"FixedPolicy({self.label})"
