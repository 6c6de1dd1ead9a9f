"""Linear policies pi_theta(x) = argmin_a <phi(a, x), theta>: all distinct ones, found exactly, context by context.

A map of the first s contexts to arms is linear if some theta makes each of its arms strictly the best of its context:
V theta > 0 for the rows V = phi(b, x) - phi(pi(x), x). That is decided by the distance delta of the origin from the
convex hull of the normalised rows (Gordan): delta > 0 is the largest margin of a unit theta, and non-negative least
squares, min |V^T y|^2 + (1 - sum y)^2, has the residual delta/sqrt(1 + delta^2). A linear map of s + 1 contexts is
linear on the first s, so the list grows context by context and nothing is missed. Maps that need a tie are no linear
policies; of arms with equal features the first stands for all.
"""

import importlib
import math
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.kernels.arrays import Bools, Floats, Ints
from bothworlds.problem import Problem
from bothworlds.problem.whitening import whitening

MOST_POLICIES = 2000
MOST_TESTS = 60_000  # each takes 20 to 300 microseconds
SAMPLES = 8192
MARGIN = 1e-8
LINEAR_INSTEAD = "policies='all' competes with all maps of contexts to arms, at any size"
ALL_INSTEAD = "policies='all' plays the same at any size"


def linear_policies(problem: Problem, *, instead: str = LINEAR_INSTEAD) -> Ints:
    """Return the distinct linear policies, shape (policies, contexts), in lexicographic order.

    Refuses, before any round, where there are more than 2,000, with the number of contexts that it could do at most;
    ``instead`` says what to do then.

    >>> linear_policies(Problem(features=[[[1.0], [-1.0]], [[2.0], [0.0]]], probabilities=[0.5, 0.5])).tolist()
    [[0, 0], [1, 1]]
    """
    z, offered = _unit_scale(problem), problem.available
    _refuse_many(z, offered, instead)
    found: list[tuple[tuple[int, ...], Floats]] = [((), np.zeros((0, z.shape[2])))]
    tests = 0
    for x in range(len(z)):
        arms = _different(z[x], offered[x])
        tests += len(found) * (len(arms) - 1)
        if tests > MOST_TESTS:
            raise ValueError(_refusal(z.shape, x, f"more than {MOST_TESTS:,} linear programs are needed", instead))
        found = [longer for one in found for longer in _extended(one, z[x], arms)]
        if len(found) > MOST_POLICIES:
            raise ValueError(_refusal(z.shape, x, f"there are more than {MOST_POLICIES:,} linear policies", instead))
    return np.array(sorted(arms for arms, _ in found), dtype=np.int64).reshape(len(found), len(z))


def all_policies(problem: Problem, *, instead: str = ALL_INSTEAD) -> Ints:
    """Return every map of contexts to offered arms, shape (policies, contexts); refuses more than 2,000.

    >>> len(all_policies(Problem(features=[[[1.0], [-1.0]], [[2.0], [0.0]]], probabilities=[0.5, 0.5])))
    4
    """
    count = policy_count(problem)
    if count > MOST_POLICIES:
        largest = int(problem.available.sum(axis=1).max())
        contexts = int(math.log(MOST_POLICIES) / math.log(largest))
        raise ValueError(
            f"there are about 10^{math.log10(count):.0f} maps of {problem.n_contexts} contexts to arms; at most "
            f"{MOST_POLICIES:,} are listed one by one, those of {contexts} contexts with {largest} arms. {instead}"
        )
    choices = [np.flatnonzero(row) for row in problem.available]
    return np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(-1, len(choices)).astype(np.int64)


def policy_count(problem: Problem) -> int:
    """Return the number of maps of contexts to offered arms."""
    return math.prod(int(count) for count in problem.available.sum(axis=1))


def policy_points(z: Floats, g: Floats, policies: Ints) -> Floats:
    """Return z_p = sum_x g(x) phi(p(x), x) of every policy, shape (policies, d), for features z (S, K, d).

    >>> policy_points(np.array([[[1.0], [-1.0]], [[2.0], [0.0]]]), np.array([0.5, 0.5]), np.array([[0, 1]])).tolist()
    [[0.5]]
    """
    return np.asarray(np.einsum("x,pxi->pi", g, z[np.arange(len(z)), policies]))


def _unit_scale(problem: Problem) -> Floats:
    """Return the features in coordinates in which all directions matter alike: linear policies are the same in all."""
    z = problem.span.coordinates
    rows = z[problem.available]
    _, turned = whitening(rows.T @ rows / len(rows))
    return np.asarray(z @ turned)


def _different(z: Floats, offered: Bools) -> list[int]:
    """Return the offered arms, of those with equal features the first."""
    kept: list[int] = []
    for a in np.flatnonzero(offered):
        if (np.abs(z[kept] - z[a]).max(axis=1, initial=0.0) > MARGIN).all():
            kept.append(int(a))
    return kept


def _extended(one: tuple[tuple[int, ...], Floats], z: Floats, arms: list[int]) -> list[tuple[tuple[int, ...], Floats]]:
    """Return all ways in which a linear map, given with its rows, goes on in a context."""
    chosen, rows = one
    longer = []
    for a in arms:
        others = z[[b for b in arms if b != a]] - z[a]
        more = np.concatenate([rows, others / np.linalg.norm(others, axis=1, keepdims=True)])
        if _margin(more) > MARGIN:
            longer.append(((*chosen, a), more))
    return longer


@lru_cache(maxsize=1)
def _nnls() -> Any:
    """Return scipy's non-negative least squares: a third of a second to import, so only who lists policies pays."""
    try:
        return importlib.import_module("scipy.optimize").nnls
    except ImportError:
        sentence = not_installed("listing linear policies needs", "scipy", "experts")
        raise MissingPackageError(f"{sentence}; policies='all' does without") from None


def _margin(rows: Floats) -> float:
    """Return delta/sqrt(1 + delta^2), delta the largest margin min(rows @ theta) of a unit theta, or 0."""
    if len(rows) == 0:
        return 1.0
    target = np.zeros(rows.shape[1] + 1)
    target[-1] = 1.0
    _, residual = _nnls()(np.concatenate([rows.T, np.ones((1, len(rows)))]), target)
    return float(residual)


def _refuse_many(z: Floats, offered: Bools, instead: str) -> None:
    """Refuse at once where random thetas alone show too many policies."""
    theta = np.random.default_rng(0).normal(size=(SAMPLES, z.shape[2]))
    labels = np.zeros(SAMPLES, dtype=np.int64)
    for x in range(len(z)):
        scores = np.where(offered[x], theta @ z[x].T, np.inf)
        _, labels = np.unique(labels * z.shape[1] + scores.argmin(axis=1), return_inverse=True)
        if labels.max() >= MOST_POLICIES:
            raise ValueError(_refusal(z.shape, x, f"there are more than {MOST_POLICIES:,} linear policies", instead))


def _refusal(shape: tuple[int, ...], x: int, why: str, instead: str) -> str:
    """Return the sentence that refuses, with what could be done."""
    S, K, d = shape
    could = (
        f"at most the first {x} of the contexts could be done" if x else f"fewer than {K} arms a context could be done"
    )
    return f"{why} in {S} contexts with {K} arms in {d} dimensions, too many to list: {could}. {instead}"
