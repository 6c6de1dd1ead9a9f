"""Feedback on its way into a policy: which was given, batches as columns, and sentences where it fails."""

import math
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.status import sentence
from bothworlds.policy.decision import Decision
from bothworlds.policy.identity import MADE
from bothworlds.problem import Problem
from bothworlds.problem.feedback import checked_loss


class Columns(NamedTuple):
    """A batch of decisions as columns: indices of contexts and arms, propensities, and what each carries, as rows."""

    contexts: Ints
    arms: Ints
    propensities: Floats
    directions: Floats
    baselines: Floats


def word_of(made: Decision) -> str:
    """Return how to call a decision in a sentence: by its round, or by the id that was given."""
    return f"round {made.round}" if made.source[:1] == MADE else f"decision {made.source!r}"


def columns_of(
    batch: list[Decision], listed: tuple[int, int], carried: tuple[int, int], *, has_baseline: bool
) -> Columns | None:
    """Return a batch as columns: contexts, arms, propensities, directions and baselines; None if they do not fit.

    ``listed`` is how many contexts and arms there are, ``carried`` how long directions and baselines are.
    """
    n, (length, further) = len(batch), carried
    directions = [made.direction for made in batch]
    baselines = [made.baseline for made in batch if made.baseline is not None]
    if {part.shape for part in directions} != {(length,)} or len(baselines) != n * has_baseline:
        return None
    if baselines and {part.shape for part in baselines} != {(further,)}:
        return None
    xs, arms = [made.context for made in batch], [made.arm for made in batch]
    if min(xs) < 0 or max(xs) >= listed[0] or min(arms) < 0 or max(arms) >= listed[1]:
        return None
    return Columns(
        np.array(xs),
        np.array(arms),
        np.array([made.propensity for made in batch], dtype=np.float64),
        np.concatenate(directions).reshape(n, length),
        np.concatenate(baselines).reshape(n, further) if baselines else np.zeros((n, further)),
    )


def check_columns(columns: Columns, n: int, listed: tuple[int, int], carried: tuple[int, int]) -> None:
    """Refuse columns that are not of n decisions, or not of this many contexts, arms and numbers carried."""
    shapes, needed = [part.shape for part in columns], [(n,), (n,), (n,), (n, carried[0]), (n, carried[1])]
    if shapes != needed:
        raise ValueError(f"columns of {n} decisions, one for each value, must have shapes {needed}; got {shapes}")
    for word, indices, count in zip(("contexts", "arms"), columns[:2], listed, strict=True):
        if indices.min() < 0 or indices.max() >= count:
            raise ValueError(f"{word} must be numbers from 0 to {count - 1}; got {indices.min()} to {indices.max()}")


def one_of(loss: Any, reward: Any) -> tuple[Any, bool]:
    """Return what was given, and whether it is a reward."""
    if (loss is None) == (reward is None):
        raise ValueError("give either loss= or reward=, one of the two")
    return (reward, True) if loss is None else (loss, False)


def loss_from(loss: Any, reward: Any, reward_range: tuple[float, float] | None) -> float:
    """Return the loss that one of the two means; a loss in its range, the quickest, is taken as it is."""
    if reward is None and type(loss) is float and -1.0 <= loss <= 1.0:
        return loss
    given, is_reward = one_of(loss, reward)
    return checked_loss(given, is_reward=is_reward, reward_range=reward_range)


def check_owner(made: Decision, name: str) -> None:
    """Refuse a decision of another policy than the one of that name."""
    if made.policy != name:
        raise ValueError(f"the decision is of policy {made.policy!r}, this is {name!r}: give it to that one")


def check_once(batch: list[Decision]) -> None:
    """Refuse a batch in which a decision stands twice."""
    if len({(made.source, made.round) for made in batch}) < len(batch):
        raise ValueError("a decision stands twice in the batch; each takes feedback once")


def batch_of(decisions: Any, given: Any) -> list[Decision]:
    """Return a batch of decisions, for as many values as were given; refuse what is none, and values in no order."""
    if isinstance(decisions, Mapping):
        raise ValueError("this is a decision's dictionary; make it a decision again with Decision.from_dict")
    batch = list(decisions) if isinstance(decisions, Iterable) else [decisions]
    strange = [made for made in batch if not isinstance(made, Decision)]
    if strange:
        word = f"{strange[0]!r:.80}"
        raise ValueError(f"feedback is for a decision, as act returned it, or for a list of them; got {word}")
    if isinstance(given, str | bytes | Mapping | Set) or not hasattr(given, "__len__") or len(given) != len(batch):
        raise ValueError(f"a batch of {len(batch)} decisions needs as many values, in their order; got {given!r}")
    return batch


def damaged(made: Decision) -> str:
    """Say of a decision that it is damaged."""
    return (
        f"{word_of(made)}: propensity, direction or baseline damaged: no plan of this policy plays arm {made.arm} in "
        f"context {made.context} with such numbers. Nothing was learnt; if the decision was read from a log, read that "
        "line again, or close the round with expire"
    )


def failed(status: int, state: Any, problem: Problem) -> str:
    """Say why an update was not applied, with the state that it led to."""
    rarest = int(problem.probabilities.argmin())
    condition = condition_of(state.sigma) if hasattr(state, "sigma") else math.nan
    return (
        f"{sentence(status)} at t = {int(state.t[0])} (condition number {condition:.3g}, rarest context "
        f"{problem.contexts[rarest]!r} with probability {problem.probabilities[rarest]:.3g}). "
        "The update was not applied; more exploration or better scaled features avoid this"
    )


def condition_of(sigma: Floats) -> float:
    """Return the condition number of a matrix of which the lower triangle is at hand."""
    with np.errstate(all="ignore"):
        whole = np.tril(sigma) + np.tril(sigma, -1).T
        return float(np.linalg.cond(whole)) if np.isfinite(whole).all() else math.inf
