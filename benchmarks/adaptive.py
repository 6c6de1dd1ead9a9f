"""What the bound c on the weight of a play of the adaptive tuning costs and saves: regret in small worlds.

python benchmarks/adaptive.py [--horizon 8000] [--replications 12]
"""

import argparse

import numpy as np

import bothworlds as bw
from bothworlds import environments as en

CLICK_RATES = np.array([[0.05, 0.20, 0.10], [0.25, 0.10, 0.05]])
TUNINGS = [bw.Adaptive(c=None, floor=1.0), *(bw.Adaptive(c=c) for c in (0.4, 0.2, 0.1, 0.05))]


def worlds(horizon: int) -> dict[str, bw.environments.Environment]:
    problem = bw.Problem(features=np.eye(6).reshape(2, 3, 6), probabilities=[0.4, 0.6])
    clicks = en.Instance(problem, (1.0 - 2.0 * CLICK_RATES).reshape(-1))
    small = en.random_instance(contexts=10, arms=5, dimension=5, gap=0.1, seed=11)
    large = en.random_instance(contexts=50, arms=10, dimension=10, gap=0.1, seed=12)
    pair = en.opposite(small.theta)
    return {
        "clicks": en.stochastic(clicks),
        "+-1 noise": en.stochastic(small),
        "no noise": en.stochastic(small, noise="none"),
        "larger": en.stochastic(large),
        "first 5 % flipped": en.flip(small.problem, pair[::-1], at=horizon // 20),
        "growing phases": en.growing_phases(small.problem, pair),
        "adaptive adversary": en.adaptive_adversary(small.problem, pair),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=8000)
    parser.add_argument("--replications", type=int, default=12)
    options = parser.parse_args()
    algorithms = {str(tuning): bw.LCTsallisINF(tuning=tuning) for tuning in TUNINGS}
    algorithms |= {"Certified()": bw.LCTsallisINF(tuning="certified"), "Paper()": bw.LCTsallisINF(tuning="paper")}
    for name, world in worlds(options.horizon).items():
        results = bw.simulate(world, algorithms, horizon=options.horizon, replications=options.replications, rng=1)
        print(name)
        for label, run in results.runs.items():
            print(f"  {run.regret[-1]:>8.1f} ± {run.standard_error[-1]:<6.1f} {label}", flush=True)


if __name__ == "__main__":
    main()
