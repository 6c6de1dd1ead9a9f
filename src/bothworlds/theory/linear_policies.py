"""Exact enumeration of the distinct linear policies pi_theta(x) = argmin_a <phi(a, x), theta>.

A map of the first s contexts to arms is linear if some theta makes each of its arms strictly the best of its context:
V theta > 0 for the rows V = phi(b, x) - phi(pi(x), x). This follows from the distance delta of the origin from the
convex hull of the normalised rows (Gordan): delta > 0 is the largest margin of a unit theta, and non-negative least
squares, min |V^T y|^2 + (1 - sum y)^2, has the residual delta/sqrt(1 + delta^2). A linear map of s + 1 contexts is
linear on the first s, so the list grows context by context and is complete. Maps that need a tie do not count as
linear policies; of several arms with equal features, only the first is used.
"""

import importlib
import math
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.arrays import Bools, Floats, Ints
from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.problem import Problem
from bothworlds.problem.feature_space import whitening

MOST_POLICIES = 2000
MOST_TESTS = 60_000  # each test takes 20 to 300 microseconds
SAMPLES = 8192
MARGIN = 1e-8
LINEAR_INSTEAD = "policies='all' competes with all maps of contexts to arms, at any size"
ALL_INSTEAD = "policies='all' plays the same at any size"


def linear_policies(problem: Problem, *, instead: str = LINEAR_INSTEAD) -> Ints:
    """Return the distinct linear policies, shape (policies, contexts), in lexicographic order.

    Raises ValueError where there are more than 2,000. The message names the largest number of contexts that would
    work, and ends with ``instead``, the advice on what to do.

    >>> linear_policies(Problem(features=[[[1.0], [-1.0]], [[2.0], [0.0]]], probabilities=[0.5, 0.5])).tolist()
    [[0, 0], [1, 1]]
    """
    z, offered = _unit_scale(problem), problem.available
    _check_count_by_samples(z, offered, instead)
    policies: list[tuple[tuple[int, ...], Floats]] = [((), np.zeros((0, z.shape[2])))]
    tests = 0
    for x in range(len(z)):
        arms = _distinct_arms(z[x], offered[x])
        tests += len(policies) * (len(arms) - 1)
        if tests > MOST_TESTS:
            raise ValueError(_refusal(z.shape, x, f"more than {MOST_TESTS:,} linear programs are needed", instead))
        policies = [longer for policy in policies for longer in _extensions(policy, z[x], arms)]
        if len(policies) > MOST_POLICIES:
            raise ValueError(_refusal(z.shape, x, f"there are more than {MOST_POLICIES:,} linear policies", instead))
    return np.array(sorted(arms for arms, _ in policies), dtype=np.int64).reshape(len(policies), len(z))


def all_policies(problem: Problem, *, instead: str = ALL_INSTEAD) -> Ints:
    """Return every map of contexts to offered arms, shape (policies, contexts).

    Raises ValueError for more than 2,000.

    >>> len(all_policies(Problem(features=[[[1.0], [-1.0]], [[2.0], [0.0]]], probabilities=[0.5, 0.5])))
    4
    """
    count = policy_count(problem)
    if count > MOST_POLICIES:
        largest = int(problem.available.sum(axis=1).max())
        contexts = int(math.log(MOST_POLICIES) / math.log(largest))
        raise ValueError(
            f"there are about 10^{math.log10(count):.0f} maps of {problem.n_contexts} contexts to arms; at most "
            f"{MOST_POLICIES:,} can be listed, which allows {contexts} contexts with {largest} arms. {instead}"
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
    """Return the features (S, K, d) with whitened second moment; a linear map does not change the linear policies."""
    z = problem.span.coordinates
    rows = z[problem.available]
    _, whitener = whitening(rows.T @ rows / len(rows))
    return np.asarray(z @ whitener)


def _distinct_arms(z: Floats, offered: Bools) -> list[int]:
    """Return the offered arms; of several with equal features, only the first."""
    kept: list[int] = []
    for a in np.flatnonzero(offered):
        if (np.abs(z[kept] - z[a]).max(axis=1, initial=0.0) > MARGIN).all():
            kept.append(int(a))
    return kept


def _extensions(
    policy: tuple[tuple[int, ...], Floats], z: Floats, arms: list[int]
) -> list[tuple[tuple[int, ...], Floats]]:
    """Return all extensions of a linear policy, given with its rows V, to one more context."""
    chosen, rows = policy
    longer = []
    for a in arms:
        others = z[[b for b in arms if b != a]] - z[a]
        more = np.concatenate([rows, others / np.linalg.norm(others, axis=1, keepdims=True)])
        if _margin(more) > MARGIN:
            longer.append(((*chosen, a), more))
    return longer


@lru_cache(maxsize=1)
def _nnls() -> Any:
    """Return scipy's non-negative least squares, imported on first use because the import takes 0.3 seconds."""
    try:
        return importlib.import_module("scipy.optimize").nnls
    except ImportError:
        message = not_installed("listing linear policies needs", "scipy", "experts")
        raise MissingPackageError(f"{message}; policies='all' works without it") from None


def _margin(rows: Floats) -> float:
    """Return delta/sqrt(1 + delta^2), delta the largest margin min(rows @ theta) of a unit theta, or 0 if none."""
    if len(rows) == 0:
        return 1.0
    target = np.zeros(rows.shape[1] + 1)
    target[-1] = 1.0
    _, residual = _nnls()(np.concatenate([rows.T, np.ones((1, len(rows)))]), target)
    return float(residual)


def _check_count_by_samples(z: Floats, offered: Bools, instead: str) -> None:
    """Raise ValueError early where random thetas alone give too many policies."""
    theta = np.random.default_rng(0).normal(size=(SAMPLES, z.shape[2]))
    labels = np.zeros(SAMPLES, dtype=np.int64)
    for x in range(len(z)):
        scores = np.where(offered[x], theta @ z[x].T, np.inf)
        _, labels = np.unique(labels * z.shape[1] + scores.argmin(axis=1), return_inverse=True)
        if labels.max() >= MOST_POLICIES:
            raise ValueError(_refusal(z.shape, x, f"there are more than {MOST_POLICIES:,} linear policies", instead))


def _refusal(shape: tuple[int, ...], x: int, why: str, instead: str) -> str:
    """Return the error message, with the largest size that would work."""
    S, K, d = shape
    possible = f"use at most the first {x} contexts" if x else f"use fewer than {K} arms per context"
    return f"{why} in {S} contexts with {K} arms in {d} dimensions, too many to list: {possible}. {instead}"
