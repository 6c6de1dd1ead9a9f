"""Check that an environment behaves as it claims and as simulations require."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.arrays import Floats
from bothworlds.environments import Environment
from bothworlds.environments.dynamics import SLACK
from bothworlds.kernels.random import CONTEXT, two_uniforms
from bothworlds.problem.checks import whole
from bothworlds.simulation.engine import replay, simulate
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.round_loop import expected_losses
from bothworlds.simulation.setting import make_setting

ROUNDS = 300
DRAWS = 2000
SEED, KEY = 1, 5  # of the learner, and of the environment's random numbers
MEANS = (-1.0, -0.7, 0.0, 0.3, 0.95)
TRACED_FRAMES = 40  # more than any call of a rule is deep
GROWTH = 4  # bytes per round that an environment may allocate: less than one float


@dataclass(frozen=True)
class PlayedRound:
    """Round t: coefficients, mean losses (contexts, arms), state[0], and whether expected_loss was overwritten."""

    t: int
    c: Floats
    means: Floats
    corruption: float
    rewritten: bool


def check_environment(environment: Environment, *, rounds: int = ROUNDS) -> list[str]:
    """Play an environment and return the errors found, one sentence each; an empty list if none.

    Checked: mean losses stay in [-1, 1] in every round, whatever the learner does; realised losses do too, and have
    that mean; a rule writes only its coefficients and its state; the same seed gives the same world, for any number of
    threads and any order of replications; comparator, corruption and ``reacts`` are correct; memory does not grow with
    the rounds; compiled and interpreted kernels agree bit for bit. Kernels are compiled only after all other checks
    pass, because the interpreter detects writes out of bounds.

    >>> from bothworlds import environments as en
    >>> instance = en.random_instance(contexts=3, arms=2, dimension=2, gap=0.2)
    >>> check_environment(en.corrupted(instance, budget=5))
    []
    >>> check_environment(en.from_function(instance.problem, lambda t, pi: (1 + 0.1 * t) * instance.theta))[0]
    'rounds: theta of round 2 makes mean losses leave [-1, 1]: the largest is 1.03. Scale it by at most 0.9711'
    """
    value: Any = environment
    if not isinstance(value, Environment):
        return ["it is not an Environment; bothworlds.environments has functions that make one"]
    limit = min(whole(rounds, 1, "rounds"), len(environment.path) or rounds)
    found = _findings(partial(_check_rounds, environment, limit), "rounds")
    if found:  # the other checks need rounds that can be played
        return found
    checks: dict[str, Callable[[Environment, int], list[str]]] = {
        "means": _check_means,
        "noise": _check_noise,
        "claims": _check_claims,
        "repetition": _check_repetition,
        "memory": _check_memory,
    }
    found = [
        finding for name, check in checks.items() for finding in _findings(partial(check, environment, limit), name)
    ]
    if not found:
        found += _findings(partial(_check_threads, environment, limit), "threads")
    if not found and environment.function is None:
        found += _findings(partial(_check_kernel, environment, limit), "kernel")
    return found


def _findings(check: Callable[[], list[str]], name: str) -> list[str]:
    """Run a check and return its findings; an exception is a finding, too."""
    try:
        return [f"{name}: {finding}" for finding in check()]
    except Exception as error:
        kind = f"{type(error).__name__}: " if not isinstance(error, ValueError) else ""
        return [f"{name}: {kind}{str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"]


def _played_rounds(
    environment: Environment, rounds: int, *, arms: Any = None, nature: Any = None
) -> Iterator[PlayedRound]:
    """Play with random policies, from nearly uniform to nearly deterministic; ``arms`` is the seed of the arms."""
    problem, kernel = environment.problem, environment.kernel
    nature = environment.begin() if nature is None else nature
    rng, plays = np.random.default_rng(SEED), np.random.default_rng(SEED + 1 if arms is None else arms)
    for t in range(1, rounds + 1):
        weights = rng.random(problem.available.shape) ** rng.choice([0.1, 1.0, 30.0]) * problem.available
        pi = weights / weights.sum(axis=1, keepdims=True)
        expected_losses(nature.tables, problem.probabilities, pi, nature.expected_loss)
        expected_loss = nature.expected_loss.tobytes()
        try:
            environment.decide(nature, t, KEY, pi)
        except Exception as error:
            sentence = str(error) if f"round {t}" in str(error) else f"round {t}: {error}"
            raise ValueError(sentence) from None
        x = int(plays.integers(problem.n_contexts))
        a = int(plays.choice(np.flatnonzero(problem.available[x])))
        kernel.react(nature, a)
        means = np.einsum("j,jxa->xa", nature.c, nature.tables)
        yield PlayedRound(
            t, nature.c.copy(), means, float(nature.state[0]), expected_loss != nature.expected_loss.tobytes()
        )


def _check_means(environment: Environment, rounds: int) -> list[str]:
    for step in _played_rounds(environment, rounds):
        size = np.abs(step.means)
        if not _in_range(step.means):
            x, a = np.unravel_index(int(np.where(np.isnan(size), np.inf, size).argmax()), size.shape)
            return [
                f"round {step.t}: the mean loss of arm {a} in context {x} is {step.means[x, a]:.6g}, not in [-1, 1]"
            ]
    return []


def _in_range(means: Floats) -> bool:
    """Whether all mean losses are in [-1, 1]; those of arms that are not offered are zeros."""
    return bool((np.abs(means) <= 1.0 + SLACK).all())


def _check_rounds(environment: Environment, rounds: int) -> list[str]:
    """Play all rounds, and check which arrays the rule writes."""
    nature, fresh = environment.begin(), environment.begin()
    before = fresh._replace(tables=nature.tables.copy())
    for step in _played_rounds(environment, rounds, nature=nature):
        for name in ("constants", "tables", "path", "sums"):
            if getattr(nature, name).tobytes() != getattr(before, name).tobytes():
                nature.tables[...] = before.tables  # all replications share them
                return [f"round {step.t}: the rule writes nature.{name}; it may write nature.c and nature.state only"]
        if step.rewritten:
            return [f"round {step.t}: the rule writes nature.expected_loss, from which the regret is computed"]
        if not _in_range(step.means):
            return []  # `_check_means` reports it
        if environment.state_size is not None and nature.state[-1] != 0.0:
            return [f"round {step.t}: the rule writes beyond its state_size = {environment.state_size}"]
    return []


def _check_noise(environment: Environment, rounds: int) -> list[str]:
    """Compare the mean of losses with the requested mean: over a grid of u if only u matters, else by draws."""
    nature = environment.begin()
    for _ in _played_rounds(environment, min(rounds, 3), nature=nature):
        pass
    noisy, grid = environment.kernel.noisy, (np.arange(DRAWS) + 0.5) / DRAWS
    for mean in MEANS:
        losses = np.array([noisy(nature, mean, u, 7, t) for t, u in enumerate(grid.tolist(), start=1)])
        again = np.array([noisy(nature, mean, u, 8, t) for t, u in enumerate(grid.tolist(), start=2)])
        outside = losses[~(np.abs(losses) <= 1.0)]
        if len(outside):
            return [f"a mean loss of {mean} gave the loss {outside[0]:.6g}, not in [-1, 1]"]
        allowed = 2.0 / DRAWS  # error of the sum of a monotone function of u with range 2 over the grid
        if (losses != again).any():
            uniforms = [two_uniforms(7, t, CONTEXT, 0)[1] for t in range(1, DRAWS + 1)]
            losses = np.array([noisy(nature, mean, u, 7, t) for t, u in enumerate(uniforms, start=1)])
            allowed = 5.0 * float(losses.std()) / np.sqrt(DRAWS) + 1e-9
        if abs(losses.mean() - mean) > allowed:
            return [f"losses have the mean {losses.mean():.6g} instead of {mean}: the noise is not mean-zero"]
    return []


def _check_claims(environment: Environment, rounds: int) -> list[str]:
    if not environment.stochastic:
        return ["it has a corruption budget but is not stochastic"] if environment.budget > 0.0 else []
    problem = environment.problem
    if not problem.available[np.arange(problem.n_contexts), environment.comparator].all():
        return ["the comparator plays an arm that is not offered"]
    corruption = 0.0
    for step in _played_rounds(environment, rounds):
        corruption += environment.corruption_of(step.c @ environment.thetas)
        if corruption > environment.budget + 1e-6:
            return [
                f"round {step.t}: the corruption so far is {corruption:.6g}, the budget {environment.budget:.6g} "
                "(gaps are smaller than under thetas[0])"
            ]
        if environment.budget > 0.0 and abs(step.corruption - corruption) > 1e-6 * max(1.0, corruption):
            return [f"round {step.t}: state[0] is {step.corruption:.6g}, but the corruption is {corruption:.6g}"]
    return []


def _check_repetition(environment: Environment, rounds: int) -> list[str]:
    """Play the same rounds twice, then with other arms, which may matter only if ``reacts`` is true."""
    first, repeated, other_arms = (
        np.array([step.c for step in _played_rounds(environment, rounds, arms=seed)]) for seed in (11, 11, 12)
    )
    if first.tobytes() != repeated.tobytes():
        t = int(np.flatnonzero((first != repeated).any(axis=1))[0]) + 1
        return [f"round {t}: the same seed and the same plays give different parameters"]
    if not environment.reacts and first.tobytes() != other_arms.tobytes():
        t = int(np.flatnonzero((first != other_arms).any(axis=1))[0]) + 1
        return [f"round {t}: the parameter depends on the arms played, but reacts=False; regret would be misleading"]
    return []


def _check_threads(environment: Environment, rounds: int) -> list[str]:
    """Compare runs on one and two threads with the last replication played alone."""
    options: dict[str, Any] = {"horizon": min(rounds, 60), "rng": 3}
    algorithms = {"uniform": FixedPolicy()}
    runs = [simulate(environment, algorithms, replications=3, threads=n, **options)["uniform"] for n in (1, 2)]
    alone = replay(environment, algorithms["uniform"], replication=2, interpreted=False, **options)
    found = []
    for name in ("expected", "realised", "own_best", "round_best"):
        values = [getattr(run, name).tobytes() for run in runs]
        if values[0] != values[1]:
            found.append(f"{name} losses depend on the number of threads")
        if getattr(runs[0], name)[2].tobytes() != getattr(alone, name).tobytes():
            found.append(f"{name} losses of a replication depend on the other replications")
    return found[:1]


def _check_memory(environment: Environment, rounds: int) -> list[str]:
    """Measure the memory kept in each quarter of the rounds but the first; a leak grows in every quarter.

    Only memory that was allocated below this function counts: other threads may allocate as they like.
    """
    if rounds < 50:
        return []
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start(TRACED_FRAMES)
    try:
        ends = [number * rounds // 4 for number in range(1, 5)]
        at_end = (step.t in ends for step in _played_rounds(environment, rounds))
        sizes = [_memory_of_rounds() for is_end in at_end if is_end]
    finally:
        if not tracing:
            tracemalloc.stop()
    kept = min((after - before) / (rounds / 4) for before, after in pairwise(sizes))
    return [f"memory grows by {kept:.0f} bytes per round"] if kept > GROWTH else []


def _memory_of_rounds() -> int:
    """Return the bytes in use that `_played_rounds` or what it calls has allocated."""
    below = tracemalloc.Filter(True, __file__, all_frames=True)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([below]).traces)


def _check_kernel(environment: Environment, rounds: int) -> list[str]:
    """Compare compiled with interpreted runs under three policies, round by round, bit for bit."""
    setting = make_setting(environment, horizon=rounds, rng=4)
    rng = np.random.default_rng(2)
    for _ in range(3):
        weights = rng.random(environment.problem.available.shape) ** 3 * environment.problem.available
        learner = FixedPolicy(weights / weights.sum(axis=1, keepdims=True))
        machine = learner.machine(environment.problem)
        compiled, interpreted = (Replications(machine, setting, [0], interpreted=flag) for flag in (False, True))
        for t in range(1, setting.horizon + 1):
            compiled.advance(1)
            interpreted.advance(1)
            for name in ("c", "state"):
                values = [getattr(run.nature, name) for run in (compiled, interpreted)]
                if values[0].tobytes() != values[1].tobytes():
                    return [
                        f"round {t}: nature.{name} is {values[0]} compiled and {values[1]} interpreted; "
                        "use math and written-out products only"
                    ]
        if compiled.outcomes()[0].realised.tobytes() != interpreted.outcomes()[0].realised.tobytes():
            return ["compiled and interpreted noise disagree; use math and written-out products only"]
    return []
