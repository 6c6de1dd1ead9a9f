"""Divided differences of exp(-.) in mpmath, by the textbook recurrence with digits to spare."""

from collections.abc import Sequence
from typing import Any

import mpmath

from bothworlds.arrays import Floats


def digits(nodes: int) -> int:
    """How many are needed: nearly equal nodes lose up to 20 for each; 50 are left in any case."""
    return 50 + 20 * nodes


def divided(nodes: Sequence[Any]) -> Any:
    """|f[nodes]| for f = exp(-.): the integral of exp(-<r, nodes>) over the simplex."""
    with mpmath.workdps(digits(len(nodes))):
        c = sorted(mpmath.mpf(x) for x in nodes)
        table = [mpmath.exp(-x) for x in c]
        for length in range(1, len(c)):
            for i in range(len(c) - length):
                gap = c[i + length] - c[i]
                table[i] = (table[i] - table[i + 1]) / gap if gap else table[i] / length  # f^(n)/n! of equal nodes
        return table[0]


def moments(nodes: Sequence[float] | Floats) -> tuple[list[Any], list[Any]]:
    """E[r_a] and E[r_a^2] of the density exp(-<r, nodes>) on the simplex."""
    c = [float(x) - float(min(nodes)) for x in nodes]
    with mpmath.workdps(digits(len(c) + 2)):
        whole = divided(c)
        return [divided([*c, x]) / whole for x in c], [2 * divided([*c, x, x]) / whole for x in c]


def survival(nodes: Sequence[float], node: float, y: Any, width: Any) -> Any:
    """P(r > y) of the arm with this node, where all arms have ``width`` to share: by a shift of its share."""
    if y <= 0:
        return mpmath.mpf(1)
    if y >= width:
        return mpmath.mpf(0)
    with mpmath.workdps(digits(len(nodes))):
        y, width, n = mpmath.mpf(y), mpmath.mpf(width), len(nodes)
        rest = width - y
        ratio = divided([rest * mpmath.mpf(x) for x in nodes]) / divided([width * mpmath.mpf(x) for x in nodes])
        return mpmath.exp(-mpmath.mpf(node) * y) * (rest / width) ** (n - 1) * ratio
