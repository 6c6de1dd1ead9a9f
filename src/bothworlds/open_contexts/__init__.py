"""Policies on an `OpenProblem`: contexts that are not listed, and candidates that come with each request."""

from bothworlds.open_contexts.open_decision import OpenDecision, OpenDecisions
from bothworlds.open_contexts.open_plan import OpenPlan
from bothworlds.open_contexts.open_policy import OpenPolicy
from bothworlds.open_contexts.rule_contract import Choices, OpenLearner, OpenRule, PlanArrays, Rows

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
