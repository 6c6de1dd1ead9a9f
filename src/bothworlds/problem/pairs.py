"""Rows of logs as pairs of a context and an arm."""

from collections.abc import Mapping
from typing import Any

from bothworlds.problem.core import Problem


def pair_of(row: Any, problem: Problem, arms: Mapping[str, int]) -> tuple[int, int] | None:
    """Return context and arm of a row as numbers, None where the problem has no such pair or does not offer it.

    ``arms`` are the numbers of the problem's arms by their names.

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
