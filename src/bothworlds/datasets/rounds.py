"""A recorded sequence of contexts with the reward of every arm in every round."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.problem import Problem
from bothworlds.problem.checks import frozen_array


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """A sequence of contexts (T,) with the rewards of all arms (T, K), in the units of the problem.

    ``bw.rehearse(rounds, algorithm)`` plays it: the learner sees the context and the reward of the chosen arm only.

    >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    >>> rounds = Rounds(problem=problem, contexts=np.array([0, 1, 0]), rewards=np.array([[1, 0], [0, 1], [1, 0]]))
    >>> rounds.best_table().tolist(), rounds.best_total()
    ([0, 1], 3.0)
    """

    problem: Problem
    contexts: Ints
    rewards: Floats

    def __post_init__(self) -> None:
        indices, rewards = np.asarray(self.contexts), np.asarray(self.rewards, dtype=np.float64)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise ValueError(f"contexts must be a list of whole numbers; got {indices.dtype} of shape {indices.shape}")
        contexts = indices.astype(np.int64)
        if rewards.shape != (len(contexts), self.problem.n_arms) or not np.isfinite(rewards).all():
            raise ValueError(
                f"rewards must be finite and have shape ({len(contexts)}, {self.problem.n_arms}), a row for each "
                f"context and a column for each arm; got shape {rewards.shape}"
            )
        low, high = self.problem.reward_range or (-1.0, 1.0)
        if len(contexts) and not 0 <= contexts.min() <= contexts.max() < self.problem.n_contexts:
            raise ValueError(f"contexts must be numbers from 0 to {self.problem.n_contexts - 1}")
        outside = self.problem.available[contexts] & ~((low <= rewards) & (rewards <= high))
        if outside.any():
            t = int(outside.any(axis=1).argmax())
            raise ValueError(
                f"rewards must lie in the problem's reward range [{low:g}, {high:g}]; row {t} is {rewards[t]}"
            )
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "rewards", rewards)

    def __len__(self) -> int:
        return len(self.contexts)

    def totals(self) -> Floats:
        """Return the sum of rewards of every arm in every context, (S, K); -inf where an arm is not offered."""
        table = np.zeros(self.problem.available.shape)
        np.add.at(table, self.contexts, self.rewards)
        return np.where(self.problem.available, table, -np.inf)

    def best_table(self) -> Ints:
        """Return the arm of each context (S,) with the largest total reward in hindsight."""
        return np.asarray(self.totals().argmax(axis=1), dtype=np.int64)

    def best_total(self) -> float:
        """Return the total reward of the best table in hindsight."""
        return float(self.totals().max(axis=1).sum())

    def regret(self, rewards: Any) -> float:
        """Return the total reward of the best table in hindsight less the sum of rewards (T,)."""
        earned = frozen_array(rewards, "rewards")
        if earned.shape != (len(self),):
            raise ValueError(
                f"rewards must have one entry for each of the {len(self)} rounds; got shape {earned.shape}"
            )
        return self.best_total() - float(earned.sum())
