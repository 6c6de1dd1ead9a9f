"""The machine of an algorithm for arm-independent features."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import KernelText, Machine, known_of
from bothworlds.problem import Problem


def armwise_machine(
    text: KernelText,
    problem: Problem,
    frame: Mapping[str, Floats],
    options: Any,
    begin: Mapping[str, Any] | None = None,
    *,
    rates: str = "",
) -> Machine:
    """Return the machine for a frame of `theory.armwise`: the vector of a context stands for each of its arms."""
    z = np.repeat(frame["contexts"][:, None, :], problem.n_arms, axis=1)
    known = known_of(problem, frame["exploration"], z)
    return Machine(text=text, known=known, options=options, begin=begin or {}, frame=frame, rates=rates)


def per_arm(matrices: Floats, n_arms: int, otherwise: Floats) -> Floats:
    """Return one matrix per arm; a frame leaves them out where all are the same."""
    return matrices if len(matrices) else np.repeat(otherwise[None], n_arms, axis=0)


def complements_of(frame: Mapping[str, Floats], n_arms: int, name: str = "complements") -> Floats:
    """Return for every arm the projection on what the contexts that offer it do not span: zero where all offer it."""
    d = frame["contexts"].shape[1]
    return per_arm(frame[name], n_arms, np.zeros((d, d)))
