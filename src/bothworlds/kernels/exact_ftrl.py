"""Steps shared by FTRL algorithms with an exact covariance: from Theta to a plan, and from a plan to a decision.

``state`` is a named tuple with theta, q, pi, sigma and inverse, ``work`` one with sums, vector and half; each algorithm
has its own, with more fields. A plan is computed context by context, or block by block: each adds its part to the
covariance as soon as its q_t is computed.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    Place,
    absolute,
    at,
    count_of,
    every,
    feature,
    fused,
    matrix_of,
    over_contexts,
)
from bothworlds.kernels.contract import Draw, Known, Play
from bothworlds.kernels.covariance_tiles import FEWEST, add_by_columns, clear_totals, collect_totals
from bothworlds.kernels.jit.compile import kernel, on_contexts
from bothworlds.kernels.layout import carries
from bothworlds.kernels.linalg import apply_inverse, cholesky, invert_lower, product, trace_of_ratio
from bothworlds.kernels.random import Two, draw_step
from bothworlds.kernels.status import NOT_POSITIVE, OK, TRACE_BROKEN

TRACE_TOLERANCE = 1e-6


@kernel
def all_finite(values: Floats) -> bool:
    """Return whether all values are finite."""
    finite = True
    for i in range(values.shape[0]):
        finite = finite and every(absolute(values[i]) < math.inf)
    return finite


@kernel
def clear(sums: Floats) -> None:
    """Set the lower triangle of the sums to zero."""
    for i in range(sums.shape[0]):
        for j in range(i + 1):
            sums[i, j] = 0.0


@kernel
def forget(matrix: Floats) -> None:
    """Mark a matrix as unused until it is next written, so that a GPU need not keep it."""


@kernel
def estimate(known: Known, theta: Floats, x: int, losses: Floats) -> None:
    """Write the cumulative estimates <Theta, phi(a, x)> of a block of contexts; infinite for arms not offered."""
    for a in range(losses.shape[0]):
        losses[a] = product(theta, known.z[x, a]) + known.blocked[x, a]


@kernel
def add_arm(weight: Number, z: Floats, sums: Floats) -> None:
    """Add weight z z^T."""
    for i in range(sums.shape[0]):
        left = weight * z[i]
        for j in range(i + 1):
            sums[i, j] = fused(left, z[j], sums[i, j])


@kernel
def add_two_arms(weight: Number, z: Floats, other_weight: Number, other_z: Floats, sums: Floats) -> None:
    """Add two arms one after the other; each sum is read and written once."""
    for i in range(sums.shape[0]):
        left, other = weight * z[i], other_weight * other_z[i]
        for j in range(i + 1):
            sums[i, j] = fused(other, other_z[j], fused(left, z[j], sums[i, j]))


@kernel
def add_four_arms(g: Number, q: Floats, z: Floats, a: int, sums: Floats) -> None:
    """Add arms a to a + 3 one after the other; each sum is read and written once."""
    q0, q1, q2, q3 = g * q[a], g * q[a + 1], g * q[a + 2], g * q[a + 3]
    for i in range(sums.shape[0]):
        w0, w1, w2, w3 = q0 * z[a, i], q1 * z[a + 1, i], q2 * z[a + 2, i], q3 * z[a + 3, i]
        for j in range(i + 1):
            two = fused(w1, z[a + 1, j], fused(w0, z[a, j], sums[i, j]))
            sums[i, j] = fused(w3, z[a + 3, j], fused(w2, z[a + 2, j], two))


@kernel
def add_pairs_of_arms(known: Known, x: int, q: Floats, first: int, sums: Floats) -> None:
    """Add g(x) q(a|x) phi phi^T for all arms from ``first`` on, two at a time (Section 2.2)."""
    g, z, K = known.g[x], known.z[x], q.shape[0]
    for a in range(first, K - 1, 2):
        add_two_arms(g * q[a], z[a], g * q[a + 1], z[a + 1], sums)
    if (K - first) % 2 == 1:
        add_arm(g * q[K - 1], z[K - 1], sums)


@kernel
def add_arms(known: Known, x: int, q: Floats, sums: Floats) -> None:
    """Add g(x) q(a|x) phi phi^T for all arms of a context or of a block of contexts."""
    fours = q.shape[0] - q.shape[0] % 4
    for a in range(0, fours, 4):
        add_four_arms(known.g[x], q, known.z[x], a, sums)
    add_pairs_of_arms(known, x, q, fours, sums)


@kernel
def collect(sums: Floats, sigma: Floats) -> None:
    """Write Sigma(q_t), the sums over all contexts, into the lower triangle of sigma."""
    for i in range(sigma.shape[0]):
        for j in range(i + 1):
            sigma[i, j] = over_contexts(sums[i, j])


@kernel
def collect_sums(known: Known, q: Floats, sums: Floats, sigma: Floats) -> None:
    """Write Sigma(q_t) from the sums; implementations that recompute it also use ``known`` and ``q``."""
    collect(sums, sigma)


@kernel
def clear_block(sums: Floats) -> None:
    """Set the sums of packs of contexts to zero."""
    if sums.shape[0] < FEWEST:
        clear(sums)
    else:
        clear_totals(sums)


@kernel
def add_block(known: Known, x: int, q: Floats, sums: Floats) -> None:
    """Add a block of contexts, by tiles if there are many coordinates."""
    if sums.shape[0] < FEWEST:
        add_arms(known, x, q, sums)
    else:
        add_by_columns(known, x, q, sums)


@kernel
def collect_blocks(known: Known, q: Floats, sums: Floats, sigma: Floats) -> None:
    """Write Sigma(q_t) after `add_block` of every block."""
    if sums.shape[0] < FEWEST:
        collect(sums, sigma)
    else:
        collect_totals(sums, sigma)


# To compute a covariance: clear the sums, add every context (or block of contexts) after computing its q_t, and write
# the result into the lower triangle of sigma. Packs of contexts have their own code, and so have GPUs.
begin_covariance = on_contexts(clear, clear_block)  # (sums)
add_context = on_contexts(add_arms, add_block)  # (known, x, q, sums)
covariance = on_contexts(collect_sums, collect_blocks)  # (known, q, sums, sigma)


@kernel
def mix(known: Known, state: Any, gamma: Number) -> None:
    """Compute pi_t = (1 - gamma_t) q_t + gamma_t e* (equation (3)) and Sigma_t; Sigma(e*) is the identity."""
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            state.pi[x, a] = (1.0 - gamma) * state.q[x, a] + gamma * known.e[x, a]
    for i in range(state.sigma.shape[0]):
        for j in range(i + 1):
            state.sigma[i, j] = (1.0 - gamma) * state.sigma[i, j]
            state.sigma[j, i] = state.sigma[i, j]
        state.sigma[i, i] = state.sigma[i, i] + gamma


@kernel
def invert(state: Any, inverted: Any = False) -> int:
    """Compute G with Sigma_t^-1 = G^T G unless ``inverted``, and check the trace identity; return a status."""
    if not every(inverted):
        if not every(cholesky(state.sigma, state.inverse)):
            return NOT_POSITIVE
        invert_lower(state.inverse)
    d = state.sigma.shape[0]
    if not every(absolute(trace_of_ratio(state.inverse, state.sigma) - d) <= TRACE_TOLERANCE * d):
        return TRACE_BROKEN
    return OK


@kernel
def write_plan(known: Known, state: Any, eta: Number, gamma: Number) -> None:
    """Compute pi_t = (1 - gamma_t) q_t + gamma_t e* and Sigma_t, and store the rates."""
    mix(known, state, gamma)
    state.rates[0] = eta
    state.rates[1] = gamma


@kernel
def explore(known: Known, state: Any, eta: Number, gamma: Number, inverted: Any = False) -> int:
    """Compute pi_t = (1 - gamma_t) q_t + gamma_t e*, Sigma_t and its inverse, and store the rates; return a status.

    ``inverted``: where the inverse is already computed.
    """
    write_plan(known, state, eta, gamma)
    return invert(state, inverted)


@kernel
def explore_points(known: Known, state: Any, work: Any, eta: Number, gamma: Number) -> int:
    """Do the same as `explore` from q_t of all contexts, computing Sigma(q_t) first."""
    begin_covariance(work.sums)
    for x in range(state.q.shape[0]):
        add_context(known, x, state.q[x], work.sums)
    covariance(known, state.q, work.sums, state.sigma)
    return explore(known, state, eta, gamma)


@kernel
def draw_from(table: Floats, x: Place, u: Number) -> Place:
    """Return the arm that a uniform u draws from row x of a table of probabilities; never one of probability zero."""
    drawn = 0
    total = 0.0
    for a in range(table.shape[1]):
        drawn, total = draw_step(drawn, total, a, at(table, x, a), u)
    return drawn


@kernel
def draw_context(g: Floats, u: float) -> int:
    """Return the context that a uniform u draws; never one of probability zero."""
    column = matrix_of(g, 0, g.shape[0], 1)
    last = 0
    total = 0.0
    for x in range(count_of(g)):
        p = at(column, x, 0)
        if p > 0.0:
            last = x
            total += p
            if u < total:
                return x
    return last


@kernel
def draw_arm(pi: Floats, x: Place, uniforms: Two) -> Place:
    """Draw A_t from pi_t(x) with the first of the two uniforms of the decision."""
    return draw_from(pi, x, uniforms[0])


@kernel
def exact_direction(known: Known, state: Any, work: Any, x: Place, a: Place, direction: Floats) -> None:
    """Write Sigma_t^-1 phi(a, x)."""
    for i in range(work.vector.shape[0]):
        work.vector[i] = feature(known.z, x, a, i)
    apply_inverse(state.inverse, work.vector, work.half, direction)


class Direction(NamedTuple):
    """The arrays that a decision of an algorithm with an exact covariance carries."""

    direction: Annotated[Floats, carries("d")]


@kernel
def choose_only(known: Known, options: Any, state: Any, work: Any, x: Place, draw: Draw, carried: Any) -> Place:
    """Draw A_t from pi_t(x), for algorithms whose decisions carry nothing."""
    return draw_arm(state.pi, x, draw.uniforms)


@kernel
def choose_exactly(
    known: Known, options: Any, state: Any, work: Any, x: Place, draw: Draw, carried: Direction
) -> Place:
    """Draw A_t from pi_t(x) and write direction = Sigma_t^-1 phi(A_t, x); return A_t."""
    arm = draw_arm(state.pi, x, draw.uniforms)
    exact_direction(known, state, work, x, arm, carried.direction)
    return arm


@kernel
def add_theta_hat(loss: Number, direction: Floats, theta: Floats) -> None:
    """Add theta_hat = loss times direction (equation (2)) to Theta."""
    for i in range(theta.shape[0]):
        theta[i] += loss * direction[i]


@kernel
def add_estimate(known: Known, options: Any, state: Any, play: Play, carried: Direction) -> None:
    """Add theta_hat to Theta, and add one to ``t``."""
    add_theta_hat(play.loss, carried.direction, state.theta)
    state.t[0] += 1.0
