"""Traffic that is not what was stated: a device four times as large, and visitors of a kind never seen.

    python studies/traffic.py                        two tables, in a minute or two
    python studies/traffic.py --seeds 8 --figure docs/figures/fourfold.svg

Click rates of 1 to 6 % are linear in device and visitor, with effects of their own for each of four banners. After a
quarter of the rounds tablets come four times as often. docs/production.md has the figures.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds.kernels.arrays import Floats
from bothworlds.problem.storage import write_bytes
from bothworlds.report.chart import Chart, Line, Mark
from bothworlds.report.palette import Style
from bothworlds.report.svg import standalone
from bothworlds.theory.traffic import expected_estimate

BANNERS = ["red", "blue", "green", "gold"]
DEVICES = {"mobile": 0.55, "desktop": 0.30, "tablet": 0.15}
VISITORS = {"new": 0.6, "known": 0.4}
EVERY = 500  # rounds between two laws
PROBE = 250  # rounds between two looks
LAWS = ["fixed", "estimated", "drifting", "told at once"]
ROWS = [(device, visitor) for device in DEVICES for visitor in VISITORS]


@dataclass(frozen=True)
class World:
    """Contexts, click rates (contexts, banners), and the law before and after the turn."""

    problem: bw.Problem
    rates: Floats
    before: Floats
    after: Floats


def world(seed: int) -> World:
    """Return a world with rates that are linear in device and visitor for every banner."""
    rng = np.random.default_rng(seed)
    effects = rng.uniform(0.005, 0.03, size=(len(DEVICES), len(BANNERS)))
    more = rng.uniform(0.005, 0.03, size=(len(VISITORS), len(BANNERS)))
    rates = np.array([effects[d] + more[v] for d in range(len(DEVICES)) for v in range(len(VISITORS))])
    law = np.array([DEVICES[device] * VISITORS[visitor] for device, visitor in ROWS])
    larger = law * np.array([4.0 if device == "tablet" else 1.0 for device, _ in ROWS])
    problem = bw.Problem.from_sample(ROWS, weights=law, arms=BANNERS, reward_range=(0, 1))
    return World(problem, rates, problem.probabilities, larger / larger.sum())


@dataclass
class Seen:
    """What was seen on the way: rounds, clicks lost so far, and the least and largest expected estimate of a loss."""

    rounds: list[int]
    lost: list[float]
    least: list[float]
    largest: list[float]

    def note(self, t: int, lost: float, least: float, largest: float) -> None:
        """Add a look."""
        self.rounds.append(t)
        self.lost.append(lost)
        self.least.append(least)
        self.largest.append(largest)


def play(made: World, tuning: str, law: str, *, rounds: int, seed: int) -> Seen:
    """Play one policy; every look is exact given its plan."""
    rng = np.random.default_rng(seed)
    policy = bw.LCTsallisINF(tuning=tuning).start(made.problem, rng=seed)  # type: ignore[arg-type]
    mix = mix_of(law, made.before)
    turn, seen, total = rounds // 4, Seen([], [], [], []), 0.0
    for t in range(rounds):
        true = made.before if t < turn else made.after
        if t % PROBE == 0:
            total += PROBE * lost_now(made, policy.probabilities(), true)
            seen.note(t, total, *estimates(made, policy, true))
        if t % EVERY == 0 and t and mix is not None:
            mix = policy.follow(mix)
        if law == "told at once" and t == turn:
            policy.change_probabilities(made.after)
        decision = policy.act(int(rng.choice(len(true), p=true)))
        policy.update(decision, reward=float(rng.random() < made.rates[decision.context, decision.arm]))
    return seen


def mix_of(law: str, prior: Floats) -> bw.TrafficMix | None:
    """Return the mix that a policy follows, if it does."""
    if law == "estimated":
        return bw.TrafficMix.estimated(prior, strength=100)
    return bw.TrafficMix.drifting(prior, window=1000, strength=100) if law == "drifting" else None


def lost_now(made: World, pi: Floats, true: Floats) -> float:
    """Return the clicks that a decision loses to the best banner of each context."""
    return float(true @ (made.rates.max(axis=1) - (pi * made.rates).sum(axis=1)))


def estimates(made: World, policy: bw.Policy, true: Floats) -> tuple[float, float]:
    """Return the least and the largest expected estimate of a loss, by enumeration; losses are 0.88 to 0.98."""
    z, stated = policy._machine.known.z, policy.problem.probabilities
    predicted = policy.plan().act(0, id="a look").baseline
    mean = expected_estimate(
        z, policy.probabilities(), 1.0 - 2.0 * made.rates, stated=stated, true=true, predicted=predicted
    )
    found = z @ mean
    return float(found.min()), float(found.max())


def alarm_after(made: World, *, batch: int = 50, seed: int) -> int:
    """Return how many contexts after the turn a `DriftAlarm` speaks, at 1 %; 5,000 went before."""
    rng = np.random.default_rng(seed)
    alarm = bw.DriftAlarm.against(made.before)
    for _ in range(5000 // batch):
        alarm = alarm.observe(rng.multinomial(batch, made.before))
    if alarm.drift.p_value < 0.01:
        return -1
    count = 0
    while alarm.drift.p_value >= 0.01:
        alarm, count = alarm.observe(rng.multinomial(batch, made.after)), count + batch
    return count


def unknown(seed: int, *, rounds: int, share: float = 0.1) -> dict[str, tuple[float, float]]:
    """Return the percentage of clicks that is lost with visitors on a watch, never seen before, and with the others."""
    made, rng = world(seed), np.random.default_rng(seed)
    own = made.rates[::-1].mean(axis=0) * rng.uniform(0.5, 1.5, size=len(BANNERS))
    sample, weights = [*ROWS, ("phablet", "new"), ("console", "new")], [*(0.97 * made.before), 0.02, 0.01]
    options: Any = {"arms": BANNERS, "reward_range": (0, 1)}
    desktop = bw.Problem.from_sample(ROWS, weights=made.before, other="desktop, new", **options)
    rest = bw.Problem.from_sample(sample, weights=weights, other="the rest", rare=0.025, **options)
    ways = {
        "at random, not learnt": made.problem,
        "taken for a desktop": desktop,
        "the rest, made of rare rows": rest,
        "the rest, law followed": rest,
    }
    return {way: _with_watches(problem, way, made, own, share, rounds, seed) for way, problem in ways.items()}


def _with_watches(
    problem: bw.Problem, way: str, made: World, own: Floats, share: float, rounds: int, seed: int
) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    policy = bw.LCTsallisINF(tuning="matched").start(problem, rng=seed)
    mix = bw.TrafficMix.estimated(problem.probabilities, strength=100) if "followed" in way else None
    lost, best = np.zeros(2), np.zeros(2)
    for t in range(rounds):
        watch = rng.random() < share
        x = int(rng.choice(len(ROWS), p=made.before))
        rates = own if watch else made.rates[x]
        if watch and way.startswith("at random"):
            arm = int(rng.integers(len(BANNERS)))
        else:
            decision = policy.act(("watch", "new") if watch else ROWS[x])
            arm = decision.arm
            policy.update(decision, reward=float(rng.random() < rates[arm]))
        lost[int(watch)] += rates.max() - rates[arm]
        best[int(watch)] += rates.max()
        if mix is not None and t % EVERY == EVERY - 1:
            mix = policy.follow(mix)
    return float(100 * lost[1] / best[1]), float(100 * lost[0] / best[0])


def chart_of(paths: dict[str, list[Seen]], rounds: int, alarm: float) -> Chart:
    """Return the figure: the range of expected estimates of losses over time, one band for each law."""
    lines = []
    for number, law in enumerate(("fixed", "estimated", "drifting")):
        found = paths[law]
        x = np.array(found[0].rounds, dtype=np.float64)
        least, largest = (np.mean([getattr(path, part) for path in found], axis=0) for part in ("least", "largest"))
        style = Style((0, 1, 3)[number], "")
        lines.append(Line(label=law, number=number, style=style, x=x, y=(least + largest) / 2, low=least, high=largest))
    return Chart(
        name="fourfold",
        title="Tablets come four times as often",
        description="expected estimates of losses, which are 0.88 to 0.98: the middle, and from least to largest",
        y_label="estimated loss",
        x_log=False,
        lines=lines,
        marks=[Mark(start=rounds / 4, end=rounds / 4 + alarm, text="until the alarm")],
    )


def main() -> int:
    """Play, print the tables, and draw the figure if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=4, help="worlds")
    parser.add_argument("--tunings", nargs="+", default=["certified", "matched"])
    parser.add_argument("--figure", type=Path, help="write the figure to this file, .svg")
    options = parser.parse_args()
    seeds, rounds = range(options.seeds), options.rounds
    alarms = [alarm_after(world(seed), seed=seed) for seed in seeds]
    print(f"the alarm speaks {np.mean(alarms):.0f} contexts after the turn ({min(alarms)} to {max(alarms)})\n")
    print("| tuning | law | expected estimates of losses, last tenth | clicks lost after the turn |\n|---|---|---|---|")
    drawn: dict[str, list[Seen]] = {}
    for tuning in options.tunings:
        for law in LAWS:
            paths = [play(world(seed), tuning, law, rounds=rounds, seed=seed) for seed in seeds]
            drawn.setdefault(law, paths)
            last = rounds // PROBE // 10
            least, largest = (
                np.mean([path.least[-last:] for path in paths]),
                np.mean([path.largest[-last:] for path in paths]),
            )
            lost = [path.lost[-1] - path.lost[rounds // 4 // PROBE] for path in paths]
            error = np.std(lost, ddof=1) / np.sqrt(len(lost)) if len(lost) > 1 else 0.0
            print(
                f"| `{tuning}` | {law} | {least:.2f} to {largest:.2f} | {np.mean(lost):.0f} ± {error:.0f} |", flush=True
            )
    print("\n| a tenth of the visitors is never seen before: they are | lost of their clicks | of the others' |")
    print("|---|---|---|")
    found = [unknown(seed, rounds=rounds) for seed in seeds]
    for way in found[0]:
        mine = np.mean([one[way] for one in found], axis=0)
        print(f"| {way} | {mine[0]:.0f} % | {mine[1]:.0f} % |")
    if options.figure:
        write_bytes(options.figure, standalone(chart_of(drawn, rounds, float(np.mean(alarms)))).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
