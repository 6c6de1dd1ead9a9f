"""The world as the learner knows it: contexts, arms, features, probabilities."""

from bothworlds.problem.core import Problem
from bothworlds.problem.sampled import SampledProblem
from bothworlds.problem.traffic import TrafficMix
from bothworlds.problem.transform import (
    DegenerateProblemWarning,
    block_parameters,
    stacked_parameters,
)

__all__ = [
    "DegenerateProblemWarning",
    "Problem",
    "SampledProblem",
    "TrafficMix",
    "block_parameters",
    "stacked_parameters",
]
