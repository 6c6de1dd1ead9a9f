"""Public entry point `bounds`: all bounds for a problem, a horizon, and known properties of the environment."""

import math
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from bothworlds.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.theory.bounds.bound import Bound, BoundTable
from bothworlds.theory.bounds.discussion import discussion_bounds
from bothworlds.theory.bounds.facts import Facts, facts_of
from bothworlds.theory.bounds.paper import matched_bounds, shannon_bounds, tsallis_bounds
from bothworlds.theory.bounds.rivals import rival_bounds
from bothworlds.theory.design import Design, Kind


class Family:
    """All bounds that follow from the same facts. Pickles as the facts alone; formulas are rebuilt on first use."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def __reduce__(self) -> Any:
        return Family, (self.facts,)

    @cached_property
    def _all_bounds(self) -> list[Bound]:
        facts = self.facts
        return [
            *tsallis_bounds(facts),
            *matched_bounds(facts),
            *shannon_bounds(facts),
            *rival_bounds(facts),
            *discussion_bounds(facts),
        ]

    @property
    def bounds(self) -> list[Bound]:
        """The bounds, with formulas that can be pickled."""
        return [replace(bound, formula=partial(self.value, index)) for index, bound in enumerate(self._all_bounds)]

    def value(self, index: int, horizons: Floats) -> Floats:
        """Return the bound with this index in the list, at each horizon."""
        return self._all_bounds[index].formula(horizons)


def bounds(
    problem: Problem,
    *,
    horizon: int,
    gap: float | None = None,
    margin: float | None = None,
    corruption: float | None = None,
    design: Kind | Design = "joint-g",
) -> BoundTable:
    """Evaluate every regret bound of the paper, and its Table 1, for a problem.

    Bounds are in units of loss (losses in [-1, 1]); `Problem.reward_per_loss` converts them to the user's units.
    Without a gap, only the adversarial regime is stated.

    Parameters
    ----------
    horizon
        T. Every bound can be evaluated at other horizons with `Bound.at`.
    gap
        Delta_*: the smallest difference of mean losses between the best arm and another (Definitions 2.5, 2.6).
    margin
        beta of Definition 2.5; infinite by default, which means that every gap is at least Delta_*.
    corruption
        C of Definition 2.6; zero by default.
    design
        The exploration policy whose coverage lambda is used.

    >>> p = Problem(features=[[[1, 0], [0, 1]], [[1, 1], [0, 1]]], probabilities=[0.5, 0.5])
    >>> print(bounds(p, horizon=10**6, gap=0.5).select(name="Tsallis-INF, certified"))
    S = 2, K = 2, d = 2, L = 2, lambda = 0.5, T = 1,000,000, Delta_* = 0.5
    bound on R_T               regime            value    of 2 T  note
    LC-Tsallis-INF, certified  adversarial       9,547   0.00477  Theorem 4.2
    LC-Tsallis-INF, certified  stochastic        4,690   0.00234  Theorem 4.4
    """
    facts = facts_of(problem, horizon=horizon, gap=gap, margin=margin, corruption=corruption, design=design)
    stated = Family(facts).bounds
    known: dict[str, float] = {
        "S": problem.n_contexts,
        "K": problem.n_arms,
        "d": problem.dimension,
        "L": problem.rarity,
        "lambda": facts.coverage,
        "T": facts.horizon,
    }
    if facts.gap is not None:
        known["Delta_*"] = facts.gap
        known |= {"beta": facts.margin} if math.isfinite(facts.margin) else {}
        known |= {"C": facts.corruption} if facts.corruption > 0.0 else {}
    if problem.reward_range is not None:
        known["reward per unit of loss"] = problem.reward_per_loss
    return BoundTable(bounds=tuple(stated), facts=known)
