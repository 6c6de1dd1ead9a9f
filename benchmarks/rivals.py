"""The rivals for arm-independent features: time per simulated round, and the value of exact inverses.

    python benchmarks/rivals.py [--rounds 20000] [--horizon 20000] [--replications 8]

Times: one thread, all algorithms in turn in one process, medians of 5. LC-Tsallis-INF plays a problem of the same
size: with as many arm-dependent features. It also plays the rivals' own problem, in d K dimensions.
"""

import argparse
import dataclasses
import time
import warnings
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.contract import Machine

SIZES = ((10, 5, 5), (20, 10, 10))
REPEATS = 5


def independent_instance(S: int, K: int, d: int, seed: int = 1) -> en.Instance:
    """Make unit vectors as contexts, a random theta per arm, mean losses filling [-0.8, 0.8]."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(S, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    problem = bw.Problem.from_arm_independent(x, probabilities=np.full(S, 1.0 / S), arms=K)
    thetas = rng.normal(size=(K, d))
    return en.Instance(problem, bw.block_parameters(0.8 * thetas / np.abs(x @ thetas.T).max()))


def rivals(horizon: int) -> dict[str, Any]:
    """Return the rivals, exact and resampled."""
    mgr = bw.MGR()
    return {
        "RealLinExp3 exact": bw.RealLinExp3(horizon=horizon),
        "RealLinExp3 MGR": bw.RealLinExp3(horizon=horizon, covariance=mgr),
        "RealLinExp3 MGR, printed": bw.RealLinExp3(horizon=horizon, covariance=mgr, tuning="printed"),
        "RobustLinExp3": bw.RobustLinExp3(horizon=horizon),
        "FTRLLC exact": bw.FTRLLC(horizon=horizon),
        "FTRLLC MGR": bw.FTRLLC(horizon=horizon, covariance=mgr),
    }


class ExactAt:
    """The exact inverse at the rates of resampling: what is left of the difference is the resampling itself."""

    def __init__(self, horizon: int) -> None:
        self.exact = bw.RealLinExp3(horizon=horizon)
        self.resampled = bw.RealLinExp3(horizon=horizon, covariance=bw.MGR())

    def machine(self, problem: bw.Problem) -> Machine:
        """Return the exact machine with the other's eta and gamma."""
        machine = self.exact.machine(problem)
        eta, gamma = self.resampled.rates_for(problem)[:2]
        fixed = machine.options.fixed._replace(eta=eta, gamma=gamma)
        return dataclasses.replace(machine, options=machine.options._replace(fixed=fixed))


def round_time(world: en.Environment, algorithm: Any, rounds: int) -> float:
    """Microseconds per round of one replication in one thread; preparation is not counted."""
    times = []
    for count in (1, rounds):
        start = time.perf_counter()
        bw.simulate(world, {"": algorithm}, horizon=count, threads=1, checkpoints=2)
        times.append(time.perf_counter() - start)
    return (times[1] - times[0]) / (rounds - 1) * 1e6


def speed(rounds: int) -> None:
    for S, K, d in SIZES:
        own = en.stochastic(independent_instance(S, K, d))
        dependent = en.stochastic(en.random_instance(contexts=S, arms=K, dimension=d, gap=0.2, seed=1))
        cases: dict[str, tuple[en.Environment, Any, int]] = {
            "LC-Tsallis-INF certified": (dependent, bw.LCTsallisINF(tuning="certified"), rounds),
            "LC-Tsallis-INF paper": (dependent, bw.LCTsallisINF(tuning="paper"), rounds),
            "LC-Tsallis-INF paper, d K": (own, bw.LCTsallisINF(tuning="paper"), rounds // 4),
            "RealLinExp3 arm-dependent": (dependent, bw.RealLinExp3(horizon=20_000, features="arm-dependent"), rounds),
        }
        for label, algorithm in rivals(20_000).items():
            cases[label] = (own, algorithm, rounds // 100 if "MGR" in label else rounds)
        times: dict[str, list[float]] = {label: [] for label in cases}
        for repeat in range(REPEATS + 1):
            for label, case in cases.items():
                spent = round_time(*case)
                if repeat:  # the first one compiles
                    times[label].append(spent)
        reference = float(np.median(times["LC-Tsallis-INF certified"]))
        print(f"({S}, {K}, {d}), one thread: microseconds per round, and times LC-Tsallis-INF certified")
        for label, values in times.items():
            print(f"  {label:<26} {np.median(values):>10.2f} {np.median(values) / reference:>9.2f}")


def regret(horizon: int, replications: int) -> None:
    instance = independent_instance(5, 3, 2)
    worlds = {
        "stochastic": en.stochastic(instance),
        "adaptive adversary": en.adaptive_adversary(instance.problem, en.opposite(instance.theta)),
    }
    same = {"RealLinExp3 exact at MGR's": ExactAt(horizon)}
    algorithms = {
        **rivals(horizon),
        **same,
        "LC-Tsallis-INF certified": bw.LCTsallisINF(tuning="certified"),
        "uniform": bw.FixedPolicy(),
    }
    print(f"\n(5, 3, 2), T = {horizon:,}, {replications} replications: regret (standard error) and seconds")
    for name, world in worlds.items():
        print(f"  {name}")
        for label, algorithm in algorithms.items():
            bw.simulate(world, {"": algorithm}, horizon=1)  # compiles
            start = time.perf_counter()
            run = bw.simulate(world, {"": algorithm}, horizon=horizon, replications=replications, threads=1)[""]
            spent = time.perf_counter() - start
            print(f"    {label:<26} {run.regret[-1]:>9.1f} ({run.standard_error[-1]:.1f}) {spent:>9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--replications", type=int, default=8)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bw.TuningWarning)
    speed(options.rounds)
    regret(options.horizon, options.replications)


if __name__ == "__main__":
    main()
