"""Labelled rows as a contextual bandit: a row is a context, classes are arms, the right one earns 1."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.problem.checks import check_known, frozen_array, whole

StreamOrder: TypeAlias = Literal["shuffled", "drift", "corrupted", "alternating"]
BLOCK = 100  # rounds; every third block of an alternating stream has shifted labels
CORRUPTED = 10  # the first T // 10 rounds of a corrupted stream have flipped rewards


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Rows in the order in which they are played, with the reward of every arm.

    Attributes
    ----------
    name
        Name of the data set.
    contexts
        Features of every row (T, p), without a constant. Those of `read_stream` have mean 0 and standard deviation 1 in
        every column over the whole table, and are cut off at -5 and 5.
    rewards
        Reward in [0, 1] of every arm in every round, (T, K).
    labels
        The right arm of every round (T,).

    >>> rows = Stream.labelled("toy", contexts=[[0.5], [-1.0]], labels=[2, 0], arms=3)
    >>> rows.rewards.tolist(), rows.uniform_reward(), len(rows)
    ([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], 0.3333333333333333, 2)
    """

    name: str
    contexts: Floats
    rewards: Floats
    labels: Ints

    def __post_init__(self) -> None:
        contexts, rewards = frozen_array(self.contexts, "contexts"), frozen_array(self.rewards, "rewards")
        labels = _whole_labels(self.labels)
        if contexts.ndim != 2 or rewards.ndim != 2 or not len(contexts) == len(rewards) == len(labels):
            raise ValueError(
                "contexts must have shape (rounds, features), rewards (rounds, arms) and labels (rounds,); got "
                f"{contexts.shape}, {rewards.shape} and {labels.shape}"
            )
        if rewards.shape[1] < 2:
            raise ValueError(f"a stream needs at least two arms; rewards have shape {rewards.shape}")
        if rewards.size and not 0.0 <= rewards.min() <= rewards.max() <= 1.0:
            raise ValueError(f"rewards must lie in [0, 1]; they lie in [{rewards.min():g}, {rewards.max():g}]")
        if labels.size and not 0 <= labels.min() <= labels.max() < rewards.shape[1]:
            raise ValueError(f"labels must be numbers of arms, from 0 to {rewards.shape[1] - 1}")
        for name, value in (("contexts", contexts), ("rewards", rewards), ("labels", labels)):
            object.__setattr__(self, name, value)

    @classmethod
    def labelled(cls, name: str, *, contexts: Any, labels: Any, arms: int) -> "Stream":
        """Return the stream in which the arm with the number of the label earns 1 and the others nothing."""
        labels = _whole_labels(labels)
        if labels.size and not 0 <= labels.min() <= labels.max() < whole(arms, 2, "arms"):
            raise ValueError(f"labels must be numbers of arms, from 0 to {arms - 1}")
        return cls(name=name, contexts=contexts, rewards=np.eye(arms)[labels], labels=labels)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.rewards.shape[1])

    def uniform_reward(self) -> float:
        """Return the expected reward per round of uniform play."""
        return float(self.rewards.mean())

    def constant_reward(self) -> float:
        """Return the reward per round of the best single arm in hindsight."""
        return float(self.rewards.mean(axis=0).max())

    def linear_reward(self, *, ridge: float = 1.0) -> float:
        """Return the reward per round, in hindsight, of one linear model per arm fitted to the rewards of all arms.

        Ridge regression on the contexts and a constant; the arm with the largest prediction is played in every round.
        The best fixed linear policy may earn more: least squares does not look for it.
        """
        x = np.column_stack([np.ones(len(self)), self.contexts])
        predicted = x @ np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ self.rewards)
        return float(self.rewards[np.arange(len(self)), predicted.argmax(axis=1)].mean())

    def from_round(self, first: int) -> "Stream":
        """Return the rounds from the given one on, counted from 0."""
        return replace(self, contexts=self.contexts[first:], rewards=self.rewards[first:], labels=self.labels[first:])

    def __repr__(self) -> str:
        return f"Stream({self.name}: {len(self):,} rounds, {self.arms} arms, {self.contexts.shape[1]} features)"


def shuffled(rows: Stream) -> Stream:
    """Return the stream itself: its rows are shuffled when it is made."""
    return rows


def drift(rows: Stream) -> Stream:
    """Return the stream with all labels shifted by one arm from the middle on.

    >>> drift(Stream.labelled("toy", contexts=np.zeros((4, 1)), labels=[0, 2, 0, 2], arms=3)).labels.tolist()
    [0, 2, 1, 0]
    """
    return _shifted(rows, np.arange(len(rows)) >= len(rows) // 2)


def corrupted(rows: Stream) -> Stream:
    """Return the stream with 1 - reward for the rewards of the first tenth of the rounds; labels stay as they are."""
    first = np.arange(len(rows)) < len(rows) // CORRUPTED
    return replace(rows, rewards=np.where(first[:, None], 1.0 - rows.rewards, rows.rewards))


def alternating(rows: Stream) -> Stream:
    """Return the stream with all labels shifted by one arm in every third block of 100 rounds."""
    return _shifted(rows, np.arange(len(rows)) // BLOCK % 3 == 2)


ORDERS: dict[StreamOrder, Callable[[Stream], Stream]] = {
    "shuffled": shuffled,
    "drift": drift,
    "corrupted": corrupted,
    "alternating": alternating,
}


def in_order(rows: Stream, order: StreamOrder) -> Stream:
    """Return the stream in one of four orders: "shuffled", "drift", "corrupted", "alternating".

    They follow the bake-off of Bietti, Agarwal and Langford (2021) and add three worlds that change. "drift": labels
    are shifted by one arm from the middle on. "corrupted": rewards of the first tenth of the rounds are flipped.
    "alternating": labels are shifted by one arm in every third block of 100 rounds.

    >>> rows = Stream.labelled("toy", contexts=np.zeros((20, 1)), labels=[1] * 20, arms=2)
    >>> in_order(rows, "corrupted").rewards[1:3].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_known([order], get_args(StreamOrder), "order")
    return ORDERS[order](rows)


def _shifted(rows: Stream, where: Any) -> Stream:
    """Return the stream with labels and rewards shifted by one arm in the given rounds."""
    rewards = np.where(where[:, None], np.roll(rows.rewards, 1, axis=1), rows.rewards)
    return replace(rows, rewards=rewards, labels=np.where(where, (rows.labels + 1) % rows.arms, rows.labels))


def _whole_labels(labels: Any) -> Ints:
    """Return labels as whole numbers; raise ValueError for anything else."""
    found = np.asarray(labels)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"labels must be a list of whole numbers; got {found.dtype} of shape {found.shape}")
    return found.astype(np.int64)
