"""`simulate` and `replay`: play replications on all cores or a GPU, with results that do not depend on the order."""

import hashlib
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Literal

import numba
import numpy as np

from bothworlds.algorithms.registry import require_algorithm
from bothworlds.environments import Environment
from bothworlds.errors import UserCodeError
from bothworlds.kernels.contract import Machine
from bothworlds.kernels.jit.compile import readable_errors
from bothworlds.kernels.random import Seed
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole
from bothworlds.serialization import to_plain
from bothworlds.simulation.replication import (
    Outcome,
    Replications,
    lanes_for,
    most_at_once,
)
from bothworlds.simulation.results import Results, make_run
from bothworlds.simulation.round_loop_python import play_in_python, rates_of
from bothworlds.simulation.setting import Setting, make_setting
from bothworlds.user_errors import (
    check_start,
    is_users,
    place_of_function,
    require_probabilities,
    users_code,
)

FIRST_SLICE = 100  # rounds; slices double until they take SLICE_SECONDS
SLICE_SECONDS = 0.1
SMALL = 20_000  # feature entries; on larger problems a user's kernel is not interpreted before it is compiled
FEW = 3  # fewer replications are played one by one: eight at once take the time of two
Progress = Callable[[int], None]
Device = Literal["cpu", "gpu", "auto"]


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
    device: Device = "cpu",
    resume_file: str | Path | None = None,
) -> Results:
    """Play algorithms in an environment and return their exact regret.

    All algorithms have the same contexts and the same noise, replication by replication. Results do not depend on the
    number of threads, on the order, or on the other algorithms.

    Parameters
    ----------
    environment
        From `bothworlds.environments`.
    algorithms
        An algorithm, a list of them, or a dictionary from labels to algorithms. An algorithm with a method ``machine``
        runs compiled; anything else with ``start(problem, rng=...)`` runs in Python, slowly.
    horizon, replications
        T and R.
    rng
        Seed of the run; the random stream of each replication is derived from it.
    checkpoints
        Rounds to record, or their number, evenly spaced in log t.
    delay, batch
        Feedback arrives this many rounds late, and is learned from in batches of at least this size.
    threads
        Number of threads; by default all cores.
    progress
        Called with the number of rounds just played, from any thread.
    device
        "cpu"; "gpu" (``pip install '.[gpu]'``), with the same kernels and random numbers, and results equal up to
        rounding; or "auto", the GPU if there is one and the run is long enough to justify its compilation.
    resume_file
        A file (``.npz``) for unfinished runs on a GPU, written every few minutes and when the run is interrupted. The
        same call resumes from it, on this or another machine.

    >>> from bothworlds import FixedPolicy, environments
    >>> results = simulate(environments.lower_bound(arms=2, horizon=100), FixedPolicy(), horizon=100, replications=2)
    >>> results["FixedPolicy(uniform)"].regret[[0, -1]].round(2).tolist()
    [0.04, 3.54]
    """
    setting = make_setting(environment, horizon=horizon, rng=rng, checkpoints=checkpoints, delay=delay, batch=batch)
    replications = whole(replications, 1, "replications")
    threads = None if threads is None else whole(threads, 1, "threads")
    labelled = _by_label(algorithms)
    start = time.time()
    runs, cpu_seconds = {}, {}
    for label, algorithm in labelled.items():
        runs[label], cpu_seconds[label] = play(
            algorithm,
            setting,
            range(replications),
            threads=threads,
            progress=progress,
            device=device,
            resume_file=None if resume_file is None else _resume_file_of(resume_file, label),
        )
    results = collect(setting, labelled, runs, cpu_seconds, time.time() - start)
    rounds = setting.horizon * replications
    results.manifest["run"]["device"] = {
        label: "gpu" if on_gpu(device, rounds, compilable=compilable(algorithm, environment)) else "cpu"
        for label, algorithm in labelled.items()
    }
    return results


def _resume_file_of(resume_file: str | Path, label: str) -> Path:
    """Return the resume file of one algorithm."""
    path = Path(resume_file)
    return path.with_name(f"{path.stem}.{hashlib.blake2b(label.encode(), digest_size=4).hexdigest()}.npz")


