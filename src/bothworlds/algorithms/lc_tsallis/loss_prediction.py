"""Loss predictions for optimistic FTRL: a ridge regression that forgets, and the losses that a plan follows.

Kernel functions. Coordinates are those where Sigma(e*) is the identity.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, Place, every, feature, smaller
from bothworlds.kernels.contract import Draw, Known, Play
from bothworlds.kernels.exact_ftrl import draw_arm, exact_direction
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries
from bothworlds.kernels.linalg import cholesky, products_with, solve
from bothworlds.kernels.status import NOT_POSITIVE, OK


class Predicted(NamedTuple):
    """Arrays stored with a decision: its direction, and the prediction when it was made."""

    direction: Annotated[Floats, carries("d")]
    baseline: Annotated[Floats, carries("d")]


@kernel
def regress(state: Any, work: Any) -> int:
    """Write the ridge estimate m; return a status."""
    if not every(cholesky(state.ridge, work.mixed)):
        return NOT_POSITIVE
    solve(work.mixed, state.response, work.half)
    return OK


@kernel
def add_to_ridge(known: Known, options: Any, state: Any, play: Play) -> None:
    """Add a play to the ridge regression, V = I + sum of z z^T, and discount older plays."""
    keep = (state.remembered[0] + 1.0) / (state.remembered[0] + 1.0 + options.forgetting)
    for i in range(state.theta.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        state.response[i] = keep * state.response[i] + play.loss * z
        for j in range(i + 1):
            entry = keep * state.ridge[i, j] + z * feature(known.z, play.x, play.a, j)
            state.ridge[i, j], state.ridge[j, i] = entry, entry
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


@kernel
def write_losses(known: Known, work: Any, scale: Number) -> None:
    """Write the losses <Theta + mu + m_t, z>, infinite for arms not offered, less the smallest of the context.

    ``work.total`` is Theta + mu, ``work.rho`` has <z, m>, then <z, m_t>, and m_t is m times ``scale``.
    """
    for x in range(work.table.shape[0]):
        least = math.inf + 0.0 * scale
        for a in range(0, work.table.shape[1], 2):
            b = min(a + 1, work.table.shape[1] - 1)  # the last arm twice if their number is odd
            left, right = products_with(work.total, known.z[x, a], known.z[x, b])
            prediction, other = scale * work.rho[x, a], scale * work.rho[x, b]
            loss, other_loss = left + known.blocked[x, a] + prediction, right + known.blocked[x, b] + other
            work.table[x, a], work.table[x, b] = loss, other_loss
            work.rho[x, a], work.rho[x, b] = prediction, other
            least = smaller(least, smaller(loss, other_loss))
        for a in range(work.table.shape[1]):
            work.table[x, a] = work.table[x, a] - least
