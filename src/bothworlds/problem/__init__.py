"""Problems: contexts, their distribution, arms, features and the reward range, as known to a learner."""

from bothworlds.problem.block_features import (
    DegenerateProblemWarning,
    block_parameters,
    stacked_parameters,
)
from bothworlds.problem.open import Column, OpenProblem
from bothworlds.problem.problem import Problem
from bothworlds.problem.sampled import SampledProblem
from bothworlds.problem.traffic import TrafficMix

__all__ = [
    "Column",
    "DegenerateProblemWarning",
    "OpenProblem",
    "Problem",
    "SampledProblem",
    "TrafficMix",
    "block_parameters",
    "stacked_parameters",
]
