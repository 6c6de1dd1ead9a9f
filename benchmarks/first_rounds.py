"""Cost of the search for exploration: simulated rounds of `matched` relative to `certified`, from round 1.

    python benchmarks/first_rounds.py [--sizes 10,5,5 20,10,10] [--gap 0.2] [--rounds 500 1000 5000 20000] [--repeats 9]

Eight replications at once in one thread, or `--lanes 16`, +-1 losses. The tunings alternate; a cell is the time
of `matched` up to that round divided by that of the `certified` run just before it, because the speed of a shared
machine varies; median of the repeats. The search runs in every second one of the first rounds, then less and less
often: the shorter a run, the larger the share of its rounds that search.
"""

import argparse
import os
import statistics
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TuningName
from bothworlds.kernels.arithmetic import MAX_LANES, WIDTH
from bothworlds.kernels.contract import Machine
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.setting import make_setting

TUNINGS: tuple[TuningName, ...] = ("certified", "matched")
SIZES = ("10,5,5", "20,10,10", "15,8,4", "5,20,5", "8,4,12", "20,5,20", "32,5,40")


def seconds(world: en.Environment, machine: Machine, rounds: list[int], lanes: int) -> list[float]:
    """Return the time to play up to each of the rounds."""
    some = Replications(machine, make_setting(world, horizon=rounds[-1] + 1, rng=0), range(lanes))
    some.advance(1)
    start, taken = time.thread_time(), []
    for last in rounds:
        some.advance(last + 1 - some.played)
        taken.append(time.thread_time() - start)
    return taken


def row(size: str, gap: float, rounds: list[int], repeats: int, lanes: int) -> str:
    """Measure one size; return its line of the table."""
    contexts, arms, dimension = map(int, size.split(","))
    world = en.stochastic(en.random_instance(contexts=contexts, arms=arms, dimension=dimension, gap=gap, seed=1))
    machines = [bw.LCTsallisINF(tuning=name).machine(world.problem) for name in TUNINGS]
    for machine in machines:
        seconds(world, machine, [1], lanes)  # compiles
    ratios = []
    for _ in range(repeats):
        beside, ours = (seconds(world, machine, rounds, lanes) for machine in machines)
        ratios.append([matched / certified for matched, certified in zip(ours, beside, strict=True)])
    cells = [f"{statistics.median(column):.2f}" for column in zip(*ratios, strict=True)]
    return f"| {contexts}, {arms}, {dimension} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="S,K,d")
    parser.add_argument("--gap", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, nargs="+", default=[500, 1000, 5000, 20_000])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--lanes", type=int, choices=(WIDTH, MAX_LANES), default=WIDTH)
    options = parser.parse_args()
    rounds = sorted(options.rounds)
    print(f"| S, K, d | {' | '.join(f'{last:,}' for last in rounds)} |\n|{'---|' * (len(rounds) + 1)}", flush=True)
    for size in options.sizes:
        print(row(size, options.gap, rounds, options.repeats, options.lanes), flush=True)


if __name__ == "__main__":
    main()
