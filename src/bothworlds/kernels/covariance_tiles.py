"""The covariance of a policy's plan by register tiles: packs of columns instead of packs of contexts. Kernel code.

With packs of contexts, the sums take eight times the memory of a covariance and are read and written for every two
arms. With many coordinates it is faster to transpose the features of some arms of a block first, so that a pack holds
eight *columns*: a tile of four rows by eight columns then stays in registers while the sums run over these arms and
contexts. Within a block, terms are added in the order of arms, then of contexts.
"""

from typing import NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import WIDTH, at, flat_of, fused, matrix_of, write_transposed
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel

ROWS = 4  # of a tile
MOST_ARMS = 4  # transposed at once: their features stay in the fastest cache
FEWEST = 29  # coordinates: with fewer, transposing takes longer than it saves


@kernel
def packs_of(d: int) -> int:
    """Return the number of packs in a row of a covariance."""
    return (d + WIDTH - 1) // WIDTH


class TileMemory(NamedTuple):
    """Views of the memory for sums: the covariance (packs of columns, rows) and features (packs of columns, pairs).

    A pair is an arm and a context; ``left`` is ``right`` times g(x) q(a|x).
    """

    totals: Floats
    left: Floats
    right: Floats


@kernel
def arms_at_once(d: int) -> int:
    """Return how many arms are transposed at once: as many as fit beside the totals."""
    n = packs_of(d)
    return min(MOST_ARMS, (d * d - n * n * WIDTH) // (2 * n * WIDTH))


@kernel
def tile_memory(sums: Floats) -> TileMemory:
    """Return the views of ``sums`` (d, d) of packs."""
    memory, n, pairs = flat_of(sums), packs_of(sums.shape[0]), WIDTH * arms_at_once(sums.shape[0])
    start, size = n * n * WIDTH, n * pairs
    return TileMemory(
        matrix_of(memory, 0, n, n * WIDTH),
        matrix_of(memory, start, n, pairs),
        matrix_of(memory, start + size, n, pairs),
    )


@kernel
def add_tile(memory: TileMemory, pairs: int, i: int, j: int) -> None:
    """Add the products of all pairs to rows i to i + 3 of the j-th pack of columns."""
    totals, left, right = memory
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
    memory, most = tile_memory(sums), arms_at_once(d)
    for first in range(0, K, most):
        count = min(most, K - first)
        for a in range(count):
            for j in range(packs_of(d)):
                write_transposed(1.0, known.z[x, first + a], j, memory.right, WIDTH * a)
                write_transposed(known.g[x] * q[first + a], known.z[x, first + a], j, memory.left, WIDTH * a)
        for i in range(0, d, ROWS):
            for j in range(i // WIDTH + 1):
                add_tile(memory, WIDTH * count, i, j)


@kernel
def clear_totals(sums: Floats) -> None:
    """Set the covariance to zero."""
    totals = tile_memory(sums).totals
    for j in range(totals.shape[0]):
        for i in range(totals.shape[1]):
            totals[j, i] = 0.0


@kernel
def collect_totals(sums: Floats, sigma: Floats) -> None:
    """Write the covariance into the lower triangle of sigma."""
    totals = tile_memory(sums).totals
    for i in range(sigma.shape[0]):
        for j in range(i + 1):
            sigma[i, j] = at(totals, j, i)
