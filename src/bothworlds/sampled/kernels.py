"""Kernels for batches of contexts that are not listed: FTRL points, second moments and directions."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.exact_ftrl import draw_from
from bothworlds.kernels.ftrl_points import shannon_point, tsallis_point
from bothworlds.kernels.geometric_resampling import contract
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.linalg import cholesky, product, solve
from bothworlds.kernels.random import RESAMPLING, two_uniforms
from bothworlds.kernels.status import NOT_POSITIVE, OK


@kernel
def batch_points(z: Floats, theta: Floats, eta: float, alpha: float, powers: Floats, q: Floats) -> int:
    """Write the FTRL point of every context into q; alpha = 1 means Shannon entropy. Return a status."""
    for x in range(q.shape[0]):
        row = q[x]
        for a in range(row.shape[0]):
            row[a] = product(theta, z[x, a])
        if alpha == 1.0:
            shannon_point(row, eta, row)
        else:
            status, _ = tsallis_point(row, eta, alpha, 1.0, powers, row)
            if status != OK:
                return status
    return OK


@kernel
def batch_factor(z: Floats, q: Floats, gamma: float, sigma: Floats, factor: Floats) -> int:
    """Write the Cholesky factor of (1 - gamma) (average of sum_a q z z^T) + gamma I; return a status."""
    d = sigma.shape[0]
    share = (1.0 - gamma) / q.shape[0]
    for i in range(d):
        for j in range(i + 1):
            sigma[i, j] = gamma if i == j else 0.0
    for x in range(q.shape[0]):
        for a in range(q.shape[1]):
            weight = share * q[x, a]
            for i in range(d):
                left = weight * z[x, a, i]
                for j in range(i + 1):
                    sigma[i, j] += left * z[x, a, j]
    return OK if cholesky(sigma, factor) else NOT_POSITIVE


@kernel
def batch_resample(z: Floats, pi: Floats, beta: float, key: int, time: int, y: Floats, out: Floats) -> None:
    """Write beta sum_{k=0}^M Y_k into out (see geometric_resampling.py); draw k uses context k; y starts as Y_0."""
    for i in range(y.shape[0]):
        out[i] = beta * y[i]
    for k in range(pi.shape[0]):
        _, v = two_uniforms(key, time, RESAMPLING, k)
        contract(z, k, draw_from(pi, k, v), beta, y, out)


class BatchKernels(NamedTuple):
    """The functions above and `solve`, compiled or interpreted."""

    points: Callable[..., int]
    factor: Callable[..., int]
    resample: Callable[..., None]
    solve: Callable[..., None]


FUNCTIONS: tuple[Callable[..., Any], ...] = (batch_points, batch_factor, batch_resample, solve)


@lru_cache(maxsize=1)
def compiled_kernels() -> BatchKernels:
    """Return the kernels, each compiled on its first call."""
    return BatchKernels(*(compiled(function) for function in FUNCTIONS))


def batch_kernels(*, interpreted: bool) -> BatchKernels:
    """Return the kernels, compiled or interpreted."""
    return BatchKernels(*FUNCTIONS) if interpreted else compiled_kernels()
