"""Indices of context and arm for the rows of a log."""

from collections.abc import Mapping
from typing import Any

from bothworlds.problem.problem import Problem


def pair_of(row: Any, problem: Problem, arms: Mapping[str, int]) -> tuple[int, int] | None:
    """Return the indices of a row's context and arm; None if the problem does not have or does not offer this pair.

    ``arms`` maps the names of arms to their indices.

    >>> from types import SimpleNamespace as Row
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"], arms=["red", "blue"])
    >>> row = Row(context="always", arm="blue")
    >>> pair_of(row, problem, {"red": 0, "blue": 1}), pair_of(row, problem, {"red": 0})
    ((0, 1), None)
    """
    try:
        x, a = problem.context_index(row.context), arms[row.arm]
    except (ValueError, KeyError):
        return None
    return (x, a) if problem.available[x, a] else None
