"""Policies on a `SampledProblem`, whose contexts are drawn by a sampler and not listed."""

from bothworlds.sampled.covariance import Covariance, ResampledCovariance, ReservoirCovariance
from bothworlds.sampled.policy import FORMAT, SampledPolicy, SampledRule, refuse_holdout

__all__ = [
    "FORMAT",
    "Covariance",
    "ResampledCovariance",
    "ReservoirCovariance",
    "SampledPolicy",
    "SampledRule",
    "refuse_holdout",
]
