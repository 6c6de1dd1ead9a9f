# The table of contents: every public name once. Whatever an algorithm's line says is all that has to be said for it
# to be imported, listed, compared, studied, loaded from files, tested for conformance and documented.
from . import environments as environments
from .algorithms.exponential.ftrl_lc import FTRLLC as FTRLLC
from .algorithms.exponential.real_ftrl import RealFTRL as RealFTRL
from .algorithms.exponential.real_lin_exp3 import RealLinExp3 as RealLinExp3
from .algorithms.exponential.robust_lin_exp3 import RobustLinExp3 as RobustLinExp3
from .algorithms.fixed import FixedPolicy as FixedPolicy
from .algorithms.lc_tsallis.adaptive import Adaptive as Adaptive
from .algorithms.lc_tsallis.algorithm_1 import Certified as Certified
from .algorithms.lc_tsallis.algorithm_1 import Paper as Paper
from .algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF as LCTsallisINF
from .algorithms.lc_tsallis.matched import Matched as Matched
from .algorithms.options import MGR as MGR
from .algorithms.options import Reservoir as Reservoir
from .algorithms.per_context import PerContextExp3 as PerContextExp3
from .algorithms.per_context import PerContextTsallisINF as PerContextTsallisINF
from .algorithms.regression.lin_ts import LinTS as LinTS
from .algorithms.regression.lin_ucb import LinUCB as LinUCB
from .algorithms.regression.oful import OFUL as OFUL
from .decision import Decision as Decision
from .errors import NumericalError as NumericalError
from .errors import StudyError as StudyError
from .ftrl import ftrl_point as ftrl_point
from .loading import load as load
from .policy import Algorithm as Algorithm
from .policy import Policy as Policy
from .problem import DegenerateProblemWarning as DegenerateProblemWarning
from .problem import Problem as Problem
from .problem import SampledProblem as SampledProblem
from .problem import block_parameters as block_parameters
from .problem import stacked_parameters as stacked_parameters
from .sampled import SampledPolicy as SampledPolicy
from .simulation import Diagnosis as Diagnosis
from .simulation import Results as Results
from .simulation import Study as Study
from .simulation import check_algorithm as check_algorithm
from .simulation import check_environment as check_environment
from .simulation import diagnose as diagnose
from .simulation import load_results as load_results
from .simulation import replay as replay
from .simulation import run_study as run_study
from .simulation import simulate as simulate
from .theory.bounds import Bound as Bound
from .theory.bounds import BoundTable as BoundTable
from .theory.bounds import bounds as bounds
from .theory.bounds import transformation as transformation
from .theory.design import Design as Design
from .theory.design import design as design
from .theory.exponential import TuningWarning as TuningWarning
from .theory.forecast import Forecast as Forecast

__version__: str
__all__: list[str]
