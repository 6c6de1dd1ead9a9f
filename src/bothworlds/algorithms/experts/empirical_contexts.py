"""The empirical context distribution: counts in place of known probabilities. Kernel functions.

With n contexts counted, the empirical distribution is counts/n. Moments under it get a ridge, since unseen contexts
contribute nothing. A context is counted when its feedback is learned from. ``known.g`` is not used.
"""

from typing import Any

from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.exact_ftrl import clear
from bothworlds.kernels.jit.compile import kernel


@kernel
def total_count(counts: Floats) -> float:
    """Return n, the number of contexts counted."""
    total = 0.0
    for x in range(counts.shape[0]):
        total += counts[x]
    return total


@kernel
def empirical_covariance(known: Known, state: Any, work: Any, ridge: float, ridged: int) -> None:
    """Write sum_x counts(x)/n sum_a pi(a|x) z z^T + ridge on the first coordinates; the identity if n = 0."""
    n = total_count(state.counts)
    d = state.sigma.shape[0]
    clear(work.sums)
    for x in range(state.pi.shape[0]):
        if state.counts[x] > 0.0:
            for a in range(state.pi.shape[1]):
                weight = state.counts[x] / n * state.pi[x, a]
                z = known.z[x, a]
                for i in range(d):
                    for j in range(i + 1):
                        work.sums[i, j] += weight * z[i] * z[j]
    for i in range(d):
        for j in range(i + 1):
            state.sigma[i, j] = work.sums[i, j]
            state.sigma[j, i] = work.sums[i, j]
        if n == 0.0:
            state.sigma[i, i] = 1.0
        elif i < ridged:
            state.sigma[i, i] += ridge


@kernel
def inverse_entry(inverse: Floats, i: int, j: int) -> float:
    """Return entry (i, j) of Sigma^-1 = G^T G, j <= i, from its lower triangular factor G."""
    total = 0.0
    for k in range(i, inverse.shape[0]):
        total += inverse[k, i] * inverse[k, j]
    return total
