"""Ends of an interval that is defined by a membership test, by bisection."""

from collections.abc import Callable

import numpy as np

from bothworlds.arrays import Bools, Floats

HALVINGS = 64  # the remaining width of [0, 1] is below the spacing of doubles near 1/2


def mean_of(n: Floats, s: Floats) -> Floats:
    """Return the mean s/n, which every interval contains; 1/2 without observations.

    >>> mean_of(np.array([0.0, 4.0]), np.array([0.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    return np.where(n > 0.0, s / np.maximum(n, 1.0), 0.5)


def outer_ends(is_in: Callable[[Floats], Bools], mean: Floats) -> tuple[Floats, Floats]:
    """Return the last outside points when bisecting from 0 and from 1 towards ``mean``; 0 and 1 where these are inside.

    >>> low, high = outer_ends(lambda m: m > 0.25, np.array([0.5]))
    >>> low.tolist(), high.tolist()
    ([0.25], [1.0])
    """
    outside = np.stack([np.zeros_like(mean), np.ones_like(mean)])  # one array: calls dominate the time
    inside = np.where(is_in(outside), outside, mean)
    for _ in range(HALVINGS):
        middle = 0.5 * (outside + inside)
        contained = is_in(middle)
        inside, outside = np.where(contained, middle, inside), np.where(contained, outside, middle)
    return outside[0], outside[1]
