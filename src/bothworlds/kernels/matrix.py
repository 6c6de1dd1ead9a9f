"""Small dense matrices in kernel text: Cholesky, inverse factors, solves.

On matrices of 5 x 5 these loops beat LAPACK's call overhead, and they run on a GPU as they stand. Of symmetric
matrices only the lower triangle is read.
"""

from typing import Any

from bothworlds.kernels.arithmetic import Number, both, fused, root, row_of, value, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.inverses import inverse_root
from bothworlds.kernels.jit.compile import kernel

Four = tuple[Number, Number, Number, Number]


@kernel
def erase(values: Floats) -> None:
    """Set all values to zero."""
    for i in range(values.shape[0]):
        values[i] = 0.0


@kernel
def add_row(weight: Number, row: Floats, first: int, last: int, out: Floats) -> None:
    """Add weight times a row to another one, from a first entry on and before a last one."""
    seen, own = row_of(row, first, last - first), row_of(out, first, last - first)
    for j in range(last - first):
        own[j] = fused(weight, seen[j], own[j])


@kernel
def add_four_rows(matrix: Floats, weights: Four, k: int, first: int, last: int, out: Floats) -> None:
    """Add rows k to k + 3, each with its weight, one after the other; each entry of out is read and written once."""
    w0, w1, w2, w3 = weights
    count = last - first
    r0, r1 = row_of(matrix[k], first, count), row_of(matrix[k + 1], first, count)
    r2, r3 = row_of(matrix[k + 2], first, count), row_of(matrix[k + 3], first, count)
    own = row_of(out, first, count)
    for j in range(count):
        own[j] = fused(w3, r3[j], fused(w2, r2[j], fused(w1, r1[j], fused(w0, r0[j], own[j]))))


@kernel
def four_of(matrix: Floats, k: int, i: int, sign: float) -> Four:
    """Return four entries of column i, times a sign."""
    return sign * matrix[k, i], sign * matrix[k + 1, i], sign * matrix[k + 2, i], sign * matrix[k + 3, i]


@kernel
def cholesky(sigma: Floats, factor: Floats) -> Any:
    """Write U = L^T, L the Cholesky factor, its diagonal inverted; return where sigma is positive definite.

    A division takes as long as many products, and every use of the factor divides by its diagonal. Where sigma is not
    positive definite the factor means nothing. Row by row: what stands side by side in memory is computed side by side.
    """
    d = factor.shape[0]
    sound = sigma[0, 0] > 0.0
    for i in range(d):
        row = factor[i]
        for j in range(i, d):
            row[j] = sigma[j, i]
        fours = i - i % 4
        for k in range(0, fours, 4):
            add_four_rows(factor, four_of(factor, k, i, -1.0), k, i, d, row)
        for k in range(fours, i):
            add_row(0.0 - factor[k, i], factor[k], i, d, row)
        rest = value(row[i])
        sound = both(sound, rest > 0.0)
        pivot = inverse_root(where(rest > 0.0, rest, 1.0))
        for j in range(i + 1, d):
            row[j] = row[j] * pivot
        row[i] = pivot
    return sound


@kernel
def solve(factor: Floats, b: Floats, out: Floats) -> None:
    """Write the solution of (L L^T) out = b for the factor that `cholesky` writes."""
    d = factor.shape[0]
    for i in range(d):
        out[i] = b[i]
    for k in range(d):
        out[k] = out[k] * factor[k, k]
        add_row(0.0 - out[k], factor[k], k + 1, d, out)
    for i in range(d - 1, -1, -1):
        rest = out[i]
        for k in range(i + 1, d):
            rest = fused(0.0 - factor[i, k], out[k], rest)
        out[i] = rest * factor[i, i]


@kernel
def invert_lower(factor: Floats) -> None:
    """Write the inverse G of L in the place of what `cholesky` writes: (L L^T)^-1 = G^T G."""
    d = factor.shape[0]
    for i in range(d):
        row = factor[i]
        for j in range(i):
            row[j] = 0.0
        fours = i - i % 4
        for k in range(0, fours, 4):
            weights = four_of(factor, k, i, 1.0)
            add_four_rows(factor, weights, k, 0, k + 1, row)
            for n in range(1, 4):
                add_row(weights[n], factor[k + n], k + 1, k + n + 1, row)
        for k in range(fours, i):
            add_row(factor[k, i], factor[k], 0, k + 1, row)
        for j in range(i):
            row[j] = row[j] * (0.0 - row[i])
    for i in range(d):
        erase(row_of(factor[i], i + 1, d - i - 1))


@kernel
def invert_mixture(sigma: Floats, gamma: Number, mixed: Floats, inverse: Floats) -> Any:
    """Write Sigma_t = (1 - gamma) Sigma(q) + gamma I and the factor G of its inverse; return where it is regular."""
    for i in range(sigma.shape[0]):
        for j in range(i + 1):
            mixed[i, j] = (1.0 - gamma) * sigma[i, j]
        mixed[i, i] = mixed[i, i] + gamma
    sound = cholesky(mixed, inverse)
    invert_lower(inverse)
    return sound


