"""Feedback on its way into a policy: which was given, what to call a decision, and batches as columns."""

import math
from typing import Any

import numpy as np

from bothworlds.decision import Decision
from bothworlds.identity import MADE
from bothworlds.kernels.arrays import Floats


def word_of(made: Decision) -> str:
    """Return how to call a decision in a sentence: by its round, or by the id that was given."""
    return f"round {made.round}" if made.source[:1] == MADE else f"decision {made.source!r}"


def columns_of(
    batch: list[Decision], cells: tuple[int, int], carried: tuple[int, int], *, has_baseline: bool
) -> tuple[Any, ...] | None:
    """Return a batch as columns: contexts, arms, propensities, directions and baselines; None if they do not fit.

    ``cells`` is how many contexts and arms there are, ``carried`` how long directions and baselines are.
    """
    n, (length, further) = len(batch), carried
    directions = [made.direction for made in batch]
    baselines = [made.baseline for made in batch if made.baseline is not None]
    if {part.shape for part in directions} != {(length,)} or len(baselines) != n * has_baseline:
        return None
    if baselines and {part.shape for part in baselines} != {(further,)}:
        return None
    xs, arms = [made.context for made in batch], [made.arm for made in batch]
    if min(xs) < 0 or max(xs) >= cells[0] or min(arms) < 0 or max(arms) >= cells[1]:
        return None
    return (
        np.array(xs),
        np.array(arms),
        np.array([made.propensity for made in batch], dtype=np.float64),
        np.concatenate(directions).reshape(n, length),
        np.concatenate(baselines).reshape(n, further) if baselines else np.zeros((n, further)),
    )


def one_of(loss: Any, reward: Any) -> tuple[Any, bool]:
    """Return what was given, and whether it is a reward."""
    if (loss is None) == (reward is None):
        raise ValueError("give either loss= or reward=, one of the two")
    return (reward, True) if loss is None else (loss, False)


def condition_of(sigma: Floats) -> float:
    """Return the condition number of a matrix of which the lower triangle is at hand."""
    with np.errstate(all="ignore"):
        whole = np.tril(sigma) + np.tril(sigma, -1).T
        return float(np.linalg.cond(whole)) if np.isfinite(whole).all() else math.inf
