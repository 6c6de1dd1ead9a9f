"""Plans of exponential weights with one covariance for all arms: shared by the algorithms with Shannon entropy."""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.matrix import combine
from bothworlds.kernels.plan import covariance_of_points, invert, mix
from bothworlds.kernels.simplex import shannon_point

LANES = 16


class Work(NamedTuple):
    """Scratch space of the shared steps."""

    weights: Floats
    scaled: Floats
    lanes: Floats
    vector: Floats
    half: Floats


def work_size(d: int, cells: int) -> int:
    """Return how many numbers Work takes."""
    return LANES + 2 * d + 2 * cells


@kernel
def work_of(scratch: Floats, S: int, K: int, d: int, cells: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    v = LANES + 2 * d
    return Work(
        lanes=scratch[0:LANES],
        vector=scratch[LANES : LANES + d],
        half=scratch[LANES + d : v],
        weights=scratch[v : v + cells],
        scaled=scratch[v + cells : v + 2 * cells],
    )


@kernel
def entropy(q: Floats) -> float:
    """Return H(q) = -sum_a q_a log q_a."""
    total = 0.0
    for a in range(q.shape[0]):
        if q[a] > 0.0:
            total -= q[a] * math.log(q[a])
    return total


@kernel
def expected_entropy(g: Floats, q: Floats) -> float:
    """Return sum_x g(x) H(q(x))."""
    total = 0.0
    for x in range(q.shape[0]):
        total += g[x] * entropy(q[x])
    return total


@kernel
def shannon_plan(world: World, state: Any, work: Any, eta: float, gamma: float) -> int:
    """Compute q_t by softmax, pi_t = (1 - gamma) q_t + gamma e*, Sigma_t and its inverse factor; return a status.

    ``state.cells`` is q_t, flat and padded.
    """
    combine(state.theta, world.z, state.cells)
    for x in range(state.q.shape[0]):
        q = state.q[x]
        for a in range(q.shape[0]):
            q[a] += world.blocked[x, a]
        shannon_point(q, eta, q)
    covariance_of_points(world, state, work)
    mix(world, state, gamma)
    state.rates[0] = eta
    state.rates[1] = gamma
    return invert(state)
