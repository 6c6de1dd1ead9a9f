"""Small dense matrices in kernel text: covariance, Cholesky, inverse factors, leverages.

On matrices of 5 x 5 these loops beat LAPACK's call overhead, and they run on a GPU as they stand. Inner loops
run over contiguous memory and carry no sum from one step to the next, so that the compiler can use vector
instructions without reordering any addition.
"""

import math

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.packs import WIDTH, add_up, load, store

CHUNK = 128  # cells
FOUR = 4  # packs at a time: enough to hide how long an addition takes
BLOCK = FOUR * WIDTH


@kernel
def covariance(z: Floats, weights: Floats, sums: Floats, sigma: Floats) -> None:
    """Write Sigma = sum_n weights_n z_n z_n^T into sigma.

    z has shape (d, cells), one row a feature, cells a multiple of BLOCK. Cell n adds to the partial sum
    number n modulo that width; ``sums``, of `sums_size` numbers, keeps them between chunks of cells that stay close to
    the processor.
    """
    cells = weights.shape[0]
    rows = padded(sigma.shape[0])
    for n in range(sums.shape[0]):
        sums[n] = 0.0
    for start in range(0, cells, CHUNK):
        for i in range(sigma.shape[0]):
            for j in range(0, i + 1, FOUR):
                add_products(z, weights, start, min(start + CHUNK, cells), i, j, sums, (i * rows + j) * WIDTH)
    for i in range(sigma.shape[0]):
        for j in range(i + 1):
            sigma[i, j] = add_up(load(sums, (i * rows + j) * WIDTH))
            sigma[j, i] = sigma[i, j]


@kernel
def add_products(
    z: Floats, weights: Floats, start: int, stop: int, i: int, j: int, sums: Floats, position: int
) -> None:
    """Add weights z_i z_j, and those of the next three rows up to i, over cells from start to stop."""
    left, z0, z1, z2, z3 = z[i], z[j], z[min(j + 1, i)], z[min(j + 2, i)], z[min(j + 3, i)]
    s0, s1 = load(sums, position), load(sums, position + WIDTH)
    s2, s3 = load(sums, position + 2 * WIDTH), load(sums, position + 3 * WIDTH)
    for n in range(start, stop, WIDTH):
        scaled = load(weights, n) * load(left, n)
        s0 = s0 + scaled * load(z0, n)
        s1 = s1 + scaled * load(z1, n)
        s2 = s2 + scaled * load(z2, n)
        s3 = s3 + scaled * load(z3, n)
    store_block(sums, position, s0, s1, s2, s3)


@kernel
def padded(d: int) -> int:
    """Return d rounded up to a multiple of four."""
    return (d + FOUR - 1) // FOUR * FOUR


@kernel
def sums_size(d: int) -> int:
    """Return how many numbers `covariance` keeps as partial sums."""
    return d * padded(d) * WIDTH


@kernel
def blend(coefficients: Floats, count: int, rows: Floats, n: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return sum_i coefficients_i rows_i over the first ``count`` rows for a block of cells from n on: four packs."""
    c, row = coefficients[0], rows[0]
    s0, s1 = c * load(row, n), c * load(row, n + WIDTH)
    s2, s3 = c * load(row, n + 2 * WIDTH), c * load(row, n + 3 * WIDTH)
    for i in range(1, count):
        c, row = coefficients[i], rows[i]
        s0 = s0 + c * load(row, n)
        s1 = s1 + c * load(row, n + WIDTH)
        s2 = s2 + c * load(row, n + 2 * WIDTH)
        s3 = s3 + c * load(row, n + 3 * WIDTH)
    return s0, s1, s2, s3


@kernel
def store_block(out: Floats, n: int, p0: Floats, p1: Floats, p2: Floats, p3: Floats) -> None:
    """Write four packs to the block of cells from n on."""
    store(out, n, p0)
    store(out, n + WIDTH, p1)
    store(out, n + 2 * WIDTH, p2)
    store(out, n + 3 * WIDTH, p3)


@kernel
def combine(coefficients: Floats, rows: Floats, out: Floats) -> None:
    """Write sum_i coefficients_i rows_i into out; rows has shape (d, cells), cells a multiple of BLOCK."""
    for n in range(0, out.shape[0], BLOCK):
        s0, s1, s2, s3 = blend(coefficients, coefficients.shape[0], rows, n)
        store_block(out, n, s0, s1, s2, s3)


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
def leverages(inverse: Floats, z: Floats, out: Floats) -> None:
    """Write z_n^T Sigma^-1 z_n = |G z_n|^2 for every cell into out; z has shape (d, cells)."""
    for n in range(0, out.shape[0], BLOCK):
        s0, s1, s2, s3 = blend(inverse[0], 1, z, n)
        l0, l1, l2, l3 = s0 * s0, s1 * s1, s2 * s2, s3 * s3
        for i in range(1, inverse.shape[0]):
            s0, s1, s2, s3 = blend(inverse[i], i + 1, z, n)
            l0 = l0 + s0 * s0
            l1 = l1 + s1 * s1
            l2 = l2 + s2 * s2
            l3 = l3 + s3 * s3
        store_block(out, n, l0, l1, l2, l3)


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
