"""Candidates of the black-box reductions: an arm for all contexts, or a map of contexts to arms."""

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem

CANDIDATES = ("literal", "per-context")


def first_candidate(problem: Problem, *, maps: bool) -> Floats:
    """Return the candidate of the first epoch, in each context.

    A map takes the first arm offered; an arm is the one offered with the largest probability, -1 where it is not.
    """
    if maps:
        return np.asarray(problem.available.argmax(axis=1), dtype=np.float64)
    arm = int((problem.probabilities @ problem.available).argmax())
    return np.where(problem.available[:, arm], float(arm), -1.0)
