"""Problems whose contexts are not listed: columns, requests, and the problem."""

from bothworlds.problem.open.columns import Column
from bothworlds.problem.open.open_problem import OpenProblem, Shape
from bothworlds.problem.open.requests import Request, Requests

__all__ = ["Column", "OpenProblem", "Request", "Requests", "Shape"]
