"""Compile ahead: so that the first decision of a service does not take half a minute."""

import time
from typing import Any

import numpy as np

from bothworlds.policy import Algorithm
from bothworlds.problem import Problem, SampledProblem
from bothworlds.problem.feedback import FEW
from bothworlds.sampled import SampledPolicy


def warm_up(problem: Problem | SampledProblem, algorithm: Algorithm) -> float:
    """Compile all that deciding and learning need, and keep it on disk; return how many seconds it took.

    A policy is started, decides and learns, alone and in a batch, makes a plan that decides, and is thrown away.
    Machine code does not depend on the sizes of a problem: what is compiled here serves every problem of the same kind
    with the same algorithm, in every later process with the same version, until ``BOTHWORLDS_CACHE_DIR`` is emptied.
    `bothworlds warm` is the same as a command.

    >>> import bothworlds as bw
    >>> problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> warm_up(problem, bw.FixedPolicy()) >= 0.0
    True
    """
    began = time.perf_counter()
    policy: Any = algorithm.start(problem, rng=0)  # type: ignore[arg-type]  # some algorithms take sampled problems
    if isinstance(policy, SampledPolicy):
        sampled = policy.problem
        context = sampled.sampler(np.random.default_rng(0))
        policy.update(policy.act(features=sampled.feature_map(context)), loss=0.0)
    else:
        policy.update(policy.act(0), loss=0.0)
        policy.update(policy.act([0] * FEW), loss=[0.0] * FEW)
        policy.plan().act(0)
    return time.perf_counter() - began
