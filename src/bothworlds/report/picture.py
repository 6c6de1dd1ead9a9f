"""The main picture of a comparison: a few algorithms in two worlds, side by side, and what it says in numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.report.chart import Chart, Line, Picture
from bothworlds.report.palette import identity
from bothworlds.report.summary import Entry, Panel, Summary
from bothworlds.report.tables import number
from bothworlds.user_code import is_user_kind

NAME = "comparison"  # of the figure
MOST_LINES = 4
RANGE = (0.1, 0.9)  # quantiles of the band


DEFAULT, CERTIFIED, PAPER = (f"LCTsallisINF {tuning}" for tuning in ("matched", "certified", "paper"))
USUAL = (DEFAULT, CERTIFIED, "LinUCB", "RealLinExp3", "RealFTRL", PAPER)


class World(NamedTuple):
    """A panel of the picture: its title, the kind of environment that it shows, and the algorithms shown first."""

    title: str
    kind: str
    first: tuple[str, ...] = USUAL


STAYS = World("The world stays as it is", "stochastic")
REACTS = World("The world reacts to you", "adaptive-adversary")
CHANGES = World(
    "The world changes", "jumps", (DEFAULT, "DLinUCB", "LinUCB", "RealLinExp3", "RealFTRL", CERTIFIED, PAPER)
)
WORLDS = (STAYS, REACTS, CHANGES)  # from left to right


def picture(summary: Summary) -> Picture | None:
    """Return the main picture of a comparison; None if it has none of the worlds in `WORLDS`."""
    shown = [(world, panel) for world in WORLDS if (panel := panel_of(summary, world)) is not None]
    if not shown:
        return None
    charts = tuple(panel_chart(summary, world, panel) for world, panel in shown)
    ends = "; ".join(f"{chart.title}: {chart.description}" for chart in charts)
    return Picture(name=NAME, title=conditions(summary, shown[0][1]), description=ends, charts=charts)


def conditions(summary: Summary, panel: Panel) -> str:
    """Return the line below the picture: what lines and bands are, and over how many instances."""
    replications = summary.study.settings["replications"]
    if panel.instances > 1:
        over = f"over {panel.instances} random instances"
    else:
        over = f"over {replications} replications of one instance" if replications > 1 else "of one run"
    band = ", bands: the middle 80 % of them" if len(panel.entries[0].run.paths) > 1 else ""
    dynamic = panel_of(summary, CHANGES) is not None
    note = " Where the world changes, regret is against the best arm of every round." if dynamic else ""
    return f"Lines: mean regret {over}{band}. Lower is better.{note}"


def panel_of(summary: Summary, world: World) -> Panel | None:
    """Return the first regime of a study that is such a world."""
    return next((panel for panel in summary.panels if _is(panel, world)), None)


def _is(panel: Panel, world: World) -> bool:
    cell = panel.entries[0].cell
    options = {**cell.sizes, **cell.environment_options}
    return options.get("kind") == world.kind and options.get("margin") in (None, "none")


def panel_chart(summary: Summary, world: World, panel: Panel) -> Chart:
    """Return regret against the round, both axes linear, of the algorithms that the picture shows."""
    labels = chosen(summary.study.algorithms, world.first)
    entries = [entry for entry in panel.entries if entry.label in labels]
    ranked = sorted(entries, key=lambda entry: entry.regret.value)
    values = ", ".join(f"{entry.label} {number(entry.regret.value)}" for entry in ranked)
    return Chart(
        name=f"{panel.ident}-{NAME}",
        title=world.title,
        description=f"{panel.regret_name} after {panel.horizon:,} rounds: {values}",
        y_label=panel.regret_name,
        x_log=False,
        whole=True,
        lines=[_line(entry) for entry in entries],
    )


def chosen(algorithms: Mapping[str, Mapping[str, Any]], first: Sequence[str] = USUAL) -> list[str]:
    """Return the labels that a panel shows, at most four: the user's own, then ``first``, then others.

    >>> chosen({label: {"kind": label} for label in ("OFUL", "LinUCB", "uniform", "LCTsallisINF", "RealFTRL")})
    ['OFUL', 'LinUCB', 'LCTsallisINF', 'RealFTRL']
    """
    best = sorted(algorithms, key=lambda label: _rank(algorithms[label], first))[:MOST_LINES]
    return [label for label in algorithms if label in best]


def _rank(options: Mapping[str, Any], first: Sequence[str]) -> int:
    """Return the place of an algorithm in the order in which a panel fills up."""
    name = identity(dict(options))
    if is_user_kind(options.get("kind")):
        return -1
    return first.index(name) if name in first else len(first) + (options.get("kind") == "uniform")


def is_default(options: Mapping[str, Any]) -> bool:
    """Tell whether options of a study stand for `LCTsallisINF()`."""
    return options.get("kind") == "LCTsallisINF" and set(options) <= {"kind", "tuning"} and (
        options.get("tuning", "matched") == "matched"
    )  # fmt: skip


def _line(entry: Entry) -> Line:
    """Return mean regret from round 0 on, with the middle 80 % of the instances."""
    paths = entry.run.paths
    low, high = np.quantile(paths, RANGE, axis=0) if len(paths) > 1 else (None, None)
    return Line(
        label=entry.label,
        number=entry.number,
        style=entry.style,
        x=_from_zero(entry.rounds.astype(np.float64)),
        y=_from_zero(entry.run.regret),
        low=None if low is None else _from_zero(low),
        high=None if high is None else _from_zero(high),
        end="default rule" if is_default(entry.cell.algorithm_options) else "",
    )


def _from_zero(values: Floats) -> Floats:
    return np.concatenate([[0.0], values])


def sentences(summary: Summary) -> list[str]:
    """Return what the default rule costs in a calm world, what it saves where the world reacts, and how it follows.

    There are sentences only for worlds that were played, with the default rule and at least one rival.
    """
    ours = next((label for label, options in summary.study.algorithms.items() if is_default(options)), None)
    calm, hostile = panel_of(summary, STAYS), panel_of(summary, REACTS)
    if ours is None or calm is None:
        return []
    regrets = {entry.label: entry.regret.value for entry in calm.entries}
    rival = min(rivals(summary), key=lambda label: regrets.get(label, np.inf), default=None)
    if rival not in regrets or ours not in regrets:
        return []
    texts = [_cost(calm, ours, rival)]
    if hostile is not None and {ours, rival} <= {entry.label for entry in hostile.entries}:
        texts.append(_worth(hostile, ours, rival))
    changing = panel_of(summary, CHANGES)
    if changing is not None and any(entry.label == ours for entry in changing.entries):
        texts += _followed(changing, ours, rivals(summary))
    return texts


def rivals(summary: Summary) -> Sequence[str]:
    """Return the labels of the algorithms that are neither LC-Tsallis-INF nor uniform play."""
    return [label for label, one in summary.study.algorithms.items() if one["kind"] not in ("LCTsallisINF", "uniform")]


def _cost(panel: Panel, ours: str, rival: str) -> str:
    """Say how much more regret the default rule has than its best rival, in rounds of uniform play."""
    mine, least = _at_end(panel, ours), _at_end(panel, rival)
    start = "Where the world stays as it is, "
    start += f"{ours}, the default rule, has regret {number(mine)} after {panel.horizon:,} rounds"
    if mine <= least:
        return f"{start}; the best of its rivals is {rival} with {number(least)}."
    more = f"{start}, {number(mine - least)} more than {rival}, the best of its rivals there"
    uniform = _uniform(panel)
    if uniform is None or not uniform > mine - least:
        return f"{more}."
    share = (mine - least) / uniform
    return f"{more}: what uniform play loses in {share * panel.horizon:,.0f} rounds, {_percent(share)} of the horizon."


def _worth(panel: Panel, ours: str, rival: str) -> str:
    """Say how much regret the rival has where the world reacts."""
    mine, other = _at_end(panel, ours), _at_end(panel, rival)
    start = f"Where the world reacts, {rival} has regret {number(other)}"
    if other <= mine:
        return f"{start}, and {ours} has {number(mine)}."
    lost = _percent((other - mine) / panel.horizon)
    return f"{start}, and {ours} has {number(mine)}: the difference is {lost} of a unit of loss in every round."


def _followed(panel: Panel, ours: str, others: Sequence[str]) -> list[str]:
    """Say how well the default rule and the best of its rivals follow a world that changes."""
    regrets = {entry.label: entry.regret.value for entry in panel.entries if entry.label in others}
    if not regrets:
        return []
    rival = min(regrets, key=lambda label: regrets[label])
    mine = f"{ours} has {panel.regret_name} {number(_at_end(panel, ours))}"
    return [f"Where the world changes, {mine}; the best of its rivals there, {rival}, has {number(regrets[rival])}."]


def _at_end(panel: Panel, label: str) -> float:
    return next(entry.regret.value for entry in panel.entries if entry.label == label)


def _uniform(panel: Panel) -> float | None:
    """Return the regret of uniform play at the horizon, None if it was not played."""
    played = [e.run for e in panel.entries if e.cell.algorithm_options.get("kind") == "uniform"]
    run = next(iter(played), panel.references.get("uniform"))
    return None if run is None else float(run.regret[-1])


def _percent(share: float) -> str:
    """Return a share in per cent, with two digits where it is small.

    >>> _percent(0.2612), _percent(0.00175)
    ('26 %', '0.18 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"
