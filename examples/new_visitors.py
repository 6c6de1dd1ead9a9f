"""New visitors: every visitor is different, so contexts cannot be listed; past visitors can be drawn from.

    python examples/new_visitors.py

A shop offers each visitor no discount, a small one or a large one. The chance of a sale depends on the visitor's age
and on how often they have come before: numbers that hardly ever repeat. It is known to the simulation only.
"""

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats

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


def stated() -> bw.SampledProblem:
    """Return what is known beforehand: an archive of past visitors."""
    past = np.random.default_rng(0)
    archive = [visitor(past) for _ in range(ARCHIVE)]
    return bw.SampledProblem(
        lambda rng: archive[rng.integers(len(archive))], features, arms=list(DISCOUNTS), reward_range=(0, 1)
    )


def learners() -> dict[str, bw.LCTsallisINF | bw.RealFTRL]:
    """Return who learns."""
    return {
        "LC-Tsallis-INF": bw.LCTsallisINF(tuning="paper", covariance=bw.Reservoir(size=300)),
        "RealFTRL": bw.RealFTRL(horizon=VISITORS, covariance=bw.Reservoir(size=300)),
    }


def play(policy: bw.SampledPolicy) -> Floats:
    """Serve the same visitors; return for each: sold or not, the chance at random, the best chance."""
    rng = np.random.default_rng(1)
    gained = np.empty((VISITORS, 3))
    for row in gained:
        who = visitor(rng)
        decision = policy.act(features=features(who))
        sale = int(rng.random() < chance(who)[decision.arm])
        policy.update(decision, reward=sale)
        row[:] = sale, chance(who).mean(), chance(who).max()
    return gained


def main() -> None:
    """Learn whom to offer what."""
    problem = stated()
    print(problem.describe(), end="\n\n")
    algorithms = learners()
    for name, algorithm in algorithms.items():
        gained = play(algorithm.start(problem, rng=7))
        print(f"{name + ':':16}{gained[:, 0].sum():7,.0f} sales")
    _, evenly, best = gained.sum(axis=0)
    print(f"{'at random:':16}{evenly:7,.0f} expected\n{'always the best:':16}{best:7,.0f} expected")


if __name__ == "__main__":
    main()
