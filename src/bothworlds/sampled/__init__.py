"""Policies for contexts that are not listed."""

from bothworlds.sampled.covariance import Covariance, ResampledCovariance, SeenCovariance
from bothworlds.sampled.policy import FORMAT, Rule, SampledPolicy, refuse_holdout

__all__ = ["FORMAT", "Covariance", "ResampledCovariance", "Rule", "SampledPolicy", "SeenCovariance", "refuse_holdout"]
