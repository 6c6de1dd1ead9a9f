"""Policies on an `OpenProblem`: contexts that are not listed, and candidates that come with each request."""

from bothworlds.open_contexts.contract import Choices, OpenLearner, OpenRule, PlanArrays, Rows
from bothworlds.open_contexts.decision import OpenDecision, OpenDecisions
from bothworlds.open_contexts.plan import OpenPlan
from bothworlds.open_contexts.policy import OpenPolicy

__all__ = [
    "Choices",
    "OpenDecision",
    "OpenDecisions",
    "OpenLearner",
    "OpenPlan",
    "OpenPolicy",
    "OpenRule",
    "PlanArrays",
    "Rows",
]
