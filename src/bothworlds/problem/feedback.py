"""What a user says of an outcome, as a loss in [-1, 1]."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from bothworlds.kernels.arrays import Floats

Feedback: TypeAlias = float | Sequence[float] | Floats | None  # of one decision, or of a batch in its order
FEW = 16  # as many are checked one by one in less time than it takes to begin with arrays


def loss_of(reward: float, reward_range: tuple[float, float] | None) -> float:
    """Turn a reward into a loss: -reward, or (lo + hi - 2 reward)/(hi - lo) with a range.

    >>> loss_of(1.0, (0.0, 1.0))
    -1.0
    """
    if reward_range is None:
        return -reward
    lo, hi = reward_range
    return (lo + hi - 2.0 * reward) / (hi - lo)


def total_reward(losses: Floats, count: Floats | float, reward_range: tuple[float, float] | None) -> Floats:
    """Turn sums of losses back into sums of rewards in the user's units; ``count`` is how many losses are in a sum.

    >>> total_reward(np.array([-2.0, 2.0]), 10, (0.0, 1.0)).tolist()
    [6.0, 4.0]
    """
    if reward_range is None:
        return -losses
    lo, hi = reward_range
    return np.asarray(0.5 * ((lo + hi) * count - (hi - lo) * losses))


def reward_per_loss(reward_range: tuple[float, float] | None) -> float:
    """Return how much reward one unit of loss is worth."""
    return 1.0 if reward_range is None else (reward_range[1] - reward_range[0]) / 2.0


def checked_loss(given: Any, *, is_reward: bool, reward_range: tuple[float, float] | None) -> float:
    """Return the loss that a loss or a reward means; refuse what is no number or out of range."""
    word = "reward" if is_reward else "loss"
    number: Any = None if isinstance(given, str | bytes) else given  # texts that look like numbers are none
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{word} must be a number; got {given!r}") from None
    limits = reward_range if is_reward else None
    lo, hi = limits or (-1.0, 1.0)
    if not lo <= value <= hi:
        where = "its reward_range" if limits else "[-1, 1]; a Problem with reward_range=(lo, hi) rescales rewards"
        raise ValueError(f"{word} {value!r} is outside [{lo:g}, {hi:g}]. The problem expects {where}")
    # Rounding in the rescaling may overstep by one unit in the last place.
    return min(max(loss_of(value, reward_range), -1.0), 1.0) if is_reward else value


def checked_losses(given: Any, *, is_reward: bool, reward_range: tuple[float, float] | None) -> Floats:
    """Return the losses that a sequence of losses or rewards means, each as `checked_loss` has it, bit for bit.

    >>> checked_losses([0.0, 1.0], is_reward=True, reward_range=(0.0, 1.0)).tolist()
    [1.0, -1.0]
    """
    lo, hi = (reward_range if is_reward else None) or (-1.0, 1.0)
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.float64), np.nan)  # what lies under the mask is no value
    values: Floats = np.full(1, np.nan)
    try:
        plain = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        plain = values
    if plain.dtype.kind in "biuf":
        values = plain.astype(np.float64)
    if values.ndim != 1 or len(values) < FEW or not ((lo <= values) & (values <= hi)).all():
        return np.array([checked_loss(value, is_reward=is_reward, reward_range=reward_range) for value in given])
    if not is_reward:
        return values
    losses = -values if reward_range is None else (lo + hi - 2.0 * values) / (hi - lo)
    return np.minimum(np.maximum(losses, -1.0), 1.0)
