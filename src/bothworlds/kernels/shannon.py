"""Plans of exponential weights with one covariance for all arms: shared by the algorithms with Shannon entropy."""

from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.numbers import Number, larger, logarithm, matrix_of, over_contexts, row_of, where
from bothworlds.kernels.plan import add_context, clear, covariance, estimate, invert, mix
from bothworlds.kernels.simplex import shannon_point

TINY = 1e-300


class State(NamedTuple):
    """What an algorithm with fixed rates has learnt, then its plan."""

    t: Floats
    theta: Floats
    rates: Floats
    q: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats


class Work(NamedTuple):
    """Scratch space of the shared steps."""

    sums: Floats
    vector: Floats
    half: Floats


def kept(B: int, d: int) -> tuple[int, int]:  # noqa: ARG001
    """Return how many numbers of the state, from its start, are not computed afresh with every plan."""
    return 3 + d, 0


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 3 + 3 * d + 2 * d * d, 2 * B * K + d * d


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 3 + d
    return State(
        t=row_of(memory, 0, 1),
        rates=row_of(memory, 1, 2),
        theta=row_of(memory, 3, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        pi=matrix_of(cells, 0, B, K),
        q=matrix_of(cells, B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:
    """Name the parts of the scratch space."""
    v = 3 + d + 2 * d * d
    return Work(sums=matrix_of(cells, 2 * B * K, d, d), vector=row_of(memory, v, d), half=row_of(memory, v + d, d))


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
    covariance(world, state.q, work.sums, state.sigma)
    mix(world, state, gamma)
    state.rates[0] = eta
    state.rates[1] = gamma
    return invert(state)
