"""Small matrices on a GPU: L itself, whose place its inverse takes, and one sum after the other: fewer registers.

The same sums in the same order as in `kernels.matrix`, which keeps U = L^T and works on four rows at once, for what
stands side by side in memory; but for a trace, which is only compared with d. Measured on an H200, S, K, d = 10, 5, 5:
`paper` plays 1,552 million rounds/s in place of 1,295. Many rows go by tiles: `tiled_factors`.
"""

from typing import Any

from bothworlds.kernels.arithmetic import both, fused, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.inverses import inverse_root
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.matrix import apply_inverse, leverage, solve
from bothworlds.kernels.plan import forget

IN_REGISTERS = 13  # dimension; from here on matrices lie in memory


@on_gpu(forget)
def forget_in_registers(matrix: Floats) -> None:
    """Let a matrix be zeros: what is written before it is read costs nothing, and its registers are free till then."""
    if matrix.shape[0] < IN_REGISTERS:
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                matrix[i, j] = 0.0


@kernel
def factor_rows(sigma: Floats, factor: Floats, start: int, first: int, last: int) -> Any:
    """Write rows of the lower Cholesky factor, its diagonal inverted; return where sigma is positive definite.

    Rows from the first on and before the last, columns from the start on: what those before it took is taken already.
    """
    sound = sigma[first, first] > 0.0
    for i in range(first, last):
        for j in range(start, i + 1):
            rest = sigma[i, j]
            for k in range(start, j):
                rest = fused(-factor[i, k], factor[j, k], rest)
            if i == j:
                sound = both(sound, rest > 0.0)
                factor[i, i] = inverse_root(where(rest > 0.0, rest, 1.0))
            else:
                factor[i, j] = rest * factor[j, j]
    return sound


@on_gpu(solve)
def solve_in_place(factor: Floats, b: Floats, out: Floats) -> None:
    """Write the solution of (L L^T) out = b."""
    d = factor.shape[0]
    for i in range(d):
        rest = b[i]
        for k in range(i):
            rest = fused(-factor[i, k], out[k], rest)
        out[i] = rest * factor[i, i]
    for i in range(d - 1, -1, -1):
        rest = out[i]
        for k in range(i + 1, d):
            rest = fused(-factor[k, i], out[k], rest)
        out[i] = rest * factor[i, i]


@kernel
def invert_rows(factor: Floats, start: int, first: int, last: int) -> None:
    """Replace rows of L by those of its inverse G, from the first on and before the last, from the start on."""
    for i in range(first, last):
        pivot = factor[i, i]
        for j in range(start, i):
            total = factor[i, j] * factor[j, j]
            for k in range(j + 1, i):
                total = fused(factor[i, k], factor[k, j], total)
            factor[i, j] = total * (0.0 - pivot)


@on_gpu(apply_inverse)
def apply_in_turn(inverse: Floats, b: Floats, half: Floats, out: Floats) -> None:
    """Write Sigma^-1 b = G^T (G b) into out, and G b into half."""
    d = inverse.shape[0]
    for i in range(d):
        total = inverse[i, 0] * b[0]
        for k in range(1, i + 1):
            total = fused(inverse[i, k], b[k], total)
        half[i] = total
    for i in range(d):
        total = inverse[i, i] * half[i]
        for k in range(i + 1, d):
            total = fused(inverse[k, i], half[k], total)
        out[i] = total


@on_gpu(leverage)
def leverage_in_turn(inverse: Floats, z: Floats) -> float:
    """Return z^T Sigma^-1 z = |G z|^2."""
    first = inverse[0, 0] * z[0]
    result = first * first
    for i in range(1, inverse.shape[0]):
        total = inverse[i, 0] * z[0]
        for k in range(1, i + 1):
            total = fused(inverse[i, k], z[k], total)
        result = fused(total, total, result)
    return float(result)


@kernel
def half_trace(inverse: Floats, sigma: Floats, start: int, first: int, last: int) -> float:
    """Return half of sum_i G_i Sigma G_i^T over some rows of G, of what lies in the columns from the start on."""
    total = 0.0
    for i in range(first, last):
        for j in range(start, i + 1):
            inner = 0.5 * sigma[j, j] * inverse[i, j]
            for k in range(start, j):
                inner = fused(sigma[j, k], inverse[i, k], inner)
            total = fused(inverse[i, j], inner, total)
    return total
