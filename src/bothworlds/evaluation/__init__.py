"""Off-policy evaluation: values of policies on a log, anytime-valid intervals, and a promotion gate."""

from bothworlds.evaluation.diagnostics import Calibration, Diagnostics, calibration_of, diagnostics_of
from bothworlds.evaluation.estimators import ESTIMATORS, Estimate, Replayed, estimates, replay
from bothworlds.evaluation.evaluator import evaluate
from bothworlds.evaluation.gate import Difference, Verdict
from bothworlds.evaluation.intervals import INTERVALS, Band, NormalIntervalWarning
from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import Regression, constant, ridge
from bothworlds.evaluation.results import Evaluated, Evaluation
from bothworlds.evaluation.targets import Target, learning, target_of

__all__ = [
    "ESTIMATORS",
    "INTERVALS",
    "Band",
    "Calibration",
    "Diagnostics",
    "Difference",
    "Estimate",
    "Evaluated",
    "Evaluation",
    "Logged",
    "NormalIntervalWarning",
    "Regression",
    "Replayed",
    "Target",
    "Verdict",
    "calibration_of",
    "constant",
    "diagnostics_of",
    "estimates",
    "evaluate",
    "learning",
    "replay",
    "ridge",
    "target_of",
]
