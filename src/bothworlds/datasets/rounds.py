"""Rounds as they came: contexts in their order, and what every arm would have brought."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.problem import Problem
from bothworlds.problem.checks import frozen_array


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """A sequence of contexts (T,) with the rewards of all arms (T, K), in the units of the problem.

    ``bw.rehearse(rounds, algorithm)`` plays it: the learner sees the context and the reward of its arm, no other.

    >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    >>> rounds = Rounds(problem=problem, contexts=np.array([0, 1, 0]), rewards=np.array([[1, 0], [0, 1], [1, 0]]))
    >>> rounds.best_table().tolist(), rounds.best_total()
    ([0, 1], 3.0)
    """

    problem: Problem
    contexts: Ints
    rewards: Floats

    def __post_init__(self) -> None:
        given, rewards = np.asarray(self.contexts), np.asarray(self.rewards, dtype=np.float64)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError(f"contexts must be a list of whole numbers; got {given.dtype} of shape {given.shape}")
        contexts = given.astype(np.int64)
        if rewards.shape != (len(contexts), self.problem.n_arms) or not np.isfinite(rewards).all():
            raise ValueError(
                f"rewards must be finite and have shape ({len(contexts)}, {self.problem.n_arms}), a row for each "
                f"context and a column for each arm; got shape {rewards.shape}"
            )
        low, high = self.problem.reward_range or (-1.0, 1.0)
        if len(contexts) and not 0 <= contexts.min() <= contexts.max() < self.problem.n_contexts:
            raise ValueError(f"contexts must be numbers from 0 to {self.problem.n_contexts - 1}")
        strange = self.problem.available[contexts] & ~((low <= rewards) & (rewards <= high))
        if strange.any():
            t = int(strange.any(axis=1).argmax())
            raise ValueError(f"rewards must lie in [{low:g}, {high:g}], as the problem says; row {t} is {rewards[t]}")
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "rewards", rewards)

    def __len__(self) -> int:
        return len(self.contexts)

    def totals(self) -> Floats:
        """Return the sum of rewards of every arm in every context, (S, K)."""
        table = np.zeros(self.problem.available.shape)
        np.add.at(table, self.contexts, self.rewards)
        return np.where(self.problem.available, table, -np.inf)

    def best_table(self) -> Ints:
        """Return the arm of each context (S,) that would have brought most, in hindsight."""
        return np.asarray(self.totals().argmax(axis=1), dtype=np.int64)

    def best_total(self) -> float:
        """Return what the best table in hindsight would have brought."""
        return float(self.totals().max(axis=1).sum())

    def regret(self, rewards: Any) -> float:
        """Return how much less rewards (T,) are than those of the best table in hindsight."""
        had = frozen_array(rewards, "rewards")
        if had.shape != (len(self),):
            raise ValueError(f"rewards must be those of all {len(self)} rounds, one for each; got shape {had.shape}")
        return self.best_total() - float(had.sum())
