"""Compile ahead: so that the first decision of a service does not take half a minute."""

import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bothworlds.kernels.entries import interpreted_entries
from bothworlds.kernels.jit.apart import begun, told
from bothworlds.kernels.jit.compile import cache_folder, is_kept
from bothworlds.kernels.jit.prompt import patient
from bothworlds.policy import Algorithm, Policy
from bothworlds.policy.decision import Decision
from bothworlds.problem import Problem, SampledProblem
from bothworlds.problem.feedback import FEW
from bothworlds.sampled import SampledPolicy
from bothworlds.simulation.study import make_algorithm


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
    if not hasattr(algorithm, "start"):
        raise ValueError(f"an algorithm is an object such as bothworlds.LCTsallisINF(); got {algorithm!r}")
    began = time.perf_counter()
    policy: Any = algorithm.start(problem, rng=0)  # type: ignore[arg-type]  # some algorithms take sampled problems
    if isinstance(policy, SampledPolicy):
        sampled = policy.problem
        context = sampled.sampler(np.random.default_rng(0))
        policy.update(policy.act(features=sampled.feature_map(context)), loss=0.0)
    else:
        exercise(policy)
    return time.perf_counter() - began


def exercise(policy: Policy) -> None:
    """Let a policy that is thrown away decide and learn, and make a plan that decides, alone and in a batch."""
    with patient():
        plan = policy.plan()
        plan.act(0)
        plan.again_all([0], ["visit"])
        played: list[Decision] = []
        while len(played) <= FEW:  # those that are held out are not learnt
            played += [made for made in policy.act([0] * FEW) if not made.holdout]
        policy.update(played[0], loss=0.0)
        policy.update(played[1:], loss=[0.0] * len(played[1:]))


def warm_up_apart(algorithms: Iterable[Mapping[str, Any]]) -> None:
    """Compile for algorithms, told as in a study, in a process of its own; nothing happens if all of it is on disk.

    A compiler leaves 130 MB in the process that it has worked in. What cannot be compiled there, or not kept, is
    compiled, or refused, where it is needed.
    """
    missing = [dict(options) for options in algorithms if not _is_warm(options)]
    if missing and cache_folder() is not None:
        begun(__name__, missing, silent=False).wait()


def _is_warm(options: Mapping[str, Any]) -> bool:
    """Tell whether all that deciding and learning need is on disk, or cannot be had from a small problem."""
    try:
        text = make_algorithm(dict(options)).machine(_small()).text
    except ValueError:
        return True
    return all(is_kept(entry) for entry in interpreted_entries(text))


def _small() -> Problem:
    """Return a problem that nearly every algorithm can play."""
    return Problem.from_arm_independent([[1.0, 0.0], [0.0, 1.0]], probabilities=[0.5, 0.5], arms=2)


if __name__ == "__main__":
    for options in told():
        with contextlib.suppress(Exception):  # whoever needs it will hear of it
            warm_up(_small(), make_algorithm(options))
