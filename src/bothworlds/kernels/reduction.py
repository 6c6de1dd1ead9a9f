"""What every base of the reduction by Dann, Wei and Zimmert (2023) shares, in kernel text.

An epoch fixes the candidate; from what the base may play follow D (its dimension), 1/lambda (its largest leverage under
even play) and log N, and from these the constants of the bonus sqrt(c1 sum 1/q_2) + c2 max 1/q_2 and the base's rates

    tuned    eta = min{sqrt(log N/((D + 2/lambda) sum 1/q)), lambda min q/2},  c1 = 9 (D + 2/lambda) log N,
    printed  eta = min{sqrt(log N/sum 1/q), lambda min q/2},                   c1 = log N (4/lambda + 3 D + 1)^2,

both with c2 = 2 log N/lambda and gamma = eta/(lambda q) <= 1/2. The base's regret is at most log N/eta + 2 sum gamma +
(e - 2) D sum eta/(q (1 - gamma)), which gives either c1 (proof in docs/theory.md); the printed rate leaves D and lambda
out, which is why they appear squared.

``state`` is a record with master, facts and rates.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.corral import master_point
from bothworlds.kernels.excluding import LEAST_RATE
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, learnt, planned, recalled
from bothworlds.kernels.plan import all_finite


class Master(NamedTuple):
    """What a master has learnt in its epoch, and its shares: q_1 of the candidate, q_2 of the base."""

    epoch: Annotated[Floats, learnt()]
    clock: Annotated[Floats, learnt()]  # rounds of the epoch, from 1
    previous: Annotated[Floats, learnt()]  # the length of the epoch before
    losses: Annotated[Floats, learnt(2)]  # estimates, of the candidate and of the base
    total: Annotated[Floats, learnt()]  # sum of 1/q_2
    worst: Annotated[Floats, learnt()]  # the largest 1/q_2
    shares: Annotated[Floats, planned(2)]


class Facts(NamedTuple):
    """What a candidate fixes for the base, and the epoch in which it did."""

    fixed_in: Annotated[Floats, recalled()]
    dimension: Annotated[Floats, recalled()]  # D
    leverage: Annotated[Floats, recalled()]  # 1/lambda
    log_size: Annotated[Floats, recalled()]  # log N
    c1: Annotated[Floats, recalled()]
    c2: Annotated[Floats, recalled()]


class Told(NamedTuple):
    """What a decision tells the master: the option played, 1/q of it, 1/q_2, and the epoch."""

    option: Annotated[Floats, carries()]
    inverse: Annotated[Floats, carries()]
    base_inverse: Annotated[Floats, carries()]
    epoch: Annotated[Floats, carries()]


class Carried(NamedTuple):
    """What a decision of a reduction carries."""

    direction: Annotated[Floats, carries("d")]
    told: Told


@kernel
def finite(state: Any) -> bool:
    """Tell whether what master and base have learnt is finite."""
    return all_finite(state.theta) and all_finite(state.master.losses)


@kernel
def fix_constants(
    state: Any, dimension: float, leverage: float, size: float, scale: float, log_horizon: float, printed: bool
) -> None:
    """Write what the candidate fixes, for N = size; the first epoch begins as if one of c2 log T rounds went before."""
    facts = state.facts
    log_size = math.log(size)
    root = 4.0 * leverage + 3.0 * dimension + 1.0
    first = log_size * root * root if printed else 9.0 * (dimension + 2.0 * leverage) * log_size
    facts.dimension[0] = dimension
    facts.leverage[0] = leverage
    facts.log_size[0] = log_size
    facts.c1[0] = scale * first
    facts.c2[0] = scale * 2.0 * log_size * leverage
    if state.master.epoch[0] == 1.0:
        state.master.previous[0] = facts.c2[0] * log_horizon
    facts.fixed_in[0] = state.master.epoch[0]


@kernel
def plan_master(state: Any) -> None:
    """Write the shares q_1 of the candidate and q_2 of the base."""
    master, c1, c2 = state.master, state.facts.c1[0], state.facts.c2[0]
    bonus = math.sqrt(c1 * master.total[0]) + c2 * master.worst[0]
    one, two = master_point(master.clock[0], master.losses[1] - bonus - master.losses[0], c1, c2)
    master.shares[0] = one
    master.shares[1] = two


@kernel
def plan_rates(state: Any, printed: bool) -> None:
    """Write the base's eta_t and gamma_t = eta_t/(lambda q_t), with the present q_2 in sum and minimum."""
    master, dimension, leverage = state.master, state.facts.dimension[0], state.facts.leverage[0]
    inverse_share = 1.0 / master.shares[1]
    weight = 1.0 if printed else dimension + 2.0 * leverage
    rate = math.sqrt(state.facts.log_size[0] / (weight * (master.total[0] + inverse_share)))
    eta = min(rate, 0.5 / (max(leverage, LEAST_RATE) * max(master.worst[0], inverse_share)))
    state.rates[0] = eta
    state.rates[1] = eta * leverage * inverse_share


@kernel
def tell(master: Master, option: int, told: Told) -> None:
    """Write what a decision tells the master."""
    told.option[0] = option
    told.inverse[0] = 1.0 / master.shares[option]
    told.base_inverse[0] = 1.0 / master.shares[1]
    told.epoch[0] = master.epoch[0]


@kernel
def hear(state: Any, loss: float, told: Told) -> bool:
    """Add z_i = (loss + 1) 1{i played}/q_i - 1 to the losses, 1/q_2 to the bonus, and one round to the epoch.

    Every update counts; it returns False, and adds nothing, where the decision was of an earlier epoch.
    """
    state.t[0] += 1.0
    master = state.master
    if told.epoch[0] != master.epoch[0]:
        return False
    master.losses[0] -= 1.0
    master.losses[1] -= 1.0
    master.losses[int(told.option[0])] += (loss + 1.0) * told.inverse[0]
    master.total[0] += told.base_inverse[0]
    master.worst[0] = max(master.worst[0], told.base_inverse[0])
    master.clock[0] += 1.0
    return True
