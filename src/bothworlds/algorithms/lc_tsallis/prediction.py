"""Predictions of the loss for optimistic FTRL: a ridge regression that forgets. Kernel text.

``state`` has ridge, response and baseline, ``options`` has forgetting. In coordinates where Sigma(e*) is the identity.
"""

from typing import Annotated, Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.foresight import foresee_all, highest_guess
from bothworlds.algorithms.lc_tsallis.leaning import lean, leaning_sum
from bothworlds.kernels.arithmetic import Number, Place, every, feature, highest_of_contexts
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
def predict(known: Known, options: Any, state: Any, work: Any) -> tuple[int, Number]:
    """Compute the prediction m_t, the ridge estimate m scaled down to |<z, m_t>| <= 1 for all z, and what it foresees.

    Before that plans lean on it.

    Return a status and the scale.
    """
    if not every(cholesky(state.ridge, work.mixed)):
        return NOT_POSITIVE, 0.0 * state.t[0]
    solve(work.mixed, state.response, work.half)
    scale = 1.0 / highest_of_contexts(highest_guess(known, state, work))
    for i in range(state.theta.shape[0]):
        state.baseline[i] = work.half[i] * scale
    lean(known, options, state, work, scale)
    leaning_sum(state, work.total)
    foresee_all(known, state, work, scale)
    return OK, scale


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
