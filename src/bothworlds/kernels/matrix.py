"""Small dense matrices in kernel text: Cholesky, inverse factors, solves.

On matrices of 5 x 5 these loops beat LAPACK's call overhead, and they run on a GPU as they stand. Of symmetric
matrices only the lower triangle is read and written.
"""

from typing import Any

from bothworlds.kernels.arithmetic import Number, both, root, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel


@kernel
def erase(values: Floats) -> None:
    """Set all values to zero."""
    for i in range(values.shape[0]):
        values[i] = 0.0


@kernel
def cholesky(sigma: Floats, factor: Floats) -> Any:
    """Write the lower Cholesky factor, its diagonal inverted; return where sigma is positive definite.

    A division takes as long as many products, and every use of the factor divides by its diagonal. Where sigma is not
    positive definite the factor means nothing.
    """
    d = factor.shape[0]
    sound = sigma[0, 0] > 0.0
    for i in range(d):
        for j in range(i + 1):
            rest = sigma[i, j]
            for k in range(j):
                rest = rest - factor[i, k] * factor[j, k]
            if i == j:
                sound = both(sound, rest > 0.0)
                factor[i, i] = 1.0 / root(where(rest > 0.0, rest, 1.0))
            else:
                factor[i, j] = rest * factor[j, j]
    return sound


@kernel
def solve(factor: Floats, b: Floats, out: Floats) -> None:
    """Write the solution of (L L^T) out = b for the factor that `cholesky` writes."""
    d = factor.shape[0]
    for i in range(d):
        rest = b[i]
        for k in range(i):
            rest = rest - factor[i, k] * out[k]
        out[i] = rest * factor[i, i]
    for i in range(d - 1, -1, -1):
        rest = out[i]
        for k in range(i + 1, d):
            rest = rest - factor[k, i] * out[k]
        out[i] = rest * factor[i, i]


@kernel
def invert_lower(factor: Floats) -> None:
    """Replace the factor that `cholesky` writes by the inverse G of L, so that (L L^T)^-1 = G^T G."""
    d = factor.shape[0]
    for i in range(d):
        pivot = factor[i, i]
        for j in range(i):
            total = factor[i, j] * factor[j, j]
            for k in range(j + 1, i):
                total = total + factor[i, k] * factor[k, j]
            factor[i, j] = total * (0.0 - pivot)


@kernel
def apply_inverse(inverse: Floats, b: Floats, half: Floats, out: Floats) -> None:
    """Write Sigma^-1 b = G^T (G b) into out, and G b into half."""
    d = inverse.shape[0]
    for i in range(d):
        total = inverse[i, 0] * b[0]
        for k in range(1, i + 1):
            total = total + inverse[i, k] * b[k]
        half[i] = total
    for i in range(d):
        total = inverse[i, i] * half[i]
        for k in range(i + 1, d):
            total = total + inverse[k, i] * half[k]
        out[i] = total


@kernel
def leverage(inverse: Floats, z: Floats) -> Number:
    """Return z^T Sigma^-1 z = |G z|^2."""
    first = inverse[0, 0] * z[0]
    result = first * first
    for i in range(1, inverse.shape[0]):
        total = inverse[i, 0] * z[0]
        for k in range(1, i + 1):
            total = total + inverse[i, k] * z[k]
        result = result + total * total
    return result


@kernel
def product(theta: Floats, z: Floats) -> Number:
    """Return <theta, z>."""
    total = theta[0] * z[0]
    for i in range(1, theta.shape[0]):
        total = total + theta[i] * z[i]
    return total


@kernel
def trace_of_ratio(inverse: Floats, sigma: Floats) -> Number:
    """Return tr(Sigma^-1 Sigma) = sum_i G_i Sigma G_i^T: d, but for rounding.

    By linearity this is sum_x g(x) sum_a pi(a|x) lev(a,x), the identity behind E[lev] = d; it drifts from d as
    soon as Sigma is too ill-conditioned for the estimate to mean anything.
    """
    total = 0.0
    for i in range(inverse.shape[0]):
        for j in range(i + 1):
            inner = 0.0
            for k in range(i + 1):
                inner = inner + (sigma[j, k] if k <= j else sigma[k, j]) * inverse[i, k]
            total = total + inverse[i, j] * inner
    return total


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
