"""Small dense matrices in kernel text: covariance, Cholesky, solves, eigenvalues.

On matrices of 5 x 5 these loops beat LAPACK's call overhead, and they run on a GPU as they stand. Inner loops
run over contiguous memory and carry no sum from one step to the next, so that the compiler can use vector
instructions without reordering any addition.
"""

import math

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel

MAX_SWEEPS = 60


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
    """Write sum_i coefficients_i rows_i into out; rows has shape (d, cells)."""
    for n in range(out.shape[0]):
        out[n] = 0.0
    for i in range(rows.shape[0]):
        c = coefficients[i]
        for n in range(out.shape[0]):
            out[n] += c * rows[i, n]


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
def dot(u: Floats, v: Floats) -> float:
    """Return <u, v>."""
    total = 0.0
    for i in range(v.shape[0]):
        total += u[i] * v[i]
    return total


@kernel
def trace_of_ratio(factor: Floats, sigma: Floats, work: Floats) -> float:
    """Return tr(Sigma^-1 Sigma) through the factor: d, but for rounding.

    By linearity this is sum_x g(x) sum_a pi(a|x) lev(a,x), the identity behind E[lev] = d; it drifts from d as
    soon as Sigma is too ill-conditioned for the estimate to mean anything.
    """
    total = 0.0
    for i in range(factor.shape[0]):
        solve(factor, sigma[i], work)
        total += work[i]
    return total


@kernel
def jacobi_eigen(matrix: Floats, vectors: Floats) -> bool:
    """Diagonalise a symmetric matrix in place by cyclic Jacobi rotations; rows of ``vectors`` are eigenvectors.

    Returns False if the off-diagonal part has not vanished to rounding after MAX_SWEEPS sweeps.
    """
    d = vectors.shape[0]
    for i in range(d):
        for j in range(d):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(MAX_SWEEPS):
        off = 0.0
        on = 0.0
        for i in range(d):
            on += matrix[i, i] * matrix[i, i]
            for j in range(i):
                off += matrix[i, j] * matrix[i, j]
        if off <= 1e-30 * on:
            return True
        for i in range(d - 1):
            for j in range(i + 1, d):
                rotate(matrix, vectors, i, j)
    return False


@kernel
def rotate(matrix: Floats, vectors: Floats, i: int, j: int) -> None:
    """Annihilate entry (i, j) of a symmetric matrix by a rotation, applied to the eigenvectors as well."""
    if matrix[i, j] == 0.0:
        return
    difference = matrix[j, j] - matrix[i, i]
    twice = 2.0 * matrix[i, j]
    tangent = twice / (abs(difference) + math.sqrt(difference * difference + twice * twice))
    if difference < 0.0:
        tangent = -tangent
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = tangent * cosine
    d = vectors.shape[0]
    for k in range(d):
        u = matrix[i, k]
        v = matrix[j, k]
        matrix[i, k] = cosine * u - sine * v
        matrix[j, k] = sine * u + cosine * v
        u = vectors[i, k]
        v = vectors[j, k]
        vectors[i, k] = cosine * u - sine * v
        vectors[j, k] = sine * u + cosine * v
    for k in range(d):
        u = matrix[k, i]
        v = matrix[k, j]
        matrix[k, i] = cosine * u - sine * v
        matrix[k, j] = sine * u + cosine * v
