"""Best-of-both-worlds linear contextual bandits: LC-Tsallis-INF, exact and fast."""

from bothworlds import environments
from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.algorithms.ftrl_lc import FTRLLC
from bothworlds.algorithms.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lin_ucb import LinUCB
from bothworlds.algorithms.oful import OFUL
from bothworlds.algorithms.real_ftrl import RealFTRL
from bothworlds.algorithms.real_lin_exp3 import RealLinExp3
from bothworlds.algorithms.robust_lin_exp3 import RobustLinExp3
from bothworlds.algorithms.tunings import MGR, Adaptive, Certified, Paper
from bothworlds.decision import Decision
from bothworlds.errors import NumericalError
from bothworlds.ftrl import ftrl_point
from bothworlds.loading import load
from bothworlds.policy import Policy
from bothworlds.problem import DegenerateProblemWarning, Problem, block_parameters, stacked_parameters
from bothworlds.simulation import Results, Study, check_algorithm, load_results, replay, run_study, simulate
from bothworlds.theory.design import Design, design
from bothworlds.theory.exponential import TuningWarning
from bothworlds.theory.forecast import Forecast

__version__ = "0.1.0"

__all__ = [
    "FTRLLC",
    "MGR",
    "OFUL",
    "Adaptive",
    "Certified",
    "Decision",
    "DegenerateProblemWarning",
    "Design",
    "FixedPolicy",
    "Forecast",
    "LCTsallisINF",
    "LinUCB",
    "NumericalError",
    "Paper",
    "Policy",
    "Problem",
    "RealFTRL",
    "RealLinExp3",
    "Results",
    "RobustLinExp3",
    "Study",
    "TuningWarning",
    "block_parameters",
    "check_algorithm",
    "design",
    "environments",
    "ftrl_point",
    "load",
    "load_results",
    "replay",
    "run_study",
    "simulate",
    "stacked_parameters",
]
