"""Ahead-of-time compilation, so that the first decision of a service does not take half a minute."""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from bothworlds.algorithms.registry import make_algorithm
from bothworlds.kernels.entry_points import interpreted_entries
from bothworlds.kernels.jit.background_compile import wait_for_compile
from bothworlds.kernels.jit.compile import cache_folder, is_cached
from bothworlds.kernels.jit.subprocess_compile import read_task, start_compile_process
from bothworlds.open_contexts import OpenPolicy
from bothworlds.policy import Algorithm, Policy
from bothworlds.policy.decision import Decision
from bothworlds.problem import OpenProblem, Problem, SampledProblem
from bothworlds.problem.rewards import FEW
from bothworlds.sampled import SampledPolicy


def warm_up(problem: Problem | OpenProblem | SampledProblem, algorithm: Algorithm) -> float:
    """Compile all functions for deciding and learning into the disk cache; return the seconds this took.

    A temporary policy decides and learns, singly and in a batch, and makes a plan that decides. Machine code does not
    depend on the sizes of a problem: it serves every problem of the same kind with the same algorithm, in every later
    process with the same version, until ``BOTHWORLDS_CACHE_DIR`` is emptied. The command is `bothworlds warm`.

    >>> import bothworlds as bw
    >>> problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> warm_up(problem, bw.FixedPolicy()) >= 0.0
    True
    """
    if not hasattr(algorithm, "start"):
        raise ValueError(f"an algorithm is an object such as bothworlds.LCTsallisINF(); got {algorithm!r}")
    start = time.perf_counter()
    policy: Any = algorithm.start(problem, rng=0)  # type: ignore[arg-type]  # some algorithms take other problems
    if isinstance(policy, SampledPolicy):
        sampled = policy.problem
        context = sampled.sampler(np.random.default_rng(0))
        policy.update(policy.act(features=sampled.feature_map(context)), loss=0.0)
    elif isinstance(policy, OpenPolicy):
        context, candidates = policy.problem.blank_request()
        decision = policy.act(context, candidates=candidates)
        while decision.holdout:  # held-out decisions are not learned from
            decision = policy.act(context, candidates=candidates)
        policy.update(decision, loss=0.0)
    else:
        exercise(policy)
    return time.perf_counter() - start


def exercise(policy: Policy) -> None:
    """Let a temporary policy decide and learn, and make a plan that decides, singly and in a batch."""
    with wait_for_compile():
        plan = policy.plan()
        plan.act(0)
        plan.redecide_batch([0], ["visit"])
        played: list[Decision] = []
        while len(played) <= FEW:  # held-out decisions are not learned from
            played += [decision for decision in policy.act([0] * FEW) if not decision.holdout]
        policy.update(played[0], loss=0.0)
        policy.update(played[1:], loss=[0.0] * len(played[1:]))


def warm_up_in_subprocess(
    algorithms: Iterable[Mapping[str, Any]], *, on_start: Callable[[], None] | None = None
) -> None:
    """Compile for algorithms, given by options as in a study, in a subprocess; skip those in the disk cache.

    The compiler would leave 130 MB in this process. Functions that cannot be compiled there or cannot be cached are
    compiled, or refused, where they are needed. ``on_start`` is called before compilation, in place of the notices on
    stderr.
    """
    missing = [dict(options) for options in algorithms if not _is_warm(options)]
    if missing and cache_folder() is not None:
        if on_start is not None:
            on_start()
        start_compile_process(__name__, missing, silent=on_start is not None).wait()


def _is_warm(options: Mapping[str, Any]) -> bool:
    """Return whether all compiled functions are in the disk cache; also true if a small problem cannot tell."""
    try:
        kernel = make_algorithm(dict(options)).machine(_small_problem()).kernel
    except ValueError:
        return True
    return all(is_cached(entry) for entry in interpreted_entries(kernel))


def _small_problem() -> Problem:
    """Return a small problem that nearly every algorithm can play."""
    return Problem.from_arm_independent([[1.0, 0.0], [0.0, 1.0]], probabilities=[0.5, 0.5], arms=2)


if __name__ == "__main__":
    for options in read_task():
        with contextlib.suppress(Exception):  # the error appears again where the algorithm is used
            warm_up(_small_problem(), make_algorithm(options))
