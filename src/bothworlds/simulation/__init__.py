"""Playing learners against environments: the engine, its results, and studies."""

from bothworlds.simulation.conformance import check_algorithm
from bothworlds.simulation.diagnostics import Diagnosis, diagnose
from bothworlds.simulation.engine import replay, simulate
from bothworlds.simulation.rehearsal import Rehearsal, rehearse
from bothworlds.simulation.results import Results, load_results
from bothworlds.simulation.runner import run_study
from bothworlds.simulation.study import Study
from bothworlds.simulation.world_check import check_environment

__all__ = [
    "Diagnosis",
    "Rehearsal",
    "Results",
    "Study",
    "check_algorithm",
    "check_environment",
    "diagnose",
    "load_results",
    "rehearse",
    "replay",
    "run_study",
    "simulate",
]
