"""Simulated rounds on one core: the compiled round loop against NumPy.

    python benchmarks/simulation.py [--rounds 2000] [--repeats 15]

NumPy is the plain baseline of `numpy_baseline.py`, playing the same problem; both alternate in one process.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one core for both sides; on a shared machine this is faster, too
import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.contract import Machine
from bothworlds.simulation.replication import Replications, most_at_once
from bothworlds.simulation.setting import make_setting
from numpy_baseline import NumpyTsallis
from rounds import TUNINGS


def loop_time(world: bw.environments.Environment, machine: Machine, rounds: int, *, lanes: int) -> float:
    """Microseconds per round and replication in one thread, ``lanes`` replications at once."""
    some = Replications(machine, make_setting(world, horizon=rounds + 1, rng=0), range(lanes))
    some.advance(1)
    start = time.process_time()
    some.advance(rounds)
    return (time.process_time() - start) / (rounds * lanes) * 1e6


def numpy_time(world: bw.environments.Environment, rounds: int, *, tuned: bool) -> float:
    """Microseconds per round of the baseline."""
    problem = world.problem
    explore = bw.design(problem)
    learner = NumpyTsallis(
        problem.features, problem.probabilities, explore.exploration, explore.coverage, seed=1, tuned=tuned
    )
    rng = np.random.default_rng(0)
    contexts = rng.integers(problem.n_contexts, size=rounds).tolist()
    start = time.process_time()
    for x in contexts:
        arm, _, direction = learner.act(x)
        learner.update(direction, 1.0 if rng.random() < 0.5 * (1.0 + world.tables[0, x, arm]) else -1.0)
    return (time.process_time() - start) / rounds * 1e6


def compare(rounds: int, repeats: int) -> None:
    instance = en.random_instance(contexts=10, arms=5, dimension=5, gap=0.2, seed=1)
    world = en.stochastic(instance)
    machines = {name: bw.LCTsallisINF(tuning=name).machine(world.problem) for name in TUNINGS}
    loops: dict[str, Callable[[], float]] = {
        "numpy": partial(numpy_time, world, rounds // 20, tuned=False),
        "tuned numpy": partial(numpy_time, world, rounds // 20, tuned=True),
    }
    for tuning, machine in machines.items():
        loops[tuning] = partial(loop_time, world, machine, rounds, lanes=most_at_once(machine))
        loops[f"{tuning}, one"] = partial(loop_time, world, machine, rounds, lanes=1)
    least = dict.fromkeys(loops, np.inf)
    for _ in range(repeats):
        for name, loop in loops.items():
            least[name] = min(least[name], loop())
    print(
        f"(10, 5, 5), one thread, least of {repeats} repeats; microseconds per round and replication, times faster than"
    )
    together = most_at_once(machines["paper"])
    print(f"numpy (tuned); {together} replications at once, and one alone")
    for label, value in least.items():
        print(f"  {label:>14} {value:>8.2f} {least['numpy'] / value:>7.1f} ({least['tuned numpy'] / value:.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    compare(options.rounds, options.repeats)


if __name__ == "__main__":
    main()
