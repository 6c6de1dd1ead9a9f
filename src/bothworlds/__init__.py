"""Best-of-both-worlds linear contextual bandits: LC-Tsallis-INF, exact and fast.

What a first decision needs is imported at once; rivals, simulator and bounds on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bothworlds.algorithms.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.tunings import MGR, Adaptive, Certified, Matched, Paper, Reservoir
from bothworlds.decision import Decision
from bothworlds.errors import NumericalError, StudyError
from bothworlds.policy import Policy
from bothworlds.problem import DegenerateProblemWarning, Problem, SampledProblem, block_parameters, stacked_parameters
from bothworlds.theory.design import Design, design
from bothworlds.theory.forecast import Forecast

if TYPE_CHECKING:
    from bothworlds import environments
    from bothworlds.algorithms.bobw_linear_exp4 import BoBWLinearEXP4
    from bothworlds.algorithms.bobw_mwu_lc import BoBWMWULC
    from bothworlds.algorithms.bobw_real_lin_exp3 import BoBWRealLinExp3
    from bothworlds.algorithms.fixed import FixedPolicy
    from bothworlds.algorithms.ftrl_lc import FTRLLC
    from bothworlds.algorithms.lin_ts import LinTS
    from bothworlds.algorithms.lin_ucb import LinUCB
    from bothworlds.algorithms.linear_exp4 import LinearEXP4
    from bothworlds.algorithms.logdet_ftrl import LogdetFTRL
    from bothworlds.algorithms.mwu_lc import MWULC
    from bothworlds.algorithms.oful import OFUL
    from bothworlds.algorithms.per_context_exp3 import PerContextExp3
    from bothworlds.algorithms.per_context_tsallis_inf import PerContextTsallisINF
    from bothworlds.algorithms.real_ftrl import RealFTRL
    from bothworlds.algorithms.real_lin_exp3 import RealLinExp3
    from bothworlds.algorithms.robust_lin_exp3 import RobustLinExp3
    from bothworlds.ftrl import ftrl_point
    from bothworlds.loading import load
    from bothworlds.sampled import SampledPolicy
    from bothworlds.simulation import (
        Diagnosis,
        Results,
        Study,
        check_algorithm,
        check_environment,
        diagnose,
        load_results,
        replay,
        run_study,
        simulate,
    )
    from bothworlds.theory.bounds import Bound, BoundTable, bounds, transformation
    from bothworlds.theory.exponential import TuningWarning

LATER = {
    "bothworlds.algorithms.bobw_mwu_lc": ("BoBWMWULC",),
    "bothworlds.algorithms.bobw_linear_exp4": ("BoBWLinearEXP4",),
    "bothworlds.algorithms.bobw_real_lin_exp3": ("BoBWRealLinExp3",),
    "bothworlds.algorithms.fixed": ("FixedPolicy",),
    "bothworlds.algorithms.ftrl_lc": ("FTRLLC",),
    "bothworlds.algorithms.lin_ts": ("LinTS",),
    "bothworlds.algorithms.lin_ucb": ("LinUCB",),
    "bothworlds.algorithms.linear_exp4": ("LinearEXP4",),
    "bothworlds.algorithms.logdet_ftrl": ("LogdetFTRL",),
    "bothworlds.algorithms.mwu_lc": ("MWULC",),
    "bothworlds.algorithms.oful": ("OFUL",),
    "bothworlds.algorithms.per_context_exp3": ("PerContextExp3",),
    "bothworlds.algorithms.per_context_tsallis_inf": ("PerContextTsallisINF",),
    "bothworlds.algorithms.real_ftrl": ("RealFTRL",),
    "bothworlds.algorithms.real_lin_exp3": ("RealLinExp3",),
    "bothworlds.algorithms.robust_lin_exp3": ("RobustLinExp3",),
    "bothworlds.ftrl": ("ftrl_point",),
    "bothworlds.loading": ("load",),
    "bothworlds.sampled": ("SampledPolicy",),
    "bothworlds.simulation": (
        "Diagnosis",
        "Results",
        "Study",
        "check_algorithm",
        "check_environment",
        "diagnose",
        "load_results",
        "replay",
        "run_study",
        "simulate",
    ),
    "bothworlds.theory.bounds": ("Bound", "BoundTable", "bounds", "transformation"),
    "bothworlds.theory.exponential": ("TuningWarning",),
}
PLACES = {name: module for module, names in LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name == "environments":
        return importlib.import_module("bothworlds.environments")
    if name not in PLACES:
        raise AttributeError(f"module 'bothworlds' has no attribute {name!r}")
    value = getattr(importlib.import_module(PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


__version__ = "0.1.0"

__all__ = [
    "FTRLLC",
    "MGR",
    "MWULC",
    "OFUL",
    "Adaptive",
    "BoBWLinearEXP4",
    "BoBWMWULC",
    "BoBWRealLinExp3",
    "Bound",
    "BoundTable",
    "Certified",
    "Decision",
    "DegenerateProblemWarning",
    "Design",
    "Diagnosis",
    "FixedPolicy",
    "Forecast",
    "LCTsallisINF",
    "LinTS",
    "LinUCB",
    "LinearEXP4",
    "LogdetFTRL",
    "Matched",
    "NumericalError",
    "Paper",
    "PerContextExp3",
    "PerContextTsallisINF",
    "Policy",
    "Problem",
    "RealFTRL",
    "RealLinExp3",
    "Reservoir",
    "Results",
    "RobustLinExp3",
    "SampledPolicy",
    "SampledProblem",
    "Study",
    "StudyError",
    "TuningWarning",
    "block_parameters",
    "bounds",
    "check_algorithm",
    "check_environment",
    "design",
    "diagnose",
    "environments",
    "ftrl_point",
    "load",
    "load_results",
    "replay",
    "run_study",
    "simulate",
    "stacked_parameters",
    "transformation",
]
