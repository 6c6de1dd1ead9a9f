"""Health of a policy from its log, which has every decision, with or without feedback."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.contract import even_play
from bothworlds.logs.files import Log
from bothworlds.logs.schema import Change, ContextDistribution, Record, Row, is_before, joined
from bothworlds.policy.health import health_of
from bothworlds.policy.health_report import Health
from bothworlds.problem import Problem
from bothworlds.problem.pairs import pair_of
from bothworlds.theory.confidence import drift_of

ChangeVersions: TypeAlias = dict[type[ContextDistribution] | type[Change], dict[str, int]]  # by the policy's name


def health(log: Log | Iterable[Record], problem: Problem, *, policy: str | None = None, alpha: float = 0.05) -> Health:
    """Return the health of a policy, as ``policy.health()`` does, from a log.

    ``policy`` is the name of one of several policies in the log. Exploration and propensities are those of the newest
    row of each context; a context without rows counts as played uniformly. Held-out rows are counted separately. Of
    rows before a change of the problem (`Change`), those whose pair of context and arm no longer exists are left out.
    Contexts are tested against the problem's context distribution since the last `ContextDistribution` or `Change`.

    >>> from bothworlds import FixedPolicy
    >>> from bothworlds.logs import Reward, row_of
    >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
    >>> plan, log = FixedPolicy().start(problem, rng=7).plan(), Log("visits.jsonl")
    >>> for i in range(100):
    ...     decision = plan.act(i % 2, id=f"visit {i}")
    ...     log.append(row_of(decision, plan, time=1.0), Reward(id=decision.id, time=2.0, reward=decision.arm))
    >>> print(health(log, problem).unanswered)
      unanswered: all 100 decisions have feedback
    """
    records = (record for record, _ in log.read()) if isinstance(log, Log) else log
    versions: ChangeVersions = {ContextDistribution: {}, Change: {}}
    decisions = joined(_with_versions(records, versions), reward_range=problem.reward_range or (-1.0, 1.0))
    rows = [row for row in decisions if policy in (None, row.policy)]
    arms = {name: a for a, name in enumerate(problem.arms)}
    tables, visits = np.zeros((2, 3, *problem.available.shape)), np.zeros(problem.n_contexts)
    pi = even_play(problem.available)
    for row in rows:
        pair, earlier = _pair(row, problem, arms), is_before(row, versions[Change])
        if pair is None:
            if earlier:
                continue
            raise ValueError(_fault_of_pair(row, problem))
        x, a = pair
        answered = row.reward is not None
        tables[int(row.holdout), :, x, a] += 1.0, answered, row.reward or 0.0
        visits[x] += not is_before(row, versions[ContextDistribution])
        if not row.holdout and not earlier:
            pi[x] = _probabilities(row, problem, arms)
    regular, held_out = tables
    return health_of(
        problem,
        decided=regular[0],
        answered=regular[1],
        rewards=regular[2],
        probabilities=pi,
        holdout=tuple(held_out) if held_out[0].any() else None,
        drift=drift_of(visits, problem.probabilities),
        alpha=alpha,
    )


def _with_versions(records: Iterable[Record], versions: ChangeVersions) -> Iterator[Record]:
    """Yield records unchanged, and collect the versions after the last changes of each policy."""
    for record in records:
        if isinstance(record, ContextDistribution | Change):
            versions[ContextDistribution][record.policy] = record.version  # a problem has a distribution
        if isinstance(record, Change):
            versions[Change][record.policy] = record.version
        yield record


def _pair(row: Row, problem: Problem, arms: Mapping[str, int]) -> tuple[int, int] | None:
    """Return context and arm of a row as indices; None if the problem lacks them or does not offer the pair."""
    if row.context is None:
        raise ValueError(f"row {row.id!r} has features and no context: health is counted by context")
    return pair_of(row, problem, arms)


def _fault_of_pair(row: Row, problem: Problem) -> str:
    """Return why a row does not fit the problem."""
    if row.arm not in problem.arms:
        return f"row {row.id!r}: unknown arm {row.arm!r}; the arms are {', '.join(problem.arms[:8])}"
    context = problem.contexts[problem.context_index(row.context)]
    return f"row {row.id!r} plays arm {row.arm!r} in context {context!r}, where the problem does not offer it"


def _probabilities(row: Row, problem: Problem, arms: Mapping[str, int]) -> Floats:
    """Return the probabilities of a row for all arms of the problem, shape (arms,)."""
    if not row.probabilities:
        raise ValueError(f"row {row.id!r} has no probabilities: health needs the whole vector, to measure exploration")
    probabilities = np.zeros(problem.n_arms)
    for name, share in zip(row.offered, row.probabilities, strict=True):
        if name in arms:
            probabilities[arms[name]] = share
    return probabilities
