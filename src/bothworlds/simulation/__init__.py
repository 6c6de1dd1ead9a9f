"""Simulate algorithms in environments, check both, and keep the results."""

from bothworlds.simulation.checks.algorithm import check_algorithm
from bothworlds.simulation.checks.environment import check_environment
from bothworlds.simulation.diagnostics import Diagnosis, diagnose
from bothworlds.simulation.engine import replay, simulate
from bothworlds.simulation.results import Results, load_results
from bothworlds.simulation.synthetic_log import Rehearsal, rehearse

__all__ = [
    "Diagnosis",
    "Rehearsal",
    "Results",
    "check_algorithm",
    "check_environment",
    "diagnose",
    "load_results",
    "rehearse",
    "replay",
    "simulate",
]
