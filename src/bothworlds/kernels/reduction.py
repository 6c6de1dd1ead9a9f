"""What every base of the reduction by Dann, Wei and Zimmert (2023) shares, in kernel text.

An epoch fixes the candidate; from what the base may play follow D (its dimension), 1/lambda (its largest leverage under
even play) and log N, and from these the constants of the bonus sqrt(c1 sum 1/q_2) + c2 max 1/q_2 and the base's rates

    tuned    eta = min{sqrt(log N/((D + 2/lambda) sum 1/q)), lambda min q/2},  c1 = 9 (D + 2/lambda) log N,
    printed  eta = min{sqrt(log N/sum 1/q), lambda min q/2},                   c1 = log N (4/lambda + 3 D + 1)^2,

both with c2 = 2 log N/lambda and gamma = eta/(lambda q) <= 1/2. The base's regret is at most log N/eta + 2 sum gamma +
(e - 2) D sum eta/(q (1 - gamma)), which gives either c1 (proof in docs/theory.md); the printed rate leaves D and lambda
out, which is why they appear squared.

``state`` is a named tuple with epoch, clock, losses, total, worst, facts (D, 1/lambda, log N, c1, c2), shares, rates.
"""

import math
from typing import Any

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.corral import master_point

LEAST_RATE = 1e-300
MORE = 4  # what a decision carries besides the direction: option, 1/q of it, 1/q_2, epoch


@kernel
def fix_constants(
    state: Any, dimension: float, highest: float, size: float, scale: float, log_horizon: float, printed: bool
) -> None:
    """Write what the candidate fixes, for N = size; the first epoch begins as if one of c2 log T rounds went before."""
    log_size = math.log(size)
    root = 4.0 * highest + 3.0 * dimension + 1.0
    first = log_size * root * root if printed else 9.0 * (dimension + 2.0 * highest) * log_size
    state.facts[0] = dimension
    state.facts[1] = highest
    state.facts[2] = log_size
    state.facts[3] = scale * first
    state.facts[4] = scale * 2.0 * log_size * highest
    if state.epoch[0] == 1.0:
        state.previous[0] = state.facts[4] * log_horizon
    state.planned[0] = state.epoch[0]


@kernel
def plan_master(state: Any) -> None:
    """Write the shares q_1 of the candidate and q_2 of the base."""
    c1, c2 = state.facts[3], state.facts[4]
    bonus = math.sqrt(c1 * state.total[0]) + c2 * state.worst[0]
    one, two = master_point(state.clock[0], state.losses[1] - bonus - state.losses[0], c1, c2)
    state.shares[0] = one
    state.shares[1] = two


@kernel
def plan_rates(state: Any, printed: bool) -> None:
    """Write the base's eta_t and gamma_t = eta_t/(lambda q_t), with the present q_2 in sum and minimum."""
    dimension, highest, log_size = state.facts[0], state.facts[1], state.facts[2]
    inverse_share = 1.0 / state.shares[1]
    weight = 1.0 if printed else dimension + 2.0 * highest
    rate = math.sqrt(log_size / (weight * (state.total[0] + inverse_share)))
    eta = min(rate, 0.5 / (max(highest, LEAST_RATE) * max(state.worst[0], inverse_share)))
    state.rates[0] = eta
    state.rates[1] = eta * highest * inverse_share


@kernel
def write_option(state: Any, option: int, direction: Floats, start: int) -> None:
    """Write what a decision tells the master, from a position of its direction on."""
    direction[start] = option
    direction[start + 1] = 1.0 / state.shares[option]
    direction[start + 2] = 1.0 / state.shares[1]
    direction[start + 3] = state.epoch[0]


@kernel
def tell_master(state: Any, loss: float, direction: Floats, start: int) -> None:
    """Add z_i = (loss + 1) 1{i played}/q_i - 1 to the losses, 1/q_2 to the bonus, and one round to the epoch."""
    state.losses[0] -= 1.0
    state.losses[1] -= 1.0
    state.losses[int(direction[start])] += (loss + 1.0) * direction[start + 1]
    state.total[0] += direction[start + 2]
    state.worst[0] = max(state.worst[0], direction[start + 2])
    state.clock[0] += 1.0
