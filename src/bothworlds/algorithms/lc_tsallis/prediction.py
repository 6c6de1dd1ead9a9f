"""Predictions of the loss for optimistic FTRL: a ridge regression that forgets. Kernel text.

``state`` has ridge, response and baseline, ``options`` has forgetting. In coordinates where Sigma(e*) is the identity.
"""

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
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries
from bothworlds.kernels.matrix import cholesky, product, solve
from bothworlds.kernels.plan import draw_arm, estimate, exact_direction
from bothworlds.kernels.status import NOT_POSITIVE, OK


class Predicted(NamedTuple):
    """What a decision carries: its direction, and the prediction of the moment."""

    direction: Annotated[Floats, carries("d")]
    baseline: Annotated[Floats, carries("d")]


@kernel
def predict(known: Known, state: Any, work: Any) -> int:
    """Compute the prediction m_t: the ridge estimate, scaled down to |<z, m>| <= 1 for all z.

    Write the largest residual of every play, 1 + |<z, m_t>|: losses lie in [-1, 1].
    """
    if not every(cholesky(state.ridge, work.mixed)):
        return NOT_POSITIVE
    solve(work.mixed, state.response, state.baseline)
    highest = 1.0
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            work.rho[x, a] = absolute(product(state.baseline, known.z[x, a]))
            highest = larger(highest, work.rho[x, a])
    scale = 1.0 / highest_of_contexts(highest)
    for i in range(state.theta.shape[0]):
        state.baseline[i] = state.baseline[i] * scale
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            work.rho[x, a] = fused(work.rho[x, a], scale, 1.0)
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
def foreseen_losses(known: Known, state: Any, work: Any) -> None:
    """Write the estimates of Theta + m_t for every context."""
    for i in range(state.theta.shape[0]):
        work.vector[i] = state.theta[i] + state.baseline[i]
    for x in range(state.q.shape[0]):
        estimate(known, work.vector, x, work.table[x])


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
