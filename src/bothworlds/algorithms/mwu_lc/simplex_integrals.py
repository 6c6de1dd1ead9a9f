"""Integrals of exp(-<r, c>) over the simplex, by divided differences without cancellation. Kernel functions.

By Hermite and Genocchi the integral over the simplex of n arms is |f[c_1, .., c_n]|, f = exp(-.), and its derivatives
repeat a node: E[r_a] = |f[c, c_a]|/|f[c]| and E[r_a^2] = 2 |f[c, c_a, c_a]|/|f[c]|. They are computed in two ways:

*series*, for nodes within `FAR` of each other: with b_a = max c - c_a >= 0 and h_k the complete homogeneous
polynomials, |f[c]| = exp(-max c) sum_k h_k(b)/(k + n - 1)!, all terms positive; a repeated node is one more step of the
recurrence h_k(b, b_a) = h_k(b) + b_a h_{k-1}(b, b_a).

*quotient*, for sorted nodes further apart: (|f[c_1, .., c_{n-1}]| - |f[c_2, .., c_n]|)/(c_n - c_1). The integral of n
nodes is at least that of the first n - 1 over c_n - c_1 + n - 1, so the difference loses at most the factor
1 + (n - 1)/`FAR` of precision.

Both work for nodes that are equal, nearly equal or thousands apart. Values are scaled by (n - 1)! unit^(n - 1),
`unit` the root of the spread, so that 32 arms and a spread of 1e15 neither overflow nor underflow.
"""

import math
from typing import Annotated, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import scratch

MOST_ARMS = 32  # in a context: limit of the scaling above and of the measured precision
LARGEST_SPREAD = 1e15
FAR = 64.0
SMALLEST = 745.0  # exp(-745) is the smallest positive number
TIE = 1e-11  # relative; both ways of integrating tolerate nodes out of order by this much
ENOUGH = 2.0e-17  # remainder of a series, relative to its sum
MOST_TERMS = 1000


class Workspace(NamedTuple):
    """Sorted nodes and their arms; row i of the other arrays belongs to the nodes from i on.

    ``mass`` is the integral, ``once`` and ``twice`` have a node repeated; powers, ones and twos are the terms of a
    series.
    """

    nodes: Annotated[Floats, scratch("K")]
    owners: Annotated[Floats, scratch("K")]
    mass: Annotated[Floats, scratch("K")]
    powers: Annotated[Floats, scratch("K")]
    ones: Annotated[Floats, scratch("K")]
    twos: Annotated[Floats, scratch("K")]
    once: Annotated[Floats, scratch("K", "K")]
    twice: Annotated[Floats, scratch("K", "K")]


@kernel
def unit_of(nodes: Floats, n: int) -> float:
    """Return the root of the spread of sorted nodes that start at zero, at least 1."""
    return math.sqrt(max(1.0, nodes[n - 1]))


@kernel
def add_repeats(workspace: Workspace, i: int, j: int, shrink: float, step: int, slack: float) -> bool:
    """Add the next terms of the series with a node repeated once and twice; return whether any is still relevant."""
    n = j - i + 1.0
    once_weight = n / (step + n)
    twice_weight = once_weight * (n + 1.0) / (step + n + 1.0)
    relevant = False
    for k in range(i, j + 1):
        ratio = (workspace.nodes[j] - workspace.nodes[k]) * shrink
        workspace.ones[k] = workspace.powers[j] + ratio * workspace.ones[k]
        workspace.twos[k] = workspace.ones[k] + ratio * workspace.twos[k]
        workspace.once[i, k] += once_weight * workspace.ones[k]
        workspace.twice[i, k] += twice_weight * workspace.twos[k]
        relevant = relevant or once_weight * workspace.ones[k] > slack * workspace.once[i, k]
        relevant = relevant or twice_weight * workspace.twos[k] > slack * workspace.twice[i, k]
    return relevant


@kernel
def series(workspace: Workspace, i: int, j: int, width: float, repeats: bool) -> None:
    """Write the series sums for the nodes i to j times ``width``, with repeated nodes if asked, without exp(-max)."""
    n = j - i + 1.0
    nodes, powers = workspace.nodes, workspace.powers
    for k in range(i, j + 1):
        powers[k] = workspace.ones[k] = workspace.twos[k] = workspace.once[i, k] = workspace.twice[i, k] = 1.0
    total = 1.0
    largest = width * (nodes[j] - nodes[i])
    for step in range(1, MOST_TERMS):
        shrink = width / (step + n - 1.0)
        below = 0.0
        for k in range(i, j + 1):
            powers[k] = below + (nodes[j] - nodes[k]) * shrink * powers[k]
            below = powers[k]
        total += below
        slack = ENOUGH * (1.0 - largest / (step + 1.0))  # the next term is at most largest/(step + 1) times this one
        relevant = below > slack * total
        if repeats:
            relevant = add_repeats(workspace, i, j, shrink, step, slack) or relevant
        if not relevant:
            break
    workspace.mass[i] = total


