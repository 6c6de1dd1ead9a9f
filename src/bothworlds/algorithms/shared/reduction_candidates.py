"""Candidates of the reductions: the arm, or map of contexts to arms, that an epoch favours. Kernel functions."""

from typing import Any

import numpy as np

from bothworlds.algorithms.shared.reduction_base import Carried, add_loss, record_play
from bothworlds.algorithms.shared.reduction_epochs import end_epoch
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play
from bothworlds.kernels.exact_ftrl import add_theta_hat, draw_from
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import erase
from bothworlds.problem import Problem


@kernel
def draw_option(state: Any, x: int, draw: Draw, carried: Carried) -> tuple[int, int]:
    """Draw the option, 0 for the candidate and 1 for the base, and the arm; the base chooses it if x has no candidate.

    Write the record for the master, and a zero direction.
    """
    option = 0 if draw.uniforms[0] < state.master.shares[0] else 1
    arm = int(state.candidate[x])
    if option == 1 or arm < 0:
        arm = draw_from(state.base, x, draw.uniforms[1])
    erase(carried.direction)
    record_play(state.master, option, carried.record)
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
    """Update the master, and the base if it played; decisions of an earlier epoch are counted but not learned from.

    ``theta`` is the part of Theta of the arm played.
    """
    if add_loss(state, play.loss, carried.record):
        add_theta_hat(play.loss, carried.direction, theta)
        state.counts[play.x, play.a] += 1.0
        end_epoch(known, state, maps)


CANDIDATES = ("literal", "per-context")


def first_candidate(problem: Problem, *, maps: bool) -> Floats:
    """Return the candidate of the first epoch, by context (S,).

    A map takes the first arm offered in each context. Otherwise it is the arm most often offered, -1 where it is not.
    """
    if maps:
        return np.asarray(problem.available.argmax(axis=1), dtype=np.float64)
    arm = int((problem.probabilities @ problem.available).argmax())
    return np.where(problem.available[:, arm], float(arm), -1.0)
