"""Counts of a policy by context and arm: decisions, decisions with feedback, and sums of losses.

Counting is cheap: `Policy.act` increments one number in a list, `Policy.update` two. Batches are added as arrays. A
decision counts when the policy takes it. A decision that the policy did not take itself (of a plan, with a given id, or
lost with an earlier process) counts when its feedback arrives.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.policy.decision import Decision
from bothworlds.policy.health import Tables, health_of
from bothworlds.policy.health_report import Health, Restarts
from bothworlds.problem import Problem
from bothworlds.problem.rewards import total_reward
from bothworlds.theory.confidence import drift_of

CONTEXT, ARM = (Decision._fields.index(name) for name in ("context", "arm"))


class ArmCounts:
    """Three tables (contexts, arms), each the sum of lists for single decisions and an array for batches.

    >>> counts = ArmCounts((2, 3))
    >>> counts.decided[1][2] += 1
    >>> counts.answered[1][2], counts.losses[1][2] = 1, -0.5
    >>> counts.add_batch(np.array([1, 1]), np.array([2, 0]), np.array([0.25, 0.5]), np.array([0.0, 1.0]))
    >>> [table[1].tolist() for table in counts.tables()]
    [[1.0, 0.0, 1.0], [1.0, 0.0, 2.0], [0.5, 0.0, -0.25]]
    """

    def __init__(self, shape: tuple[int, int], start: Tables | None = None) -> None:
        self._batches = np.zeros((3, *shape)) if start is None else np.array(start, dtype=np.float64)
        self.decided = [[0] * shape[1] for _ in range(shape[0])]
        self.answered = [[0] * shape[1] for _ in range(shape[0])]
        self.losses = [[0.0] * shape[1] for _ in range(shape[0])]

    def add_batch(self, xs: Ints, arms: Ints, losses: Floats, uncounted: Floats | None) -> None:
        """Count feedback of a batch; ``uncounted`` is 1 for decisions not yet counted as decided, else 0."""
        decided, answered, sums = self._batches.reshape(3, -1)
        places = xs * self._batches.shape[2] + arms  # one index instead of two: a tenth of the time
        if uncounted is not None:
            np.add.at(decided, places, uncounted)
        np.add.at(answered, places, 1.0)
        np.add.at(sums, places, losses)

    def tables(self) -> Tables:
        """Return decisions, decisions with feedback, and sums of losses."""
        return Tables(*(self._batches + np.array([self.decided, self.answered, self.losses], dtype=np.float64)))


class PolicyCounts:
    """Counts of a policy's own decisions and, separately, of held-out decisions.

    ``since`` is the number of updates before counting began; ``before`` has the number of decisions in each context
    before the current context distribution was set.
    """

    def __init__(self, shape: tuple[int, int], *, since: int = 0, saved: Mapping[str, Any] | None = None) -> None:
        tables = [None, None] if saved is None else [Tables(*part) for part in saved["tables"]]
        self.own, self.held = (ArmCounts(shape, start) for start in tables)
        self.since = since
        self.before: Floats = np.zeros(shape[0]) if saved is None else saved["before"]

    def add_batch(self, batch: Sequence[Decision], losses: Floats, uncounted: Floats | None) -> None:
        """Count feedback of a batch; ``uncounted`` is 1 for decisions not yet counted as decided, else 0."""
        xs, arms = (np.array([made[field] for made in batch], dtype=np.int64) for field in (CONTEXT, ARM))
        held = np.array([made.holdout for made in batch], dtype=bool)
        for counts, mine in ((self.own, ~held), (self.held, held)):
            counts.add_batch(xs[mine], arms[mine], losses[mine], None if uncounted is None else uncounted[mine])

    def for_problem(self, old: Problem, new: Problem) -> "PolicyCounts":
        """Return the counts on another problem, of pairs that keep their names; the test for drift restarts."""
        xs, arms = (
            np.array([before.index(name) if name in before else -1 for name in after])
            for before, after in ((old.contexts, new.contexts), (old.arms, new.arms))
        )
        shared = np.outer(xs >= 0, arms >= 0)
        tables = np.array([counts.tables() for counts in (self.own, self.held)])[:, :, xs][:, :, :, arms] * shared
        counts = PolicyCounts(
            new.available.shape, since=self.since, saved={"tables": tables, "before": np.zeros(len(xs))}
        )
        counts.restart_drift_test()
        return counts

    def recent_contexts(self) -> Floats:
        """Return the number of decisions in each context under the current context distribution."""
        return self.all_contexts() - self.before

    def all_contexts(self) -> Floats:
        """Return the number of decisions in each context."""
        return np.asarray(sum(counts.tables().decided.sum(axis=1) for counts in (self.own, self.held)))

    def restart_drift_test(self, before: Floats | None = None) -> None:
        """Count contexts for a new context distribution, from now or from given numbers of decisions on."""
        self.before = self.all_contexts() if before is None else before

    def health(
        self, problem: Problem, pi: Floats, *, alpha: float, holds_out: bool, restarts: Restarts | None
    ) -> Health:
        """Return the health of a policy with the plan pi, shape (contexts, arms)."""
        own, held = (rewards_from(_consistent(part.tables()), problem.reward_range) for part in (self.own, self.held))
        return health_of(
            problem,
            decided=own.decided,
            answered=own.answered,
            rewards=own.sums,
            probabilities=pi,
            holdout=held if holds_out or held.decided.any() else None,
            drift=drift_of(self.recent_contexts(), problem.probabilities),
            alpha=alpha,
            since=self.since,
            restarts=restarts,
        )

    def header(self) -> dict[str, Any]:
        """Return the entries for the header of a file."""
        return {"counted_since": self.since}

    def arrays(self) -> dict[str, Any]:
        """Return the arrays for a file."""
        tables = np.array([counts.tables() for counts in (self.own, self.held)])
        return {"counts.tables": tables, "counts.before": self.before}


def _consistent(tables: Tables) -> Tables:
    """Raise decisions to at least those with feedback: an arm that was removed and returns has lost its decisions."""
    return tables._replace(decided=np.maximum(tables.decided, tables.answered))


def rewards_from(tables: Tables, reward_range: tuple[float, float] | None) -> Tables:
    """Return tables with sums of rewards in the user's units instead of sums of losses.

    >>> one = np.ones((1, 1))
    >>> rewards_from(Tables(4 * one, 4 * one, -2 * one), (0.0, 1.0)).sums.tolist()
    [[3.0]]
    """
    return tables._replace(sums=total_reward(tables.sums, tables.answered, reward_range))
