"""Regret bounds with explicit constants: the paper's theorems, Table 1 and the Discussion, for any problem."""

from bothworlds.theory.bounds.api import bounds
from bothworlds.theory.bounds.bound import Bound, BoundTable
from bothworlds.theory.bounds.transformation import Transformation, transformation

__all__ = ["Bound", "BoundTable", "Transformation", "bounds", "transformation"]
