"""New visitors: every visitor is different, so contexts cannot be listed; past visitors can be drawn from.

    python examples/new_visitors.py

A shop offers each visitor no discount, a small one or a large one. The chance of a sale depends on the visitor's age
and on how often they have come before: numbers that hardly ever repeat. It is known to the simulation only.
"""

import numpy as np

import bothworlds as bw
from bothworlds.kernels.arrays import Floats

DISCOUNTS = {"none": -1.0, "small": 0.0, "large": 1.0}
VISITORS = 20_000
ARCHIVE = 3_000


def visitor(rng: np.random.Generator) -> tuple[float, float]:
    """Draw (age, loyalty), both scaled to [-1, 1]."""
    return float(rng.beta(2.0, 3.0) * 2.0 - 1.0), float(rng.uniform(-1.0, 1.0))


def features(who: tuple[float, float]) -> Floats:
    """Return phi, (discounts, features): a constant, the discount, and how it meets age and loyalty."""
    age, loyalty = who
    return np.array([[1.0, level, level * age, level * loyalty] for level in DISCOUNTS.values()])


def chance(who: tuple[float, float]) -> Floats:
    """Return the chance of a sale under each discount: the young want one, the loyal do not need one."""
    return np.asarray(features(who) @ np.array([0.5, 0.02, -0.2, -0.2]))


def main() -> None:
    """Learn from an archive of past visitors whom to offer what."""
    past = np.random.default_rng(0)
    archive = [visitor(past) for _ in range(ARCHIVE)]
    problem = bw.SampledProblem(
        lambda rng: archive[rng.integers(len(archive))], features, arms=list(DISCOUNTS), reward_range=(0, 1)
    )
    print(problem.describe(), end="\n\n")
    algorithms: dict[str, bw.LCTsallisINF | bw.RealFTRL] = {
        "LC-Tsallis-INF": bw.LCTsallisINF(tuning="paper", covariance=bw.Reservoir(size=300)),
        "RealFTRL": bw.RealFTRL(horizon=VISITORS, covariance=bw.Reservoir(size=300)),
    }
    best = evenly = 0.0
    sales = dict.fromkeys(algorithms, 0)
    for name, algorithm in algorithms.items():
        policy = algorithm.start(problem, rng=7)
        rng = np.random.default_rng(1)  # the same visitors for all
        best = evenly = 0.0
        for _ in range(VISITORS):
            who = visitor(rng)
            decision = policy.act(features=features(who))
            sale = int(rng.random() < chance(who)[decision.arm])
            policy.update(decision, reward=sale)
            sales[name] += sale
            best += float(chance(who).max())
            evenly += float(chance(who).mean())
    for name, count in sales.items():
        print(f"{name + ':':16}{count:7,} sales")
    print(f"{'at random:':16}{evenly:7,.0f} expected\n{'always the best:':16}{best:7,.0f} expected")


if __name__ == "__main__":
    main()
