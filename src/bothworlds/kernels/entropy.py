"""The Tsallis entropy of a plan: what FTRL's penalty term weighs."""

from bothworlds.kernels.arithmetic import Number, exponential, larger, logarithm, over_contexts, root, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel

TINY = 1e-300


@kernel
def power_of(q: Number, alpha: float) -> Number:
    """Return q^alpha, which is 0 for q = 0."""
    if alpha == 0.5:
        return root(q)
    return where(q > 0.0, exponential(alpha * logarithm(larger(q, TINY))), 0.0)


@kernel
def mean_entropy(known: Known, q: Floats, alpha: float) -> Number:
    """Return sum_x g(x) (sum_a q(a|x)^alpha - 1)/alpha, that is -psi(q) in the mean over contexts."""
    total = 0.0
    for x in range(q.shape[0]):
        inner = -1.0
        for a in range(q.shape[1]):
            inner = inner + power_of(q[x, a], alpha)
        total = total + known.g[x] * inner
    return larger(over_contexts(total) / alpha, 0.0)
