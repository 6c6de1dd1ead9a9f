"""Matrix Geometric Resampling for arm-dependent features: Sigma^-1 z from draws alone (Neu & Olkhovskaya 2020).

With Y_0 = z and Y_k = Y_{k-1} - beta <Y_{k-1}, z_k> z_k for fresh draws z_k = phi(A(k), X(k)), A(k) ~ pi(.|X(k)),

    E[beta sum_{k=0}^M Y_k] = Sigma^-1 (I - (I - beta Sigma)^(M+1)) z.

Every draw counts: the variant for arm-independent features skips draws of other arms, which is wrong here.
"""

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.random import RESAMPLING, draw, two_uniforms


@kernel
def contract(z: Floats, cell: int, beta: float, y: Floats, out: Floats) -> None:
    """Take one step: y <- y - beta <y, z_k> z_k for the cell of draw k, and out <- out + beta y."""
    product = 0.0
    for i in range(y.shape[0]):
        product += y[i] * z[i, cell]
    for i in range(y.shape[0]):
        y[i] -= beta * product * z[i, cell]
        out[i] += beta * y[i]


@kernel
def resample(
    z: Floats,
    g: Floats,
    pi: Floats,
    cell: int,
    beta: float,
    samples: int,
    key: int,
    time: int,
    y: Floats,
    out: Floats,
) -> None:
    """Write the resampled direction of a cell into out, from ``samples`` draws."""
    for i in range(y.shape[0]):
        y[i] = z[i, cell]
        out[i] = beta * y[i]
    for k in range(samples):
        u, v = two_uniforms(key, time, RESAMPLING, k)
        x = draw(g, u)
        contract(z, x * pi.shape[1] + draw(pi[x], v), beta, y, out)
