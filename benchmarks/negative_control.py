"""Negative control: algorithms for a stationary world must fail in an adversarial one, and robust ones must not.

    python benchmarks/negative_control.py [--horizon 20000] [--instances 6] [--replications 2] [--sizes 5 4 4]

Three worlds on each of some random instances: calm (stochastic), an adversary that sees the policy and takes the worse
of theta_0 and -theta_0, and corruption of T/20 placed in the first rounds, calm after it. From a corruption of fixed
size every algorithm recovers, so a fourth table has corruption of t/20 for each horizon t. For each algorithm a table
has regret/t at t = T/8, T/4, T/2, T (means over instances), the largest and the mean regret at T, and two local growth
exponents, log R(T)/R(T/8) over log 8 and log R(T)/R(T/2) over log 2: 1 is linear, 1/2 a square root, near 0 a
logarithm; a dash stands for a regret that is not positive.
"""

import argparse
import math
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds import environments as en


def algorithms(horizon: int) -> dict[str, Any]:
    return {
        "LinUCB, width 0.5": bw.LinUCB(width=0.5),
        "OFUL": bw.OFUL(delta=1.0 / horizon),
        "LinTS, spread 0.3": bw.LinTS(),
        "LinTS, theory": bw.LinTS(spread="theory", delta=1.0 / horizon),
        "RealFTRL": bw.RealFTRL(horizon=horizon),
        "LC-Tsallis-INF certified": bw.LCTsallisINF(tuning="certified"),
        "LC-Tsallis-INF matched": bw.LCTsallisINF(tuning="matched"),
        "per-context Tsallis-INF": bw.PerContextTsallisINF(),
        "per-context Exp3": bw.PerContextExp3(),
        "uniform": bw.FixedPolicy(),
    }


def worlds(instance: en.Instance, budget: float) -> dict[str, en.Environment]:
    return {
        "calm": en.stochastic(instance),
        "adaptive adversary": en.adaptive_adversary(instance.problem, en.opposite(instance.theta)),
        f"corruption of at most {budget:g}, first": en.corrupted(instance, budget=budget, placement="first"),
    }


def exponent(early: float, late: float, ratio: float) -> str:
    return f"{math.log(late / early) / math.log(ratio):>7.2f}" if early > 0.0 and late > 0.0 else f"{'-':>7}"


def regrets(worlds: list[en.Environment], algorithm: Any, marks: list[int], replications: int) -> Any:
    """Regret at the marks, one row an instance."""
    options: dict[str, Any] = {"horizon": marks[-1], "replications": replications, "rng": 3, "checkpoints": marks}
    return np.array([bw.simulate(world, {"": algorithm}, **options)[""].regret for world in worlds])


def in_proportion(instances: list[en.Instance], label: str, marks: list[int], replications: int) -> Any:
    """Regret at the marks, each the horizon of runs of its own whose first corruption is a twentieth of it."""
    columns = []
    for mark in marks:
        made = [en.corrupted(instance, budget=mark / 20, placement="first") for instance in instances]
        columns.append(regrets(made, algorithms(mark)[label], [mark], replications))
    return np.concatenate(columns, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--instances", type=int, default=6)
    parser.add_argument("--replications", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs=3, default=(5, 4, 4), metavar=("S", "K", "d"))
    options = parser.parse_args()
    S, K, d = options.sizes
    seeds = range(1, options.instances + 1)
    instances = [en.random_instance(contexts=S, arms=K, dimension=d, gap=0.2, seed=seed) for seed in seeds]
    made = [worlds(instance, options.horizon / 20) for instance in instances]
    marks = [options.horizon // part for part in (8, 4, 2, 1)]
    grown = "corruption of t/20, first, for horizons t"
    for name in [*made[0], grown]:
        heads = [*(f"R/{mark:,}" for mark in marks), "largest", "mean R"]
        print(f"\n{name}\n{'':>26}", *(f"{head:>9}" for head in heads), " growth, at last")
        for label, algorithm in algorithms(options.horizon).items():
            if name == grown:
                table = in_proportion(instances, label, marks, options.replications)
            else:
                table = regrets([one[name] for one in made], algorithm, marks, options.replications)
            mean = table.mean(axis=0)
            rates = " ".join(f"{value:>9.4f}" for value in mean / marks)
            growth = f"{exponent(mean[0], mean[-1], 8.0)} {exponent(mean[-2], mean[-1], 2.0)}"
            print(f"{label:>26} {rates} {table[:, -1].max():>9.0f} {mean[-1]:>9.0f} {growth}", flush=True)


if __name__ == "__main__":
    main()
