"""Exact draws from the density exp(-<r, c>) on the simplex, arm by arm, by inverting distribution functions.

Let h_n(s) be the integral of exp(-<r, c>) over r >= 0 with r_1 + .. + r_n = s, that is s^(n-1) |f[s c_1, .., s c_n]|
(`simplex_integrals`). If the first n arms share the sum s, the last of them takes more than y with probability

    P(r_n > y) = exp(-c_n y) h_n(s - y)/h_n(s),    and    -d/dy log P(r_n > y) = h_{n-1}(s - y)/h_n(s - y),

because a shift of r_n by y maps the one simplex onto the other. The logarithm is concave, so Newton's method, kept
inside a bracket, finds the y of a uniform number. Two arms have a closed form. The only errors are rounding.
"""

import math

from bothworlds.algorithms.mwu_lc.simplex_integrals import Workspace, integrate
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.random import SIMPLEX, two_uniforms

MOST_STEPS = 200
CLOSE = 1e-9  # relative to y and the rest: a step this small leaves an error of about its square


@kernel
def share_of_two(node: float, u: float) -> float:
    """Return the y in [0, 1] with P(r_2 > y) = 1 - u for two arms with nodes 0 and ``node``.

    >>> share_of_two(0.0, 0.25)
    0.25
    """
    if node == 0.0:
        return u
    less = u * math.expm1(0.0 - node)  # exp(-node y) is 1 + less
    if less > -0.5:
        return (0.0 - math.log1p(less)) / node
    return min(1.0, (0.0 - math.log(math.exp(0.0 - node) - (1.0 - u) * math.expm1(0.0 - node))) / node)


@kernel
def log_mass(workspace: Workspace, n: int, width: float, unit: float) -> tuple[float, float]:
    """Return log h_n(width), up to a term in n and unit alone, and h_{n-1}(width)/h_n(width)."""
    shorter = integrate(workspace, n, width, unit, False)
    whole = workspace.mass[0]
    return (n - 1.0) * math.log(width) + math.log(whole), (n - 1.0) * unit * shorter / (whole * width)


@kernel
def share_of_last(workspace: Workspace, n: int, width: float, unit: float, u: float) -> float:
    """Return the y in [0, width] with P(r_n > y) = 1 - u, for the first n nodes and the sum ``width``."""
    node = workspace.nodes[n - 1]
    target = math.log(1.0 - u)
    start, slope = log_mass(workspace, n, width, unit)
    low, high = 0.0, width
    y = (0.0 - target) / slope
    for _ in range(MOST_STEPS):
        if not low < y < high:
            y = 0.5 * (low + high)
            if not low < y < high:
                break
        now, slope = log_mass(workspace, n, width - y, unit)
        above = now - start - node * y - target  # log P(r_n > y) less its target
        if above > 0.0:
            low = y
        else:
            high = y
        step = above / slope
        y += step
        if abs(step) <= CLOSE * min(y, width - y):
            break
    return min(max(y, low), high)


@kernel
def draw_point(workspace: Workspace, n: int, unit: float, draw: Draw, attempt: int, point: Floats) -> None:
    """Write a draw from the density of the n nodes in ``workspace``, 0 for other arms; the largest node comes first."""
    for a in range(point.shape[0]):
        point[a] = 0.0
    width = 1.0
    for k in range(n - 1, 0, -1):
        u, _ = two_uniforms(draw.key, draw.time, SIMPLEX, attempt * n + k)
        if k > 1:
            share = share_of_last(workspace, k + 1, width, unit, u)
        else:
            share = width * share_of_two(width * (workspace.nodes[1] - workspace.nodes[0]), u)
        point[int(workspace.owners[k])] = share
        width -= share
    point[int(workspace.owners[0])] = width
