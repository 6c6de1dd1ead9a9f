"""Integrals of exp(-<r, c>) over the simplex, by divided differences that never cancel.

By Hermite and Genocchi the integral over the simplex of n arms is |f[c_1, .., c_n]|, f = exp(-.), and its derivatives
repeat a node: E[r_a] = |f[c, c_a]|/|f[c]| and E[r_a^2] = 2 |f[c, c_a, c_a]|/|f[c]|. Two ways to one number:

*series*, for nodes within `FAR` of each other: with b_a = max c - c_a >= 0 and h_k the complete homogeneous
polynomials, |f[c]| = exp(-max c) sum_k h_k(b)/(k + n - 1)!, all terms positive; a repeated node is one more step of the
recurrence h_k(b, b_a) = h_k(b) + b_a h_{k-1}(b, b_a).

*quotient*, for sorted nodes further apart: (|f[c_1, .., c_{n-1}]| - |f[c_2, .., c_n]|)/(c_n - c_1). The integral of n
nodes is at least that of the first n - 1 over c_n - c_1 + n - 1, so the difference loses at most the factor
1 + (n - 1)/`FAR` of precision.

Neither cares whether nodes are equal, nearly equal or thousands apart. Values are kept times (n - 1)! unit^(n - 1),
`unit` the root of the spread, so that 32 arms and a spread of 1e15 neither overflow nor vanish.
"""

import math
from typing import Annotated, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import scratch

MOST_ARMS = 32  # of a context: what the scaling above, and the measured precision, allow
LARGEST_SPREAD = 1e15
FAR = 64.0
SMALLEST = 745.0  # exp(-745) is the last number above zero
TIE = 1e-11  # relative; neither way of integrating minds an order that is wrong by so little
ENOUGH = 2.0e-17  # what is left of a series, relative to its sum
MOST_TERMS = 1000


