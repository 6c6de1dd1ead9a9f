"""The engine: thousands of replications of long horizons, on all cores, the same numbers in any order."""

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from importlib.metadata import version
from typing import Any

import numba
import numpy as np

from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Ints
from bothworlds.kernels.random import Seed, key_from
from bothworlds.plain import to_plain
from bothworlds.simulation.replication import Outcome, Replication, Setting, play_in_python
from bothworlds.simulation.results import Results, Run

FIRST_SLICE = 100  # rounds; slices double until they last for a tenth of a second
SLICE_SECONDS = 0.1
Progress = Callable[[int], None]


def log_spaced(horizon: int, count: int = 200) -> Ints:
    """Return about ``count`` rounds from 1 to the horizon, evenly spaced in the logarithm.

    >>> log_spaced(10, 4).tolist()
    [1, 2, 5, 10]
    """
    return np.unique(np.rint(np.geomspace(1, horizon, count)).astype(np.int64))


def simulate(
    environment: Environment,
    algorithms: Any,
    *,
    horizon: int,
    replications: int = 1,
    rng: Seed = 0,
    checkpoints: int | Iterable[int] = 200,
    delay: int = 0,
    batch: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Play algorithms against an environment and return their exact regret.

    Every algorithm meets the same contexts and the same noise, replication by replication. A result does not depend on
    the number of threads, on the order, or on which other algorithms take part.

    Parameters
    ----------
    environment
        From `bothworlds.environments`.
    algorithms
        An algorithm, a list of them, or a dictionary from labels to algorithms. One with a method ``machine`` runs as
        compiled kernel text; anything else with ``start(problem, rng=...)`` runs in Python, slowly.
    horizon, replications
        T and R.
    rng
        Seed of the whole run; replication r has a stream derived from it.
    checkpoints
        How many, evenly in log t, or which rounds to record.
    delay, batch
        Feedback comes this many rounds late, and is learnt in batches of at least this size.
    threads
        How many; all cores if left out.
    progress
        Called with the number of rounds just played, from any thread.
    """
    setting = _setting(environment, horizon, rng, checkpoints, delay, batch)
    if int(replications) != replications or replications < 1:
        raise ValueError(f"replications must be a whole number of at least 1; got {replications!r}")
    labelled = _labelled(algorithms)
    began = time.time()
    runs, cost = {}, {}
    for label, algorithm in labelled.items():
        outcomes, seconds = _all_replications(algorithm, setting, replications, threads, progress or _silent)
        runs[label] = _collect(environment, outcomes)
        cost[label] = 1e6 * seconds / (horizon * replications)
    manifest = _manifest(labelled, setting, replications, time.time() - began)
    manifest["run"]["microseconds_per_round"] = cost
    return Results(environment=environment.name, checkpoints=setting.checkpoints, runs=runs, manifest=manifest)


def replay(
    environment: Environment,
    algorithm: Any,
    *,
    horizon: int,
    replication: int = 0,
    rng: Seed = 0,
    delay: int = 0,
    batch: int = 1,
    interpreted: bool = True,
) -> Outcome:
    """Play one replication of a run alone, interpreted by default, and keep its path of contexts and arms."""
    setting = _setting(environment, horizon, rng, 200, delay, batch)
    if not _in_kernel_text(algorithm, environment):
        return play_in_python(algorithm.start, setting, replication)
    machine = algorithm.machine(environment.problem)
    one = Replication(machine, setting, replication, interpreted=interpreted, trace=True)
    one.advance(horizon)
    return one.outcome()


def _in_kernel_text(algorithm: Any, environment: Environment) -> bool:
    """Tell whether both sides are kernel text, so that the compiled driver can play them."""
    return hasattr(algorithm, "machine") and environment.function is None


def _silent(rounds: int) -> None:
    """Show no progress."""


def _setting(
    environment: Environment, horizon: int, rng: Any, checkpoints: int | Iterable[int], delay: int, batch: int
) -> Setting:
    """Check the options of a run."""
    for value, least, name in ((horizon, 1, "horizon"), (delay, 0, "delay"), (batch, 1, "batch")):
        if int(value) != value or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
    if environment.path.size and horizon > len(environment.path):
        raise ValueError(f"the environment has parameters for {len(environment.path)} rounds, not for {horizon}")
    if isinstance(checkpoints, int):
        marks = log_spaced(horizon, max(2, checkpoints))
    else:
        marks = np.unique(np.array([*checkpoints, horizon], dtype=np.int64))
        if marks[0] < 1 or marks[-1] > horizon:
            raise ValueError(f"checkpoints must lie between 1 and the horizon {horizon}")
    return Setting(
        environment=environment, horizon=horizon, checkpoints=marks, seed=key_from(rng), delay=delay, batch=batch
    )


def _labelled(algorithms: Any) -> dict[str, Any]:
    """Return algorithms by label."""
    if isinstance(algorithms, Mapping):
        labelled = {str(label): algorithm for label, algorithm in algorithms.items()}
    else:
        several = list(algorithms) if isinstance(algorithms, Iterable) else [algorithms]
        labelled = {repr(algorithm): algorithm for algorithm in several}
        if len(labelled) < len(several):
            raise ValueError("two algorithms have the same description; pass a dictionary with labels")
    if not labelled:
        raise ValueError("there is no algorithm to simulate")
    for label, algorithm in labelled.items():
        if not (hasattr(algorithm, "machine") or hasattr(algorithm, "start")):
            raise ValueError(
                f"{label!r} is not an algorithm: it has neither machine(problem) nor start(problem, rng=...)"
            )
    return labelled


def _all_replications(
    algorithm: Any, setting: Setting, replications: int, threads: int | None, progress: Progress
) -> tuple[list[Outcome], float]:
    """Play all replications of one algorithm; return them and the processor time they took, without compilation."""
    if not _in_kernel_text(algorithm, setting.environment):
        outcomes, began = [], time.thread_time()
        for number in range(replications):
            outcomes.append(play_in_python(algorithm.start, setting, number))
            progress(setting.horizon)
        return outcomes, time.thread_time() - began
    machine = algorithm.machine(setting.environment.problem)
    Replication(machine, setting, 0).advance(1)  # compiles in this thread, before the others start
    stop = threading.Event()

    def play(number: int) -> tuple[Outcome, float]:
        started = time.thread_time()
        one = Replication(machine, setting, number)
        rounds = FIRST_SLICE
        while one.played < setting.horizon and not stop.is_set():
            began = time.monotonic()
            progress(one.advance(rounds))
            if time.monotonic() - began < SLICE_SECONDS:
                rounds *= 2
        return one.outcome(), time.thread_time() - started

    with ThreadPoolExecutor(max_workers=threads or os.cpu_count()) as pool:
        futures = [pool.submit(play, number) for number in range(replications)]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = [error for future in done if (error := future.exception()) is not None]
            if failed:
                raise failed[0]
            played = [future.result() for future in futures]
            return [outcome for outcome, _ in played], sum(seconds for _, seconds in played)
        finally:
            stop.set()
            for future in futures:
                future.cancel()


def _collect(environment: Environment, outcomes: list[Outcome]) -> Run:
    """Stack replications; the comparator is the best policy for the mean of what nature chose."""
    sums = np.stack([outcome.sums for outcome in outcomes])
    names = outcomes[0].final
    return Run(
        expected=np.stack([outcome.expected for outcome in outcomes]),
        realised=np.stack([outcome.realised for outcome in outcomes]),
        own_best=np.stack([outcome.own_best for outcome in outcomes]),
        best=environment.losses_of_best(sums),
        corruption=np.array([outcome.spent for outcome in outcomes]),
        spent=environment.spending(sums).mean(axis=0),
        policy=np.mean([outcome.policy for outcome in outcomes], axis=0),
        final={name: np.stack([outcome.final[name] for outcome in outcomes]) for name in names},
    )


def _manifest(labelled: dict[str, Any], setting: Setting, replications: int, seconds: float) -> dict[str, Any]:
    """Say what was run, and in a section of its own on what machine and when."""
    environment = setting.environment
    return {
        "environment": {
            "name": environment.name,
            "problem": environment.problem.fingerprint,
            "noise": environment.noise,
            "budget": environment.budget,
        },
        "algorithms": {label: to_plain(algorithm) for label, algorithm in labelled.items()},
        "horizon": setting.horizon,
        "replications": replications,
        "seed": setting.seed,
        "delay": setting.delay,
        "batch": setting.batch,
        "versions": {"bothworlds": version("bothworlds"), "numpy": np.__version__, "numba": numba.__version__},
        "run": {
            "seconds": seconds,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "processors": os.cpu_count(),
            "command": sys.argv,
        },
    }
