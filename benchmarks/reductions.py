"""The reduction of RealLinExp3 beside its base: regret with the theorem's constants, and with them scaled down.

Run ``python benchmarks/reductions.py``: two calm worlds, one with the same best arm in every context, one without, and
an adversary that sees the policy; mean regret over replications at T, and its growth exponent between T/2 and T.
"""

from typing import Any, Literal

import numpy as np

import bothworlds as bw
from bothworlds import environments as en

HORIZON = 20_000
REPLICATIONS = 8


def same_best_arm() -> en.Instance:
    """One feature vector per context; arm 2 is the best everywhere, by 0.2 at least."""
    rng = np.random.default_rng(0)
    vectors = np.concatenate([np.ones((5, 1)), rng.uniform(-0.2, 0.2, size=(5, 1))], axis=1)
    problem = bw.Problem.from_arm_independent(vectors, probabilities=np.full(5, 0.2), arms=4)
    theta = np.array([0.2, 0.1, 0.1, 0.0, -0.2, 0.0, 0.3, -0.1])
    return en.Instance(problem, theta)


def main() -> None:
    """Print the table."""
    other = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    worlds = {
        "same best arm": en.stochastic(same_best_arm()),
        "best arms differ": en.stochastic(other),
        "adversary": en.adaptive_adversary(other.problem, en.opposite(other.theta)),
    }
    base = bw.RealLinExp3(horizon=HORIZON, features="arm-dependent", design="uniform")
    algorithms: dict[str, Any] = {"base: RealLinExp3": base}
    candidates: tuple[Literal["literal", "per-context"], ...] = ("literal", "per-context")
    for candidate in candidates:
        for scale in (1.0, 0.1, 0.01, 0.0):
            algorithms[f"{candidate}, scale {scale:g}"] = bw.BoBWRealLinExp3(
                horizon=HORIZON, candidate=candidate, scale=scale
            )
    algorithms["LC-Tsallis-INF, certified"] = bw.LCTsallisINF()
    for name, world in worlds.items():
        policy = bw.BoBWRealLinExp3(horizon=HORIZON).start(world.problem, rng=1)
        rank, inverse, _, c1, c2 = policy.state.facts
        print(f"{name}: rank {rank:.0f}, 1/lambda {inverse:.1f}, c1 {c1:.0f}, c2 {c2:.1f}")
        run = bw.simulate(world, algorithms, horizon=HORIZON, replications=REPLICATIONS)
        for label in algorithms:
            regret = run[label].regret
            half = regret[np.searchsorted(run.checkpoints, HORIZON // 2)]
            print(f"  {label:28s} regret {regret[-1]:8.1f}   growth {np.log2(max(regret[-1], 1) / max(half, 1)):.2f}")


if __name__ == "__main__":
    main()
