"""Check that an algorithm behaves as simulations and services expect."""

from functools import partial
from typing import Any

import numpy as np

from bothworlds.environments import random_instance, stochastic
from bothworlds.errors import UserCodeError
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.simulation.engine import replay
from bothworlds.user_errors import check_start, fault_of, place_of, place_of_function

ROUNDS = 60
DRAWS = 1000


def check_algorithm(algorithm: Any) -> list[str]:
    """Play an algorithm on small problems and return the errors found, one sentence each; an empty list if none.

    Checked: it starts on one context, two arms and one dimension, on an ordinary problem, and where arms are not
    offered; probabilities are a table of distributions over the offered arms; arms are drawn from them, and decisions
    carry the propensity; the same seed gives the same decisions; feedback may be late and batched; interpreted and
    compiled kernels play the same path.

    >>> from bothworlds import LCTsallisINF
    >>> check_algorithm(LCTsallisINF(tuning="certified"))
    []
    """
    if not hasattr(algorithm, "start"):
        return ["it has no method start(problem, rng=...)"]
    found: dict[str, str] = {}  # sentences by subject: each fault is reported once, for the first problem
    playable = True
    for name, problem in _problems().items():
        wrong = _findings(partial(_check_probabilities, algorithm, problem))
        playable &= not wrong
        if not wrong:  # otherwise the other checks would report the same fault
            for check in (_check_decisions, _check_draws, _check_seed, _check_feedback):
                wrong.update(_findings(partial(check, algorithm, problem)))
        for fault, sentence in wrong.items():
            found.setdefault(fault, f"{name}: {sentence}")
    if hasattr(algorithm, "machine") and playable:
        for fault, sentence in _findings(partial(_check_kernel, algorithm)).items():
            found.setdefault(fault, f"ordinary problem: {sentence}")
    return list(found.values())


def _problems() -> dict[str, Problem]:
    """Return small problems by name, including edge cases."""
    ordinary = random_instance(contexts=4, arms=3, dimension=3, gap=0.2, rarity=50.0).problem
    available = np.ones((4, 3), dtype=bool)
    available[0, 1] = available[2, 0] = False
    masked = Problem(features=ordinary.features, probabilities=ordinary.probabilities, available=available)
    tiny = Problem(features=[[[1.0], [-1.0]]], probabilities=[1.0])
    return {"ordinary problem": ordinary, "arms not offered": masked, "S = 1, K = 2, d = 1": tiny}


def _findings(check: partial[list[str]]) -> dict[str, str]:
    """Run a check and return its findings by subject; an exception is a finding, with its line in the user's code."""
    try:
        return dict.fromkeys([check.func.__name__], finding) if (finding := " ".join(check())) else {}
    except Exception as error:
        if isinstance(error, UserCodeError):
            return {error.place: str(error)}
        place, message = place_of(error), f"{type(error).__name__}: {error}"
        return {place or message: f"{place}: {message}" if place else message}


def _check_probabilities(algorithm: Any, problem: Problem) -> list[str]:
    if isinstance(algorithm, Algorithm):
        machine = algorithm.machine(problem)
        check_start(machine, algorithm.machine)
        plan_function = machine.kernel.refresh
        learner = algorithm.start(problem, rng=1, interpreted=True)  # so that exceptions have a line
    else:
        learner = algorithm.start(problem, rng=1)
        plan_function = learner.probabilities
    for t in range(1, ROUNDS + 1):
        if fault := fault_of(learner.probabilities(), problem.available):
            return [f"{place_of_function(plan_function)}: round {t}: {fault}"]
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
            return [f"the propensity is {propensity}, but the arm was drawn with probability {table[x, decision.arm]}"]
        learner.update(decision, loss=-0.5 if decision.arm == 0 else 0.5)
    return []


def _check_draws(algorithm: Any, problem: Problem) -> list[str]:
    """Compare the frequency of each arm with its probability, within five standard deviations."""
    learner = algorithm.start(problem, rng=6)
    expected = np.asarray(learner.probabilities())[0]
    arms = [learner.act(0).arm for _ in range(DRAWS)]
    frequencies = np.bincount(arms, minlength=problem.n_arms) / DRAWS
    allowed = 5.0 * np.sqrt(expected * (1.0 - expected) / DRAWS) + 1.0 / DRAWS
    if (np.abs(frequencies - expected) > allowed).any():
        return [f"act chooses arms with frequencies {frequencies.tolist()}, not with probabilities {expected.tolist()}"]
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
        return ["the same seed gives different decisions"]
    highest = np.asarray(algorithm.start(problem, rng=3).probabilities()).max(axis=1).min()
    return ["the seed has no influence"] if paths[0] == paths[2] and highest < 0.9 else []


def _check_feedback(algorithm: Any, problem: Problem) -> list[str]:
    learner = algorithm.start(problem, rng=5)
    waiting = [learner.act(t % problem.n_contexts) for t in range(6)]
    learner.update(waiting[4], loss=1.0)
    learner.update(waiting[1], loss=-1.0)
    learner.update([waiting[0], waiting[5]], loss=[0.0, 0.25])
    total = np.asarray(learner.probabilities()).sum()
    return [] if np.isfinite(total) else ["probabilities are no longer finite after late feedback"]


def _check_kernel(algorithm: Any) -> list[str]:
    environment = stochastic(random_instance(contexts=4, arms=3, dimension=3, gap=0.2))
    compiled, interpreted = (replay(environment, algorithm, horizon=ROUNDS, interpreted=flag) for flag in (False, True))
    if compiled.trace.tolist() != interpreted.trace.tolist():
        return ["interpreted and compiled runs choose different arms"]
    return []
