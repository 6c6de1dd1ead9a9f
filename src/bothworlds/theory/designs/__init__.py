"""Exploration designs e* (paper, Assumption 2.4): pure functions on arrays, λ computed and not bounded."""

from bothworlds.theory.designs.joint_d import joint_d_optimal
from bothworlds.theory.designs.joint_g import JointGOptimal, joint_g_optimal
from bothworlds.theory.designs.leverage import covariance, coverage, leverages, lower_bound
from bothworlds.theory.designs.per_context import per_context_g_optimal, uniform

__all__ = [
    "JointGOptimal",
    "covariance",
    "coverage",
    "joint_d_optimal",
    "joint_g_optimal",
    "leverages",
    "lower_bound",
    "per_context_g_optimal",
    "uniform",
]
