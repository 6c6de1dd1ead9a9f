"""What the parts of the default rule contribute: the table of docs/explanation/default-rule.md.

    python studies/default_rule.py                      # about five minutes on one core
    python studies/default_rule.py --replications 2     # faster, and noisier

Regret on the instances of the scoreboard's family "tuning", on which the rule was tuned.
"""

import argparse
from collections.abc import Iterator

import numpy as np

import bothworlds as bw
from answers.page import table
from board import worlds

REGIMES = ["low noise", "+-1 noise", "adaptive adversary", "growing phases"]
REGIMES += ["rare clicks", "rare clicks, changing favourite"]
TUNINGS: dict[str, bw.Certified | bw.Matched] = {
    "certified": bw.Certified(),
    "matched": bw.Matched(),
    "without the move (2)": bw.Matched(drift_cap=0.0),
    "without caution (3)": bw.Matched(caution=0.0),
}


def cells(regime: str, horizon: int, replications: int) -> Iterator[str]:
    """Play a regime; yield the mean regret of every tuning with its standard error."""
    players = {name: bw.LCTsallisINF(tuning=tuning) for name, tuning in TUNINGS.items()}
    runs = [
        bw.simulate(
            worlds.world(cell, "tuning", horizon),
            players,
            horizon=horizon,
            replications=replications,
            rng=cell.number,
            checkpoints=[horizon],
            threads=1,
        )
        for cell in worlds.cells(horizon, 2, regimes=[regime])
    ]
    for name in TUNINGS:
        mean = np.mean([run[name].regret[-1] for run in runs])
        error = np.sqrt(np.sum([run[name].standard_error[-1] ** 2 for run in runs])) / len(runs)
        yield f"{mean:,.0f} ({error:.0f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--replications", type=int, default=8)
    options = parser.parse_args()
    rows = [(regime, *cells(regime, options.horizon, options.replications)) for regime in REGIMES]
    print(table(("world", *TUNINGS), rows))


if __name__ == "__main__":
    main()
