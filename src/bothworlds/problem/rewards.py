"""Conversion and validation of rewards and losses; losses lie in [-1, 1]."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from bothworlds.arrays import Floats

Feedback: TypeAlias = float | Sequence[float] | Floats | None  # of one decision, or of a batch in its order
FEW = 16  # fewer values are checked faster one by one than as an array


def loss_of(reward: float, reward_range: tuple[float, float] | None) -> float:
    """Return the loss of a reward: -reward, or (lo + hi - 2 reward)/(hi - lo) with a range.

    >>> loss_of(1.0, (0.0, 1.0))
    -1.0
    """
    if reward_range is None:
        return -reward
    lo, hi = reward_range
    return (lo + hi - 2.0 * reward) / (hi - lo)


def total_reward(losses: Floats, count: Floats | float, reward_range: tuple[float, float] | None) -> Floats:
    """Return sums of rewards, in the user's units, for sums of losses; ``count`` is the number of losses in each sum.

    >>> total_reward(np.array([-2.0, 2.0]), 10, (0.0, 1.0)).tolist()
    [6.0, 4.0]
    """
    if reward_range is None:
        return -losses
    lo, hi = reward_range
    return np.asarray(0.5 * ((lo + hi) * count - (hi - lo) * losses))


def reward_per_loss(reward_range: tuple[float, float] | None) -> float:
    """Return the reward that corresponds to one unit of loss."""
    return 1.0 if reward_range is None else (reward_range[1] - reward_range[0]) / 2.0


def checked_loss(given: Any, *, is_reward: bool, reward_range: tuple[float, float] | None) -> float:
    """Return the loss for a given loss or reward; raise ValueError if it is not a number or out of range."""
    word = "reward" if is_reward else "loss"
    number: Any = None if isinstance(given, str | bytes) else given  # float() would accept "0.5"
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{word} must be a number; got {given!r}") from None
    limits = reward_range if is_reward else None
    lo, hi = limits or (-1.0, 1.0)
    if not lo <= value <= hi:
        where = "its reward_range" if limits else "[-1, 1]; a Problem with reward_range=(lo, hi) rescales rewards"
        raise ValueError(f"{word} {value!r} is outside [{lo:g}, {hi:g}]. The problem expects {where}")
    # Rescaling may exceed the range by one unit in the last place.
    return min(max(loss_of(value, reward_range), -1.0), 1.0) if is_reward else value


def checked_losses(given: Any, *, is_reward: bool, reward_range: tuple[float, float] | None) -> Floats:
    """Return the losses for a sequence of losses or rewards, each bit for bit as in `checked_loss`.

    >>> checked_losses([0.0, 1.0], is_reward=True, reward_range=(0.0, 1.0)).tolist()
    [1.0, -1.0]
    """
    lo, hi = (reward_range if is_reward else None) or (-1.0, 1.0)
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.float64), np.nan)  # masked entries have no value
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
