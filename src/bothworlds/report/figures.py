"""The charts of a report: regret in each regime, and what LC-Tsallis-INF explores."""

from collections.abc import Callable, Mapping

import numpy as np

from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.report.chart import Chart, Line, Mark
from bothworlds.report.palette import bound_style
from bothworlds.report.panels import Entry, Panel, Summary
from bothworlds.report.statistics import local_exponents

# A theorem's bound on the regret: (environment, rounds) -> the bound at these rounds, or None where it says nothing.
Bound = Callable[[Environment, Ints], Floats | None]
Bounds = Mapping[str, Bound]
NO_BOUNDS: Bounds = {}


def all_charts(summary: Summary, bounds: Bounds = NO_BOUNDS) -> list[Chart]:
    """Return every chart of a report."""
    found = []
    for panel in summary.panels:
        found += [linear_chart(panel), double_log_chart(panel, bounds), exponent_chart(panel)]
        found += [exploration_chart(panel)] if panel.exploration else []
    return found


def linear_chart(panel: Panel) -> Chart:
    """Return mean regret with 95 % intervals against log t: logarithmic regret is a straight line."""
    lines = [_curve(entry, entry.run.regret, entry.half_width, entry.half_width) for entry in panel.entries]
    return Chart(
        name=f"{panel.ident}-log-x",
        title=f"Regret, {panel.name}: logarithmic time",
        description=f"Mean cumulative regret with 95 % intervals against the round. {_ranking(panel)}",
        y_label="regret",
        lines=lines,
        marks=corruption_marks(panel),
    )


def double_log_chart(panel: Panel, bounds: Bounds = NO_BOUNDS) -> Chart:
    """Return mean regret with the middle 80 % of replications, both axes logarithmic: the slope is the exponent."""
    lines = []
    for entry in panel.entries:
        low, high = entry.run.quantiles([0.1, 0.9])
        mean = entry.run.regret
        lines.append(_curve(entry, mean, mean - low, high - mean))
        proved = bound_curve(panel, entry, bounds)
        lines += [] if proved is None else [_bound_line(entry, proved)]
    return Chart(
        name=f"{panel.ident}-log-log",
        title=f"Regret, {panel.name}: both axes logarithmic",
        description=f"Mean cumulative regret and the 10 % to 90 % quantiles of replications. {_ranking(panel)}",
        y_label="regret",
        lines=lines,
        y_log=True,
        marks=corruption_marks(panel),
    )


def _curve(entry: Entry, mean: Floats, below: Floats, above: Floats) -> Line:
    """Return a curve with its band, without the first rounds of a long run."""
    t = entry.rounds
    kept = t >= min(10, t[-1] // 1000)
    low, high = mean - below, mean + above
    return Line(
        label=entry.label,
        number=entry.number,
        style=entry.style,
        yardstick=entry.cell.algorithm_options.get("kind") == "uniform",
        x=t[kept].astype(np.float64),
        y=mean[kept],
        low=low[kept],
        high=high[kept],
    )


def _bound_line(entry: Entry, values: Floats) -> Line:
    """Return the line of a theorem's bound."""
    t = entry.rounds
    kept = t >= min(10, t[-1] // 1000)
    style, label = bound_style(entry.style), f"bound for {entry.label}"
    return Line(label=label, number=entry.number, style=style, x=t[kept] * 1.0, y=values[kept], thin=True)


def bound_curve(panel: Panel, entry: Entry, bounds: Bounds) -> Floats | None:
    """Return what a theorem promises an algorithm in a panel, round by round; None where none does."""
    return bounds[entry.label](panel.environment, entry.rounds) if entry.label in bounds else None


def bounds_at_end(panel: Panel, bounds: Bounds) -> dict[str, float]:
    """Return what the theorems promise at the horizon, for the algorithms that one covers here."""
    curves = {entry.label: bound_curve(panel, entry, bounds) for entry in panel.entries}
    return {label: float(curve[-1]) for label, curve in curves.items() if curve is not None}


def corruption_marks(panel: Panel) -> list[Mark]:
    """Mark where nature spends its corruption: a stripe up to 99 % of it, the same for all algorithms.

    A nature that looks at the learner spends differently on each: then a rule in the algorithm's colour says when it
    was through with 99 %; the words stand once, at the first rule, or they would hide the curves.
    """
    t, spent = panel.entries[0].rounds, [entry.run.spent for entry in panel.entries]
    if all(np.array_equal(spent[0], other) for other in spent):
        if spent[0][-1] <= 0.0:
            return []
        start, end = t[np.flatnonzero(spent[0] > 0.0)[0]], t[np.searchsorted(spent[0], 0.99 * spent[0][-1])]
        words = f"corruption C = {spent[0][-1]:,.0f}"
        return [Mark(start=float(start), end=max(float(end), start + 1e-9), text=words)]
    through = [
        (float(t[np.searchsorted(one, 0.99 * one[-1])]), entry.style.colour)
        for entry, one in zip(panel.entries, spent, strict=True)
        if one[-1] > 0.0
    ]
    first = min(through)
    most = max(float(one[-1]) for one in spent)
    words = f"corruption spent (C up to {most:,.0f})"
    return [Mark(start=end, end=end, text=words if (end, c) == first else "", colour=c) for end, c in through]


def exponent_chart(panel: Panel) -> Chart:
    """Return the growth exponent over the decade before t, with its interval: how the regret bends."""
    lines = []
    for entry in panel.entries:
        t, slopes = local_exponents(entry.rounds, entry.run.paths)
        value, half = slopes[:, 0], np.nan_to_num(slopes[:, 1])
        low, high = value - half, value + half
        lines.append(Line(label=entry.label, number=entry.number, style=entry.style, x=t, y=value, low=low, high=high))
    return Chart(
        name=f"{panel.ident}-exponent",
        title=f"Growth exponent, {panel.name}",
        description="Slope of log regret against log t over the decade before t, with 95 % intervals.",
        y_label="growth exponent",
        lines=lines,
        y_limits=(-0.25, 1.5),
    )


def exploration_chart(panel: Panel) -> Chart:
    """Return gamma_t against t, both logarithmic, with t0 marked."""
    lines, marks = [], []
    for part in panel.exploration:
        entry = part.entry
        lines.append(Line(label=entry.label, number=entry.number, style=entry.style, x=part.rounds, y=part.gamma))
        if 1.0 < part.t0 < panel.horizon:
            marks.append(Mark(start=part.t0, end=part.t0, text=f"t0 = {part.t0:,.0f}", colour=entry.style.colour))
    unique = {mark.text: mark for mark in reversed(marks)}
    return Chart(
        name=f"{panel.ident}-exploration",
        title=f"Exploration rate, {panel.name}",
        description="Exploration rate gamma against the round; dotted rules mark t0, until which half is exploration.",
        y_label="exploration rate",
        lines=lines,
        y_log=True,
        marks=list(unique.values()),
        low=True,
    )


def _ranking(panel: Panel) -> str:
    """Return the algorithms from the smallest regret to the largest, in words."""
    ranked = sorted(panel.entries, key=lambda entry: entry.regret.value)
    return "At the end: " + "; ".join(f"{entry.label} {entry.regret.value:,.4g}" for entry in ranked) + "."
