"""What a plan foresees: the losses of Theta + mu + m_t, and how far a loss can lie from its prediction. Kernel text.

``state`` has theta, lean, q and roots, ``work`` has table, rho, reach and leant; ``half`` is the prediction m before it
is scaled, ``vector`` the last step over beta, ``total`` the sum Theta + mu. Two points are made of what is foreseen, so
a processor keeps it in tables; a GPU, whose threads have no room for them, computes it anew
(`bothworlds.simulation.gpu.anew`). Features are many, so what else is needed of them is computed with it.
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import Number, absolute, fused, larger, smaller
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import product


class Foreseen(NamedTuple):
    """In a context: the foreseen losses, the largest residuals, and where its point and the roots of it are made."""

    losses: Floats
    rho: Floats
    q: Floats
    r: Floats


@kernel
def two_products(first: Floats, second: Floats, z: Floats) -> tuple[Number, Number]:
    """Return <first, z> and <second, z>, z being read once."""
    left, right = first[0] * z[0], second[0] * z[0]
    for i in range(1, first.shape[0]):
        left, right = fused(first[i], z[i], left), fused(second[i], z[i], right)
    return left, right


@kernel
def largest_residual(guess: Number, scale: Number) -> Number:
    """Return rho = 1 + |<z, m_t>|, for losses lie in [-1, 1]; the guess is <z, m>, not scaled yet."""
    return fused(absolute(guess), scale, 1.0)


@kernel
def likely_variance(q: Floats, rho: Floats) -> Number:
    """Return the mean of 1 - <z, m_t>^2 = rho (2 - rho) over arms: losses of these means have no larger variance."""
    mean = 0.0 * q[0]
    for a in range(q.shape[0]):
        mean = mean + q[a] * (rho[a] * (2.0 - rho[a]))
    return mean


@kernel
def highest_guess(known: Known, state: Any, work: Any) -> Number:
    """Return the largest |<z, m>|, at least 1, of each block of contexts; a GPU has its own.

    Write <Theta, z>, <z, m>, by how much the step in ``vector`` has moved a play, and <mu, z>.
    """
    highest = 1.0
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            work.table[x, a], guess = two_products(state.theta, work.half, known.z[x, a])
            work.reach[x, a], work.leant[x, a] = two_products(work.vector, state.lean, known.z[x, a])
            work.rho[x, a] = guess
            highest = larger(highest, absolute(guess))
    return highest


@kernel
def foresee_all(known: Known, state: Any, work: Any, scale: Number) -> None:
    """Write the losses of ``total`` + m_t, infinite for arms not offered, less the smallest of the context.

    And residuals; a GPU has its own.
    """
    for x in range(state.q.shape[0]):
        least = math.inf + 0.0 * scale
        for a in range(state.q.shape[1]):
            estimate = product(work.total, known.z[x, a]) + known.blocked[x, a]
            foreseen = fused(work.rho[x, a], scale, estimate)
            work.table[x, a] = foreseen
            work.rho[x, a] = largest_residual(work.rho[x, a], scale)
            least = smaller(least, foreseen)
        for a in range(state.q.shape[1]):
            work.table[x, a] = work.table[x, a] - least


@kernel
def foreseen_in(known: Known, state: Any, work: Any, x: int, scale: Number) -> Foreseen:
    """Return what is foreseen in a context; a GPU has its own."""
    return Foreseen(work.table[x], work.rho[x], state.q[x], state.roots[x])


@kernel
def keep_point(state: Any, here: Foreseen, x: int) -> None:
    """Keep the point of a context and its roots, unless they were made in their place; a GPU has its own."""


@kernel
def find_residuals(known: Known, state: Any, work: Any, scale: Number) -> None:
    """Write the largest residual of every play, unless they are kept; a GPU has its own."""
