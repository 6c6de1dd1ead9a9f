"""Confidence intervals for means and rates, and tests of drift; most are valid at any time, also if checked often."""

from bothworlds.theory.confidence.averages import average_rate_interval, log_average_evidence
from bothworlds.theory.confidence.bernstein import BernsteinSequence
from bothworlds.theory.confidence.betting import BettingSequence
from bothworlds.theory.confidence.drift import Drift, drift_of
from bothworlds.theory.confidence.drift_alarm import DriftAlarm
from bothworlds.theory.confidence.fixed_time import clopper_pearson, empirical_bernstein_interval, hoeffding_interval
from bothworlds.theory.confidence.rates import log_rate_evidence, rate_interval
from bothworlds.theory.confidence.subgaussian import normal_mixture_boundary, stitched_boundary

__all__ = [
    "BernsteinSequence",
    "BettingSequence",
    "Drift",
    "DriftAlarm",
    "average_rate_interval",
    "clopper_pearson",
    "drift_of",
    "empirical_bernstein_interval",
    "hoeffding_interval",
    "log_average_evidence",
    "log_rate_evidence",
    "normal_mixture_boundary",
    "rate_interval",
    "stitched_boundary",
]
