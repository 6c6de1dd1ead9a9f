"""A year of banners, forty added and forty retired every month: policies that change or restart, against an oracle.

    python studies/banners.py                                    # small: a few minutes
    python studies/banners.py --banners 40 --rounds 10000 --seeds 6 --figure docs/figures/banners.svg
    python studies/banners.py --own 0.03 --rounds 10000 --seeds 6          # with an individual effect of each banner

A banner stays for two months, so that twice as many are shown at a time. Click rates lie between 1 and 25 percent and
are linear in 20 features: those of the visitor, five numbers of the banner, and interactions. With ``--own`` every
banner has an individual effect in addition, and a column for it in the features, which only showing it reveals.

Players, all with the same algorithm: ``restart`` starts a new policy every month; ``change`` uses ``policy.change``;
``change, fresh=1`` starts new banners at the mean of the others; ``no change`` plays the banners of the first month all
year, which shows the regret without changes. Regret counts clicks lost to an oracle that knows all click rates and
shows each visitor the best banner of the month. Feedback comes in batches.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats, Ints
from bothworlds.problem.file_format import write_bytes
from bothworlds.report.chart import Chart, Line
from bothworlds.report.palette import Style
from bothworlds.report.svg import standalone

MONTHS = 12
BATCH = 20
RATES = (0.01, 0.25)
VISITORS = list(product((0, 1), (0, 1, 2), (0, 1)))  # device, time of day, new or known


class World(NamedTuple):
    """Visitors' probabilities, features (visitors, banners, 20) and click rates (visitors, banners) of a whole year."""

    g: Floats
    features: Floats
    rates: Floats
    own: bool


def make_world(seed: int, banners: int, own: float) -> World:
    """Draw a year of banners."""
    rng = np.random.default_rng([seed, banners])
    g = np.array([(0.6, 0.4)[d] * (0.3, 0.3, 0.4)[t] * (0.7, 0.3)[v] for d, t, v in VISITORS])
    banner_attributes = rng.uniform(-1.0, 1.0, size=(banners * (MONTHS + 1), 5))
    features = np.array(
        [[features_of(visitor, attributes) for attributes in banner_attributes] for visitor in VISITORS]
    )
    weights = rng.normal(size=20) * np.repeat([0.0, 0.5, 1.0, 0.6, 0.4], [1, 4, 5, 5, 5])
    raw = features @ weights
    low, high = RATES
    rates = low + (high - low) * (raw - raw.min()) / (raw.max() - raw.min())
    rates = np.clip(rates + own * rng.normal(size=len(banner_attributes)), 0.002, 0.5)
    return World(g, features, rates, own > 0.0)


def features_of(visitor: tuple[int, ...], attributes: Floats) -> Floats:
    """Return the features of a visitor and a banner."""
    device, hour, known = visitor
    visitor_features = [1.0, device, hour == 1, hour == 2, known]
    return np.concatenate([visitor_features, attributes, (2 * device - 1) * attributes, (2 * known - 1) * attributes])


def problem_of(world: World, shown: Ints) -> bw.Problem:
    """Return the problem of the banners shown in a month, with one-hot columns if banners have individual effects."""
    features = world.features[:, shown]
    if world.own:
        one_hot = np.broadcast_to(np.eye(len(shown)), (len(VISITORS), len(shown), len(shown)))
        features = np.concatenate([features, one_hot], axis=2)
    return bw.Problem(
        features=features,
        probabilities=world.g,
        contexts=["-".join(map(str, visitor)) for visitor in VISITORS],
        arms=[f"banner {i}" for i in shown],
        reward_range=(0, 1),
    )


def year(world: World, tuning: str, player: str, *, banners: int, rounds: int, seed: int) -> Floats:
    """Play a year; return the cumulative regret in clicks after each batch."""
    # A design in each context takes half a second here, where the default takes eight, and covers as much.
    algorithm = bw.LCTsallisINF(tuning=tuning, design="per-context")  # type: ignore[arg-type]
    rng = np.random.default_rng([seed, 7])
    policy, lost = None, []
    for month in range(MONTHS):
        first = 0 if player == "no change" else month
        shown = np.arange(first * banners, (first + 2) * banners)
        problem = problem_of(world, shown)
        if policy is None or player == "restart":
            policy = algorithm.start(problem, rng=1000 * seed + month)
        else:
            policy.change(problem, **fresh_of(player))
        lost += play(policy, world.rates[:, shown], rounds, rng)
    return np.cumsum(lost)


