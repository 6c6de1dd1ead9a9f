"""What a decision can carry: what every plan of an algorithm, however old, must have written. Kernel text.

A decision may come back from a log, and a log may be damaged. A check here must never refuse a decision that was taken,
so it uses what holds for every plan and what the decision says of its own moment: its propensity. Each is
``possible(known, options, play, carried, propensity) -> bool``; an algorithm names its own, or takes `anything`.
"""

from typing import Any

from bothworlds.kernels.arithmetic import at, feature, matrix_of
from bothworlds.kernels.contract import Known, Play
from bothworlds.kernels.jit.compile import kernel

SLACK = 0.01  # far above rounding: a plan is refused where its leverages are wrong by 1e-6 of their mean


@kernel
def possible_leverage(known: Known, options: Any, play: Play, carried: Any, propensity: float) -> bool:
    """Check direction = Sigma^-1 z with Sigma >= g(x) pi(a|x) z z^T: 0 <= <z, direction> g pi <= 1.

    It holds for the covariance of all arms and for that of the arm played, whatever the tuning.
    """
    leverage = 0.0
    for i in range(known.z.shape[2]):
        leverage += feature(known.z, play.x, play.a, i) * carried.direction[i]
    share = leverage * at(matrix_of(known.g, 0, known.g.shape[0], 1), play.x, 0) * propensity
    return bool(-SLACK <= share <= 1.0 + SLACK)


@kernel
def possible_weight(known: Known, options: Any, play: Play, carried: Any, propensity: float) -> bool:
    """Check direction = 1/pi(a|x) at the arm played and zero elsewhere, with a baseline in [0, 1]."""
    for b in range(carried.direction.shape[0]):
        if not 0.0 <= carried.baseline[b] <= 1.0 or (b != play.a and carried.direction[b] != 0.0):
            return False
    return bool(abs(carried.direction[play.a] * propensity - 1.0) <= SLACK)


@kernel
def possible_seed(known: Known, options: Any, play: Play, carried: Any, propensity: float) -> bool:
    """Check that the seed is a uniform on [0, 1)."""
    return bool(0.0 <= carried.seed[0] < 1.0)


@kernel
def possible_option(known: Known, options: Any, play: Play, carried: Any, propensity: float) -> bool:
    """Check what a reduction's decision tells its master: option, 1/q of it, 1/q_2, epoch."""
    told = carried.told
    sound = min(told.inverse[0], told.base_inverse[0]) >= 1.0 - SLACK and told.epoch[0] >= 1.0
    return bool(sound and (told.option[0] == 0.0 or told.option[0] == 1.0))
