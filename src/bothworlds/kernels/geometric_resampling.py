"""Matrix Geometric Resampling for arm-dependent features: Sigma^-1 z from draws alone (Neu & Olkhovskaya 2020).

With Y_0 = z and Y_k = Y_{k-1} - beta <Y_{k-1}, z_k> z_k for fresh draws z_k = phi(A(k), X(k)), A(k) ~ pi(.|X(k)),

    E[beta sum_{k=0}^M Y_k] = Sigma^-1 (I - (I - beta Sigma)^(M+1)) z.

Every draw counts. The variant for arm-independent features skips draws of other arms, which would be wrong here.
"""

from typing import NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import feature
from bothworlds.kernels.contract import Draw, Known
from bothworlds.kernels.exact_ftrl import draw_context, draw_from
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.random import RESAMPLING, two_uniforms


@kernel
def contract(z: Floats, x: int, a: int, beta: float, y: Floats, out: Floats) -> None:
    """Do one step: y <- y - beta <y, z_k> z_k for the context and arm of draw k, and out <- out + beta y."""
    product = 0.0
    for i in range(y.shape[0]):
        product += y[i] * feature(z, x, a, i)
    for i in range(y.shape[0]):
        y[i] -= beta * product * feature(z, x, a, i)
        out[i] += beta * y[i]


class Resampling(NamedTuple):
    """Options: the step beta (0: exact inverse), and the number of draws (0: log_bias/(gamma beta))."""

    beta: float
    samples: float
    log_bias: float


@kernel
def begin(known: Known, pair: tuple[int, int], beta: float, y: Floats, out: Floats) -> None:
    """Write Y_0 = z of a context and an arm into y, and beta Y_0 into out."""
    x, a = pair
    for i in range(y.shape[0]):
        y[i] = feature(known.z, x, a, i)
        out[i] = beta * y[i]


@kernel
def resample(
    known: Known, pi: Floats, pair: tuple[int, int], step: tuple[float, int], draw: Draw, y: Floats, out: Floats
) -> None:
    """Write the resampled direction of a context and an arm into out; ``step`` is beta and the number of draws."""
    beta, samples = step
    begin(known, pair, beta, y, out)
    for k in range(samples):
        u, v = two_uniforms(draw.key, draw.time, RESAMPLING, k)
        drawn = draw_context(known.g, u)
        contract(known.z, drawn, draw_from(pi, drawn, v), beta, y, out)
