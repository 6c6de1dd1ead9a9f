"""Cost per simulated round of every registered algorithm and of LC-Tsallis-INF, alternating in one process.

    python benchmarks/algorithms.py [--rounds 10000] [--repeats 9]

One thread, stochastic world, +-1 losses, (S, K, d) = (10, 5, 5) and (20, 10, 10). Processor time, and the
minimum of the repeats, because machines are shared. The ratio to LC-Tsallis-INF (`certified`) is the reliable figure.
Algorithms that do not support the problem are marked.
"""

import argparse
import time
import warnings
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms import registry
from bothworlds.algorithms.registry import make_algorithm

SIZES = ((10, 5, 5), (20, 10, 10))
BASE = "LCTsallisINF, certified"


def registered(horizon: int) -> dict[str, Any]:
    """Every kind of the registry with its defaults, and some options that change the cost."""
    found = {}
    for kind, maker in registry.algorithms().items():
        made: Any = maker
        required = any(f.name == "horizon" and f.default is MISSING for f in fields(made))
        found[kind] = make_algorithm({"kind": kind, **({"horizon": horizon} if required else {})})
    found |= {
        f"LCTsallisINF, {name}": make_algorithm({"kind": "LCTsallisINF", "tuning": name})
        for name in ("certified", "paper")
    }
    return found | {"LinTS, draws=1": bw.LinTS(draws=1)}


def seconds(world: en.Environment, algorithm: Any, rounds: int) -> float:
    """Time one replication in one thread."""
    start = time.process_time()
    bw.simulate(world, {"": algorithm}, horizon=rounds, threads=1, checkpoints=2)
    return time.process_time() - start


def refusal(algorithm: Any, world: en.Environment) -> str | None:
    """Return why an algorithm does not take the problem, or None after a short run that compiles it."""
    try:
        seconds(world, algorithm, 20)
    except ValueError as error:
        return str(error)
    return None


def compare(sizes: tuple[int, int, int], rounds: int, repeats: int) -> None:
    S, K, d = sizes
    world = en.stochastic(en.random_instance(contexts=S, arms=K, dimension=d, gap=0.2, seed=1))
    algorithms = registered(rounds)
    refusals = {label: refusal(algorithm, world) for label, algorithm in algorithms.items()}
    algorithms = {label: algorithm for label, algorithm in algorithms.items() if refusals[label] is None}
    # What does not grow with the rounds (a design, an empty run) is measured apart and taken off.
    times = np.array(
        [[seconds(world, one, rounds) - seconds(world, one, 1) for one in algorithms.values()] for _ in range(repeats)]
    )
    least = dict(zip(algorithms, times.min(axis=0), strict=True))
    print(f"\n(S, K, d) = {sizes}, {rounds:,} rounds, {repeats} repeats\n{'':>24} {'us/round':>9} {'ratio':>7}")
    for label, spent in least.items():
        print(f"{label:>24} {spent / rounds * 1e6:>9.2f} {spent / least[BASE]:>7.2f}")
    for label, sentence in refusals.items():
        if sentence is not None:
            print(f"{label:>24} refuses: {sentence}")


def main() -> None:
    warnings.simplefilter("ignore", bw.DegenerateProblemWarning)  # algorithms for other features play it stacked
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    for sizes in SIZES:
        compare(sizes, options.rounds, options.repeats)


if __name__ == "__main__":
    main()