class Room(NamedTuple):
    """Sorted nodes and the arms they belong to; row i of the rest is about the nodes from i on.

    ``mass`` is the integral, ``once`` and ``twice`` have a node repeated; the last three are the terms of a series.
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
    """Return the root of the spread of sorted nodes that begin at zero, at least 1."""
    return math.sqrt(max(1.0, nodes[n - 1]))


@kernel
def add_repeats(room: Room, i: int, j: int, shrink: float, step: int, slack: float) -> bool:
    """Add the next terms of the series with a node repeated once and twice; tell whether any of them matters still."""
    n = j - i + 1.0
    once_weight = n / (step + n)
    twice_weight = once_weight * (n + 1.0) / (step + n + 1.0)
    going = False
    for k in range(i, j + 1):
        ratio = (room.nodes[j] - room.nodes[k]) * shrink
        room.ones[k] = room.powers[j] + ratio * room.ones[k]
        room.twos[k] = room.ones[k] + ratio * room.twos[k]
        room.once[i, k] += once_weight * room.ones[k]
        room.twice[i, k] += twice_weight * room.twos[k]
        going = going or once_weight * room.ones[k] > slack * room.once[i, k]
        going = going or twice_weight * room.twos[k] > slack * room.twice[i, k]
    return going


@kernel
def series(room: Room, i: int, j: int, width: float, repeats: bool) -> None:
    """Write the sums for the nodes i to j times ``width``, with each of them repeated if asked for, less exp(-max)."""
    n = j - i + 1.0
    nodes, powers = room.nodes, room.powers
    for k in range(i, j + 1):
        powers[k] = room.ones[k] = room.twos[k] = room.once[i, k] = room.twice[i, k] = 1.0
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
        going = below > slack * total
        if repeats:
            going = add_repeats(room, i, j, shrink, step, slack) or going
        if not going:
            break
    room.mass[i] = total


@kernel
def near(room: Room, i: int, j: int, width: float, unit: float, repeats: bool) -> None:
    """Write the integrals for nodes close to each other, by a series; zero where they are too small for a number."""
    top = width * room.nodes[j]
    factor = 0.0
    if top < SMALLEST:
        series(room, i, j, width, repeats)
        factor = math.exp(0.0 - top)
        for _ in range(j - i):
            factor *= unit
    room.mass[i] = room.mass[i] * factor if top < SMALLEST else 0.0
    if repeats:
        for k in range(i, j + 1):
            room.once[i, k] = room.once[i, k] * factor * unit if top < SMALLEST else 0.0
            room.twice[i, k] = room.twice[i, k] * factor * unit * unit if top < SMALLEST else 0.0


@kernel
def far(room: Room, i: int, j: int, width: float, unit: float, repeats: bool) -> None:
    """Write the integrals for the nodes i to j, from those without the last and those without the first."""
    n = j - i + 1.0
    gap = width * (room.nodes[j] - room.nodes[i]) / unit
    room.mass[i] = (n - 1.0) * (room.mass[i] - room.mass[i + 1]) / gap
    if repeats:
        for k in range(i, j + 1):
            left = room.once[i, k] if k < j else room.mass[i]
            right = room.once[i + 1, k] if k > i else room.mass[i]
            room.once[i, k] = n * (left - right) / gap
        for k in range(i, j + 1):
            left = room.twice[i, k] if k < j else room.once[i, j]
            right = room.twice[i + 1, k] if k > i else room.once[i, i]
            room.twice[i, k] = (n + 1.0) * (left - right) / gap


@kernel
def integrate(room: Room, n: int, width: float, unit: float, repeats: bool) -> float:
    """Write the integrals for the first n nodes times ``width`` into row 0; return that of the first n - 1.

    A series is summed only where a quotient, or the caller, needs it.
    """
    nodes, limit = room.nodes, FAR / width
    shorter = 0.0
    for length in range(n):
        for i in range(n - length):
            j = i + length
            if nodes[j] - nodes[i] >= limit:
                far(room, i, j, width, unit, repeats)
            else:
                asked = i == 0 and (j == n - 1 or (j == n - 2 and not repeats))
                grows = (i > 0 and nodes[j] - nodes[i - 1] >= limit) or (j < n - 1 and nodes[j + 1] - nodes[i] >= limit)
                if asked or grows:
                    near(room, i, j, width, unit, repeats)
        if length == n - 2:
            shorter = room.mass[0]
    return shorter


@kernel
def gather(losses: Floats, eta: float, room: Room) -> int:
    """Sort eta (loss - least loss) into the nodes, finite losses only; return how many there are.

    Nodes that differ by rounding only stay in the order of their arms, so that draws do not depend on it.
    """
    n = 0
    least = math.inf
    for a in range(losses.shape[0]):
        least = min(least, losses[a])
    for a in range(losses.shape[0]):
        if losses[a] < math.inf:
            node = eta * (losses[a] - least)
            k = n
            while k > 0 and room.nodes[k - 1] > node + TIE * (1.0 + node):
                room.nodes[k] = room.nodes[k - 1]
                room.owners[k] = room.owners[k - 1]
                k -= 1
            room.nodes[k] = node
            room.owners[k] = a
            n += 1
    return n


@kernel
def simplex_moments(losses: Floats, eta: float, room: Room, means: Floats, squares: Floats) -> bool:
    """Write E[r_a] and E[r_a^2] under the density exp(-eta <r, losses>) on the simplex; tell whether that was possible.

    An arm of infinite loss is not part of the simplex.
    """
    n = gather(losses, eta, room)
    if n == 0 or not room.nodes[n - 1] <= LARGEST_SPREAD:
        return False
    unit = unit_of(room.nodes, n)
    integrate(room, n, 1.0, unit, True)
    for a in range(losses.shape[0]):
        means[a] = 0.0
        squares[a] = 0.0
    for k in range(n):
        a = int(room.owners[k])
        means[a] = room.once[0, k] / (room.mass[0] * n * unit)
        squares[a] = 2.0 * room.twice[0, k] / (room.mass[0] * n * (n + 1.0) * unit * unit)
    return True
