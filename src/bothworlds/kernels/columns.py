"""The covariance of a policy's plan with columns side by side instead of contexts. Kernel text.

A sum for each of eight contexts and each pair of coordinates is eight times the memory of a covariance, read and
written for every two arms. Where there are many coordinates, the features of some arms of a block of contexts are
turned first, so that eight *columns* stand side by side, and four rows of eight sums stay in registers while all these
arms and contexts pass by. The order in which they are added is that of arms, then that of contexts, block by block.
"""

from typing import NamedTuple

from bothworlds.kernels.arithmetic import WIDTH, at, flat_of, fused, matrix_of, write_turned
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel

ROWS = 4  # of a tile
MOST_ARMS = 4  # turned at once: what they take stays in the fast cache
FEWEST = 29  # coordinates: below, turning features takes longer than it saves


@kernel
def packs_of(d: int) -> int:
    """Return how many packs hold a row of a covariance."""
    return (d + WIDTH - 1) // WIDTH


class Space(NamedTuple):
    """Parts of the space for sums: the covariance (packs of columns, rows), and features (packs of columns, pairs).

    A pair is an arm and a context; ``left`` has the features of ``right`` times g(x) q(a|x).
    """

    totals: Floats
    left: Floats
    right: Floats


@kernel
def arms_at_once(d: int) -> int:
    """Return how many arms are turned at once: as many as there is space for beside the totals."""
    n = packs_of(d)
    return min(MOST_ARMS, (d * d - n * n * WIDTH) // (2 * n * WIDTH))


@kernel
def space_in(sums: Floats) -> Space:
    """Return what the space for a sum for each pair of coordinates has space for."""
    memory, n, pairs = flat_of(sums), packs_of(sums.shape[0]), WIDTH * arms_at_once(sums.shape[0])
    start, size = n * n * WIDTH, n * pairs
    return Space(
        matrix_of(memory, 0, n, n * WIDTH),
        matrix_of(memory, start, n, pairs),
        matrix_of(memory, start + size, n, pairs),
    )


@kernel
def add_tile(space: Space, pairs: int, i: int, j: int) -> None:
    """Add the products of all pairs to rows i to i + 3 of a pack of columns."""
    totals, left, right = space
    s0, s1, s2, s3 = totals[j, i], totals[j, i + 1], totals[j, i + 2], totals[j, i + 3]
    for r in range(pairs):
        z = right[j, r]
        s0, s1 = fused(at(left, i, r), z, s0), fused(at(left, i + 1, r), z, s1)
        s2, s3 = fused(at(left, i + 2, r), z, s2), fused(at(left, i + 3, r), z, s3)
    totals[j, i], totals[j, i + 1], totals[j, i + 2], totals[j, i + 3] = s0, s1, s2, s3


@kernel
def add_by_columns(known: Known, x: int, q: Floats, sums: Floats) -> None:
    """Add g(x) sum_a q(a|x) phi phi^T of a block of contexts (Section 2.2)."""
    d, K = sums.shape[0], q.shape[0]
    space, most = space_in(sums), arms_at_once(d)
    for first in range(0, K, most):
        count = min(most, K - first)
        for a in range(count):
            for j in range(packs_of(d)):
                write_turned(1.0, known.z[x, first + a], j, space.right, WIDTH * a)
                write_turned(known.g[x] * q[first + a], known.z[x, first + a], j, space.left, WIDTH * a)
        for i in range(0, d, ROWS):
            for j in range(i // WIDTH + 1):
                add_tile(space, WIDTH * count, i, j)


@kernel
def clear_totals(sums: Floats) -> None:
    """Begin a covariance."""
    totals = space_in(sums).totals
    for j in range(totals.shape[0]):
        for i in range(totals.shape[1]):
            totals[j, i] = 0.0


@kernel
def collect_totals(sums: Floats, sigma: Floats) -> None:
    """Write the covariance into the lower triangle of sigma."""
    totals = space_in(sums).totals
    for i in range(sigma.shape[0]):
        for j in range(i + 1):
            sigma[i, j] = at(totals, j, i)
