"""First decisions: which banner to show in the morning and in the evening, learnt from clicks.

    python examples/first_decisions.py

One simulated world, the same visitors for every tuning. The click rates are known to the simulation only.
"""

from collections.abc import Callable

import numpy as np

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TuningName

BANNERS = ["red", "blue", "green"]
CLICK_RATES = {"morning": [0.05, 0.20, 0.10], "evening": [0.25, 0.10, 0.05]}
SHARE_OF_MORNINGS = 0.4
VISITORS = 20_000
TUNINGS: tuple[TuningName, ...] = ("paper", "certified", "matched")


def play(policy: bw.Policy, seed: int = 1) -> list[int]:
    """Show banners to all visitors; return who clicked, 1 or 0 each."""
    visitors = np.random.default_rng(seed)
    clicks = []
    for _ in range(VISITORS):
        moment = "morning" if visitors.random() < SHARE_OF_MORNINGS else "evening"
        decision = policy.act(moment)
        click = int(visitors.random() < CLICK_RATES[moment][decision.arm])
        policy.update(decision, reward=click)  # no click is reward=0, not "no update"
        clicks.append(click)
    return clicks


def expected(choose: str) -> float:
    """Return the expected clicks of always the best banner, or of banners at random."""
    of: Callable[[list[float]], float] = max if choose == "best" else lambda rates: sum(rates) / len(rates)
    shares = {"morning": SHARE_OF_MORNINGS, "evening": 1.0 - SHARE_OF_MORNINGS}
    return VISITORS * sum(share * of(CLICK_RATES[moment]) for moment, share in shares.items())


def stated() -> bw.Problem:
    """Return what is known beforehand."""
    return bw.Problem.from_sample(
        ["morning", "evening"], weights=[SHARE_OF_MORNINGS, 1.0 - SHARE_OF_MORNINGS], arms=BANNERS, reward_range=(0, 1)
    )


def main() -> None:
    """Play the world with every tuning and show what was learnt."""
    problem = stated()
    print(problem.describe(), end="\n\n")
    print(f"{VISITORS:,} visitors; banners at random would get about {expected('random'):,.0f} clicks,")
    print(f"always the best banner about {expected('best'):,.0f}\n")
    for tuning in TUNINGS:
        policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=7)
        print(f"{tuning}: {sum(play(policy)):,} clicks; now shown")
        for name in problem.contexts:
            shares = zip(BANNERS, policy.probabilities(name), strict=True)
            print(f"  {name}: " + ", ".join(f"{banner} {share:.1%}" for banner, share in shares))


if __name__ == "__main__":
    main()
