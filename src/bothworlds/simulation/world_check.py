"""Conformance of environments: what is wrong with a world, said before its results mislead anyone."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.environments import Environment
from bothworlds.environments.nature import SLACK
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.prompt import finish
from bothworlds.kernels.random import CONTEXT, two_uniforms
from bothworlds.problem.checks import whole
from bothworlds.simulation.driver import expected_losses
from bothworlds.simulation.engine import replay, simulate
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.setting import make_setting

ROUNDS = 300
DRAWS = 2000
SEED, KEY = 1, 5  # of the learner, and of nature's random numbers
MEANS = (-1.0, -0.7, 0.0, 0.3, 0.95)
GROWTH = 4  # bytes a round that a world may keep: less than one number


@dataclass(frozen=True)
class Step:
    """What nature did in a round."""

    t: int
    c: Floats
    means: Floats
    spent: float
    rewritten: bool


def check_environment(environment: Environment, *, rounds: int = ROUNDS) -> list[str]:
    """Play an environment and return what is wrong with it, one sentence each; nothing if all is well.

    Checked: mean losses stay in [-1, 1] in every round, whatever the learner does; realised losses do too, and have
    that mean; a rule writes nothing but its coefficients and its state; the same seed gives the same world, on any
    number of threads and in any order of replications; comparator, corruption and ``reacts`` tell the truth; memory
    does not grow with the rounds; compiled and interpreted text agree bit for bit. Text is compiled only if it passes
    all the rest: what writes out of bounds is better found in the interpreter.

    >>> from bothworlds import environments as en
    >>> instance = en.random_instance(contexts=3, arms=2, dimension=2, gap=0.2)
    >>> check_environment(en.corrupted(instance, budget=5))
    []
    >>> check_environment(en.from_function(instance.problem, lambda t, pi: (1 + 0.1 * t) * instance.theta))[0]
    'rounds: theta of round 2 makes mean losses leave [-1, 1]: the largest is 1.03. Scale it by at most 0.9711'
    """
    given: Any = environment
    if not isinstance(given, Environment):
        return ["it is not an Environment; bothworlds.environments has functions that make one"]
    limit = min(whole(rounds, 1, "rounds"), len(environment.path) or rounds)
    found = _tried(partial(_check_rounds, environment, limit), "rounds")
    if found:  # what cannot be played, or spoils what it is given, is not looked at any further
        return found
    checks: dict[str, Callable[[Environment, int], list[str]]] = {
        "means": _check_means,
        "noise": _check_noise,
        "truth": _check_truth,
        "repetition": _check_repetition,
        "memory": _check_memory,
    }
    found = [finding for name, check in checks.items() for finding in _tried(partial(check, environment, limit), name)]
    if not found:
        found += _tried(partial(_check_threads, environment, limit), "threads")
    if not found and environment.function is None:
        found += _tried(partial(_check_kernel_text, environment, limit), "kernel text")
    return found


def _tried(check: Callable[[], list[str]], name: str) -> list[str]:
    """Run a check; an exception is a finding too."""
    try:
        return [f"{name}: {finding}" for finding in check()]
    except Exception as error:
        what = f"{type(error).__name__}: " if not isinstance(error, ValueError) else ""
        return [f"{name}: {what}{str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"]


def _steps(environment: Environment, rounds: int, *, arms: Any = None, nature: Any = None) -> Iterator[Step]:
    """Play against a learner that wanders from sure to unsure; ``arms`` may replace what it plays."""
    problem, text = environment.problem, environment.text
    nature = environment.begin() if nature is None else nature
    rng, plays = np.random.default_rng(SEED), np.random.default_rng(SEED + 1 if arms is None else arms)
    for t in range(1, rounds + 1):
        weights = rng.random(problem.available.shape) ** rng.choice([0.1, 1.0, 30.0]) * problem.available
        pi = weights / weights.sum(axis=1, keepdims=True)
        expected_losses(nature.tables, problem.probabilities, pi, nature.hurt)
        hurt = nature.hurt.tobytes()
        try:
            environment.decide(nature, t, KEY, pi)
        except Exception as error:
            sentence = str(error) if f"round {t}" in str(error) else f"round {t}: {error}"
            raise ValueError(sentence) from None
        x = int(plays.integers(problem.n_contexts))
        a = int(plays.choice(np.flatnonzero(problem.available[x])))
        text.react(nature, a)
        means = np.einsum("j,jxa->xa", nature.c, nature.tables)
        yield Step(t, nature.c.copy(), means, float(nature.state[0]), hurt != nature.hurt.tobytes())


def _check_means(environment: Environment, rounds: int) -> list[str]:
    for step in _steps(environment, rounds):
        worst = np.abs(step.means)
        if not _is_inside(step.means):
            x, a = np.unravel_index(int(np.where(np.isnan(worst), np.inf, worst).argmax()), worst.shape)
            return [
                f"round {step.t}: the mean loss of arm {a} in context {x} is {step.means[x, a]:.6g}, not in [-1, 1]"
            ]
    return []


def _is_inside(means: Floats) -> bool:
    """Tell whether all mean losses are in [-1, 1]; those of arms that are not offered are zeros."""
    return bool((np.abs(means) <= 1.0 + SLACK).all())


def _check_rounds(environment: Environment, rounds: int) -> list[str]:
    """Play all rounds, and look at what a rule writes."""
    nature, fresh = environment.begin(), environment.begin()
    before = fresh._replace(tables=nature.tables.copy())
    for step in _steps(environment, rounds, nature=nature):
        for name in ("constants", "tables", "path", "sums"):
            if getattr(nature, name).tobytes() != getattr(before, name).tobytes():
                nature.tables[...] = before.tables  # they belong to all replications
                return [f"round {step.t}: the rule writes nature.{name}; it may write nature.c and nature.state only"]
        if step.rewritten:
            return [f"round {step.t}: the rule writes nature.hurt, from which the regret is computed"]
        if not _is_inside(step.means):
            return []  # and so another check's
        if environment.state_size is not None and nature.state[-1] != 0.0:
            return [f"round {step.t}: the rule writes beyond its state_size = {environment.state_size}"]
    return []


def _check_noise(environment: Environment, rounds: int) -> list[str]:
    """Compare the mean of losses with the mean asked for: over a grid where u alone decides, else over many rounds."""
    nature = environment.begin()
    for _ in _steps(environment, min(rounds, 3), nature=nature):
        pass
    noisy, grid = environment.text.noisy, (np.arange(DRAWS) + 0.5) / DRAWS
    for mean in MEANS:
        losses = np.array([noisy(nature, mean, u, 7, t) for t, u in enumerate(grid.tolist(), start=1)])
        again = np.array([noisy(nature, mean, u, 8, t) for t, u in enumerate(grid.tolist(), start=2)])
        outside = losses[~(np.abs(losses) <= 1.0)]
        if len(outside):
            return [f"a mean loss of {mean} gave the loss {outside[0]:.6g}, not in [-1, 1]"]
        allowed = 2.0 / DRAWS  # a monotone function of u is summed to one grid step, its range being 2
        if (losses != again).any():
            uniforms = [two_uniforms(7, t, CONTEXT, 0)[1] for t in range(1, DRAWS + 1)]
            losses = np.array([noisy(nature, mean, u, 7, t) for t, u in enumerate(uniforms, start=1)])
            allowed = 5.0 * float(losses.std()) / np.sqrt(DRAWS) + 1e-9
        if abs(losses.mean() - mean) > allowed:
            return [f"losses have the mean {losses.mean():.6g} where {mean} was asked for: the noise is not mean-zero"]
    return []


def _check_truth(environment: Environment, rounds: int) -> list[str]:
    if not environment.stochastic:
        return ["it has a budget of corruption but is not stochastic"] if environment.budget > 0.0 else []
    problem = environment.problem
    if not problem.available[np.arange(problem.n_contexts), environment.comparator].all():
        return ["the comparator plays an arm that is not offered"]
    spent = 0.0
    for step in _steps(environment, rounds):
        cost = environment.corruption_of(step.c @ environment.thetas)
        spent += cost
        if spent > environment.budget + 1e-6:
            return [
                f"round {step.t}: the corruption so far is {spent:.6g}, the budget {environment.budget:.6g} "
                "(gaps shrank against thetas[0])"
            ]
        if environment.budget > 0.0 and abs(step.spent - spent) > 1e-6 * max(1.0, spent):
            return [f"round {step.t}: state[0] says {step.spent:.6g} was spent, corruption is {spent:.6g}"]
    return []


def _check_repetition(environment: Environment, rounds: int) -> list[str]:
    """Play the same twice, then with other arms under the same policies: that may matter only if nature says so."""
    one, two, three = (np.array([step.c for step in _steps(environment, rounds, arms=a)]) for a in (11, 11, 12))
    if one.tobytes() != two.tobytes():
        t = int(np.flatnonzero((one != two).any(axis=1))[0]) + 1
        return [f"round {t}: the same seed and the same plays do not give the same parameter"]
    if not environment.reacts and one.tobytes() != three.tobytes():
        t = int(np.flatnonzero((one != three).any(axis=1))[0]) + 1
        return [f"round {t}: nature reacts to the arms played, but says reacts=False: its regret would mislead"]
    return []


def _check_threads(environment: Environment, rounds: int) -> list[str]:
    """Compare runs on one and two threads with the last replication played alone."""
    options: dict[str, Any] = {"horizon": min(rounds, 60), "rng": 3}
    world = {"uniform": FixedPolicy()}
    runs = [simulate(environment, world, replications=3, threads=n, **options)["uniform"] for n in (1, 2)]
    alone = replay(environment, world["uniform"], replication=2, interpreted=False, **options)
    found = []
    for name in ("expected", "realised", "own_best"):
        values = [getattr(run, name).tobytes() for run in runs]
        if values[0] != values[1]:
            found.append(f"{name} losses depend on the number of threads")
        if getattr(runs[0], name)[2].tobytes() != getattr(alone, name).tobytes():
            found.append(f"{name} losses of a replication depend on the others")
    return found[:1]


def _check_memory(environment: Environment, rounds: int) -> list[str]:
    """Measure what each quarter of the rounds but the first leaves: what grows does so in every one.

    What a compiler beside keeps would be counted, too.
    """
    finish()
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        ends = [number * rounds // 4 for number in range(1, 5)]
        marks = (step.t in ends for step in _steps(environment, rounds))
        sizes = [tracemalloc.get_traced_memory()[0] for mark in marks if mark]
    finally:
        if not tracing:
            tracemalloc.stop()
    if rounds < 50:
        return []
    kept = min((after - before) / (rounds / 4) for before, after in pairwise(sizes))
    return [f"memory grows by {kept:.0f} bytes a round"] if kept > GROWTH else []


def _check_kernel_text(environment: Environment, rounds: int) -> list[str]:
    """Compare compiled with interpreted runs against three learners, round by round, bit for bit."""
    setting = make_setting(environment, horizon=rounds, rng=4)
    rng = np.random.default_rng(2)
    for _ in range(3):
        weights = rng.random(environment.problem.available.shape) ** 3 * environment.problem.available
        learner = FixedPolicy(weights / weights.sum(axis=1, keepdims=True))
        machine = learner.machine(environment.problem)
        one, two = (Replications(machine, setting, [0], interpreted=flag) for flag in (False, True))
        for t in range(1, setting.horizon + 1):
            one.advance(1)
            two.advance(1)
            for name in ("c", "state"):
                values = [getattr(run.nature, name) for run in (one, two)]
                if values[0].tobytes() != values[1].tobytes():
                    return [
                        f"round {t}: nature.{name} is {values[0]} compiled and {values[1]} interpreted; "
                        "use math and written-out products only"
                    ]
        if one.outcomes()[0].realised.tobytes() != two.outcomes()[0].realised.tobytes():
            return ["compiled and interpreted noise disagree; use math and written-out products only"]
    return []
