"""First decisions: which banner to show in the morning and in the evening, learnt from clicks.

python examples/first_decisions.py
"""

import numpy as np

import bothworlds as bw

BANNERS = ["red", "blue", "green"]
CLICK_RATES = {"morning": [0.05, 0.20, 0.10], "evening": [0.25, 0.10, 0.05]}
ROUNDS = 3000


def main() -> None:
    """Play a small world and show what was learnt."""
    problem = bw.Problem.from_sample(["morning", "evening"], weights=[0.4, 0.6], arms=BANNERS, reward_range=(0, 1))
    print(problem.describe(), end="\n\n")
    policy = bw.LCTsallisINF(tuning="adaptive").start(problem, rng=7)
    visitors = np.random.default_rng(1)
    clicks = 0
    for visit in range(1, ROUNDS + 1):
        moment = "morning" if visitors.random() < 0.4 else "evening"
        decision = policy.act(moment)
        click = int(visitors.random() < CLICK_RATES[moment][decision.arm])
        policy.update(decision, reward=click)  # no click is reward=0, not "no update"
        clicks += click
        if visit in (100, 1000, ROUNDS):
            print(f"after {visit:>5} visitors: {clicks:>4} clicks")
            for name in problem.contexts:
                shares = zip(BANNERS, policy.probabilities(name), strict=True)
                print(f"  {name}: " + ", ".join(f"{banner} {share:.1%}" for banner, share in shares))
    best = ROUNDS * (0.4 * 0.20 + 0.6 * 0.25)
    even = ROUNDS * np.average([np.mean(rates) for rates in CLICK_RATES.values()], weights=[0.4, 0.6])
    print(f"\n{clicks} clicks; always the best banner: about {best:.0f}, banners at random: about {even:.0f}")


if __name__ == "__main__":
    main()
