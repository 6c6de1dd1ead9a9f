"""A far better arm is added late: how soon `policy.change` finds it, and at what cost, by its start (``fresh``).

    python studies/better_arm.py [--rounds 20000] [--seeds 4]

One context, four arms with expected losses -0.2 to 0.2, each with its own column in the features, so that only
playing an arm reveals its loss. After `--rounds` rounds a fifth arm with -0.5 is added, and as many rounds follow.
Losses are -1 or 1 with these means; all players get the same random numbers. The arm counts as found in the first round
from which it is played with probability 1/2 or more for 100 rounds; "lost" is the expected regret of all rounds since
it was added. Means over seeds.
"""

import argparse
import sys

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats

LOSSES = (-0.2, -0.05, 0.05, 0.2, -0.5)
FRESH = {"`fresh=0`: beside the best": 0.0, "the default": None, "`fresh=1`: at the mean": 1.0}
STAYS = 100


def problem_with(arms: int) -> bw.Problem:
    """Return a problem with a column for each arm."""
    return bw.Problem(features=np.eye(arms)[None], probabilities=[1.0], arms=[f"arm {a}" for a in range(arms)])


def played(policy: bw.Policy, rounds: int, rng: np.random.Generator) -> Floats:
    """Play, and return pi_t of every round, shape (rounds, arms)."""
    pi = np.empty((rounds, policy.problem.n_arms))
    for t, u in enumerate(rng.uniform(-1.0, 1.0, size=rounds)):
        pi[t] = policy.probabilities(0)
        decision = policy.act(0)
        policy.update(decision, loss=1.0 if u < LOSSES[decision.arm] else -1.0)
    return pi


def found_after(shares: Floats) -> int:
    """Return the first round from which a share stays at 1/2 or more, or the number of rounds.

    >>> found_after(np.repeat([0.1, 0.9, 0.2, 0.8], [5, 50, 5, 300]))
    60
    """
    below = np.concatenate([[-1], np.flatnonzero(shares < 0.5), [len(shares)]])
    stays = np.flatnonzero(np.diff(below) > STAYS)
    return int(below[stays[0]]) + 1 if len(stays) else len(shares)


def result_of(tuning: str, fresh: float | None, rounds: int, seed: int) -> tuple[int, float]:
    """Return the rounds until the new arm is found, and the regret since it was added."""
    rng = np.random.default_rng(seed)
    policy = bw.LCTsallisINF(tuning=tuning).start(problem_with(4), rng=seed)  # type: ignore[arg-type]
    played(policy, rounds, rng)
    policy.change(problem_with(5), fresh=fresh)
    pi = played(policy, rounds, rng)
    return found_after(pi[:, 4]), float((pi @ np.array(LOSSES) - min(LOSSES)).sum())


def main() -> int:
    """Play all, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000, help="before the arm comes, and after it")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--tunings", nargs="+", default=["certified", "matched"])
    options = parser.parse_args()
    print("| a new arm begins |" + "".join(f" `{tuning}`: found after, lost |" for tuning in options.tunings))
    print("|---|" + "---|" * len(options.tunings))
    for name, fresh in FRESH.items():
        cells = []
        for tuning in options.tunings:
            results = [result_of(tuning, fresh, options.rounds, seed) for seed in range(options.seeds)]
            rounds, lost = np.mean(results, axis=0)
            cells.append(f"{rounds:,.0f} rounds, {lost:,.0f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
