"""One round, act + update, from Python: the library against NumPy, alternating in one process.

    python benchmarks/rounds.py [--rounds 300] [--repeats 7] [--sizes 10,5,5 30,6,48,one-hot]

Both play the same problems with the tuning "paper"; the other tunings are timed beside it. Times are the least of the
repeats, in microseconds of the processor per round: other processes on a shared machine do not count.
"""

import argparse
import os
import time
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one core for both sides; on a shared machine this is faster, too
os.environ["BOTHWORLDS_BACKGROUND_COMPILE"] = "no"  # so that only machine code is timed
import numpy as np

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TuningName
from numpy_baseline import Floats, NumpyTsallis

SIZES = ("10,5,5", "20,10,10", "32,5,40", "30,6,48,one-hot", "100,50,20", "50,10,50", "100,10,100")
TUNINGS: tuple[TuningName, ...] = ("paper", "certified", "matched")


def one_hot(S: int, K: int, d: int) -> Floats:
    """Return features that say which arm it is and which of d/K groups the context is in, and nothing else."""
    groups = d // K
    phi = np.zeros((S, K, d))
    for x in range(S):
        for a in range(K):
            phi[x, a, a * groups + x % groups] = 1.0
    return phi


def make_problem(size: str) -> bw.Problem:
    """Return a problem of sizes such as 10,5,5 with features on the sphere, or such as 30,6,48,one-hot."""
    S, K, d = (int(number) for number in size.split(",")[:3])
    phi = np.random.default_rng(S).normal(size=(S, K, d))
    phi /= np.linalg.norm(phi, axis=2, keepdims=True)
    return bw.Problem(features=one_hot(S, K, d) if size.endswith("one-hot") else phi, probabilities=np.full(S, 1.0 / S))


def library_loop(policy: bw.Policy, contexts: list[int], losses: list[float]) -> Callable[[], None]:
    def run() -> None:
        for x, loss in zip(contexts, losses, strict=True):
            decision = policy.act(x)
            policy.update(decision, loss=loss)

    return run


def baseline_loop(learner: NumpyTsallis, contexts: list[int], losses: list[float]) -> Callable[[], None]:
    def run() -> None:
        for x, loss in zip(contexts, losses, strict=True):
            _, _, direction = learner.act(x)
            learner.update(direction, loss)

    return run


def measure(loops: dict[str, Callable[[], None]], rounds: int, repeats: int) -> dict[str, float]:
    """Run all loops in turn, repeatedly; return the least microseconds per round."""
    times: dict[str, list[float]] = {name: [] for name in loops}
    for loop in loops.values():
        loop()
    for _ in range(repeats):
        for name, loop in loops.items():
            start = time.process_time()
            loop()
            times[name].append((time.process_time() - start) / rounds * 1e6)
    return {name: min(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="S,K,d or S,K,d,one-hot")
    options = parser.parse_args()
    print("microseconds per round, and how many times faster than numpy (than tuned numpy)")
    print(f"{'S, K, d':>16} {'numpy':>9} {'(tuned)':>9}" + "".join(f" {name:>25}" for name in TUNINGS))
    for size in options.sizes:
        problem = make_problem(size)
        explore = bw.design(problem)
        rng = np.random.default_rng(1)
        contexts = rng.integers(problem.n_contexts, size=options.rounds).tolist()
        losses = rng.uniform(-1.0, 1.0, size=options.rounds).tolist()
        world = (problem.features, problem.probabilities, explore.exploration, explore.coverage)
        loops = {
            "numpy": baseline_loop(NumpyTsallis(*world, seed=7), contexts, losses),
            "tuned": baseline_loop(NumpyTsallis(*world, seed=7, tuned=True), contexts, losses),
        }
        for name in TUNINGS:
            policy = bw.LCTsallisINF(tuning=name, design=explore).start(problem, rng=7)
            loops[name] = library_loop(policy, contexts, losses)
        found = measure(loops, options.rounds, options.repeats)
        cells = "".join(
            f" {found[name]:>9.1f} {found['numpy'] / found[name]:>6.1f} x ({found['tuned'] / found[name]:.1f})"
            for name in TUNINGS
        )
        print(f"{size:>16} {found['numpy']:>9.1f} {found['tuned']:>9.1f}{cells}")


if __name__ == "__main__":
    main()