@kernel
def apply_inverse(inverse: Floats, b: Floats, half: Floats, out: Floats) -> None:
    """Write Sigma^-1 b = G^T (G b) into out, and G b into half."""
    apply_half(inverse, b, half)
    for i in range(inverse.shape[0]):
        out[i] = inverse[i, i] * half[i]
        add_row(half[i], inverse[i], 0, i, out)


@kernel
def product_of_row(row: Floats, last: int, z: Floats) -> Number:
    """Return sum_k row_k z_k up to the last k."""
    total = row[0] * z[0]
    for k in range(1, last + 1):
        total = fused(row[k], z[k], total)
    return total


@kernel
def four_rows_times(inverse: Floats, i: int, z: Floats) -> Four:
    """Return entries i to i + 3 of G z: sums that do not wait for each other, z being read once for all of them."""
    g0, g1, g2, g3 = inverse[i], inverse[i + 1], inverse[i + 2], inverse[i + 3]
    zero = 0.0 * z[0]
    t0, t1, t2, t3 = zero, zero, zero, zero
    for k in range(i + 1):
        t0, t1 = fused(g0[k], z[k], t0), fused(g1[k], z[k], t1)
        t2, t3 = fused(g2[k], z[k], t2), fused(g3[k], z[k], t3)
    t1 = fused(g1[i + 1], z[i + 1], t1)
    t2 = fused(g2[i + 2], z[i + 2], fused(g2[i + 1], z[i + 1], t2))
    t3 = fused(g3[i + 3], z[i + 3], fused(g3[i + 2], z[i + 2], fused(g3[i + 1], z[i + 1], t3)))
    return t0, t1, t2, t3


@kernel
def leverage_beside(inverse: Floats, z: Floats, half: Floats) -> tuple[Number, Number]:
    """Return z^T Sigma^-1 z = |G z|^2 and <G z, half>, four rows of G at a time."""
    d = inverse.shape[0]
    fours = d - d % 4
    zero = 0.0 * z[0]
    result, cross = zero, zero
    for i in range(0, fours, 4):
        t0, t1, t2, t3 = four_rows_times(inverse, i, z)
        result = fused(t3, t3, fused(t2, t2, fused(t1, t1, fused(t0, t0, result))))
        cross = fused(t3, half[i + 3], fused(t2, half[i + 2], fused(t1, half[i + 1], fused(t0, half[i], cross))))
    for i in range(fours, d):
        total = product_of_row(inverse[i], i, z)
        result, cross = fused(total, total, result), fused(total, half[i], cross)
    return result, cross


@kernel
def leverages_beside(inverse: Floats, z: Floats, other: Floats, half: Floats) -> Four:
    """Return both of two features, one after the other, in the same order of sums: G is read once for them."""
    d = inverse.shape[0]
    fours = d - d % 4
    zero = 0.0 * z[0]
    lev, cross, other_lev, other_cross = zero, zero, zero, zero
    for i in range(0, fours, 4):
        g0, g1, g2, g3 = inverse[i], inverse[i + 1], inverse[i + 2], inverse[i + 3]
        t0, t1, t2, t3 = zero, zero, zero, zero
        s0, s1, s2, s3 = zero, zero, zero, zero
        for k in range(i + 1):
            t0, t1 = fused(g0[k], z[k], t0), fused(g1[k], z[k], t1)
            t2, t3 = fused(g2[k], z[k], t2), fused(g3[k], z[k], t3)
            s0, s1 = fused(g0[k], other[k], s0), fused(g1[k], other[k], s1)
            s2, s3 = fused(g2[k], other[k], s2), fused(g3[k], other[k], s3)
        t1 = fused(g1[i + 1], z[i + 1], t1)
        t2 = fused(g2[i + 2], z[i + 2], fused(g2[i + 1], z[i + 1], t2))
        t3 = fused(g3[i + 3], z[i + 3], fused(g3[i + 2], z[i + 2], fused(g3[i + 1], z[i + 1], t3)))
        s1 = fused(g1[i + 1], other[i + 1], s1)
        s2 = fused(g2[i + 2], other[i + 2], fused(g2[i + 1], other[i + 1], s2))
        s3 = fused(g3[i + 3], other[i + 3], fused(g3[i + 2], other[i + 2], fused(g3[i + 1], other[i + 1], s3)))
        lev = fused(t3, t3, fused(t2, t2, fused(t1, t1, fused(t0, t0, lev))))
        cross = fused(t3, half[i + 3], fused(t2, half[i + 2], fused(t1, half[i + 1], fused(t0, half[i], cross))))
        other_lev = fused(s3, s3, fused(s2, s2, fused(s1, s1, fused(s0, s0, other_lev))))
        other_cross = fused(s0, half[i], other_cross)
        other_cross = fused(s3, half[i + 3], fused(s2, half[i + 2], fused(s1, half[i + 1], other_cross)))
    for i in range(fours, d):
        row = inverse[i]
        t0, s0 = row[0] * z[0], row[0] * other[0]
        for k in range(1, i + 1):
            t0, s0 = fused(row[k], z[k], t0), fused(row[k], other[k], s0)
        lev, cross = fused(t0, t0, lev), fused(t0, half[i], cross)
        other_lev, other_cross = fused(s0, s0, other_lev), fused(s0, half[i], other_cross)
    return lev, cross, other_lev, other_cross


