"""What is played and learnt where the candidate of the reduction is an arm, or a map to arms; in kernel text.

``state`` is a record as in `kernels.reduction`, with candidate, counts, base and pi.
"""

from typing import Any

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play
from bothworlds.kernels.epochs import end_epoch
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.matrix import erase
from bothworlds.kernels.plan import add_theta_hat, draw_from
from bothworlds.kernels.reduction import Carried, hear, tell


@kernel
def draw_option(state: Any, x: int, draw: Draw, carried: Carried) -> tuple[int, int]:
    """Draw the option, 0 for the candidate and 1 for the base, and the arm: the base's where the candidate has none.

    The master is told, and the direction is zero.
    """
    option = 0 if draw.uniforms[0] < state.master.shares[0] else 1
    arm = int(state.candidate[x])
    if option == 1 or arm < 0:
        arm = draw_from(state.base, x, draw.uniforms[1])
    erase(carried.direction)
    tell(state.master, option, carried.told)
    return option, arm


@kernel
def mix_options(state: Any) -> None:
    """Write pi = q_1 candidate + q_2 base; where the candidate is not offered both options play the base."""
    for x in range(state.pi.shape[0]):
        chosen = int(state.candidate[x])
        share = state.master.shares[1] if chosen >= 0 else 1.0
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = share * state.base[x, a]
        if chosen >= 0:
            state.pi[x, chosen] += state.master.shares[0]


@kernel
def learn_play(known: Known, state: Any, play: Play, carried: Carried, theta: Floats, maps: bool) -> None:
    """Tell the master, and the base if it played; what an earlier epoch decided is counted and not learnt from.

    ``theta`` is the part of Theta that the arm played has.
    """
    if hear(state, play.loss, carried.told):
        add_theta_hat(play.loss, carried.direction, theta)
        state.counts[play.x, play.a] += 1.0
        end_epoch(known, state, maps)
