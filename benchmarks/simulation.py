"""Simulated rounds on one core: the compiled driver against NumPy, and how its cost grows with the sizes.

    python benchmarks/simulation.py [--rounds 20000] [--no-growth]

NumPy is the plain baseline of `numpy_baseline.py`, playing the same problem; both alternate in one process.
"""

import argparse
import time

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.tunings import TuningName
from numpy_baseline import NumpyTsallis

TUNINGS: tuple[TuningName, ...] = ("paper", "certified", "adaptive")
LENGTHS = (5, 10, 20, 50, 100, 200)


def driver_time(world: bw.environments.Environment, algorithm: bw.LCTsallisINF, rounds: int) -> float:
    """Microseconds per round of one replication in one thread."""
    start = time.perf_counter()
    bw.simulate(world, {"": algorithm}, horizon=rounds, replications=1, threads=1)
    return (time.perf_counter() - start) / rounds * 1e6


def numpy_time(world: bw.environments.Environment, rounds: int, *, tuned: bool) -> float:
    """Microseconds per round of the baseline."""
    problem = world.problem
    explore = bw.design(problem)
    learner = NumpyTsallis(
        problem.features, problem.probabilities, explore.exploration, explore.coverage, seed=1, tuned=tuned
    )
    rng = np.random.default_rng(0)
    contexts = rng.integers(problem.n_contexts, size=rounds).tolist()
    start = time.perf_counter()
    for x in contexts:
        arm, _, direction = learner.act(x)
        learner.update(direction, 1.0 if rng.random() < 0.5 * (1.0 + world.tables[0, x, arm]) else -1.0)
    return (time.perf_counter() - start) / rounds * 1e6


def compare(rounds: int) -> None:
    instance = en.random_instance(contexts=10, arms=5, dimension=5, gap=0.2, seed=1)
    world = en.stochastic(instance)
    algorithms = {name: bw.LCTsallisINF(tuning=name) for name in TUNINGS}
    for algorithm in algorithms.values():
        driver_time(world, algorithm, 100)
    times: dict[str, list[float]] = {name: [] for name in ("numpy", "tuned numpy", *TUNINGS)}
    for _ in range(5):
        times["numpy"].append(numpy_time(world, rounds // 20, tuned=False))
        times["tuned numpy"].append(numpy_time(world, rounds // 20, tuned=True))
        for name, algorithm in algorithms.items():
            times[name].append(driver_time(world, algorithm, rounds))
    middle = {name: float(np.median(values)) for name, values in times.items()}
    print(f"(10, 5, 5), {rounds:,} rounds, one thread; microseconds per round, times faster than numpy (tuned)")
    for label, value in middle.items():
        print(f"  {label:>12} {value:>8.2f} {middle['numpy'] / value:>7.1f} ({middle['tuned numpy'] / value:.1f})")


def growth() -> None:
    print("\nmicroseconds per round of `paper` as one size grows, the others 5; ratio to S K d^2 + d^3")
    for varied in ("contexts", "arms", "dimension"):
        print(f"  {varied}:", end="")
        for length in LENGTHS:
            sizes = {"contexts": 5, "arms": 5, "dimension": 5, varied: length}
            instance = en.random_instance(**sizes, gap=0.2, seed=1)
            world = en.stochastic(instance)
            S, K, d = sizes["contexts"], sizes["arms"], world.problem.dimension
            rounds = max(50, int(2e7 / (S * K * d**2 + d**3) ** 0.9))
            algorithm = bw.LCTsallisINF(tuning="paper", design="uniform")
            driver_time(world, algorithm, 10)
            spent = driver_time(world, algorithm, min(rounds, 20_000))
            print(f"  {length} ({d}): {spent:.1f} ({spent / (S * K * d**2 + d**3) * 1e3:.2f})", end="", flush=True)
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--no-growth", action="store_true")
    options = parser.parse_args()
    compare(options.rounds)
    if not options.no_growth:
        growth()


if __name__ == "__main__":
    main()
