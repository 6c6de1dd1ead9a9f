"""Cholesky factors on a GPU: L itself, whose place its inverse takes, so that fewer registers are needed.

The same sums in the same order as in `kernels.matrix`, which keeps U = L^T for what stands side by side in memory.
"""

from typing import Any

from bothworlds.kernels.arithmetic import both, fused, root, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import on_gpu
from bothworlds.kernels.matrix import cholesky, invert_lower, solve


@on_gpu(cholesky)
def cholesky_in_place(sigma: Floats, factor: Floats) -> Any:
    """Write the lower Cholesky factor, its diagonal inverted; return where sigma is positive definite."""
    sound = sigma[0, 0] > 0.0
    for i in range(factor.shape[0]):
        for j in range(i + 1):
            rest = sigma[i, j]
            for k in range(j):
                rest = fused(0.0 - factor[i, k], factor[j, k], rest)
            if i == j:
                sound = both(sound, rest > 0.0)
                factor[i, i] = 1.0 / root(where(rest > 0.0, rest, 1.0))
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
            rest = fused(0.0 - factor[i, k], out[k], rest)
        out[i] = rest * factor[i, i]
    for i in range(d - 1, -1, -1):
        rest = out[i]
        for k in range(i + 1, d):
            rest = fused(0.0 - factor[k, i], out[k], rest)
        out[i] = rest * factor[i, i]


@on_gpu(invert_lower)
def invert_in_place(factor: Floats) -> None:
    """Replace L by its inverse G."""
    for i in range(factor.shape[0]):
        pivot = factor[i, i]
        for j in range(i):
            total = factor[i, j] * factor[j, j]
            for k in range(j + 1, i):
                total = fused(factor[i, k], factor[k, j], total)
            factor[i, j] = total * (0.0 - pivot)
