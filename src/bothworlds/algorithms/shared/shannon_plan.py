"""Plans of exponential weights with one covariance for all arms. Kernel functions."""

from typing import Annotated, Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, larger, logarithm, over_contexts, where
from bothworlds.kernels.contract import Known
from bothworlds.kernels.exact_ftrl import add_context, begin_covariance, covariance, estimate, explore
from bothworlds.kernels.ftrl_points import shannon_point
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch

TINY = 1e-300


class State(NamedTuple):
    """State of an algorithm with fixed rates, then its plan."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    rates: Annotated[Floats, planned(2)]
    q: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


class Work(NamedTuple):
    """Scratch space of the shared steps."""

    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    vector: Annotated[Floats, scratch("d")]
    half: Annotated[Floats, scratch("d")]


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
def shannon_plan(known: Known, state: Any, work: Any, eta: Number, gamma: Number) -> int:
    """Compute q_t by softmax, pi_t = (1 - gamma) q_t + gamma e*, Sigma_t and its inverse factor; return a status."""
    begin_covariance(work.sums)
    for x in range(state.q.shape[0]):
        q = state.q[x]
        estimate(known, state.theta, x, q)
        shannon_point(q, eta, q)
        add_context(known, x, q, work.sums)
    covariance(known, state.q, work.sums, state.sigma)
    return explore(known, state, eta, gamma)
