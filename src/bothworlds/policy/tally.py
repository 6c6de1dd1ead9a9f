"""What a policy counts of its own doing, by context and arm: decided, answered, and the sum of losses.

Counting must not be felt: `Policy.act` adds 1 to a number in a list, `Policy.update` to two. Batches are added as
arrays. A decision counts as decided when the policy takes it; one that the policy hears of with its feedback only, of
a plan, under a given id, or lost with an earlier process, counts then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.policy.decision import Decision
from bothworlds.policy.health import Health, Tables, health_of
from bothworlds.problem import Problem
from bothworlds.problem.feedback import total_reward
from bothworlds.theory.confidence import drift_of

CONTEXT, ARM = (Decision._fields.index(name) for name in ("context", "arm"))


class Tally:
    """Three tables of counts, as lists of rows for one decision, and as arrays for many.

    >>> tally = Tally((2, 3))
    >>> tally.decided[1][2] += 1
    >>> tally.answered[1][2], tally.losses[1][2] = 1, -0.5
    >>> tally.answer_all(np.array([1, 1]), np.array([2, 0]), np.array([0.25, 0.5]), np.array([0.0, 1.0]))
    >>> [table[1].tolist() for table in tally.tables()]
    [[1.0, 0.0, 1.0], [1.0, 0.0, 2.0], [0.5, 0.0, -0.25]]
    """

    def __init__(self, shape: tuple[int, int], start: Tables | None = None) -> None:
        self._many = np.zeros((3, *shape)) if start is None else np.array(start, dtype=np.float64)
        self.decided = [[0] * shape[1] for _ in range(shape[0])]
        self.answered = [[0] * shape[1] for _ in range(shape[0])]
        self.losses = [[0.0] * shape[1] for _ in range(shape[0])]

    def answer_all(self, xs: Ints, arms: Ints, losses: Floats, strange: Floats | None) -> None:
        """Count many answers, and as decided those of decisions that are strange: 1, or 0."""
        decided, answered, sums = self._many.reshape(3, -1)
        places = xs * self._many.shape[2] + arms  # one index instead of two: a tenth of the time
        if strange is not None:
            np.add.at(decided, places, strange)
        np.add.at(answered, places, 1.0)
        np.add.at(sums, places, losses)

    def tables(self) -> Tables:
        """Return decided, answered and the sum of losses."""
        return Tables(*(self._many + np.array([self.decided, self.answered, self.losses], dtype=np.float64)))


class Counts:
    """What a policy counts: its own decisions and, apart from them, those held out.

    ``since`` is how many updates went before counting began; ``before`` has how often each context had come when the
    present law of contexts was given.
    """

    def __init__(self, shape: tuple[int, int], *, since: int = 0, kept: Mapping[str, Any] | None = None) -> None:
        tables = [None, None] if kept is None else [Tables(*part) for part in kept["tables"]]
        self.own, self.held = (Tally(shape, start) for start in tables)
        self.since = since
        self.before: Floats = np.zeros(shape[0]) if kept is None else kept["before"]

    def answer_all(self, batch: Sequence[Decision], losses: Floats, strange: Floats | None) -> None:
        """Count answers of a batch, and as decided those that are strange to the policy: 1, or 0."""
        xs, arms = (np.array([made[field] for made in batch], dtype=np.int64) for field in (CONTEXT, ARM))
        held = np.array([made.holdout for made in batch], dtype=bool)
        for tally, mine in ((self.own, ~held), (self.held, held)):
            tally.answer_all(xs[mine], arms[mine], losses[mine], None if strange is None else strange[mine])

    def moved(self, old: Problem, new: Problem) -> "Counts":
        """Return the counts on another problem, of pairs that are still there by their names; a new law begins."""
        xs, arms = (
            np.array([before.index(name) if name in before else -1 for name in after])
            for before, after in ((old.contexts, new.contexts), (old.arms, new.arms))
        )
        there = np.outer(xs >= 0, arms >= 0)
        tables = np.array([tally.tables() for tally in (self.own, self.held)])[:, :, xs][:, :, :, arms] * there
        made = Counts(new.available.shape, since=self.since, kept={"tables": tables, "before": np.zeros(len(xs))})
        made.begin_law()
        return made

    def visits(self) -> Floats:
        """Return how often each context has come since the present law was given."""
        return self.come() - self.before

    def come(self) -> Floats:
        """Return how often each context has come in all."""
        return np.asarray(sum(tally.tables().decided.sum(axis=1) for tally in (self.own, self.held)))

    def begin_law(self, come: Floats | None = None) -> None:
        """Begin to count contexts for another law, from now or from when so many had come."""
        self.before = self.come() if come is None else come

    def health(self, problem: Problem, pi: Floats, *, alpha: float, holds_out: bool) -> Health:
        """Tell how a policy with the plan pi is doing."""
        own, held = (rewards_from(_whole(tally.tables()), problem.reward_range) for tally in (self.own, self.held))
        return health_of(
            problem,
            decided=own.decided,
            answered=own.answered,
            rewards=own.sums,
            probabilities=pi,
            holdout=held if holds_out or held.decided.any() else None,
            drift=drift_of(self.visits(), problem.probabilities),
            alpha=alpha,
            since=self.since,
        )

    def header(self) -> dict[str, Any]:
        """Return what a file's header keeps."""
        return {"counted_since": self.since}

    def arrays(self) -> dict[str, Any]:
        """Return what a file keeps as arrays."""
        tables = np.array([tally.tables() for tally in (self.own, self.held)])
        return {"counts.tables": tables, "counts.before": self.before}


def _whole(tables: Tables) -> Tables:
    """Count as decided at least what was answered: an arm that went, and came back, has lost what it had decided."""
    return tables._replace(decided=np.maximum(tables.decided, tables.answered))


def rewards_from(tables: Tables, reward_range: tuple[float, float] | None) -> Tables:
    """Return tables with sums of rewards in the user's units, from those of losses.

    >>> one = np.ones((1, 1))
    >>> rewards_from(Tables(4 * one, 4 * one, -2 * one), (0.0, 1.0)).sums.tolist()
    [[3.0]]
    """
    return tables._replace(sums=total_reward(tables.sums, tables.answered, reward_range))
