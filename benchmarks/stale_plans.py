"""Regret of a policy that decides with old plans: the table in docs/how-to/several-hosts.md, under "How far it goes".

    python benchmarks/stale_plans.py

A plan that is k rounds old has heard of no reward of the last k decisions: this is feedback that comes k rounds late,
one by one. In the service k is the number of decisions that all hosts together take in the age of a plan: at 1,000
decisions a second, a plan that is 0.1 s old is 100 decisions old. With batches, all hosts get a new plan every k.
"""

import numpy as np

import bothworlds as bw
from bothworlds import environments as en

AGES = (0, 10, 100, 1_000)
HORIZON, REPLICATIONS = 20_000, 16
SIZES = {"contexts": 10, "arms": 5, "dimension": 5, "gap": 0.2}
PLAYERS = {
    "matched": bw.LCTsallisINF(),
    "certified": bw.LCTsallisINF(tuning="certified"),
    "LinUCB": bw.LinUCB(),
    "uniform": bw.FixedPolicy(),
}


def worlds() -> dict[str, list[en.Environment]]:
    """Return kinds of worlds, three of each."""
    seeds = (1, 2, 3)
    instances = [en.random_instance(**SIZES, seed=seed) for seed in seeds]  # type: ignore[arg-type]
    return {
        "stochastic": [en.stochastic(instance) for instance in instances],
        "rare clicks": [en.clicks(seed=seed, rarity=40.0) for seed in seeds],
        "a change half way": [en.change_point(one, at=HORIZON // 2, seed=9) for one in instances],
        "adversary": [en.adaptive_adversary(one.problem, en.opposite(one.theta)) for one in instances],
    }


def regrets(world: en.Environment, *, delay: int = 0, batch: int = 1) -> list[float]:
    """Return the mean regret of each player."""
    played = bw.simulate(
        world,
        PLAYERS,
        horizon=HORIZON,
        replications=REPLICATIONS,
        rng=21,
        delay=delay,
        batch=batch,
        checkpoints=[HORIZON],
    )
    return [float(np.mean(played[name].regret[-1])) for name in PLAYERS]


def main() -> None:
    print(f"T = {HORIZON:,}, three worlds of each kind, {REPLICATIONS} replications; columns: {', '.join(PLAYERS)}")
    for kind, several in worlds().items():
        for age in AGES:
            late = np.mean([regrets(world, delay=age) for world in several], axis=0)
            print(f"{kind}, {age:,} rounds old: ", "  ".join(f"{value:,.0f}" for value in late), flush=True)
        for age in AGES[1:]:
            late = np.mean([regrets(world, batch=age) for world in several], axis=0)
            print(f"{kind}, new every {age:,}: ", "  ".join(f"{value:,.0f}" for value in late), flush=True)


if __name__ == "__main__":
    main()
