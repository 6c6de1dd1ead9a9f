"""Plans of exponential weights with one covariance for all arms: shared by the algorithms with Shannon entropy."""

from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.numbers import Number, larger, logarithm, over_contexts, where
from bothworlds.kernels.plan import add_context, clear, collect, estimate, invert, mix
from bothworlds.kernels.simplex import shannon_point

TINY = 1e-300


class Work(NamedTuple):
    """Scratch space of the shared steps."""

    sums: Floats
    vector: Floats
    half: Floats


@kernel
def entropy_of(p: Number) -> Number:
    """Return -p log p, which is 0 for p = 0."""
    return where(p > 0.0, p * (0.0 - logarithm(larger(p, TINY))), 0.0)


@kernel
def expected_entropy(g: Floats, q: Floats) -> Number:
    """Return sum_x g(x) H(q(x)), H(q) = -sum_a q_a log q_a."""
    total = 0.0
    for x in range(q.shape[0]):
        inner = 0.0
        for a in range(q.shape[1]):
            inner = inner + entropy_of(q[x, a])
        total = total + g[x] * inner
    return over_contexts(total)


@kernel
def shannon_plan(world: World, state: Any, work: Any, eta: Number, gamma: Number) -> int:
    """Compute q_t by softmax, pi_t = (1 - gamma) q_t + gamma e*, Sigma_t and its inverse factor; return a status."""
    clear(work.sums)
    for x in range(state.q.shape[0]):
        q = state.q[x]
        estimate(world, state.theta, x, q)
        shannon_point(q, eta, q)
        add_context(world, x, q, work.sums)
    collect(work.sums, state.sigma)
    mix(world, state, gamma)
    state.rates[0] = eta
    state.rates[1] = gamma
    return invert(state)
