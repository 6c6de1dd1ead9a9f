"""Small dense linear algebra: factorizations, solves and products without allocation."""

from typing import Any

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, both, fused, root, row_of, value, where
from bothworlds.kernels.jit.compile import kernel


@kernel
def reciprocal(number: Number) -> Number:
    """Return 1/number for a number that is not zero; zero for infinity."""
    return 1.0 / number


@kernel
def inverse_root(number: Number) -> Number:
    """Return 1/sqrt(number) of a positive number."""
    return 1.0 / root(number)


Four = tuple[Number, Number, Number, Number]


@kernel
def erase(values: Floats) -> None:
    """Set all values to zero."""
    for i in range(values.shape[0]):
        values[i] = 0.0


@kernel
def add_row(weight: Number, row: Floats, first: int, last: int, out: Floats) -> None:
    """Add weight * row[first:last] to out[first:last]."""
    source, target = row_of(row, first, last - first), row_of(out, first, last - first)
    for j in range(last - first):
        target[j] = fused(weight, source[j], target[j])


@kernel
def add_four_rows(matrix: Floats, weights: Four, k: int, first: int, last: int, out: Floats) -> None:
    """Add weighted rows k to k + 3 to out[first:last], one after the other; each entry is read and written once."""
    w0, w1, w2, w3 = weights
    count = last - first
    r0, r1 = row_of(matrix[k], first, count), row_of(matrix[k + 1], first, count)
    r2, r3 = row_of(matrix[k + 2], first, count), row_of(matrix[k + 3], first, count)
    target = row_of(out, first, count)
    for j in range(count):
        target[j] = fused(w3, r3[j], fused(w2, r2[j], fused(w1, r1[j], fused(w0, r0[j], target[j]))))


@kernel
def four_entries(matrix: Floats, k: int, i: int, sign: float) -> Four:
    """Return entries k to k + 3 of column i, times a sign."""
    return sign * matrix[k, i], sign * matrix[k + 1, i], sign * matrix[k + 2, i], sign * matrix[k + 3, i]


@kernel
def cholesky(sigma: Floats, factor: Floats) -> Any:
    """Write the transposed Cholesky factor U = L^T with its diagonal inverted; return where sigma is positive definite.

    The diagonal is inverted because every use of the factor divides by it, and a division takes as long as many
    products. Where sigma is not positive definite, the factor is meaningless. Use ``factor`` through `solve` only,
    because a GPU stores it in another form.

    Parameters
    ----------
    sigma
        A symmetric matrix (d, d); its lower triangle is read.
    factor
        Array (d, d) for the factor; may be ``sigma`` itself, whose diagonal and upper triangle it then replaces.

    >>> import numpy as np
    >>> factor = np.zeros((2, 2))
    >>> bool(cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), factor)), factor.tolist()
    (True, [[0.5, 1.0], [0.0, 0.5]])
    >>> bool(cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), factor))
    False
    """
    d = factor.shape[0]
    positive = sigma[0, 0] > 0.0
    for i in range(d):
        row = factor[i]
        for j in range(i, d):
            row[j] = sigma[j, i]
        fours = i - i % 4
        for k in range(0, fours, 4):
            add_four_rows(factor, four_entries(factor, k, i, -1.0), k, i, d, row)
        for k in range(fours, i):
            add_row(0.0 - factor[k, i], factor[k], i, d, row)
        square = value(row[i])
        positive = both(positive, square > 0.0)
        pivot = inverse_root(where(square > 0.0, square, 1.0))
        for j in range(i + 1, d):
            row[j] = row[j] * pivot
        row[i] = pivot
    return positive


@kernel
def solve(factor: Floats, b: Floats, out: Floats) -> None:
    """Write the solution of sigma out = b, given the factor of sigma that `cholesky` writes.

    >>> import numpy as np
    >>> factor, out = np.zeros((2, 2)), np.zeros(2)
    >>> bool(cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), factor))
    True
    >>> solve(factor, np.array([8.0, 8.0]), out)
    >>> out.tolist()
    [1.5, 1.0]
    """
    d = factor.shape[0]
    for i in range(d):
        out[i] = b[i]
    for k in range(d):
        out[k] = out[k] * factor[k, k]
        add_row(0.0 - out[k], factor[k], k + 1, d, out)
    for i in range(d - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, d):
            total = fused(0.0 - factor[i, k], out[k], total)
        out[i] = total * factor[i, i]


