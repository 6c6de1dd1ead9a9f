"""Rounds as they came: contexts in their order, and what every arm would have brought."""

from dataclasses import dataclass

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.problem import Problem


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
        if len(contexts) and not 0 <= contexts.min() <= contexts.max() < self.problem.n_contexts:
            raise ValueError(f"contexts must be numbers from 0 to {self.problem.n_contexts - 1}")
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

    def regret(self, rewards: Floats) -> float:
        """Return how much less rewards (T,) are than those of the best table in hindsight."""
        return self.best_total() - float(rewards.sum())
