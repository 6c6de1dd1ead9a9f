"""The world as the learner knows it: contexts, arms, features, probabilities."""

from bothworlds.problem.core import Problem
from bothworlds.problem.transform import (
    DegenerateProblemWarning,
    block_parameters,
    stacked_parameters,
)

__all__ = ["DegenerateProblemWarning", "Problem", "block_parameters", "stacked_parameters"]