@kernel
def invert_lower(factor: Floats) -> None:
    """Replace the factor that `cholesky` writes by the inverse G of L: (L L^T)^-1 = G^T G."""
    d = factor.shape[0]
    for i in range(d):
        row = factor[i]
        for j in range(i):
            row[j] = 0.0
        fours = i - i % 4
        for k in range(0, fours, 4):
            weights = four_entries(factor, k, i, 1.0)
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
    """Write Sigma_t = (1 - gamma) Sigma(q) + gamma I and G with Sigma_t^-1 = G^T G; return where it is positive."""
    for i in range(sigma.shape[0]):
        for j in range(i + 1):
            mixed[i, j] = (1.0 - gamma) * sigma[i, j]
        mixed[i, i] = mixed[i, i] + gamma
    positive = cholesky(mixed, inverse)
    invert_lower(inverse)
    return positive


@kernel
def apply_inverse(inverse: Floats, b: Floats, half: Floats, out: Floats) -> None:
    """Write Sigma^-1 b = G^T (G b) into out, and G b into half."""
    apply_half(inverse, b, half)
    for i in range(inverse.shape[0]):
        out[i] = inverse[i, i] * half[i]
        add_row(half[i], inverse[i], 0, i, out)


@kernel
def product_of_row(row: Floats, last: int, z: Floats) -> Number:
    """Return sum_k row_k z_k for k = 0, ..., last."""
    total = row[0] * z[0]
    for k in range(1, last + 1):
        total = fused(row[k], z[k], total)
    return total


@kernel
def four_rows_times(inverse: Floats, i: int, z: Floats) -> Four:
    """Return entries i to i + 3 of G z: four independent sums, reading z once."""
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
def leverage_and_cross(inverse: Floats, z: Floats, half: Floats) -> tuple[Number, Number]:
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
def leverage(inverse: Floats, z: Floats) -> Number:
    """Return z^T Sigma^-1 z = |G z|^2."""
    return leverage_and_cross(inverse, z, z)[0]


@kernel
def apply_half(inverse: Floats, b: Floats, half: Floats) -> None:
    """Write G b into half, four rows of G at a time."""
    d = inverse.shape[0]
    fours = d - d % 4
    for i in range(0, fours, 4):
        half[i], half[i + 1], half[i + 2], half[i + 3] = four_rows_times(inverse, i, b)
    for i in range(fours, d):
        half[i] = product_of_row(inverse[i], i, b)


@kernel
def write_inverse(inverse: Floats, out: Floats) -> None:
    """Write Sigma^-1 = G^T G, both triangles."""
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
def product(theta: Floats, z: Floats) -> Number:
    """Return the inner product <theta, z> of two vectors (d,).

    >>> import numpy as np
    >>> float(product(np.array([1.0, 2.0]), np.array([3.0, 0.5])))
    4.0
    """
    return product_of_row(theta, theta.shape[0] - 1, z)


@kernel
def products_with(theta: Floats, z: Floats, other: Floats) -> tuple[Number, Number]:
    """Return <theta, z> and <theta, other>, reading theta once."""
    left, right = theta[0] * z[0], theta[0] * other[0]
    for i in range(1, theta.shape[0]):
        left, right = fused(theta[i], z[i], left), fused(theta[i], other[i], right)
    return left, right


@kernel
def trace_of_ratio(inverse: Floats, sigma: Floats) -> Number:
    """Return tr(Sigma^-1 Sigma) = sum_i G_i Sigma G_i^T, which is d up to rounding.

    By linearity this is sum_x g(x) sum_a pi(a|x) lev(a,x), the identity behind E[lev] = d. It departs from d when
    Sigma is too ill-conditioned for a meaningful estimate. Each pair of columns is used once.
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
def lower_bounds_one_by_one(
    theta: Floats, inverse: Floats, width: Number, z: Floats, blocked: Floats, out: Floats
) -> None:  # fmt: skip
    """Write <theta, z> - width |z|_{Sigma^-1} of every arm of a block of contexts; infinite for arms not offered."""
    for a in range(z.shape[0]):
        out[a] = product(theta, z[a]) - width * root(leverage(inverse, z[a])) + blocked[a]


@kernel
def lower_bounds(theta: Floats, inverse: Floats, width: Number, z: Floats, blocked: Floats, out: Floats) -> None:
    """Write `lower_bounds_one_by_one`; GPUs have their own implementation."""
    lower_bounds_one_by_one(theta, inverse, width, z, blocked, out)