def collect(
    setting: Setting,
    labelled: dict[str, Any],
    outcomes: dict[str, list[Outcome]],
    cpu_seconds: dict[str, float],
    seconds: float,
) -> Results:
    """Make results from the outcomes of every algorithm's replications, in order; times are by algorithm and total."""
    runs = {label: make_run(setting.environment, replications) for label, replications in outcomes.items()}
    count = len(next(iter(outcomes.values())))
    manifest = _manifest(labelled, setting, count, seconds)
    rounds = setting.horizon * count
    manifest["run"]["microseconds_per_round"] = {label: 1e6 * time / rounds for label, time in cpu_seconds.items()}
    return Results(
        environment=setting.environment.name,
        checkpoints=setting.checkpoints,
        runs=runs,
        manifest=manifest,
        world=setting.environment,
        players=labelled,
    )


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
    """Play one replication of a run, interpreted by default, and record its path of contexts and arms."""
    setting = make_setting(environment, horizon=horizon, rng=rng, delay=delay, batch=batch)
    number = whole(replication, 0, "replication")
    require_algorithm(algorithm, repr(algorithm))
    if not compilable(algorithm, environment):
        return play_in_python(algorithm.start, setting, number, rates=rates_of(algorithm, setting), trace=True)
    machine = algorithm.machine(environment.problem)
    replications = Replications(machine, setting, [number], interpreted=interpreted, trace=True)
    replications.advance(setting.horizon)
    return replications.outcomes()[0]


def compilable(algorithm: Any, environment: Environment) -> bool:
    """Whether algorithm and environment both have kernels, so that the compiled round loop can play them."""
    return hasattr(algorithm, "machine") and environment.function is None


def _no_progress(rounds: int) -> None:
    """Report no progress."""


def _by_label(algorithms: Any) -> dict[str, Any]:
    """Return algorithms by label, checked; labels default to their repr."""
    if isinstance(algorithms, Mapping):
        pairs = [(str(label), algorithm) for label, algorithm in algorithms.items()]
    else:
        listed = algorithms if isinstance(algorithms, Iterable) and not isinstance(algorithms, str) else [algorithms]
        pairs = [(repr(algorithm), algorithm) for algorithm in listed]
    labelled = dict(pairs)
    if len(labelled) < len(pairs):
        raise ValueError("two algorithms have the same description; pass a dictionary with distinct labels")
    if not labelled:
        raise ValueError("there is no algorithm to simulate")
    for label, algorithm in labelled.items():
        require_algorithm(algorithm, repr(label))
    return labelled


def play(
    algorithm: Any,
    setting: Setting,
    replications: range,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    device: Device = "cpu",
    resume_file: Path | None = None,
) -> tuple[list[Outcome], float]:
    """Play replications of one algorithm; return their outcomes, and the processor time without compilation.

    The outcome of a replication depends only on its number and the setting.
    """
    advance = progress or _no_progress
    can_compile = compilable(algorithm, setting.environment)
    if on_gpu(device, setting.horizon * len(replications), compilable=can_compile):
        from bothworlds.simulation import gpu

        start = time.process_time()
        machine = machine_of(algorithm, setting)
        outcomes = gpu.play(machine, setting, replications, advance, resume_file)
        check_final_policies(machine, outcomes, setting.environment.problem, when=f"round {setting.horizon}")
        return outcomes, time.process_time() - start
    if not can_compile:
        return _play_in_python(algorithm, setting, replications, advance)
    machine = machine_of(algorithm, setting)
    outcomes, seconds = _play_in_threads(machine, setting, replications, advance, _workers(threads))
    check_final_policies(machine, outcomes, setting.environment.problem, when=f"round {setting.horizon}")
    return outcomes, seconds


def machine_of(algorithm: Any, setting: Setting) -> Machine:
    """Make the machine of an algorithm; play two interpreted rounds of a user's, so that errors name a line."""
    problem = setting.environment.problem
    with users_code():
        machine: Machine = algorithm.machine(problem)
    if not is_users(machine.kernel.refresh):
        return machine
    check_start(machine, algorithm.machine)
    if problem.features.size <= SMALL:
        first = Replications(machine, setting, [0], interpreted=True)
        for t in (1, 2):
            with np.errstate(all="ignore"), users_code():
                first.advance(1)
            check_final_policies(machine, first.outcomes(), problem, when=f"round {t}")
    return machine


def check_final_policies(machine: Machine, outcomes: Iterable[Outcome], problem: Problem, *, when: str) -> None:
    """Raise an error if a user's kernel ended with invalid probabilities."""
    if is_users(machine.kernel.refresh):
        for outcome in outcomes:
            require_probabilities(outcome.policy, problem.available, machine.kernel.refresh, when=when)


