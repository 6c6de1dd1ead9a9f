"""Checks of the arrays that a decision carries, valid for every plan of an algorithm. Kernel functions.

A decision may be read from a log, and a log may be damaged. A check must never reject a decision that was really taken,
so it uses only facts that hold for every plan, and the propensity stored with the decision. Each check is
``possible(known, options, play, carried, propensity) -> bool``; an algorithm names its own, or uses `any_decision`.
"""

from typing import Any

from bothworlds.kernels.arithmetic import at, feature, matrix_of
from bothworlds.kernels.contract import Known, Play
from bothworlds.kernels.jit.compile import kernel

SLACK = 0.01  # far above rounding: plans with leverages wrong by 1e-6 of their mean are rejected anyway


@kernel
def possible_leverage(known: Known, options: Any, play: Play, carried: Any, propensity: float) -> bool:
    """Check direction = Sigma^-1 z with Sigma >= g(x) pi(a|x) z z^T: 0 <= <z, direction> g pi <= 1.

    It holds for the covariance of all arms and for that of the arm played, for every tuning.
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
    """Check what a reduction's decision carries for its master: option, 1/q of it, 1/q_2, epoch."""
    record = carried.record
    sound = min(record.inverse[0], record.base_inverse[0]) >= 1.0 - SLACK and record.epoch[0] >= 1.0
    return bool(sound and (record.option[0] == 0.0 or record.option[0] == 1.0))
