"""Checks of feedback before a policy learns from it, batches as columns, and error messages."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.kernels.status import sentence
from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback_registry import Identified
from bothworlds.policy.ids import ISSUED
from bothworlds.problem import Problem
from bothworlds.problem.rewards import checked_loss


class Owned(Protocol):
    """A decision with the name of its policy."""

    @property
    def policy(self) -> str:
        """Name of the policy."""


class DecisionBatch(NamedTuple):
    """A batch of decisions as columns: indices of contexts and arms, propensities, directions and baselines as rows."""

    contexts: Ints
    arms: Ints
    propensities: Floats
    directions: Floats
    baselines: Floats


def label_of(decision: Identified) -> str:
    """Return the label of a decision in messages: its round, or its id if that was given."""
    return f"round {decision.round}" if decision.source[:1] == ISSUED else f"decision {decision.source!r}"


def columns_of(
    batch: list[Decision], shape: tuple[int, int], carried: tuple[int, int], *, has_baseline: bool
) -> DecisionBatch | None:
    """Return a batch as columns; None if some indices or lengths do not fit.

    ``shape`` has the numbers of contexts and arms, ``carried`` the lengths of directions and baselines.
    """
    n, (direction_length, baseline_length) = len(batch), carried
    directions = [decision.direction for decision in batch]
    baselines = [decision.baseline for decision in batch if decision.baseline is not None]
    if {direction.shape for direction in directions} != {(direction_length,)} or len(baselines) != n * has_baseline:
        return None
    if baselines and {baseline.shape for baseline in baselines} != {(baseline_length,)}:
        return None
    xs, arms = [decision.context for decision in batch], [decision.arm for decision in batch]
    if min(xs) < 0 or max(xs) >= shape[0] or min(arms) < 0 or max(arms) >= shape[1]:
        return None
    return DecisionBatch(
        np.array(xs),
        np.array(arms),
        np.array([decision.propensity for decision in batch], dtype=np.float64),
        np.concatenate(directions).reshape(n, direction_length),
        np.concatenate(baselines).reshape(n, baseline_length) if baselines else np.zeros((n, baseline_length)),
    )


def check_columns(columns: DecisionBatch, n: int, shape: tuple[int, int], carried: tuple[int, int]) -> None:
    """Refuse columns unless they have n rows, valid indices, and directions and baselines of the right lengths.

    ``shape`` has the numbers of contexts and arms, ``carried`` the lengths of directions and baselines.
    """
    shapes, needed = [part.shape for part in columns], [(n,), (n,), (n,), (n, carried[0]), (n, carried[1])]
    if shapes != needed:
        raise ValueError(f"columns of {n} decisions, one for each value, must have shapes {needed}; got {shapes}")
    for name, indices, count in zip(("contexts", "arms"), columns[:2], shape, strict=True):
        if indices.min() < 0 or indices.max() >= count:
            raise ValueError(f"{name} must be numbers from 0 to {count - 1}; got {indices.min()} to {indices.max()}")


def reward_or_loss(loss: Any, reward: Any) -> tuple[Any, bool]:
    """Return the one of the two that was given, and whether it is the reward."""
    if (loss is None) == (reward is None):
        raise ValueError("give either loss= or reward=")
    return (reward, True) if loss is None else (loss, False)


def loss_from(loss: Any, reward: Any, reward_range: tuple[float, float] | None) -> float:
    """Return the loss in [-1, 1] that either argument means; the first branch is the fast path."""
    if reward is None and type(loss) is float and -1.0 <= loss <= 1.0:
        return loss
    given, is_reward = reward_or_loss(loss, reward)
    return checked_loss(given, is_reward=is_reward, reward_range=reward_range)


def check_owner(decision: Owned, name: str) -> None:
    """Refuse a decision of another policy than the one with this name."""
    if decision.policy != name:
        raise ValueError(f"the decision is of policy {decision.policy!r}, but this is policy {name!r}")


def check_once(batch: Sequence[Identified]) -> None:
    """Refuse a batch that has a decision twice."""
    if len({(decision.source, decision.round) for decision in batch}) < len(batch):
        raise ValueError("a decision is in the batch twice; each takes feedback once")


def batch_of(decisions: Any, values: Any) -> list[Decision]:
    """Return decisions as a list; refuse other objects, and values that are not a sequence of the same length."""
    if isinstance(decisions, Mapping):
        raise ValueError("this is a decision's dictionary: convert it with Decision.from_dict")
    batch = list(decisions) if isinstance(decisions, Iterable) else [decisions]
    others = [item for item in batch if not isinstance(item, Decision)]
    if others:
        raise ValueError(f"feedback needs a decision, as returned by act, or a list of them; got {others[0]!r:.80}")
    if isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__") or len(values) != len(batch):
        raise ValueError(f"a batch of {len(batch)} decisions needs as many values, in the same order; got {values!r}")
    return batch


def damage_message(decision: Decision) -> str:
    """Return the error message for a damaged decision."""
    return (
        f"{label_of(decision)}: propensity, direction or baseline damaged: no plan of this policy plays arm "
        f"{decision.arm} in context {decision.context} with such numbers. Nothing was learned; if the decision was "
        "read from a log, read that line again, or close the round with expire"
    )


def failure_message(status: int, state: Any, problem: Problem) -> str:
    """Return the error message for an update that was not applied, with the state that it led to."""
    rarest = int(problem.probabilities.argmin())
    condition = condition_of(state.sigma) if hasattr(state, "sigma") else math.nan
    return (
        f"{sentence(status)} at t = {int(state.t[0])} (condition number {condition:.3g}, rarest context "
        f"{problem.contexts[rarest]!r} with probability {problem.probabilities[rarest]:.3g}). "
        "The update was not applied; more exploration or better scaled features avoid this"
    )


def condition_of(sigma: Floats) -> float:
    """Return the condition number of a symmetric matrix, given its lower triangle."""
    with np.errstate(all="ignore"):
        matrix = np.tril(sigma) + np.tril(sigma, -1).T
        return float(np.linalg.cond(matrix)) if np.isfinite(matrix).all() else math.inf
