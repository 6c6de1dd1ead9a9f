"""Whom to evaluate: tables, plans, single arms, the policy that wrote the log, algorithms that learn along it."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.evaluation.logged import Logged
from bothworlds.kernels.arrays import Floats
from bothworlds.policy import Policy
from bothworlds.policy.plan import Plan
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions
from bothworlds.problem.labelled import table_of

ALWAYS = "always "
Given: TypeAlias = Any  # "uniform", "logging", "always NAME", a table, a Plan, a Policy, a FixedPolicy, a Target


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """A policy to be evaluated: what it does is known, so nothing is drawn; expectations over its arms are sums.

    Attributes
    ----------
    table
        Its probabilities, shape (contexts, arms), if they are the same in all rows.
    by_row
        Else those of every row of the log, shape (rows, arms): what it did, or would have done, at that moment, known
        from earlier rows only. Its value then is the average over the rows.
    about
        How it came about, in a few words.
    """

    table: Floats | None = None
    by_row: Floats | None = None
    about: str = ""

    def rows(self, logged: Logged, where: slice) -> Floats:
        """Return its probabilities in some rows of the log, shape (arms, rows). Internal."""
        if self.table is not None:
            return np.take(self.table.T, logged.context[where], axis=1)
        assert self.by_row is not None
        return self.by_row[where].T.copy()

    def chosen(self, logged: Logged, where: slice) -> Floats:
        """Return its probability of the arm logged in some rows, shape (rows,). Internal."""
        if self.table is not None:
            return self.table[logged.context[where], logged.arm[where]]
        assert self.by_row is not None
        return np.take_along_axis(self.by_row[where], logged.arm[where, None], axis=1)[:, 0]


def target_of(given: Given, logged: Logged) -> Target:
    """Return what was meant as a target that fits the log.

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> log = Logged.from_columns(problem, context=["0"], arm=["a"], reward=[1], propensity=[0.5])
    >>> target_of("always b", log).table.tolist(), target_of("uniform", log).table.tolist()
    ([[0.0, 1.0]], [[0.5, 0.5]])
    """
    problem = logged.problem
    if isinstance(given, Target):
        return _checked(given, logged)
    if isinstance(given, str):
        return _named(given, logged)
    if isinstance(given, Plan | Policy):
        check_early(given, problem)
        kind = "plan" if isinstance(given, Plan) else "policy as it is now"
        return _checked(Target(table=given.probabilities(), about=kind), logged)
    if isinstance(given, FixedPolicy):
        return _checked(Target(table=given.table_for(problem), about="table"), logged)
    if hasattr(given, "machine"):
        raise ValueError(
            f"{given!r} is an algorithm, not a policy: let it learn along the log with learning(algorithm, logged), or "
            "evaluate a plan of a policy that has learnt"
        )
    if callable(given):
        raise ValueError(
            f"{given!r} is a function; a policy to evaluate is a table of probabilities, a plan or a policy"
        )
    table = table_of(given, problem)
    by_row = table.shape == (logged.rows, problem.n_arms) and logged.rows != problem.n_contexts
    return _checked(Target(by_row=table) if by_row else Target(table=table, about="table"), logged)


def _named(name: str, logged: Logged) -> Target:
    """Return a target that has a name."""
    problem = logged.problem
    if name == "uniform":
        return Target(table=FixedPolicy().table_for(problem), about="every arm offered alike")
    if name == "logging":
        if logged.probabilities is None:
            raise ValueError("the log has propensities only; the policy that wrote it is known from whole rows")
        return Target(by_row=logged.probabilities, about="as it decided, row by row")
    check_early(name, problem)
    table = np.zeros((problem.n_contexts, problem.n_arms))
    table[:, problem.arms.index(name.removeprefix(ALWAYS))] = 1.0
    return _checked(Target(table=table, about="one arm"), logged)


def check_early(given: str | Plan | Policy, problem: Problem) -> None:
    """Refuse what a log need not be read for: a word for no policy, and a plan for another problem. Internal."""
    if isinstance(given, Plan | Policy):
        if given.problem.contexts != problem.contexts or given.problem.arms != problem.arms:
            raise ValueError(f"{given!r} is for other contexts or arms than the log's {problem!r}")
        return
    if given in ("uniform", "logging"):
        return
    if not given.startswith(ALWAYS):
        arms = ", ".join(f"'{ALWAYS}{arm}'" for arm in problem.arms[:3])
        raise ValueError(f"unknown policy {given!r}; those with a name are 'uniform', 'logging', {arms}, ...")
    if (arm := given.removeprefix(ALWAYS)) not in problem.arms:
        raise ValueError(f"unknown arm {arm!r}; the arms are {', '.join(problem.arms[:8])}")


def _checked(target: Target, logged: Logged) -> Target:
    """Refuse probabilities that are none or do not fit."""
    shape = (logged.problem.n_contexts if target.table is not None else logged.rows, logged.problem.n_arms)
    table = target.by_row if target.table is None else target.table
    if table is None or table.shape != shape:
        raise ValueError(
            f"a target has a table of shape {(logged.problem.n_contexts, logged.problem.n_arms)}, or one row for each "
            f"of {logged.rows} decisions; got {None if table is None else table.shape}"
        )
    if not are_distributions(table):
        raise ValueError("each row of a target must be a distribution: no negative probability, and a sum of 1")
    _check_offers(target, table, logged)
    return target


def _check_offers(target: Target, table: Floats, logged: Logged) -> None:
    """Refuse a target that plays arms where the problem does not offer them: there is nothing it would have earned."""
    problem = logged.problem
    if problem.available.all():
        return
    contexts = np.arange(problem.n_contexts) if target.table is not None else logged.context
    strange = np.argwhere((table != 0.0) & ~problem.available[contexts])
    if len(strange):
        row, arm = strange[0].tolist()
        where = f"arm {problem.arms[arm]!r} in context {problem.contexts[contexts[row]]!r}"
        raise ValueError(f"a target plays {where}, where the problem does not offer it")