def fresh_of(player: str) -> dict[str, float]:
    """Return the option in a player's name, if there is one.

    >>> fresh_of("change, fresh=0.5"), fresh_of("change")
    ({'fresh': 0.5}, {})
    """
    _, _, value = player.partition("fresh=")
    return {"fresh": float(value)} if value else {}


def play(policy: bw.Policy, rates: Floats, rounds: int, rng: np.random.Generator) -> list[float]:
    """Play a month in batches; return the regret of each batch."""
    best, lost = rates.max(axis=1), []
    for _ in range(rounds // BATCH):
        xs = rng.choice(len(best), size=BATCH, p=policy.problem.probabilities)
        decisions = policy.act(xs.tolist())
        rate = rates[xs, [decision.arm for decision in decisions]]
        policy.update(decisions, reward=(rng.random(BATCH) < rate).astype(float))
        lost.append(float((best[xs] - rate).sum()))
    return lost


def played(options: argparse.Namespace) -> Iterator[tuple[str, str, Floats]]:
    """Play all combinations; yield tuning, player and the paths of all seeds."""
    worlds = [make_world(seed, options.banners, options.own) for seed in range(options.seeds)]
    for tuning, player in product(options.tunings, options.players):
        start, sizes = time.perf_counter(), {"banners": options.banners, "rounds": options.rounds}
        paths = [year(world, tuning, player, seed=seed, **sizes) for seed, world in enumerate(worlds)]
        print(f"{tuning}, {player}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        yield tuning, player, np.array(paths)


def row_of(tuning: str, player: str, paths: Floats, months: int = MONTHS) -> str:
    """Return a row of the table: regret of the first month, mean of the later months, and of the year."""
    ends = paths[:, np.linspace(0, paths.shape[1], months + 1).astype(int)[1:] - 1]
    later = (ends[:, -1] - ends[:, 0]) / (months - 1)
    error = ends[:, -1].std(ddof=1) / np.sqrt(len(ends)) if len(ends) > 1 else 0.0
    last = (ends[:, -1] - ends[:, -4]).mean() / 3
    total = f"{ends[:, -1].mean():,.0f} ± {error:,.0f}"
    cells = [f"{ends[:, 0].mean():,.0f}", f"{later.mean():,.0f}", f"{last:,.0f}", total]
    return f"| `{tuning}` | {player} | {' | '.join(cells)} |"


def chart_of(results: list[tuple[str, str, Floats]], rounds: int) -> Chart:
    """Return the figure: cumulative regret of every player, with standard errors."""
    dashes = {"restart": "7 4", "change": "", "no change": "2 3"}
    colours = {"certified": 0, "matched": 1}
    lines = []
    for number, (tuning, player, paths) in enumerate(results):
        mean, error = paths.mean(axis=0), paths.std(axis=0) / np.sqrt(max(len(paths) - 1, 1))
        x = np.arange(1, paths.shape[1] + 1) * BATCH / rounds
        thinned = slice(None, None, max(1, len(x) // 300))
        style = Style(colours.get(tuning, 3), dashes.get(player, "9 3 2 3"))
        parts = {"x": x[thinned], "y": mean[thinned], "low": (mean - error)[thinned], "high": (mean + error)[thinned]}
        lines.append(Line(label=f"{tuning}, {player}", number=number, style=style, **parts))
    return Chart(
        name="banners",
        title="A year of banners",
        description="cumulative clicks lost to an oracle that knows all click rates; bands are standard errors",
        y_label="clicks lost",
        x_label="months",
        x_log=False,
        lines=lines,
    )


def main() -> int:
    """Play, print the table, and draw the figure if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banners", type=int, default=8, help="number of new banners every month")
    parser.add_argument("--rounds", type=int, default=2000, help="decisions per month")
    parser.add_argument("--seeds", type=int, default=2, help="worlds")
    parser.add_argument(
        "--own", type=float, default=0.0, help="spread of the banners' individual effects on click rates"
    )
    parser.add_argument("--tunings", nargs="+", default=["certified", "matched"])
    parser.add_argument("--players", nargs="+", default=["restart", "change", "no change"])
    parser.add_argument("--figure", type=Path, help="write the figure to this file, .svg")
    options = parser.parse_args()
    results = []
    print("| tuning | player | first month | later months, each | last three, each | year |\n|---|---|---|---|---|---|")
    for result in played(options):
        results.append(result)
        print(row_of(*result), flush=True)
    if options.figure:
        write_bytes(options.figure, standalone(chart_of(results, options.rounds)).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
