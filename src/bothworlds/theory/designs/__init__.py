"""Exploration designs e* (paper, Assumption 2.4) as pure functions on arrays, with computed coverage λ."""

from bothworlds.theory.designs.joint_d import joint_d_optimal
from bothworlds.theory.designs.joint_g import JointGOptimal, joint_g_optimal
from bothworlds.theory.designs.leverage import covariance, coverage, leverages, lower_bound
from bothworlds.theory.designs.per_context import per_context_g_optimal, uniform
from bothworlds.theory.designs.tabular import is_tabular, tabular_coverage, tabular_limit

__all__ = [
    "JointGOptimal",
    "covariance",
    "coverage",
    "is_tabular",
    "joint_d_optimal",
    "joint_g_optimal",
    "leverages",
    "lower_bound",
    "per_context_g_optimal",
    "tabular_coverage",
    "tabular_limit",
    "uniform",
]
