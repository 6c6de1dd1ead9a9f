"""What the adaptive tuning of LC-Tsallis-INF adds to its kernel text: rates that follow the data. Not the paper's.

In coordinates where Sigma(e*) is the identity.
"""

from bothworlds.algorithms.lc_tsallis_memory import Numbers, State, Work
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.matrix import cholesky, product, solve
from bothworlds.kernels.numbers import (
    Number,
    absolute,
    every,
    exponential,
    feature,
    highest_of_contexts,
    larger,
    logarithm,
    root,
    smaller,
)
from bothworlds.kernels.status import NOT_POSITIVE, OK

LARGEST_RESIDUAL = 2.0  # losses and predictions lie in [-1, 1]
TAIL_FORGETTING = 4.0  # sizes of residuals are those of about the last quarter of the rounds


@kernel
def adaptive_rate(numbers: Numbers, state: State) -> Number:
    """Return eta_t = gain (1 + n/offset)^-slope, n counting rounds by their noise and openness."""
    return numbers.gain * exponential(-numbers.slope * logarithm(1.0 + state.noisy[0] / numbers.offset))


@kernel
def allowed_leverage(numbers: Numbers, state: State) -> Number:
    """Return the largest leverage that exploration has to leave: 2 d + c t/size.

    size^2 = sum residual^4 leverage/sum residual^2 leverage is the size of the residuals that make up the variance:
    that of the noise if it is symmetric, far more where rare rewards surprise. A single play of the rarest arm then
    moves its estimate by about c t, a share of what t rounds can.
    """
    size = smaller(root((1.0 + state.tail[0]) / (1.0 + state.tail[1])), LARGEST_RESIDUAL)
    return 2.0 * state.theta.shape[0] + numbers.constant * state.t[0] / size


@kernel
def predict_baseline(world: World, state: State, work: Work) -> int:
    """Compute the control variate m_t: the ridge estimate, scaled down to |<z, m>| <= 1 for all z."""
    if not every(cholesky(state.ridge, work.mixed)):
        return NOT_POSITIVE
    solve(work.mixed, state.response, state.baseline)
    highest = 1.0
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            highest = larger(highest, absolute(product(state.baseline, world.z[x, a])))
    scale = highest_of_contexts(highest)
    for i in range(state.theta.shape[0]):
        state.baseline[i] = state.baseline[i] / scale
    return OK


@kernel
def add_to_ridge(world: World, numbers: Numbers, state: State, x: int, a: int, loss: float) -> None:
    """Add a play to the ridge regression: V = I + sum of z z^T, older plays fading."""
    keep = state.t[0] / (state.t[0] + numbers.forgetting)
    for i in range(state.theta.shape[0]):
        z = feature(world.z, x, a, i)
        state.response[i] = keep * state.response[i] + loss * z
        for j in range(state.theta.shape[0]):
            state.ridge[i, j] = keep * state.ridge[i, j] + z * feature(world.z, x, a, j)
        state.ridge[i, i] += 1.0 - keep


@kernel
def learn_adaptively(
    world: World, numbers: Numbers, state: State, x: int, a: int, loss: float, direction: Floats, baseline: Floats
) -> float:
    """Fade Theta, add the control variate to it, and keep the sums that the rates follow; return the residual."""
    fade = state.t[0] / (state.t[0] + numbers.recency)
    residual = loss
    leverage = 0.0
    for i in range(state.theta.shape[0]):
        z = feature(world.z, x, a, i)
        residual -= baseline[i] * z
        leverage += direction[i] * z
        state.theta[i] = fade * state.theta[i] + baseline[i]
    add_to_ridge(world, numbers, state, x, a, loss)
    squared = residual * residual
    keep = state.t[0] / (state.t[0] + TAIL_FORGETTING)
    state.tail[0] = keep * state.tail[0] + squared * squared * leverage
    state.tail[1] = keep * state.tail[1] + squared * leverage
    undecided = state.entropy[0] / numbers.full
    state.noisy[0] += squared * undecided * undecided * undecided
    return residual
