"""Ads that tire: an ad shown often works less, so the best plan is a mixture, and no fixed arm is it.

    python examples/ads_with_fatigue.py

Nature reacts to the plays, so regret against a fixed arm does not tell; total clicks do, beside those of fixed plans
that are played again from the start.
"""

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.studies.fixed_policy_baselines import best_mixture

ROUNDS, REPLICATIONS = 300_000, 20  # small rates need many visits
CLICK_RATES = [[0.050, 0.040, 0.020], [0.020, 0.040, 0.045]]  # of fresh ads: two audiences, three ads


def world() -> en.Environment:
    """Return an audience: an ad shown all the time loses 2 points of its click rate, forgotten in some 200 rounds."""
    return en.ad_fatigue(click_rates=CLICK_RATES, probabilities=[0.6, 0.4], wear=0.02, memory=200)


def played() -> bw.Results:
    """Let learners and fixed plans play."""
    audience = world()
    fresh = np.argmax(CLICK_RATES, axis=1)
    players = {
        "best ad at the start, always": bw.FixedPolicy.always(fresh, 3),
        "best fixed mixture": bw.FixedPolicy(best_mixture(audience)),
        "ads at random": bw.FixedPolicy(),
        "LinUCB": bw.LinUCB(),
        "LC-Tsallis-INF, certified": bw.LCTsallisINF(tuning="certified"),
        "LC-Tsallis-INF, matched": bw.LCTsallisINF(tuning="matched"),
    }
    return bw.simulate(audience, players, horizon=ROUNDS, replications=REPLICATIONS, rng=7)


def clicks(results: bw.Results, name: str) -> Floats:
    """Return the mean clicks of a player up to each checkpoint: a click is loss -1, none is +1."""
    return np.asarray((results.checkpoints - results[name].expected.mean(axis=0)) / 2.0)


def main() -> None:
    """Count clicks."""
    results = played()
    print(f"clicks in {ROUNDS:,} rounds, mean of {REPLICATIONS} replications")
    for name in results.runs:
        print(f"{clicks(results, name)[-1]:>10,.0f}  {name}")


if __name__ == "__main__":
    main()
