"""What a policy counts of its own doing, by context and arm: decided, answered, and the sum of losses.

Counting must not be felt: `Policy.act` adds 1 to a number in a list, `Policy.update` to two. Batches are added as
arrays. A decision counts as decided when the policy takes it; one that the policy hears of with its feedback only, of
a plan, under a given id, or lost with an earlier process, counts then.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bothworlds.decision import Decision
from bothworlds.health import Health, health_of
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.problem import Problem
from bothworlds.theory.confidence import drift_of

CONTEXT, ARM = (Decision._fields.index(name) for name in ("context", "arm"))


class Tables(NamedTuple):
    """Decided, answered, and the sum of rewards or losses: (contexts, arms) each."""

    decided: Floats
    answered: Floats
    sums: Floats


class Tally:
    """Three tables of counts, as lists of rows for one decision, and as arrays for many.

    >>> tally = Tally((2, 3))
    >>> tally.decided[1][2] += 1
    >>> tally.answered[1][2], tally.losses[1][2] = 1, -0.5
    >>> tally.answer_all(np.array([1, 1]), np.array([2, 0]), np.array([0.25, 0.5]))
    >>> [table[1].tolist() for table in tally.tables()]
    [[0.0, 0.0, 1.0], [1.0, 0.0, 2.0], [0.5, 0.0, -0.25]]
    """

    def __init__(self, shape: tuple[int, int], start: Tables | None = None) -> None:
        self._many = np.zeros((3, *shape)) if start is None else np.array(start, dtype=np.float64)
        self.decided = [[0] * shape[1] for _ in range(shape[0])]
        self.answered = [[0] * shape[1] for _ in range(shape[0])]
        self.losses = [[0.0] * shape[1] for _ in range(shape[0])]

    def answer_all(self, xs: Ints, arms: Ints, losses: Floats) -> None:
        """Count many answers."""
        np.add.at(self._many[1], (xs, arms), 1.0)
        np.add.at(self._many[2], (xs, arms), losses)

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

    def answer_all(self, batch: Sequence[Decision], losses: Floats, strangers: Sequence[Decision]) -> None:
        """Count answers of a batch, and as decided those of which the policy did not know."""
        for made in strangers:
            (self.held if made.holdout else self.own).decided[made.context][made.arm] += 1
        xs, arms = (np.array([made[field] for made in batch]) for field in (CONTEXT, ARM))
        held = np.array([made.holdout for made in batch])
        for tally, mine in ((self.own, ~held), (self.held, held)):
            if mine.any():
                tally.answer_all(xs[mine], arms[mine], losses[mine])

    def visits(self) -> Floats:
        """Return how often each context has come since the present law was given."""
        return self._all_visits() - self.before

    def _all_visits(self) -> Floats:
        return np.asarray(sum(tally.tables().decided.sum(axis=1) for tally in (self.own, self.held)))

    def begin_law(self) -> None:
        """Begin to count contexts for another law."""
        self.before = self._all_visits()

    def on(self, old: Problem, new: Problem) -> "Counts":
        """Return the counts of pairs that another problem still has, by their names; contexts begin another law."""
        xs, arms = (_places(*names) for names in ((new.contexts, old.contexts), (new.arms, old.arms)))
        both = (xs >= 0)[:, None] & (arms >= 0)[None, :]
        parts = np.array([tally.tables() for tally in (self.own, self.held)])
        tables = np.where(both, parts[:, :, xs[:, None], arms[None, :]], 0.0)
        kept = {"tables": tables, "before": np.zeros(len(xs))}
        made = Counts((len(xs), len(arms)), since=self.since, kept=kept)
        made.begin_law()
        return made

    def health(self, problem: Problem, pi: Floats, *, alpha: float, holds_out: bool) -> Health:
        """Tell how a policy with the plan pi is doing."""
        own, held = (rewards_from(tally.tables(), problem.reward_range) for tally in (self.own, self.held))
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


def _places(names: Sequence[str], others: Sequence[str]) -> Ints:
    """Return where names are among others, -1 where they are not."""
    places = {name: i for i, name in enumerate(others)}
    return np.array([places.get(name, -1) for name in names])


def rewards_from(tables: Tables, reward_range: tuple[float, float] | None) -> Tables:
    """Return tables with sums of rewards in the user's units, from those of losses.

    >>> one = np.ones((1, 1))
    >>> rewards_from(Tables(4 * one, 4 * one, -2 * one), (0.0, 1.0)).sums.tolist()
    [[3.0]]
    """
    if reward_range is None:
        return tables._replace(sums=-tables.sums)
    low, high = reward_range
    return tables._replace(sums=0.5 * ((low + high) * tables.answered - (high - low) * tables.sums))
