"""Averages over a reservoir of contexts. Kernel functions, for two layouts of features.

Blocks: every arm has its own model of one row of features; z is (contexts, 1, p), vectors are (arms, p), matrices
(arms, p, p), and arm a of context x stands for the row z[x, 0] in block a. Dense: candidates have rows of their own; z
is (contexts, candidates, d), vectors are (1, d), matrices (1, d, d). So d = K p costs K p^3 in blocks, d^3 if dense.
"""

import math

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, fused
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import add_four_rows, add_row, cholesky, erase, product, solve
from bothworlds.kernels.status import NOT_CONVERGED, OK
from bothworlds.kernels.tsallis_half import root_point


@kernel
def row_index(blocks: int, a: int) -> int:
    """Return which row of z[x] belongs to a candidate."""
    return a if blocks == 1 else 0


@kernel
def block_index(blocks: int, a: int) -> int:
    """Return the block of a candidate."""
    return 0 if blocks == 1 else a


@kernel
def value_of(vector: Floats, z: Floats, a: int) -> Number:
    """Return <vector, phi> for candidate a of a context with the rows z."""
    blocks = vector.shape[0]
    return product(vector[block_index(blocks, a)], z[row_index(blocks, a)])


@kernel
def write_values(vector: Floats, z: Floats, offered: Floats, absent: float, out: Floats) -> None:
    """Write <vector, phi> of every candidate offered, and ``absent`` for the others."""
    for a in range(out.shape[0]):
        out[a] = value_of(vector, z, a) if offered[a] > 0.0 else absent


@kernel
def write_table(vector: Floats, z: Floats, offered: Floats, kept: int, absent: float, out: Floats) -> None:
    """Write `write_values` for all contexts that the reservoir has."""
    for x in range(kept):
        write_values(vector, z[x], offered[x], absent, out[x])


@kernel
def point_of(beta: Number, offered: Floats, roots: Floats, q: Floats) -> int:
    """Replace losses in q, infinite where not offered, by the FTRL point; return a status."""
    least, count = math.inf, 0.0
    for a in range(q.shape[0]):
        least = min(least, q[a])
        count += offered[a]
    if not least < math.inf:
        return NOT_CONVERGED
    for a in range(q.shape[0]):
        q[a] = (q[a] - least) / beta
    status, _, _ = root_point(q, math.sqrt(count), math.sqrt(count), roots)
    return status


@kernel
def write_points(beta: Number, table: Floats, offered: Floats, kept: int, roots: Floats, q: Floats) -> int:
    """Write the FTRL points of all contexts from their losses; return a status."""
    for x in range(kept):
        for a in range(q.shape[1]):
            q[x, a] = table[x, a]
        status = point_of(beta, offered[x], roots[x], q[x])
        if status != OK:
            return status
    return OK


@kernel
def entropy_of(q: Floats, kept: int) -> Number:
    """Return h = 2 (sum_a sqrt(q_a) - 1), averaged over contexts; 0 without contexts."""
    total = 0.0
    for x in range(kept):
        for a in range(q.shape[1]):
            total += math.sqrt(q[x, a])
        total -= 1.0
    return 2.0 * total / max(kept, 1)


@kernel
def highest_entropy(offered: Floats, kept: int) -> Number:
    """Return H, the entropy of even play; 1 without contexts."""
    total = 0.0
    for x in range(kept):
        count = 0.0
        for a in range(offered.shape[1]):
            count += offered[x, a]
        total += math.sqrt(count) - 1.0
    return 2.0 * total / kept if kept > 0 else 1.0


@kernel
def add_weighted_rows(rows: Floats, weights: Floats, count: int, out: Floats) -> None:
    """Add sum_j weight_j row_j row_j^T to the lower triangle of out, four rows at a time."""
    p, fours = rows.shape[1], count - count % 4
    for j in range(0, fours, 4):
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        if w0 == 0.0 and w1 == 0.0 and w2 == 0.0 and w3 == 0.0:
            continue
        for i in range(p):
            four = w0 * rows[j, i], w1 * rows[j + 1, i], w2 * rows[j + 2, i], w3 * rows[j + 3, i]
            add_four_rows(rows, four, j, 0, i + 1, out[i])
    for j in range(fours, count):
        for i in range(p):
            add_row(weights[j] * rows[j, i], rows[j], 0, i + 1, out[i])


@kernel
def write_moment(shares: Floats, z: Floats, kept: int, column: Floats, out: Floats) -> None:
    """Write the average of sum_a share z z^T, lower triangles; ``column`` has room for a number per row."""
    blocks, height = out.shape[0], z.shape[1]
    rows = z.reshape((z.shape[0] * height, z.shape[2]))
    for b in range(blocks):
        for x in range(kept):
            for a in range(height):
                column[x * height + a] = shares[x, a if blocks == 1 else b] / kept
        for i in range(out.shape[1]):
            erase(out[b, i])
        add_weighted_rows(rows, column, kept * height, out[b])


@kernel
def write_even_moment(
    z: Floats, offered: Floats, kept: int, ridge: float, even: Floats, column: Floats, out: Floats, regular: Floats
) -> None:
    """Write the second moment of features under even play, and ``ridge`` times its diagonal (times 1 where it is 0)."""
    for x in range(kept):
        count = 0.0
        for a in range(offered.shape[1]):
            count += offered[x, a]
        for a in range(offered.shape[1]):
            even[x, a] = offered[x, a] / count
    write_moment(even, z, kept, column, out)
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            regular[b, i] = ridge * (out[b, i, i] if out[b, i, i] > 0.0 else 1.0)


@kernel
def regress(
    scale: Number, gram: Floats, moment: Floats, even: Floats, regular: Floats, mixed: Floats, out: Floats
) -> bool:
    """Write the ridge estimate with the ridge even + diag(regular), block by block; return whether it is defined."""
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(i + 1):
                mixed[i, j] = fused(scale, gram[b, i, j], even[b, i, j])
            mixed[i, i] = mixed[i, i] + regular[b, i]
        if not cholesky(mixed, mixed):
            return False
        solve(mixed, moment[b], out[b])
        for i in range(out.shape[1]):
            out[b, i] = scale * out[b, i]
    return True
