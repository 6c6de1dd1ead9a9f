"""The engine: thousands of replications of long horizons, on all cores, the same numbers in any order."""

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

from bothworlds.environments import Environment
from bothworlds.kernels.contract import Machine
from bothworlds.kernels.jit.compile import explained
from bothworlds.kernels.random import Seed
from bothworlds.plain import to_plain
from bothworlds.problem.checks import whole
from bothworlds.simulation.in_python import play_in_python, rates_of
from bothworlds.simulation.own import require_algorithm
from bothworlds.simulation.replication import (
    Outcome,
    Replications,
    lanes_for,
    most_at_once,
)
from bothworlds.simulation.results import Results, stacked
from bothworlds.simulation.setting import Setting, make_setting

FIRST_SLICE = 100  # rounds; slices double until they last for a tenth of a second
SLICE_SECONDS = 0.1
FEW = 3  # eight at once take the time of two alone
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
    unfinished: str | Path | None = None,
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
    device
        "cpu"; "gpu" (``pip install 'bothworlds[gpu]'``): the same text and random numbers, results equal up to
        rounding; or "auto", the GPU where there is one and the work is worth its compilation.
    unfinished
        A file (``.npz``) for a run on a GPU that is not finished yet: kept every few minutes and when the run is
        interrupted; the same call goes on from there, on this or on another machine.

    >>> from bothworlds import FixedPolicy, environments
    >>> found = simulate(environments.lower_bound(arms=2, horizon=100), FixedPolicy(), horizon=100, replications=2)
    >>> found["FixedPolicy(uniform)"].regret[[0, -1]].round(2).tolist()
    [0.04, 3.54]
    """
    setting = make_setting(environment, horizon=horizon, rng=rng, checkpoints=checkpoints, delay=delay, batch=batch)
    replications = whole(replications, 1, "replications")
    threads = None if threads is None else whole(threads, 1, "threads")
    labelled = _labelled(algorithms)
    began = time.time()
    runs, cost = {}, {}
    for label, algorithm in labelled.items():
        runs[label], seconds = play(
            algorithm,
            setting,
            range(replications),
            threads=threads,
            progress=progress,
            device=device,
            unfinished=None if unfinished is None else _file_of(unfinished, label),
        )
        cost[label] = seconds
    results = collect(setting, labelled, runs, cost, time.time() - began)
    rounds = setting.horizon * replications
    results.manifest["run"]["device"] = {
        label: "gpu" if on_gpu(device, rounds, in_kernel_text=compilable(algorithm, environment)) else "cpu"
        for label, algorithm in labelled.items()
    }
    return results


def _file_of(unfinished: str | Path, label: str) -> Path:
    """Return the file for the unfinished run of one algorithm."""
    path = Path(unfinished)
    return path.with_name(f"{path.stem}.{hashlib.blake2b(label.encode(), digest_size=4).hexdigest()}.npz")


def collect(
    setting: Setting,
    labelled: dict[str, Any],
    outcomes: dict[str, list[Outcome]],
    processor: dict[str, float],
    seconds: float,
) -> Results:
    """Make results of the replications, in their order, of every algorithm; ``processor`` is the time each took."""
    runs = {label: stacked(setting.environment, several) for label, several in outcomes.items()}
    count = len(next(iter(outcomes.values())))
    manifest = _manifest(labelled, setting, count, seconds)
    rounds = setting.horizon * count
    manifest["run"]["microseconds_per_round"] = {label: 1e6 * time / rounds for label, time in processor.items()}
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
    """Play one replication of a run alone, interpreted by default, and keep its path of contexts and arms."""
    setting = make_setting(environment, horizon=horizon, rng=rng, delay=delay, batch=batch)
    number = whole(replication, 0, "replication")
    require_algorithm(algorithm, repr(algorithm))
    if not compilable(algorithm, environment):
        return play_in_python(algorithm.start, setting, number, rates=rates_of(algorithm, setting), trace=True)
    machine = algorithm.machine(environment.problem)
    one = Replications(machine, setting, [number], interpreted=interpreted, trace=True)
    one.advance(setting.horizon)
    return one.outcomes()[0]


def compilable(algorithm: Any, environment: Environment) -> bool:
    """Tell whether both sides are kernel text, so that the compiled driver can play them."""
    return hasattr(algorithm, "machine") and environment.function is None


def _silent(rounds: int) -> None:
    """Show no progress."""


def _labelled(algorithms: Any) -> dict[str, Any]:
    """Return algorithms by label."""
    if isinstance(algorithms, Mapping):
        several = [(str(label), algorithm) for label, algorithm in algorithms.items()]
    else:
        listed = algorithms if isinstance(algorithms, Iterable) and not isinstance(algorithms, str) else [algorithms]
        several = [(repr(algorithm), algorithm) for algorithm in listed]
    labelled = dict(several)
    if len(labelled) < len(several):
        raise ValueError("two algorithms have the same description; pass a dictionary with labels that differ")
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
    unfinished: Path | None = None,
) -> tuple[list[Outcome], float]:
    """Play some replications of one algorithm; return what each leaves, and the processor time without compilation.

    What a replication leaves depends on its number only.
    """
    advance = progress or _silent
    in_kernel_text = compilable(algorithm, setting.environment)
    if on_gpu(device, setting.horizon * len(replications), in_kernel_text=in_kernel_text):
        from bothworlds.simulation import gpu

        started = time.process_time()
        machine = algorithm.machine(setting.environment.problem)
        return gpu.play(machine, setting, replications, advance, unfinished), time.process_time() - started
    if not in_kernel_text:
        return _in_python(algorithm, setting, replications, advance)
    machine = algorithm.machine(setting.environment.problem)
    return _in_threads(machine, setting, replications, advance, _workers(threads))


def make_ready(algorithm: Any, setting: Setting, replications: range, *, threads: int | None = None) -> None:
    """Compile what plays some replications of an algorithm on a processor, or find it on disk."""
    if compilable(algorithm, setting.environment):
        _divided(algorithm.machine(setting.environment.problem), setting, replications, _workers(threads))


def _workers(threads: int | None) -> int:
    return threads or os.cpu_count() or 1


def _divided(machine: Machine, setting: Setting, replications: range, workers: int) -> tuple[list[range], int]:
    """Return which replications play together, and in how many lanes; compile what plays them, if need be."""
    groups = _groups(replications, workers, most_at_once(machine))
    lanes = lanes_for(len(groups[0]))
    with explained(packs=lanes > 1):
        Replications(machine, setting, groups[0], lanes=lanes).advance(1)
    return groups, lanes


def _in_python(
    algorithm: Any, setting: Setting, replications: range, advance: Progress
) -> tuple[list[Outcome], float]:  # fmt: skip
    """Play replications one after the other in plain Python, for what is not kernel text."""
    outcomes, started, rates = [], time.thread_time(), rates_of(algorithm, setting)
    for number in replications:
        outcomes.append(play_in_python(algorithm.start, setting, number, rates=rates))
        advance(setting.horizon)
    return outcomes, time.thread_time() - started


def _in_threads(
    machine: Machine, setting: Setting, replications: range, advance: Progress, workers: int
) -> tuple[list[Outcome], float]:
    """Play replications as machine code, some at once in every thread; the first failure stops them all."""
    groups, lanes = _divided(machine, setting, replications, workers)  # compiles before other threads start
    stop = threading.Event()

    def play_some(indices: range) -> tuple[list[Outcome], float]:
        started = time.thread_time()
        some = Replications(machine, setting, indices, lanes=lanes)
        rounds = FIRST_SLICE
        while some.played < setting.horizon and not stop.is_set():
            began = time.monotonic()
            advance(some.advance(rounds))
            if time.monotonic() - began < SLICE_SECONDS:
                rounds *= 2
        return some.outcomes(), time.thread_time() - started

    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(play_some, indices) for indices in groups]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = [error for future in done if (error := future.exception()) is not None]
            if failed:
                raise failed[0]
            played = [future.result() for future in futures]
            return [outcome for some, _ in played for outcome in some], sum(seconds for _, seconds in played)
        finally:
            stop.set()
            for future in futures:
                future.cancel()


def on_gpu(device: Device, rounds: int, *, in_kernel_text: bool) -> bool:
    """Tell whether a GPU is to play; importing numba's part for it takes time, so only who asks for it pays."""
    if device not in ("cpu", "gpu", "auto"):
        raise ValueError(f"device must be 'cpu', 'gpu' or 'auto'; got {device!r}")
    if device == "cpu" or (device == "auto" and not in_kernel_text):
        return False
    if not in_kernel_text:
        raise ValueError(
            "device='gpu' needs an algorithm and an environment in kernel text; one of them is plain Python"
        )
    from bothworlds.simulation import gpu

    return device == "gpu" or (rounds >= gpu.WORTH_IT and gpu.is_available())


def _groups(replications: range, workers: int, most: int) -> list[range]:
    """Return which replications play together: so many at once, evenly, unless that would leave workers idle.

    >>> _groups(range(20), 1, 16)
    [range(0, 10), range(10, 20)]
    """
    count = max(-(-len(replications) // most), min(workers, len(replications)))
    size = -(-len(replications) // count)
    if size < FEW:
        size = 1
    return [replications[first : first + size] for first in range(0, len(replications), size)]


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
