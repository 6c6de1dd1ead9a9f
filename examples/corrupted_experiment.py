"""A corrupted experiment: the first rewards are turned around; who recovers.

    python examples/corrupted_experiment.py

A tracking bug (or a click farm) turns the rewards around until a budget of corruption C is spent; after that the world
is calm. Means over several random instances: single ones differ much.
"""

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats

ROUNDS, REPLICATIONS, INSTANCES = 20_000, 4, 6
BUDGETS = (0, 500, 1000, 2000)
ALGORITHMS = {
    "LinUCB": bw.LinUCB(),
    "certified": bw.LCTsallisINF(tuning="certified"),
    "matched": bw.LCTsallisINF(tuning="matched"),
    "uniform": bw.FixedPolicy(),
}


def regrets(budget: float, seed: int) -> list[float]:
    """Return the regret of every algorithm at the end, on one instance, with this much corruption at the start."""
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=seed)
    world = en.corrupted(instance, budget=budget) if budget else en.stochastic(instance)
    results = bw.simulate(world, ALGORITHMS, horizon=ROUNDS, replications=REPLICATIONS, rng=7)
    return [float(results[name].regret[-1]) for name in ALGORITHMS]


def means(budget: float) -> Floats:
    """Return the regret of every algorithm, mean over all instances."""
    return np.asarray(np.mean([regrets(budget, seed) for seed in range(1, INSTANCES + 1)], axis=0))


def main() -> None:
    """Print regret against corruption."""
    print(f"regret after {ROUNDS:,} rounds, mean over {INSTANCES} instances with {REPLICATIONS} replications each")
    print(f"{'C':>6}" + "".join(f"{name:>11}" for name in ALGORITHMS))
    for budget in BUDGETS:
        print(f"{budget:>6,}" + "".join(f"{mean:>11,.0f}" for mean in means(budget)))


if __name__ == "__main__":
    main()
