"""Conformance: what is wrong with an algorithm, said before its results mislead anyone."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bothworlds.environments import random_instance, stochastic
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions
from bothworlds.simulation.engine import replay

ROUNDS = 60
DRAWS = 1000


def check_algorithm(algorithm: Any) -> list[str]:
    """Play an algorithm on small problems and return what is wrong with it, one sentence each; nothing if all is well.

    Checked: it starts on one context, two arms and one dimension, on an ordinary problem and where arms are not
    offered; probabilities are a table of distributions that never offers what is not offered; arms are drawn from them
    and decisions carry the propensity; the same seed decides the same; feedback is taken late and in batches; kernel
    text gives the same path interpreted and compiled.

    >>> from bothworlds import LCTsallisINF
    >>> check_algorithm(LCTsallisINF(tuning="certified"))
    []
    """
    if not hasattr(algorithm, "start"):
        return ["it has no method start(problem, rng=...)"]
    checks = [_check_probabilities, _check_decisions, _check_draws, _check_seed, _check_feedback]
    found = []
    for name, problem in _problems().items():
        for check in checks:
            found += _tried(partial(check, algorithm, problem), name)
    if hasattr(algorithm, "machine"):
        found += _tried(partial(_check_kernel_text, algorithm), "ordinary problem")
    return found


def _problems() -> dict[str, Problem]:
    """Return small problems that have tripped algorithms before."""
    ordinary = random_instance(contexts=4, arms=3, dimension=3, gap=0.2, rarity=50.0).problem
    available = np.ones((4, 3), dtype=bool)
    available[0, 1] = available[2, 0] = False
    masked = Problem(features=ordinary.features, probabilities=ordinary.probabilities, available=available)
    tiny = Problem(features=[[[1.0], [-1.0]]], probabilities=[1.0])
    return {"ordinary problem": ordinary, "arms not offered": masked, "S = 1, K = 2, d = 1": tiny}


def _tried(check: Callable[[], list[str]], name: str) -> list[str]:
    """Run a check; an exception is a finding too."""
    try:
        return [f"{name}: {finding}" for finding in check()]
    except Exception as error:
        return [f"{name}: {type(error).__name__}: {error}"]


def _check_probabilities(algorithm: Any, problem: Problem) -> list[str]:
    learner = algorithm.start(problem, rng=1)
    for _ in range(ROUNDS):
        table = np.asarray(learner.probabilities())
        if table.shape != problem.available.shape:
            return [f"probabilities() has shape {table.shape}, not {problem.available.shape}"]
        if not are_distributions(table, within=1e-9):
            return [f"probabilities() is not a table of distributions: {table.tolist()}"]
        if table[~problem.available].any():
            return ["an arm that is not offered has a positive probability"]
        learner.update(learner.act(0), loss=0.5)
    return []


def _check_decisions(algorithm: Any, problem: Problem) -> list[str]:
    learner = algorithm.start(problem, rng=2)
    for t in range(ROUNDS):
        x = t % problem.n_contexts
        table = np.asarray(learner.probabilities())
        decision = learner.act(x)
        if not 0 <= decision.arm < problem.n_arms or not problem.available[x, decision.arm]:
            return [f"act chose arm {decision.arm} in context {x}, which is not offered"]
        propensity = getattr(decision, "propensity", table[x, decision.arm])
        if abs(propensity - table[x, decision.arm]) > 1e-12:
            return [f"the propensity {propensity} is not the probability {table[x, decision.arm]} drawn from"]
        learner.update(decision, loss=-0.5 if decision.arm == 0 else 0.5)
    return []


def _check_draws(algorithm: Any, problem: Problem) -> list[str]:
    """Compare how often each arm is chosen with its probability, at five standard deviations."""
    learner = algorithm.start(problem, rng=6)
    expected = np.asarray(learner.probabilities())[0]
    arms = [learner.act(0).arm for _ in range(DRAWS)]
    seen = np.bincount(arms, minlength=problem.n_arms) / DRAWS
    allowed = 5.0 * np.sqrt(expected * (1.0 - expected) / DRAWS) + 1.0 / DRAWS
    if (np.abs(seen - expected) > allowed).any():
        return [f"act chooses arms with frequencies {seen.tolist()}, not with probabilities {expected.tolist()}"]
    return []


def _check_seed(algorithm: Any, problem: Problem) -> list[str]:
    paths = []
    for seed in (3, 3, 4):
        learner = algorithm.start(problem, rng=seed)
        path = []
        for t in range(ROUNDS):
            decision = learner.act(t % problem.n_contexts)
            learner.update(decision, loss=0.1)
            path.append(decision.arm)
        paths.append(path)
    if paths[0] != paths[1]:
        return ["the same seed does not decide the same"]
    surest = np.asarray(algorithm.start(problem, rng=3).probabilities()).max(axis=1).min()
    return ["the seed has no influence"] if paths[0] == paths[2] and surest < 0.9 else []


def _check_feedback(algorithm: Any, problem: Problem) -> list[str]:
    learner = algorithm.start(problem, rng=5)
    waiting = [learner.act(t % problem.n_contexts) for t in range(6)]
    learner.update(waiting[4], loss=1.0)
    learner.update(waiting[1], loss=-1.0)
    learner.update([waiting[0], waiting[5]], loss=[0.0, 0.25])
    total = np.asarray(learner.probabilities()).sum()
    return [] if np.isfinite(total) else ["probabilities are no longer finite after late feedback"]


def _check_kernel_text(algorithm: Any) -> list[str]:
    environment = stochastic(random_instance(contexts=4, arms=3, dimension=3, gap=0.2))
    one, two = (replay(environment, algorithm, horizon=ROUNDS, interpreted=flag) for flag in (False, True))
    if one.trace.tolist() != two.trace.tolist():
        return ["interpreted and compiled runs choose different arms"]
    return []
