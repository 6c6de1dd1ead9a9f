"""Small dense matrices in kernel text: covariance, Cholesky, inverse factors, leverages.

On matrices of 5 x 5 these loops beat LAPACK's call overhead, and they run on a GPU as they stand. Inner loops
run over contiguous memory and carry no sum from one step to the next, so that the compiler can use vector
instructions without reordering any addition.
"""

import math

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel


@kernel
def covariance(z: Floats, weights: Floats, scaled: Floats, lanes: Floats, sigma: Floats) -> None:
    """Write Sigma = sum_n weights_n z_n z_n^T into sigma.

    z has shape (d, cells), one row a feature. The cells are walked in blocks as wide as ``lanes``, each lane
    summing its own share: with one lane this is the plain loop, with 16 it is vector arithmetic.
    """
    d = sigma.shape[0]
    width = lanes.shape[0]
    blocks = weights.shape[0] // width
    for i in range(d):
        for n in range(weights.shape[0]):
            scaled[n] = weights[n] * z[i, n]
        left = scaled.reshape((blocks, width))
        for j in range(i + 1):
            right = z[j].reshape((blocks, width))
            for k in range(width):
                lanes[k] = 0.0
            for b in range(blocks):
                for k in range(width):
                    lanes[k] += left[b, k] * right[b, k]
            total = 0.0
            for k in range(width):
                total += lanes[k]
            sigma[i, j] = total
            sigma[j, i] = total


@kernel
def combine(coefficients: Floats, rows: Floats, out: Floats) -> None:
    """Write sum_i coefficients_i rows_i into out; rows has shape (d, cells), four of them at a time."""
    count = coefficients.shape[0]
    for n in range(out.shape[0]):
        out[n] = 0.0
    for i in range(0, count - 3, 4):
        c0, c1, c2, c3 = coefficients[i], coefficients[i + 1], coefficients[i + 2], coefficients[i + 3]
        r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        for n in range(out.shape[0]):
            out[n] += (c0 * r0[n] + c1 * r1[n]) + (c2 * r2[n] + c3 * r3[n])
    for i in range(count - count % 4, count):
        c0 = coefficients[i]
        r0 = rows[i]
        for n in range(out.shape[0]):
            out[n] += c0 * r0[n]


@kernel
def cholesky(sigma: Floats, factor: Floats) -> bool:
    """Write the lower Cholesky factor; return False where sigma is not positive definite."""
    d = factor.shape[0]
    for i in range(d):
        for j in range(i + 1):
            rest = sigma[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
            if i == j:
                if not rest > 0.0:
                    return False
                factor[i, i] = math.sqrt(rest)
            else:
                factor[i, j] = rest / factor[j, j]
    return True


@kernel
def solve(factor: Floats, b: Floats, out: Floats) -> None:
    """Write the solution of (factor factor^T) out = b."""
    d = factor.shape[0]
    for i in range(d):
        rest = b[i]
        for k in range(i):
            rest -= factor[i, k] * out[k]
        out[i] = rest / factor[i, i]
    for i in range(d - 1, -1, -1):
        rest = out[i]
        for k in range(i + 1, d):
            rest -= factor[k, i] * out[k]
        out[i] = rest / factor[i, i]


@kernel
def invert_lower(factor: Floats) -> None:
    """Replace a lower triangular factor L by its inverse G, so that (L L^T)^-1 = G^T G."""
    d = factor.shape[0]
    for i in range(d):
        pivot = 1.0 / factor[i, i]
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total += factor[i, k] * factor[k, j]
            factor[i, j] = -pivot * total
        factor[i, i] = pivot


@kernel
def apply_inverse(inverse: Floats, b: Floats, half: Floats, out: Floats) -> None:
    """Write Sigma^-1 b = G^T (G b) into out, and G b into half."""
    d = inverse.shape[0]
    for i in range(d):
        out[i] = 0.0
    for i in range(d):
        total = 0.0
        for k in range(i + 1):
            total += inverse[i, k] * b[k]
        half[i] = total
        for k in range(i + 1):
            out[k] += inverse[i, k] * total


@kernel
def leverages(inverse: Floats, z: Floats, row: Floats, out: Floats) -> None:
    """Write z_n^T Sigma^-1 z_n = |G z_n|^2 for every cell into out; z has shape (d, cells)."""
    for n in range(out.shape[0]):
        out[n] = 0.0
    for i in range(inverse.shape[0]):
        combine(inverse[i, 0 : i + 1], z, row)
        for n in range(out.shape[0]):
            out[n] += row[n] * row[n]


@kernel
def trace_of_ratio(inverse: Floats, sigma: Floats) -> float:
    """Return tr(Sigma^-1 Sigma) = sum_i G_i Sigma G_i^T: d, but for rounding.

    By linearity this is sum_x g(x) sum_a pi(a|x) lev(a,x), the identity behind E[lev] = d; it drifts from d as
    soon as Sigma is too ill-conditioned for the estimate to mean anything.
    """
    total = 0.0
    for i in range(inverse.shape[0]):
        for j in range(i + 1):
            inner = 0.0
            for k in range(i + 1):
                inner += sigma[j, k] * inverse[i, k]
            total += inverse[i, j] * inner
    return total
