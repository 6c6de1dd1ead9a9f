"""How the adaptive tuning goes on beyond the scoreboard's horizon: regret at T/16, T/4 and T.

python benchmarks/horizons.py [--horizon 320000] [--replications 8]

The first tuning instance of three sizes of the scoreboard, means over them.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import bothworlds as bw

sys.path.insert(0, str(Path(__file__).parent.parent / "studies"))
from board import worlds

REGIMES = ("adaptive adversary", "+-1 noise", "alternating")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=320_000)
    parser.add_argument("--replications", type=int, default=8)
    options = parser.parse_args()
    T = options.horizon
    players = {
        "adaptive": bw.LCTsallisINF(tuning="adaptive"),
        "adaptive, slope 0.5, scale 0.75": bw.LCTsallisINF(tuning=bw.Adaptive(slope=0.5, scale=0.75)),
        "certified": bw.LCTsallisINF(tuning="certified"),
    }
    marks = [T // 16, T // 4, T]
    for regime in REGIMES:
        made = [worlds.world(worlds.Cell(regime, size, 0), "tuning", T) for size in worlds.SIZES[:3]]
        for label, player in players.items():
            runs = [
                bw.simulate(
                    one, {"": player}, horizon=T, replications=options.replications, rng=0, checkpoints=marks, threads=1
                )[""].regret
                for one in made
            ]
            print(f"{regime:>20} {label:>32}", *(f"{value:>8.0f}" for value in np.mean(runs, axis=0)), flush=True)


if __name__ == "__main__":
    main()
