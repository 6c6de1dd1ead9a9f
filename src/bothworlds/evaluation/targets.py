"""Target policies of an evaluation: plans, tables, single arms, and algorithms that learn from the log row by row."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bothworlds._public_names import internal
from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.arrays import Floats
from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import blocks
from bothworlds.kernels.random import Seed, key_from
from bothworlds.policy import Algorithm, Policy
from bothworlds.policy.plan import Plan
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions
from bothworlds.problem.lookup import table_of

ALWAYS = "always "
Given: TypeAlias = Any  # "uniform", "logging", "always NAME", a table, a Plan, a Policy, a FixedPolicy, a Target


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """A policy to evaluate. Its probabilities are known, so nothing is drawn: expectations over its arms are sums.

    Attributes
    ----------
    table
        Its probabilities, shape (contexts, arms), if they are the same in all rows.
    by_row
        Otherwise its probabilities in every row of the log, shape (rows, arms), which may depend on earlier rows only.
        Its value then is the average over the rows.
    about
        A short description.
    """

    table: Floats | None = None
    by_row: Floats | None = None
    about: str = ""

    @internal
    def rows(self, logged: Logged, where: slice) -> Floats:
        """Return its probabilities in some rows of the log, shape (arms, rows)."""
        if self.table is not None:
            return np.take(self.table.T, logged.context[where], axis=1)
        assert self.by_row is not None
        return self.by_row[where].T.copy()

    @internal
    def chosen(self, logged: Logged, where: slice) -> Floats:
        """Return its probabilities of the logged arms in some rows, shape (rows,)."""
        if self.table is not None:
            return self.table[logged.context[where], logged.arm[where]]
        assert self.by_row is not None
        return np.take_along_axis(self.by_row[where], logged.arm[where, None], axis=1)[:, 0]


def target_of(given: Given, logged: Logged) -> Target:
    """Return the target for a word, table, plan or policy; raise a ValueError if it does not fit the log.

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
        kind = "plan" if isinstance(given, Plan) else "policy in its present state"
        return _checked(Target(table=given.probabilities(), about=kind), logged)
    if isinstance(given, FixedPolicy):
        return _checked(Target(table=given.table_for(problem), about="table"), logged)
    if hasattr(given, "machine"):
        raise ValueError(
            f"{given!r} is an algorithm, not a policy: let it learn along the log with learning(algorithm, logged), or "
            "evaluate the plan of a policy"
        )
    if callable(given):
        raise ValueError(
            f"{given!r} is a function; a policy to evaluate is a table of probabilities, a plan or a policy"
        )
    table = table_of(given, problem.contexts, problem.arms)
    by_row = table.shape == (logged.rows, problem.n_arms) and logged.rows != problem.n_contexts
    return _checked(Target(by_row=table) if by_row else Target(table=table, about="table"), logged)


def _named(name: str, logged: Logged) -> Target:
    """Return the target that a word stands for."""
    problem = logged.problem
    if name == "uniform":
        return Target(table=FixedPolicy().table_for(problem), about="all offered arms equally")
    if name == "logging":
        if logged.probabilities is None:
            raise ValueError("the log has propensities only; 'logging' needs whole rows of probabilities")
        return Target(by_row=logged.probabilities, about="the policy that wrote the log, row by row")
    check_early(name, problem)
    table = np.zeros((problem.n_contexts, problem.n_arms))
    table[:, problem.arms.index(name.removeprefix(ALWAYS))] = 1.0
    return _checked(Target(table=table, about="one arm"), logged)


@internal
def check_early(given: str | Plan | Policy, problem: Problem) -> None:
    """Refuse unknown words and plans for another problem, before the log is read."""
    if isinstance(given, Plan | Policy):
        if given.problem.contexts != problem.contexts or given.problem.arms != problem.arms:
            raise ValueError(f"{given!r} is for other contexts or arms than the log's {problem!r}")
        return
    if given in ("uniform", "logging"):
        return
    if not given.startswith(ALWAYS):
        arms = ", ".join(f"'{ALWAYS}{arm}'" for arm in problem.arms[:3])
        raise ValueError(f"unknown policy {given!r}; the words for policies are 'uniform', 'logging', {arms}, ...")
    if (arm := given.removeprefix(ALWAYS)) not in problem.arms:
        raise ValueError(f"unknown arm {arm!r}; the arms are {', '.join(problem.arms[:8])}")


