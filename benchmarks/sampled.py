"""Contexts without a list: LC-Tsallis-INF on features against uniform play and against discretised contexts.

    python benchmarks/sampled.py [--horizon 20000] [--reservoir 500] [--seeds 3]

A context is a set of K = 3 items, each a random unit vector in d = 3 dimensions: nine numbers that never repeat. An
item with vector phi loses 1 with probability (1 + <phi, theta>)/2 and wins 1 otherwise, |theta| = 0.8. The rival that
knows contexts only by name assigns each to the nearest of some random ones, its cells, and plays Tsallis-INF in each
(`PerContextTsallisINF`). Regret is expected regret, summed over the realized contexts, which are the same for all.
"""

import argparse
import time
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats

K, D = 3, 3
THETA = 0.8 * np.array([2.0, -2.0, 1.0]) / 3.0


def items(rng: np.random.Generator) -> Floats:
    """Draw a context: the items on offer."""
    vectors = rng.normal(size=(K, D))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def sampled_algorithms(horizon: int, reservoir: int) -> dict[str, Any]:
    """Return the algorithms that play on features."""
    covariance = bw.Reservoir(size=reservoir)
    return {
        "LC-Tsallis-INF": bw.LCTsallisINF(tuning="paper", covariance=covariance),
        "RealFTRL": bw.RealFTRL(horizon=horizon, covariance=covariance),
        "RealLinExp3": bw.RealLinExp3(horizon=horizon, features="arm-dependent", covariance=covariance),
    }


class Cells:
    """Tsallis-INF in each cell of a discretisation by the nearest of some random contexts."""

    def __init__(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._centres = np.array([items(rng).ravel() for _ in range(count)])
        features = np.tile(np.eye(K), (count, 1, 1))
        problem = bw.Problem(features=features, probabilities=np.full(count, 1.0 / count))
        self._policy = bw.PerContextTsallisINF().start(problem, rng=seed)
        self._cell = 0

    def probabilities(self, *, features: Floats) -> Floats:
        """Return the probabilities of the cell."""
        self._cell = int(((self._centres - features.ravel()) ** 2).sum(axis=1).argmin())
        return self._policy.probabilities(self._cell)

    def act(self, *, features: Floats) -> bw.Decision:
        """Choose an arm for the cell."""
        self.probabilities(features=features)
        return self._policy.act(self._cell)

    def update(self, decision: bw.Decision, *, loss: float) -> None:
        """Learn in the cell."""
        self._policy.update(decision, loss=loss)


def played(policy: Any, horizon: int, seed: int) -> float:
    """Return the expected regret of a policy over a horizon."""
    rng = np.random.default_rng(seed)
    regret = 0.0
    for _ in range(horizon):
        context = items(rng)
        u = rng.random()
        means = context @ THETA
        regret += float(policy.probabilities(features=context) @ means - means.min())
        decision = policy.act(features=context)
        policy.update(decision, loss=1.0 if u < (1.0 + means[decision.arm]) / 2.0 else -1.0)
    return regret


def uniform(horizon: int, seed: int) -> float:
    """Return the expected regret of uniform play."""
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(horizon):
        means = items(rng) @ THETA
        rng.random()
        total += float(means.mean() - means.min())
    return total


def regrets(horizon: int, *, reservoir: int = 500, seed: int = 1) -> dict[str, float]:
    """Return the regret of all, by name."""
    problem = bw.SampledProblem(items, lambda context: context)
    found = {"uniform play": uniform(horizon, seed)}
    for name, algorithm in sampled_algorithms(horizon, reservoir).items():
        found[name] = played(algorithm.start(problem, rng=seed), horizon, seed)
    for count in (8, 64, 512):
        found[f"discretised, {count} cells"] = played(Cells(count, seed), horizon, seed)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="regret with contexts that are not listed")
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--reservoir", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    print(bw.SampledProblem(items, lambda context: context).describe(), end="\n\n")
    start = time.perf_counter()
    runs = [regrets(chosen.horizon, reservoir=chosen.reservoir, seed=seed) for seed in range(1, chosen.seeds + 1)]
    print(f"{'T = ' + format(chosen.horizon, ','):26}{'regret':>10}{'of uniform':>12}{'lowest':>10}{'highest':>10}")
    for name in runs[0]:
        values = [run[name] for run in runs]
        share = np.mean([run[name] / run["uniform play"] for run in runs])
        print(f"{name:26}{np.mean(values):10,.0f}{share:12.1%}{min(values):10,.0f}{max(values):10,.0f}")
    print(f"\n{chosen.seeds} seeds, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
