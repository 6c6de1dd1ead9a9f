"""The machine of an algorithm for arm-independent features."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bothworlds.algorithms.possible import Possible, leverages
from bothworlds.kernels import armwise
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.entries import KernelText
from bothworlds.policy import Machine
from bothworlds.problem import Problem
from bothworlds.theory.frame import world_of


def armwise_machine(
    text: KernelText,
    problem: Problem,
    frame: dict[str, Floats],
    numbers: Floats,
    *,
    more: tuple[str, ...] = (),
    learnt: tuple[str, ...] = armwise.LEARNT,
    begin: Callable[[Any], None] | None = None,
    carried: int = -1,
    exact: bool = False,
    possible: Possible | None = None,
) -> Machine:
    """Return the machine for a frame of `theory.armwise`; ``more`` names numbers learnt besides clock and Theta.

    ``exact`` says that directions are those of an inverse that is computed, not resampled.
    """
    x = np.repeat(frame["contexts"][:, None, :], problem.n_arms, axis=1)
    world = world_of(problem, frame["exploration"], x)
    return Machine(
        text=text,
        world=world,
        numbers=numbers,
        begin=begin or _begin,
        learnt=learnt + more,
        frame=frame,
        has_baseline=False,
        carried=carried,
        possible=leverages(world) if exact else possible,
    )


def _begin(state: Any) -> None:
    """Start the clock."""
    state.t[...] = 1.0