def _checked(target: Target, logged: Logged) -> Target:
    """Refuse tables of the wrong shape, and rows that are not distributions."""
    shape = (logged.problem.n_contexts if target.table is not None else logged.rows, logged.problem.n_arms)
    table = target.by_row if target.table is None else target.table
    if table is None or table.shape != shape:
        raise ValueError(
            f"a target needs a table of shape {(logged.problem.n_contexts, logged.problem.n_arms)}, or one row for "
            f"each of {logged.rows} decisions; got {None if table is None else table.shape}"
        )
    if not are_distributions(table):
        raise ValueError("each row of a target must be a distribution: no negative probability, and a sum of 1")
    _check_offers(target, table, logged)
    return target


def _check_offers(target: Target, table: Floats, logged: Logged) -> None:
    """Refuse a target that plays arms that the problem does not offer: no reward is defined for them."""
    problem = logged.problem
    if problem.available.all():
        return
    contexts = np.arange(problem.n_contexts) if target.table is not None else logged.context
    not_offered = np.argwhere((table != 0.0) & ~problem.available[contexts])
    if len(not_offered):
        row, arm = not_offered[0].tolist()
        where = f"arm {problem.arms[arm]!r} in context {problem.contexts[contexts[row]]!r}"
        raise ValueError(f"a target plays {where}, where the problem does not offer it")


FLOOR_QUANTILE = 0.05  # of propensities


def learning(algorithm: Algorithm, logged: Logged, *, floor: float | None = None, rng: Seed = 0) -> Target:
    """Let an algorithm learn from the log by rejection sampling; return its probabilities in each row as a target.

    In each row the algorithm draws an arm. If it is the logged one, the row is accepted with probability
    min(1, floor/h), where h is the logged propensity, and the algorithm learns from its reward; it does not use any
    other row (Li, Chu, Langford and Wang 2011; Dudik, Erhan, Langford and Li 2012). With ``floor`` no larger than any h
    the accepted rows are distributed as if the algorithm had decided, and it learns as it would then, over fewer
    rounds. A larger floor accepts more rows, but too few of those with a propensity below it.

    The target's value is the average over the rows of the value of the algorithm's policy in that row; estimates and
    intervals use all rows, not only the accepted ones.

    Parameters
    ----------
    floor
        By default the 5 % quantile of the propensities of earlier rows, recomputed for blocks of rows that grow by a
        quarter; for the first 20 rows, one over the number of arms.
    rng
        Seed of the draws and of the acceptance: an integer, a SeedSequence, a Generator, or None for a random seed.
    """
    if not logged.rows:
        raise ValueError("the log has no rows; there is nothing to learn from")
    if floor is not None and not 0.0 < floor <= 1.0:
        raise ValueError(f"floor must be a probability, above 0 and at most 1; got {floor!r}")
    key = key_from(rng)
    policy: Any = algorithm.start(logged.problem, rng=key)
    floors = _floors(logged) if floor is None else floor
    acceptable = np.random.default_rng(key).random(logged.rows) * logged.propensity < floors
    by_row = np.empty((logged.rows, logged.problem.n_arms))
    accepted = 0
    columns = zip(
        logged.context.tolist(), logged.arm.tolist(), logged.reward.tolist(), acceptable.tolist(), strict=True
    )
    for i, (x, arm, reward, accept) in enumerate(columns):
        by_row[i] = policy.probabilities(x)
        decision = policy.act(x)
        if accept and decision.arm == arm:
            policy.update(decision, reward=reward)
            accepted += 1
    return Target(by_row=by_row, about=f"{algorithm!r} learning by rejection from {accepted:,} of {logged.rows:,} rows")


def _floors(logged: Logged) -> Floats:
    """Return the default floor of every row, from the rows before its block."""
    starts = blocks(logged.rows)
    floors = [
        1.0 / logged.problem.n_arms,
        *(np.quantile(logged.propensity[:start], FLOOR_QUANTILE) for start in starts[1:]),
    ]
    return np.repeat(floors, np.diff([*starts, logged.rows]))