def make_ready(algorithm: Any, setting: Setting, replications: range, *, threads: int | None = None) -> None:
    """Compile the round loop for replications of an algorithm on a CPU, or load it from the cache on disk."""
    if compilable(algorithm, setting.environment):
        machine = algorithm.machine(setting.environment.problem)
        _compile(machine, setting, _groups(replications, _workers(threads), most_at_once(machine))[0])


def _workers(threads: int | None) -> int:
    return threads or os.cpu_count() or 1


def _compile(machine: Machine, setting: Setting, group: range) -> None:
    """Compile the round loop for a group of replications by playing one round."""
    lanes = lanes_for(len(group))
    try:
        with readable_errors(packs=lanes > 1):
            Replications(machine, setting, group, lanes=lanes).advance(1)
    except TypeError as error:
        if not is_users(machine.kernel.refresh):
            raise
        raise UserCodeError(place_of_function(machine.kernel.refresh), str(error)) from None


def _play_in_python(
    algorithm: Any, setting: Setting, replications: range, advance: Progress
) -> tuple[list[Outcome], float]:  # fmt: skip
    """Play replications one after the other in plain Python."""
    outcomes, start, rates = [], time.thread_time(), rates_of(algorithm, setting)
    for number in replications:
        outcomes.append(play_in_python(algorithm.start, setting, number, rates=rates))
        advance(setting.horizon)
    return outcomes, time.thread_time() - start


def _play_in_threads(
    machine: Machine, setting: Setting, replications: range, advance: Progress, workers: int
) -> tuple[list[Outcome], float]:
    """Play replications as machine code, a group at a time in every thread; the first failure stops all threads."""
    groups = _groups(replications, workers, most_at_once(machine))
    lanes = lanes_for(len(groups[0]))
    _compile(machine, setting, groups[0])  # before other threads start
    stop = threading.Event()

    def play_group(indices: range) -> tuple[list[Outcome], float]:
        start = time.thread_time()
        group = Replications(machine, setting, indices, lanes=lanes)
        rounds = FIRST_SLICE
        while group.played < setting.horizon and not stop.is_set():
            slice_start = time.monotonic()
            advance(group.advance(rounds))
            if time.monotonic() - slice_start < SLICE_SECONDS:
                rounds *= 2
        return group.outcomes(), time.thread_time() - start

    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(play_group, indices) for indices in groups]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = [error for future in done if (error := future.exception()) is not None]
            if failed:
                raise failed[0]
            played = [future.result() for future in futures]
            return [outcome for outcomes, _ in played for outcome in outcomes], sum(seconds for _, seconds in played)
        finally:
            stop.set()
            for future in futures:
                future.cancel()


def on_gpu(device: Device, rounds: int, *, compilable: bool) -> bool:
    """Whether a run of this many rounds uses the GPU; refuse an unknown device and code without kernels on a GPU."""
    if device not in ("cpu", "gpu", "auto"):
        raise ValueError(f"device must be 'cpu', 'gpu' or 'auto'; got {device!r}")
    if device == "cpu" or (device == "auto" and not compilable):
        return False
    if not compilable:
        raise ValueError(
            "device='gpu' needs an algorithm and an environment with kernel functions; one of them is plain Python"
        )
    from bothworlds.simulation import gpu  # a slow import, for runs on a GPU only

    return device == "gpu" or (rounds >= gpu.MIN_ROUNDS and gpu.is_available())


def _groups(replications: range, workers: int, most: int) -> list[range]:
    """Split replications into even groups that play together: at most ``most`` each, and one or more per worker.

    >>> _groups(range(20), 1, 16)
    [range(0, 10), range(10, 20)]
    """
    count = max(-(-len(replications) // most), min(workers, len(replications)))
    size = -(-len(replications) // count)
    if size < FEW:
        size = 1
    return [replications[first : first + size] for first in range(0, len(replications), size)]


def _manifest(labelled: dict[str, Any], setting: Setting, replications: int, seconds: float) -> dict[str, Any]:
    """Return the manifest: what was run, and in the section "run" the machine, command and time."""
    environment = setting.environment
    return {
        "environment": {
            "name": environment.name,
            "problem": environment.problem.fingerprint,
            "noise": environment.noise,
            "budget": environment.budget,
            "changing": environment.changing,
        },
        "algorithms": {label: to_plain(algorithm) for label, algorithm in labelled.items()},
        "horizon": setting.horizon,
        "replications": replications,
        "seed": setting.seed,
        "delay": setting.delay,
        "batch": setting.batch,
        "versions": {
            "bothworlds": sys.modules["bothworlds"].__version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
        },
        "run": {
            "seconds": seconds,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "processors": os.cpu_count(),
            "command": sys.argv,
        },
    }
