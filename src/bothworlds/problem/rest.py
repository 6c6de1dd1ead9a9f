"""Rare rows of a sample as one context, the catch-all for whatever else may come."""

from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats
from bothworlds.problem.checks import is_number
from bothworlds.problem.sample import Support


def rare_rows(support: Support, rare: float, other: str | None) -> Bools:
    """Return which rows have a share below ``rare`` and become the context ``other``."""
    if not is_number(rare) or not 0.0 <= rare < 1.0:
        raise ValueError(f"rare is a share of the traffic in [0, 1); got {rare!r}")
    found: Bools = support.probabilities < rare
    if rare > 0.0 and other is None:
        raise ValueError("rare rows need a context to become: name it with other=")
    return found


def without(support: Support, rare: Bools) -> Support:
    """Return the rows that are kept; their shares sum to less than 1."""
    rows = [row for row, out in zip(support.rows, rare, strict=True) if not out]
    return Support(rows, support.columns, support.probabilities[~rare])


def joined(values: Any, shares: Floats, rare: Bools) -> Floats:
    """Return an array over rows with the rare ones replaced by their mean, weighted by share, at the end.

    Losses linear in features stay so: the mean loss of the rest is that of its mean features.

    >>> joined([[1.0], [2.0], [4.0]], np.array([0.5, 0.375, 0.125]), np.array([False, True, True])).tolist()
    [[1.0], [2.5]]
    """
    array = np.asarray(values, dtype=np.float64)
    if not rare.any():
        return array
    mean = np.average(array[rare], axis=0, weights=shares[rare])
    return np.concatenate([array[~rare], mean[None]])
