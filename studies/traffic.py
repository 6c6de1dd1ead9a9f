"""A wrong context distribution: a device four times as frequent as stated, and visitors of an unlisted kind.

    python studies/traffic.py                        two tables, in a minute or two
    python studies/traffic.py --seeds 8 --figure docs/figures/fourfold.svg

Click rates of 1 to 6 % are linear in device and visitor, with separate effects for each of four banners. After a
quarter of the rounds tablets become four times as frequent. research/production.md has the figures.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.problem.file_format import write_bytes
from bothworlds.report.chart import Chart, Line, Mark
from bothworlds.report.palette import Style
from bothworlds.report.svg import standalone
from context_distribution_bias import expected_estimate

BANNERS = ["red", "blue", "green", "gold"]
DEVICES = {"mobile": 0.55, "desktop": 0.30, "tablet": 0.15}
VISITORS = {"new": 0.6, "known": 0.4}
UPDATE_EVERY = 500  # rounds between updates of the context distribution
MEASURE_EVERY = 250  # rounds between measurements
DISTRIBUTIONS = ["fixed", "estimated", "drifting", "known at once"]
ROWS = [(device, visitor) for device in DEVICES for visitor in VISITORS]


@dataclass(frozen=True)
class World:
    """Problem, click rates (contexts, banners), and the context distribution before and after the change."""

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
    distribution = np.array([DEVICES[device] * VISITORS[visitor] for device, visitor in ROWS])
    changed = distribution * np.array([4.0 if device == "tablet" else 1.0 for device, _ in ROWS])
    problem = bw.Problem.from_sample(ROWS, weights=distribution, arms=BANNERS, reward_range=(0, 1))
    return World(problem, rates, problem.probabilities, changed / changed.sum())


@dataclass
class RunPath:
    """Measurements along a run: rounds, clicks lost so far, and the least and largest expected estimate of a loss."""

    rounds: list[int]
    lost: list[float]
    least: list[float]
    largest: list[float]

    def add(self, t: int, lost: float, least: float, largest: float) -> None:
        """Add a measurement."""
        self.rounds.append(t)
        self.lost.append(lost)
        self.least.append(least)
        self.largest.append(largest)


def play(setting: World, tuning: str, distribution: str, *, rounds: int, seed: int) -> RunPath:
    """Play one policy; measurements are exact given its plan."""
    rng = np.random.default_rng(seed)
    policy = bw.LCTsallisINF(tuning=tuning).start(setting.problem, rng=seed)  # type: ignore[arg-type]
    mix = mix_of(distribution, setting.before)
    change, path, total = rounds // 4, RunPath([], [], [], []), 0.0
    for t in range(rounds):
        true = setting.before if t < change else setting.after
        if t % MEASURE_EVERY == 0:
            total += MEASURE_EVERY * lost_now(setting, policy.probabilities(), true)
            path.add(t, total, *estimates(setting, policy, true))
        if t % UPDATE_EVERY == 0 and t and mix is not None:
            mix = policy.follow(mix)
        if distribution == "known at once" and t == change:
            policy.change_probabilities(setting.after)
        decision = policy.act(int(rng.choice(len(true), p=true)))
        policy.update(decision, reward=float(rng.random() < setting.rates[decision.context, decision.arm]))
    return path


def mix_of(distribution: str, prior: Floats) -> bw.TrafficMix | None:
    """Return the traffic mix that a policy follows, or None."""
    if distribution == "estimated":
        return bw.TrafficMix.estimated(prior, strength=100)
    return bw.TrafficMix.drifting(prior, window=1000, strength=100) if distribution == "drifting" else None


def lost_now(setting: World, pi: Floats, true: Floats) -> float:
    """Return the clicks that a decision loses to the best banner of each context."""
    return float(true @ (setting.rates.max(axis=1) - (pi * setting.rates).sum(axis=1)))


def estimates(setting: World, policy: bw.Policy, true: Floats) -> tuple[float, float]:
    """Return the least and the largest expected estimate of a loss, by enumeration; losses are 0.88 to 0.98."""
    z, stated = policy._machine.known.z, policy.problem.probabilities
    predicted = policy.plan().act(0, id="measurement").baseline
    mean = expected_estimate(
        z, policy.probabilities(), 1.0 - 2.0 * setting.rates, stated=stated, true=true, predicted=predicted
    )
    estimated = z @ mean
    return float(estimated.min()), float(estimated.max())


def alarm_after(setting: World, *, batch: int = 50, seed: int) -> int:
    """Return the number of contexts after the change until a `DriftAlarm` at 1 %; 5,000 contexts precede the change."""
    rng = np.random.default_rng(seed)
    alarm = bw.DriftAlarm.against(setting.before)
    for _ in range(5000 // batch):
        alarm = alarm.observe(rng.multinomial(batch, setting.before))
    if alarm.drift.p_value < 0.01:
        return -1
    count = 0
    while alarm.drift.p_value >= 0.01:
        alarm, count = alarm.observe(rng.multinomial(batch, setting.after)), count + batch
    return count


def unknown(seed: int, *, rounds: int, share: float = 0.1) -> dict[str, tuple[float, float]]:
    """Return the percentage of clicks that is lost with visitors on a watch, never seen before, and with the others."""
    setting, rng = world(seed), np.random.default_rng(seed)
    watch_rates = setting.rates[::-1].mean(axis=0) * rng.uniform(0.5, 1.5, size=len(BANNERS))
    sample, weights = [*ROWS, ("phablet", "new"), ("console", "new")], [*(0.97 * setting.before), 0.02, 0.01]
    options: Any = {"arms": BANNERS, "reward_range": (0, 1)}
    desktop = bw.Problem.from_sample(ROWS, weights=setting.before, other="desktop, new", **options)
    rest = bw.Problem.from_sample(sample, weights=weights, other="the rest", rare=0.025, **options)
    treatments = {
        "played at random, not learned": setting.problem,
        "treated as a desktop": desktop,
        "the rest, made of rare rows": rest,
        "the rest, distribution followed": rest,
    }
    return {
        name: _with_watches(problem, name, setting, watch_rates, share, rounds, seed)
        for name, problem in treatments.items()
    }


def _with_watches(
    problem: bw.Problem, treatment: str, setting: World, watch_rates: Floats, share: float, rounds: int, seed: int
) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    policy = bw.LCTsallisINF(tuning="matched").start(problem, rng=seed)
    mix = bw.TrafficMix.estimated(problem.probabilities, strength=100) if "followed" in treatment else None
    lost, best = np.zeros(2), np.zeros(2)
    for t in range(rounds):
        watch = rng.random() < share
        x = int(rng.choice(len(ROWS), p=setting.before))
        rates = watch_rates if watch else setting.rates[x]
        if watch and treatment.startswith("played at random"):
            arm = int(rng.integers(len(BANNERS)))
        else:
            decision = policy.act(("watch", "new") if watch else ROWS[x])
            arm = decision.arm
            policy.update(decision, reward=float(rng.random() < rates[arm]))
        lost[int(watch)] += rates.max() - rates[arm]
        best[int(watch)] += rates.max()
        if mix is not None and t % UPDATE_EVERY == UPDATE_EVERY - 1:
            mix = policy.follow(mix)
    return float(100 * lost[1] / best[1]), float(100 * lost[0] / best[0])


def chart_of(paths: dict[str, list[RunPath]], rounds: int, alarm: float) -> Chart:
    """Return the figure: the range of expected estimates of losses over time, a band for each kind of distribution."""
    lines = []
    for number, name in enumerate(("fixed", "estimated", "drifting")):
        runs = paths[name]
        x = np.array(runs[0].rounds, dtype=np.float64)
        least, largest = (np.mean([getattr(path, part) for path in runs], axis=0) for part in ("least", "largest"))
        style = Style((0, 1, 3)[number], "")
        lines.append(
            Line(label=name, number=number, style=style, x=x, y=(least + largest) / 2, low=least, high=largest)
        )
    return Chart(
        name="fourfold",
        title="Tablets become four times as frequent",
        description="expected estimates of losses, which are 0.88 to 0.98: the middle, and from least to largest",
        y_label="estimated loss",
        x_log=False,
        lines=lines,
        marks=[Mark(start=rounds / 4, end=rounds / 4 + alarm, text="until the alarm")],
    )


def main() -> int:
    """Play, print the tables, and draw the figure if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=4, help="worlds")
    parser.add_argument("--tunings", nargs="+", default=["certified", "matched"])
    parser.add_argument("--figure", type=Path, help="write the figure to this file, .svg")
    options = parser.parse_args()
    seeds, rounds = range(options.seeds), options.rounds
    alarms = [alarm_after(world(seed), seed=seed) for seed in seeds]
    print(f"the alarm comes {np.mean(alarms):.0f} contexts after the change ({min(alarms)} to {max(alarms)})\n")
    print(
        "| tuning | distribution | expected estimates of losses, last tenth | clicks lost after the change |\n"
        "|---|---|---|---|"
    )
    drawn: dict[str, list[RunPath]] = {}
    for tuning in options.tunings:
        for distribution in DISTRIBUTIONS:
            paths = [play(world(seed), tuning, distribution, rounds=rounds, seed=seed) for seed in seeds]
            drawn.setdefault(distribution, paths)
            last = rounds // MEASURE_EVERY // 10
            least, largest = (
                np.mean([path.least[-last:] for path in paths]),
                np.mean([path.largest[-last:] for path in paths]),
            )
            lost = [path.lost[-1] - path.lost[rounds // 4 // MEASURE_EVERY] for path in paths]
            error = np.std(lost, ddof=1) / np.sqrt(len(lost)) if len(lost) > 1 else 0.0
            print(
                f"| `{tuning}` | {distribution} | {least:.2f} to {largest:.2f} | {np.mean(lost):.0f} ± {error:.0f} |",
                flush=True,
            )
    print("\n| treatment of the tenth of the visitors that is unlisted | their clicks lost | those of the others |")
    print("|---|---|---|")
    results = [unknown(seed, rounds=rounds) for seed in seeds]
    for treatment in results[0]:
        means = np.mean([result[treatment] for result in results], axis=0)
        print(f"| {treatment} | {means[0]:.0f} % | {means[1]:.0f} % |")
    if options.figure:
        write_bytes(options.figure, standalone(chart_of(drawn, rounds, float(np.mean(alarms)))).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
