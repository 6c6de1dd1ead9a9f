"""Contexts that are drawn: on a sphere, or from a list behind a sampler; and a policy that has learnt something."""

from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats


def sphere(rng: np.random.Generator) -> Floats:
    """Three arms with unit vectors in three dimensions: Sigma(uniform) = I/3, so lambda = 1/3."""
    v = rng.normal(size=(3, 3))
    return np.asarray(v / np.linalg.norm(v, axis=1, keepdims=True))


def same(context: Any) -> Any:
    return context


def listed(problem: bw.Problem, **options: Any) -> bw.SampledProblem:
    """A finite problem behind a sampler."""
    g = np.cumsum(problem.probabilities)

    def sampler(rng: np.random.Generator) -> int:
        return min(int(np.searchsorted(g, rng.random(), side="right")), problem.n_contexts - 1)

    return bw.SampledProblem(sampler, lambda x: problem.features[x], **options)


def with_theta(policy: bw.SampledPolicy, theta: Floats, t: float) -> None:
    """Give a policy a cumulative estimate, in the features' coordinates, and a clock."""
    lifted = policy.problem.frame.lift @ theta
    arrays = policy._covariance.arrays()
    learnt = {"theta": lifted, "clock": np.array([t, 0.0, 0.0])}
    policy.restore(name=policy.name, registry=policy._registry, learnt=learnt, covariance=arrays, beyond_coverage=0)
