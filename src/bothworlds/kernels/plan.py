"""Steps that every FTRL algorithm with an exact covariance takes from q_t to a plan, and from a plan to a decision.

``state`` is a named tuple with theta, q, pi, sigma and inverse, ``work`` one with weights, sums, vector, half;
each algorithm has its own, with more fields.
"""

import math
from typing import Any

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.matrix import apply_inverse, cholesky, covariance, invert_lower, trace_of_ratio
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.kernels.status import NOT_POSITIVE, OK, TRACE_BROKEN

TRACE_TOLERANCE = 1e-6


@kernel
def all_finite(values: Floats) -> bool:
    """Tell whether all values are finite."""
    for i in range(values.shape[0]):  # noqa: SIM110  (kernel text has no generators)
        if not math.isfinite(values[i]):
            return False
    return True


@kernel
def covariance_of_points(world: World, state: Any, work: Any) -> None:
    """Compute Sigma(q_t) (Section 2.2) into state.sigma."""
    S, K = state.q.shape
    weights = work.weights[0 : S * K].reshape((S, K))
    for n in range(S * K, work.weights.shape[0]):
        work.weights[n] = 0.0
    for x in range(S):
        for a in range(K):
            weights[x, a] = world.g[x] * state.q[x, a]
    covariance(world.z, work.weights, work.sums, state.sigma)


@kernel
def mix(world: World, state: Any, gamma: float) -> None:
    """Compute pi_t = (1 - gamma_t) q_t + gamma_t e* (equation (3)) and Sigma_t; Sigma(e*) is the identity."""
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            state.pi[x, a] = (1.0 - gamma) * state.q[x, a] + gamma * world.e[x, a]
    for i in range(state.sigma.shape[0]):
        for j in range(state.sigma.shape[0]):
            state.sigma[i, j] *= 1.0 - gamma
        state.sigma[i, i] += gamma


@kernel
def invert(state: Any) -> int:
    """Compute G with Sigma_t^-1 = G^T G, guarded by the trace identity; return a status."""
    if not cholesky(state.sigma, state.inverse):
        return NOT_POSITIVE
    invert_lower(state.inverse)
    d = state.theta.shape[0]
    if not abs(trace_of_ratio(state.inverse, state.sigma) - d) <= TRACE_TOLERANCE * d:
        return TRACE_BROKEN
    return OK


@kernel
def draw_arm(pi: Floats, x: int, key: int, time: int) -> int:
    """Draw A_t from pi_t(x)."""
    u, _ = two_uniforms(key, time, ARM, 0)
    return draw(pi[x], u)


@kernel
def exact_direction(world: World, state: Any, work: Any, cell: int, direction: Floats) -> None:
    """Write Sigma_t^-1 z of a cell."""
    for i in range(direction.shape[0]):
        work.vector[i] = world.z[i, cell]
    apply_inverse(state.inverse, work.vector, work.half, direction)


@kernel
def plain_numbers(numbers: Floats) -> Floats:
    """Return hyper-parameters that need no names as they are."""
    return numbers


@kernel
def choose_only(
    world: World,  # noqa: ARG001
    numbers: Floats,  # noqa: ARG001
    state: Any,
    work: Any,  # noqa: ARG001
    x: int,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw A_t from pi_t(x) for an algorithm without an estimator: its decisions carry no direction."""
    for i in range(direction.shape[0]):
        direction[i] = 0.0
    return draw_arm(state.pi, x, key, time)