@kernel
def by_series(workspace: Workspace, i: int, j: int, width: float, unit: float, repeats: bool) -> None:
    """Write the integrals for nodes close to each other, by a series; zero if they underflow."""
    top = width * workspace.nodes[j]
    factor = 0.0
    if top < SMALLEST:
        series(workspace, i, j, width, repeats)
        factor = math.exp(0.0 - top)
        for _ in range(j - i):
            factor *= unit
    workspace.mass[i] = workspace.mass[i] * factor if top < SMALLEST else 0.0
    if repeats:
        for k in range(i, j + 1):
            workspace.once[i, k] = workspace.once[i, k] * factor * unit if top < SMALLEST else 0.0
            workspace.twice[i, k] = workspace.twice[i, k] * factor * unit * unit if top < SMALLEST else 0.0


@kernel
def by_quotients(workspace: Workspace, i: int, j: int, width: float, unit: float, repeats: bool) -> None:
    """Write the integrals for the nodes i to j as quotients, from those without the last and without the first node."""
    n = j - i + 1.0
    gap = width * (workspace.nodes[j] - workspace.nodes[i]) / unit
    workspace.mass[i] = (n - 1.0) * (workspace.mass[i] - workspace.mass[i + 1]) / gap
    if repeats:
        for k in range(i, j + 1):
            left = workspace.once[i, k] if k < j else workspace.mass[i]
            right = workspace.once[i + 1, k] if k > i else workspace.mass[i]
            workspace.once[i, k] = n * (left - right) / gap
        for k in range(i, j + 1):
            left = workspace.twice[i, k] if k < j else workspace.once[i, j]
            right = workspace.twice[i + 1, k] if k > i else workspace.once[i, i]
            workspace.twice[i, k] = (n + 1.0) * (left - right) / gap


@kernel
def integrate(workspace: Workspace, n: int, width: float, unit: float, repeats: bool) -> float:
    """Write the integrals for the first n nodes times ``width`` into row 0; return that of the first n - 1.

    A series is summed only where a quotient, or the caller, needs it.
    """
    nodes, limit = workspace.nodes, FAR / width
    shorter = 0.0
    for length in range(n):
        for i in range(n - length):
            j = i + length
            if nodes[j] - nodes[i] >= limit:
                by_quotients(workspace, i, j, width, unit, repeats)
            else:
                asked = i == 0 and (j == n - 1 or (j == n - 2 and not repeats))
                grows = (i > 0 and nodes[j] - nodes[i - 1] >= limit) or (j < n - 1 and nodes[j + 1] - nodes[i] >= limit)
                if asked or grows:
                    by_series(workspace, i, j, width, unit, repeats)
        if length == n - 2:
            shorter = workspace.mass[0]
    return shorter


@kernel
def sort_nodes(losses: Floats, eta: float, workspace: Workspace) -> int:
    """Sort eta (loss - least loss) into the nodes, finite losses only; return their number.

    Nodes that differ only by rounding keep the order of their arms, so that draws do not depend on rounding.
    """
    n = 0
    least = math.inf
    for a in range(losses.shape[0]):
        least = min(least, losses[a])
    for a in range(losses.shape[0]):
        if losses[a] < math.inf:
            node = eta * (losses[a] - least)
            k = n
            while k > 0 and workspace.nodes[k - 1] > node + TIE * (1.0 + node):
                workspace.nodes[k] = workspace.nodes[k - 1]
                workspace.owners[k] = workspace.owners[k - 1]
                k -= 1
            workspace.nodes[k] = node
            workspace.owners[k] = a
            n += 1
    return n


@kernel
def simplex_moments(losses: Floats, eta: float, workspace: Workspace, means: Floats, squares: Floats) -> bool:
    """Write E[r_a] and E[r_a^2] under the density exp(-eta <r, losses>) on the simplex; return whether it succeeded.

    An arm with infinite loss is not part of the simplex.
    """
    n = sort_nodes(losses, eta, workspace)
    if n == 0 or not workspace.nodes[n - 1] <= LARGEST_SPREAD:
        return False
    unit = unit_of(workspace.nodes, n)
    integrate(workspace, n, 1.0, unit, True)
    for a in range(losses.shape[0]):
        means[a] = 0.0
        squares[a] = 0.0
    for k in range(n):
        a = int(workspace.owners[k])
        means[a] = workspace.once[0, k] / (workspace.mass[0] * n * unit)
        squares[a] = 2.0 * workspace.twice[0, k] / (workspace.mass[0] * n * (n + 1.0) * unit * unit)
    return True
