"""How the cost of a round grows with S, K and d from 5 to 200: policies and simulations against tuned NumPy.

    python benchmarks/growth.py [--lengths 5 10 20 50 100 200] [--repeats 5]

One size grows, the others stay: 5 contexts, 5 arms, 5 dimensions, and 100 contexts where d grows. A policy plays act +
update from Python; simulations play as many replications at once as memory allows, in one thread. All alternate in one
process, and NumPy does the work of `paper` in every column. Times are the least of the repeats, in microseconds per
round (and replication); in brackets how many times faster than tuned NumPy that is.
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
from bothworlds.simulation.replication import most_at_once
from numpy_baseline import NumpyTsallis
from rounds import TUNINGS, baseline_loop, library_loop
from simulation import loop_time

LENGTHS = (5, 10, 20, 50, 100, 200)
WORK = 3e7  # products that a repeat may take, if that is 100 rounds
FEWEST, MOST = 100, 300  # rounds of a repeat


def timed(loop: Callable[[], None], rounds: int) -> float:
    """Microseconds per round of a loop."""
    start = time.process_time()
    loop()
    return (time.process_time() - start) / rounds * 1e6


def loops_of(world: en.Environment, rounds: int) -> dict[str, Callable[[], float]]:
    """Return what is timed at one size: tuned NumPy, and every tuning as a policy and simulated."""
    problem = world.problem
    explore = bw.design(problem, "uniform")
    rng = np.random.default_rng(1)
    contexts = rng.integers(problem.n_contexts, size=rounds).tolist()
    losses = rng.uniform(-1.0, 1.0, size=rounds).tolist()
    known = problem.features, problem.probabilities, explore.exploration, explore.coverage
    learner = NumpyTsallis(*known, seed=7, tuned=True)
    loops: dict[str, Callable[[], float]] = {"tuned": partial(timed, baseline_loop(learner, contexts, losses), rounds)}
    for name in TUNINGS:
        algorithm = bw.LCTsallisINF(tuning=name, design=explore)
        loops[name] = partial(timed, library_loop(algorithm.start(problem, rng=7), contexts, losses), rounds)
        machine = algorithm.machine(problem)
        loops[f"{name}, simulated"] = partial(loop_time, world, machine, rounds, lanes=most_at_once(machine))
    return loops


def row(sizes: dict[str, int], repeats: int) -> str:
    """Measure one size; return its line of the table."""
    world = en.stochastic(en.random_instance(**sizes, gap=0.2, seed=1))
    S, K, d = world.problem.n_contexts, world.problem.n_arms, world.problem.dimension
    rounds = int(min(MOST, max(FEWEST, WORK / (S * K * d**2 + d**3))))
    loops = loops_of(world, rounds)
    least = {name: min(loop() for _ in range(2)) for name, loop in loops.items()}
    for _ in range(repeats):
        least = {name: min(least[name], loop()) for name, loop in loops.items()}
    cells = [f"{least[name]:,.1f} ({least['tuned'] / least[name]:.1f})" for name in loops if name != "tuned"]
    return f"| {S}, {K}, {d} | {least['tuned']:,.0f} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    names = [f"`{name}`{kind}" for name in TUNINGS for kind in ("", ", simulated")]
    print(f"| S, K, d | tuned NumPy | {' | '.join(names)} |\n|{'---|' * (len(names) + 2)}", flush=True)
    for varied in ("contexts", "arms", "dimension"):
        for length in options.lengths:
            sizes = {"contexts": 100 if varied == "dimension" else 5, "arms": 5, "dimension": 5, varied: length}
            print(row(sizes, options.repeats), flush=True)


if __name__ == "__main__":
    main()
