"""The pictures of docs/gallery.md, drawn from what the examples play: two minutes on two cores.

python tools/gallery.py
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats, Ints
from bothworlds.report.chart import Chart, Line
from bothworlds.report.notebook import chart_of
from bothworlds.report.palette import Style, styles
from bothworlds.report.svg import standalone

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
POINTS = 120  # of a curve

sys.path.insert(0, str(ROOT / "examples"))


def look_of(label: str, place: int) -> Style:
    """Return the style an algorithm has on every page, or one of its own."""
    tuning = next((word for word in ("paper", "certified", "matched") if label.endswith(word)), None)
    kind = {"kind": "LCTsallisINF", "tuning": tuning} if tuning else {"kind": label}
    return styles([{"kind": f"other {i}"} for i in range(place)] + [kind])[-1]


def curves(name: str, title: str, y_label: str, x: Floats | Ints, lines: Mapping[str, Floats], **options: str) -> Chart:
    """Return a chart of some curves over the same numbers."""
    kept = np.unique(np.linspace(0, len(x) - 1, POINTS).astype(int))
    drawn = [
        Line(label=label, number=place, style=look_of(label, place), x=x[kept].astype(np.float64), y=y[kept])
        for place, (label, y) in enumerate(lines.items())
    ]
    lowest, highest = min(float(line.y.min()) for line in drawn), max(float(line.y.max()) for line in drawn)
    limits = (min(0.0, 1.05 * lowest), 1.05 * highest)
    text = f"{title}: {y_label}. At the end: " + "; ".join(f"{line.label} {line.y[-1]:,.0f}" for line in drawn)
    x_label = options.get("x_label", "visitors")
    return Chart(
        name=name,
        title=title,
        description=text,
        y_label=y_label,
        x_label=x_label,
        lines=drawn,
        x_log=False,
        y_limits=limits,
    )


def first_decisions() -> Chart:
    """Clicks missed against always the best banner."""
    import first_decisions as example

    x = np.arange(1, example.VISITORS + 1)
    best = example.expected("best") / example.VISITORS * x
    missed: dict[str, Floats] = {}
    for tuning in example.TUNINGS:
        policy = bw.LCTsallisINF(tuning=tuning).start(example.stated(), rng=7)
        missed[tuning] = best - np.cumsum(example.play(policy))
    missed["at random"] = best - example.expected("random") / example.VISITORS * x
    return curves("first-decisions", "Banners in the morning and in the evening", "clicks missed", x, missed)


def ads_with_fatigue() -> Chart:
    """Clicks gained over the best ad at the start, shown for good."""
    import ads_with_fatigue as example

    results = example.played()
    fixed = example.clicks(results, "best ad at the start, always")
    shown = [name for name in results.runs if name not in ("best ad at the start, always", "ads at random")]
    gained = {name.replace(", ", " "): example.clicks(results, name) - fixed for name in shown}
    title = "Ads that tire"
    return curves("ads-with-fatigue", title, "clicks beyond the best ad at the start", results.checkpoints, gained)


def corrupted_experiment() -> Chart:
    """Regret against corruption."""
    import corrupted_experiment as example

    table = np.array([example.means(budget) for budget in example.BUDGETS]).T
    lines = {name: row for name, row in zip(example.ALGORITHMS, table, strict=True) if name != "uniform"}
    budgets = np.array(example.BUDGETS)
    title = "A corrupted experiment"
    return curves("corrupted-experiment", title, "regret", budgets, lines, x_label="corruption C of the first rounds")


def new_visitors() -> Chart:
    """Sales gained over discounts at random."""
    import new_visitors as example

    x, gained = np.arange(1, example.VISITORS + 1), {}
    for name, algorithm in example.learners().items():
        sold, evenly, best = np.cumsum(example.play(algorithm.start(example.stated(), rng=7)), axis=0).T
        gained[name] = sold - evenly
    gained["at best"] = best - evenly
    return curves("new-visitors", "Visitors who never come twice", "sales beyond chance", x, gained)


def softmax() -> Chart:
    """Regret against an adversary that sees the policy."""
    import softmax as example

    return chart_of(example.compared()["adaptive adversary"], log=True)


def own_world() -> Chart:
    """Regret in the market, of those who learn."""
    import own_world as example

    results = example.played()
    lines = {name: run.regret for name, run in results.runs.items() if name != "uniform"}
    title = "A market whose fashion changes"
    return curves("own-world", title, "regret", results.checkpoints, lines, x_label="round t")


DRAWN: tuple[Callable[[], Chart], ...] = (
    first_decisions, new_visitors, ads_with_fatigue, corrupted_experiment, softmax, own_world,
)  # fmt: skip


def main() -> None:
    """Draw all pictures, or those that are named."""
    for draw in DRAWN:
        name = draw.__name__.replace("_", "-")
        if not sys.argv[1:] or name in sys.argv[1:]:
            (FIGURES / f"gallery-{name}.svg").write_text(standalone(draw()), encoding="utf-8")
            print(name)


if __name__ == "__main__":
    main()