@kernel
def leverage(inverse: Floats, z: Floats) -> Number:
    """Return z^T Sigma^-1 z = |G z|^2."""
    return leverage_beside(inverse, z, z)[0]


@kernel
def apply_half(inverse: Floats, b: Floats, half: Floats) -> None:
    """Write G b, four rows of G at a time."""
    d = inverse.shape[0]
    fours = d - d % 4
    for i in range(0, fours, 4):
        half[i], half[i + 1], half[i + 2], half[i + 3] = four_rows_times(inverse, i, b)
    for i in range(fours, d):
        half[i] = product_of_row(inverse[i], i, b)


@kernel
def write_whole_inverse(inverse: Floats, out: Floats) -> None:
    """Write Sigma^-1 = G^T G, both halves of it."""
    d = inverse.shape[0]
    for i in range(d):
        erase(out[i])
    for k in range(d):
        for i in range(k + 1):
            add_row(inverse[k, i], inverse[k], 0, i + 1, out[i])
    for i in range(d):
        for j in range(i):
            out[j, i] = out[i, j]


@kernel
def squared_length(matrix: Floats, z: Floats) -> Number:
    """Return |M z|^2 of a square matrix, four rows at a time: z is read once for all of them."""
    d = matrix.shape[0]
    fours = d - d % 4
    zero = 0.0 * z[0]
    result = zero
    for i in range(0, fours, 4):
        m0, m1, m2, m3 = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        t0, t1, t2, t3 = zero, zero, zero, zero
        for k in range(d):
            t0, t1 = fused(m0[k], z[k], t0), fused(m1[k], z[k], t1)
            t2, t3 = fused(m2[k], z[k], t2), fused(m3[k], z[k], t3)
        result = fused(t3, t3, fused(t2, t2, fused(t1, t1, fused(t0, t0, result))))
    for i in range(fours, d):
        total = product_of_row(matrix[i], d - 1, z)
        result = fused(total, total, result)
    return result


@kernel
def product(theta: Floats, z: Floats) -> Number:
    """Return <theta, z>."""
    return product_of_row(theta, theta.shape[0] - 1, z)


@kernel
def products_with(theta: Floats, z: Floats, other: Floats) -> tuple[Number, Number]:
    """Return <theta, z> and <theta, other>, theta being read once."""
    left, right = theta[0] * z[0], theta[0] * other[0]
    for i in range(1, theta.shape[0]):
        left, right = fused(theta[i], z[i], left), fused(theta[i], other[i], right)
    return left, right


@kernel
def trace_of_ratio(inverse: Floats, sigma: Floats) -> Number:
    """Return tr(Sigma^-1 Sigma) = sum_i G_i Sigma G_i^T: d, but for rounding.

    By linearity this is sum_x g(x) sum_a pi(a|x) lev(a,x), the identity behind E[lev] = d; it drifts from d as
    soon as Sigma is too ill-conditioned for the estimate to mean anything. Each pair of columns is looked at once.
    """
    total = 0.0
    for i in range(inverse.shape[0]):
        row = inverse[i]
        for j in range(i + 1):
            other = sigma[j]
            s0 = 0.5 * other[j] * row[j]
            s1 = 0.0 * s0
            s2, s3 = s1, s1
            fours = j - j % 4
            for k in range(0, fours, 4):
                s0, s1 = fused(other[k], row[k], s0), fused(other[k + 1], row[k + 1], s1)
                s2, s3 = fused(other[k + 2], row[k + 2], s2), fused(other[k + 3], row[k + 3], s3)
            for k in range(fours, j):
                s0 = fused(other[k], row[k], s0)
            total = fused(row[j], (s0 + s1) + (s2 + s3), total)
    return 2.0 * total


@kernel
def lower_bounds_in_turn(
    theta: Floats, inverse: Floats, width: Number, z: Floats, blocked: Floats, out: Floats
) -> None:  # fmt: skip
    """Write <theta, z> - width |z|_{Sigma^-1} of every arm of a block of contexts; infinite for arms not offered."""
    for a in range(z.shape[0]):
        out[a] = product(theta, z[a]) - width * root(leverage(inverse, z[a])) + blocked[a]


@kernel
def lower_bounds(theta: Floats, inverse: Floats, width: Number, z: Floats, blocked: Floats, out: Floats) -> None:
    """Write the lower bounds of all arms of a block of contexts; a GPU has its own."""
    lower_bounds_in_turn(theta, inverse, width, z, blocked, out)
