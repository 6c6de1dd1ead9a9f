"""The scoreboard's arithmetic: how far an algorithm is from the best one of each cell.

A cell is a world, or several of one kind whose regrets are averaged. An algorithm that is best somewhere and ruinous
elsewhere is no choice for who does not know the world, so only the worst cell counts.
"""

import math

import numpy as np

from bothworlds.kernels.arrays import Floats


def slack(dimension: int, horizon: int) -> float:
    """Return s = sqrt(d T)/10: differences far below the order of the adversarial bound should not decide.

    >>> slack(4, 10_000)
    20.0
    """
    return math.sqrt(dimension * horizon) / 10.0


def ratios(regrets: Floats, slacks: Floats, *, rivals: Floats | None = None) -> Floats:
    """Return (max(R, 0) + s)/(max(R_best, 0) + s) for regrets (algorithms, cells) and slacks (cells,).

    R_best is the smallest regret of a cell, among the algorithms themselves; with ``rivals`` (others, cells), among the
    rivals and the algorithm in question, so that candidates are not measured by each other.

    >>> ratios(np.array([[5.0, -3.0], [30.0, 20.0]]), np.array([20.0, 20.0])).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    positive = np.maximum(regrets, 0.0)
    best = positive.min(axis=0, keepdims=True)
    if rivals is not None:
        best = np.minimum(positive, np.maximum(rivals, 0.0).min(axis=0))
    return np.asarray((positive + slacks) / (best + slacks))
