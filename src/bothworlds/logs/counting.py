"""How a policy is doing, from its log: there every decision is known, answered or not."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import even_play
from bothworlds.logs.files import Log
from bothworlds.logs.schema import Change, Law, Record, Row, is_before, joined
from bothworlds.policy.health import Health, health_of
from bothworlds.problem import Problem
from bothworlds.problem.pairs import pair_of
from bothworlds.theory.confidence import drift_of

Began: TypeAlias = dict[type[Law] | type[Change], dict[str | None, int]]  # versions, by the name of the policy


def health(log: Log | Iterable[Record], problem: Problem, *, policy: str | None = None, alpha: float = 0.05) -> Health:
    """Tell how a policy is doing, as ``policy.health()`` does, from what stands in a log.

    ``policy`` is the name of one of several policies in the log. Exploration and propensities are those of the newest
    row of each context; one that never came is taken for even play. Rows that are marked as held out are counted apart.
    Of rows before a change of the problem (`Change`), those of pairs of context and arm that are gone are left out.
    Contexts are held against the problem's law since the last `Law` or `Change`: before, they came under another one.

    >>> from bothworlds import FixedPolicy
    >>> from bothworlds.logs import Reward, row_of
    >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
    >>> plan, log = FixedPolicy().start(problem, rng=7).plan(), Log("visits.jsonl")
    >>> for i in range(100):
    ...     made = plan.act(i % 2, id=f"visit {i}")
    ...     log.append(row_of(made, plan, time=1.0), Reward(id=made.id, time=2.0, reward=made.arm))
    >>> print(health(log, problem).unanswered)
      unanswered: all 100 decisions have feedback
    """
    records = (record for record, _ in log.read()) if isinstance(log, Log) else log
    began: Began = {Law: {}, Change: {}}
    every = joined(_noting(records, began), reward_range=problem.reward_range or (-1.0, 1.0))
    rows = [row for row in every if policy in (None, row.policy)]
    arms = {name: a for a, name in enumerate(problem.arms)}
    tables, visits = np.zeros((2, 3, *problem.available.shape)), np.zeros(problem.n_contexts)
    pi = even_play(problem.available)
    for row in rows:
        place, earlier = _place(row, problem, arms), is_before(row, began[Change])
        if place is None:
            if earlier:
                continue
            raise ValueError(_strange(row, problem))
        x, a = place
        answered = row.reward is not None
        tables[int(row.holdout), :, x, a] += 1.0, answered, row.reward or 0.0
        visits[x] += not is_before(row, began[Law])
        if not row.holdout and not earlier:
            pi[x] = _spread(row, problem, arms)
    own, held = tables
    return health_of(
        problem,
        decided=own[0],
        answered=own[1],
        rewards=own[2],
        probabilities=pi,
        holdout=tuple(held) if held[0].any() else None,
        drift=drift_of(visits, problem.probabilities),
        alpha=alpha,
    )


def _noting(records: Iterable[Record], began: Began) -> Iterator[Record]:
    """Yield records as they are, and note with which version the present law and problem of each policy began."""
    for record in records:
        if isinstance(record, Law | Change):
            began[Law][record.policy] = record.version  # a change begins a law, too
        if isinstance(record, Change):
            began[Change][record.policy] = record.version
        yield record


def _place(row: Row, problem: Problem, arms: Mapping[str, int]) -> tuple[int, int] | None:
    """Return context and arm of a row as numbers; None if the problem does not have, or not offer, such a pair."""
    if row.context is None:
        raise ValueError(f"row {row.id!r} has features and no context: health is counted by context")
    return pair_of(row, problem, arms)


def _strange(row: Row, problem: Problem) -> str:
    """Say why the problem has no place for a row."""
    if row.arm not in problem.arms:
        return f"row {row.id!r}: unknown arm {row.arm!r}; the arms are {', '.join(problem.arms[:8])}"
    context = problem.contexts[problem.context_index(row.context)]
    return f"row {row.id!r} plays arm {row.arm!r} in context {context!r}, where the problem does not offer it"


def _spread(row: Row, problem: Problem, arms: Mapping[str, int]) -> Floats:
    """Return the probabilities in a row, one per arm of the problem."""
    if not row.probabilities:
        raise ValueError(f"row {row.id!r} has no probabilities: health tells of exploration, from the whole vector")
    spread = np.zeros(problem.n_arms)
    for name, share in zip(row.offered, row.probabilities, strict=True):
        if name in arms:
            spread[arms[name]] = share
    return spread
