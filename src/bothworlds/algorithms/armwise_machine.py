"""The machine of an algorithm for arm-independent features."""

import numpy as np

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
) -> Machine:
    """Return the machine for a frame of `theory.armwise`; ``more`` names single numbers learnt besides Theta."""
    world = world_of(problem, frame["exploration"], frame["contexts"][:, None, :], width=armwise.LANES)
    S, K = world.blocked.shape
    d, cells = world.z.shape
    memory = np.zeros(armwise.state_size(S, K, d) + len(more))
    memory[0] = 1.0
    return Machine(
        text=text,
        world=world,
        numbers=numbers,
        memory=memory,
        scratch=np.zeros(armwise.work_size(K, d, cells)),
        learnt=armwise.LEARNT + more,
        frame=frame,
        has_baseline=False,
    )
