"""Master and base rates of the reduction by Dann, Wei and Zimmert (2023). Kernel functions.

An epoch fixes the candidate. The arms left to the base determine D (its dimension), 1/lambda (its largest leverage
under even play) and log N, and these the constants of the bonus sqrt(c1 sum 1/q_2) + c2 max 1/q_2 and the base's rates

    tuned    eta = min{sqrt(log N/((D + 2/lambda) sum 1/q)), lambda min q/2},  c1 = 9 (D + 2/lambda) log N,
    printed  eta = min{sqrt(log N/sum 1/q), lambda min q/2},                   c1 = log N (4/lambda + 3 D + 1)^2,

both with c2 = 2 log N/lambda and gamma = eta/(lambda q) <= 1/2. The base's regret is at most log N/eta + 2 sum gamma +
(e - 2) D sum eta/(q (1 - gamma)), which gives either c1 (proof in research/theory.md); the printed rate omits D and
lambda, so that they appear squared.

``state`` is a record with master, constants and rates.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.algorithms.shared.base_without_arm import LEAST_RATE
from bothworlds.algorithms.shared.corral_master import master_point
from bothworlds.arrays import Floats
from bothworlds.kernels.exact_ftrl import all_finite
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, learnt, planned, recalled


class Master(NamedTuple):
    """The master's state in its epoch, and its shares: q_1 of the candidate, q_2 of the base."""

    epoch: Annotated[Floats, learnt()]
    clock: Annotated[Floats, learnt()]  # rounds of the epoch, from 1
    previous: Annotated[Floats, learnt()]  # length of the previous epoch
    losses: Annotated[Floats, learnt(2)]  # estimates for the candidate and the base
    total: Annotated[Floats, learnt()]  # sum of 1/q_2
    worst: Annotated[Floats, learnt()]  # the largest 1/q_2
    shares: Annotated[Floats, planned(2)]


class EpochConstants(NamedTuple):
    """Constants that a candidate determines for the base, and the epoch they belong to."""

    fixed_in: Annotated[Floats, recalled()]
    dimension: Annotated[Floats, recalled()]  # D
    leverage: Annotated[Floats, recalled()]  # 1/lambda
    log_size: Annotated[Floats, recalled()]  # log N
    c1: Annotated[Floats, recalled()]
    c2: Annotated[Floats, recalled()]


class RecordedPlay(NamedTuple):
    """What a decision carries for the master: the option played, 1/q of it, 1/q_2, and the epoch."""

    option: Annotated[Floats, carries()]
    inverse: Annotated[Floats, carries()]
    base_inverse: Annotated[Floats, carries()]
    epoch: Annotated[Floats, carries()]


class Carried(NamedTuple):
    """What a decision of a reduction carries."""

    direction: Annotated[Floats, carries("d")]
    record: RecordedPlay


@kernel
def finite(state: Any) -> bool:
    """Return whether the estimates of master and base are finite."""
    return all_finite(state.theta) and all_finite(state.master.losses)


@kernel
def fix_constants(
    state: Any, dimension: float, leverage: float, size: float, scale: float, log_horizon: float, printed: bool
) -> None:
    """Write the constants of the candidate, for N = size.

    The first epoch starts as if an epoch of c2 log T rounds came before it.
    """
    constants = state.constants
    log_size = math.log(size)
    root = 4.0 * leverage + 3.0 * dimension + 1.0
    first = log_size * root * root if printed else 9.0 * (dimension + 2.0 * leverage) * log_size
    constants.dimension[0] = dimension
    constants.leverage[0] = leverage
    constants.log_size[0] = log_size
    constants.c1[0] = scale * first
    constants.c2[0] = scale * 2.0 * log_size * leverage
    if state.master.epoch[0] == 1.0:
        state.master.previous[0] = constants.c2[0] * log_horizon
    constants.fixed_in[0] = state.master.epoch[0]


@kernel
def plan_master(state: Any) -> None:
    """Write the shares q_1 of the candidate and q_2 of the base."""
    master, c1, c2 = state.master, state.constants.c1[0], state.constants.c2[0]
    bonus = math.sqrt(c1 * master.total[0]) + c2 * master.worst[0]
    candidate_share, base_share = master_point(master.clock[0], master.losses[1] - bonus - master.losses[0], c1, c2)
    master.shares[0] = candidate_share
    master.shares[1] = base_share


@kernel
def plan_rates(state: Any, printed: bool) -> None:
    """Write the base's eta_t and gamma_t = eta_t/(lambda q_t), with the present q_2 in sum and minimum."""
    master, dimension, leverage = state.master, state.constants.dimension[0], state.constants.leverage[0]
    inverse_share = 1.0 / master.shares[1]
    weight = 1.0 if printed else dimension + 2.0 * leverage
    rate = math.sqrt(state.constants.log_size[0] / (weight * (master.total[0] + inverse_share)))
    eta = min(rate, 0.5 / (max(leverage, LEAST_RATE) * max(master.worst[0], inverse_share)))
    state.rates[0] = eta
    state.rates[1] = eta * leverage * inverse_share


@kernel
def record_play(master: Master, option: int, record: RecordedPlay) -> None:
    """Write what a decision carries for the master."""
    record.option[0] = option
    record.inverse[0] = 1.0 / master.shares[option]
    record.base_inverse[0] = 1.0 / master.shares[1]
    record.epoch[0] = master.epoch[0]


@kernel
def add_loss(state: Any, loss: float, record: RecordedPlay) -> bool:
    """Add z_i = (loss + 1) 1{i played}/q_i - 1 to the losses, 1/q_2 to the bonus, and one round to the epoch.

    Return False, and only count the update, if the decision belongs to an earlier epoch.
    """
    state.t[0] += 1.0
    master = state.master
    if record.epoch[0] != master.epoch[0]:
        return False
    master.losses[0] -= 1.0
    master.losses[1] -= 1.0
    master.losses[int(record.option[0])] += (loss + 1.0) * record.inverse[0]
    master.total[0] += record.base_inverse[0]
    master.worst[0] = max(master.worst[0], record.base_inverse[0])
    master.clock[0] += 1.0
    return True
