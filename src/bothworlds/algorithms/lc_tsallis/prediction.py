"""Predictions of the loss for optimistic FTRL: a ridge regression that forgets. Kernel text.

``state`` has ridge, response and baseline, ``options`` has forgetting. In coordinates where Sigma(e*) is the identity.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.kernels.arithmetic import (
    Number,
    Place,
    absolute,
    every,
    feature,
    fused,
    highest_of_contexts,
    larger,
    over_contexts,
    smaller,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries
from bothworlds.kernels.matrix import cholesky, solve
from bothworlds.kernels.plan import draw_arm, exact_direction
from bothworlds.kernels.status import NOT_POSITIVE, OK


class Predicted(NamedTuple):
    """What a decision carries: its direction, and the prediction of the moment."""

    direction: Annotated[Floats, carries("d")]
    baseline: Annotated[Floats, carries("d")]


@kernel
def two_products(theta: Floats, baseline: Floats, z: Floats) -> tuple[Number, Number]:
    """Return <theta, z> and <baseline, z>, z being read once."""
    left, right = theta[0] * z[0], baseline[0] * z[0]
    for i in range(1, theta.shape[0]):
        left, right = fused(theta[i], z[i], left), fused(baseline[i], z[i], right)
    return left, right


@kernel
def predict(known: Known, state: Any, work: Any) -> int:
    """Compute the prediction m_t: the ridge estimate, scaled down to |<z, m>| <= 1 for all z.

    Write the largest residual of every play, 1 + |<z, m_t>|, for losses lie in [-1, 1]; and what the plan foresees,
    the estimates of Theta + m_t, less the smallest of the context, infinite for arms not offered.
    """
    if not every(cholesky(state.ridge, work.mixed)):
        return NOT_POSITIVE
    solve(work.mixed, state.response, state.baseline)
    highest = 1.0
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            estimate, guess = two_products(state.theta, state.baseline, known.z[x, a])
            work.table[x, a] = estimate + known.blocked[x, a]
            work.rho[x, a] = guess
            highest = larger(highest, absolute(guess))
    scale = 1.0 / highest_of_contexts(highest)
    for i in range(state.theta.shape[0]):
        state.baseline[i] = state.baseline[i] * scale
    for x in range(state.q.shape[0]):
        least = math.inf + 0.0 * scale
        for a in range(state.q.shape[1]):
            foreseen = fused(work.rho[x, a], scale, work.table[x, a])
            work.table[x, a] = foreseen
            work.rho[x, a] = fused(absolute(work.rho[x, a]), scale, 1.0)
            least = smaller(least, foreseen)
        for a in range(state.q.shape[1]):
            work.table[x, a] = work.table[x, a] - least
    return OK


@kernel
def likely_variance(known: Known, q: Floats, rho: Floats) -> Number:
    """Return the mean of 1 - <z, m_t>^2 = rho (2 - rho) over plays: losses of these means have no larger variance."""
    total = 0.0
    for x in range(q.shape[0]):
        mean = 0.0 * q[x, 0]
        for a in range(q.shape[1]):
            mean = mean + q[x, a] * (rho[x, a] * (2.0 - rho[x, a]))
        total = total + known.g[x] * mean
    return over_contexts(total)


@kernel
def add_to_ridge(known: Known, options: Any, state: Any, play: Play) -> None:
    """Add a play to the ridge regression: V = I + sum of z z^T, older plays fading."""
    keep = state.t[0] / (state.t[0] + options.forgetting)
    for i in range(state.theta.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        state.response[i] = keep * state.response[i] + play.loss * z
        for j in range(state.theta.shape[0]):
            state.ridge[i, j] = keep * state.ridge[i, j] + z * feature(known.z, play.x, play.a, j)
        state.ridge[i, i] += 1.0 - keep


@kernel
def choose_predicting(
    known: Known, options: Any, state: Any, work: Any, x: Place, draw: Draw, carried: Predicted
) -> Place:
    """Draw A_t from pi_t(x), write direction = Sigma_t^-1 phi(A_t, x) and the prediction m_t; return A_t."""
    a = draw_arm(state.pi, x, draw.uniforms)
    for i in range(state.theta.shape[0]):
        carried.baseline[i] = state.baseline[i]
    exact_direction(known, state, work, x, a, carried.direction)
    return a
