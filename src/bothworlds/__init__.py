"""Best-of-both-worlds linear contextual bandits: LC-Tsallis-INF, exact and fast."""

from bothworlds import environments
from bothworlds.algorithms.bobw_real_lin_exp3 import BoBWRealLinExp3
from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.algorithms.ftrl_lc import FTRLLC
from bothworlds.algorithms.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lin_ts import LinTS
from bothworlds.algorithms.lin_ucb import LinUCB
from bothworlds.algorithms.linear_exp4 import LinearEXP4
from bothworlds.algorithms.logdet_ftrl import LogdetFTRL
from bothworlds.algorithms.oful import OFUL
from bothworlds.algorithms.per_context_exp3 import PerContextExp3
from bothworlds.algorithms.per_context_tsallis_inf import PerContextTsallisINF
from bothworlds.algorithms.real_ftrl import RealFTRL
from bothworlds.algorithms.real_lin_exp3 import RealLinExp3
from bothworlds.algorithms.robust_lin_exp3 import RobustLinExp3
from bothworlds.algorithms.tunings import MGR, Adaptive, Certified, Paper, Reservoir
from bothworlds.decision import Decision
from bothworlds.errors import NumericalError, StudyError
from bothworlds.ftrl import ftrl_point
from bothworlds.loading import load
from bothworlds.policy import Policy
from bothworlds.problem import DegenerateProblemWarning, Problem, SampledProblem, block_parameters, stacked_parameters
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
from bothworlds.theory.design import Design, design
from bothworlds.theory.exponential import TuningWarning
from bothworlds.theory.forecast import Forecast

__version__ = "0.1.0"

__all__ = [
    "FTRLLC",
    "MGR",
    "OFUL",
    "Adaptive",
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
