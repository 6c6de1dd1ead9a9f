"""The charts of a report: regret in each regime, and what LC-Tsallis-INF explores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.report.chart import Chart, Line, Mark
from bothworlds.report.overlays import NO_OVERLAYS, Curve, Overlays, check_regimes
from bothworlds.report.palette import Style, bound_style, styles
from bothworlds.report.panels import Entry, Exploration, Panel, Summary
from bothworlds.report.statistics import interval_of, local_exponents

# A theorem's bound on the regret: (environment, rounds) -> the bound at these rounds, or None where it says nothing.
Bound = Callable[[Environment, Ints], Floats | None]
Bounds = Mapping[str, Bound]
NO_BOUNDS: Bounds = {}
MOST_POINTS = 80  # of a curve
VISIBLE = 1e-3  # of a rate between 0 and 1/2


def all_charts(summary: Summary, bounds: Bounds = NO_BOUNDS, overlays: Overlays = NO_OVERLAYS) -> list[Chart]:
    """Return every chart of a report; curves from elsewhere are laid over those of regret."""
    found = [strip_chart(summary)] if summary.scores else []
    for panel in summary.panels:
        found += [*regret_charts(summary, panel, bounds, overlays), exponent_chart(panel)]
        found += [exploration_chart(panel)] if panel.exploration else []
    return found


def regret_charts(summary: Summary, panel: Panel, bounds: Bounds, overlays: Overlays) -> list[Chart]:
    """Return the two charts of regret of a regime, curves from elsewhere laid over."""
    pair = [linear_chart(panel), double_log_chart(panel, bounds)]
    places = overlay_places(summary, overlays)
    curves = overlays.get(panel.name, [])
    return [replace(one, lines=[*one.lines, *laid_over(places, curves, log=one.y_log)]) for one in pair]


def overlay_places(summary: Summary, overlays: Overlays) -> dict[str, tuple[int, Style]]:
    """Return number and style of every curve from elsewhere by its label, the same in all regimes."""
    check_regimes(overlays, [panel.name for panel in summary.panels])
    labels = list(dict.fromkeys(curve.label for curves in overlays.values() for curve in curves))
    mine = list(summary.study.algorithms.values())
    free = styles([*mine, *({"kind": f"overlay {label}"} for label in labels)])[len(mine) :]
    return {label: (len(summary.labels) + n, style) for n, (label, style) in enumerate(zip(labels, free, strict=True))}


def laid_over(places: Mapping[str, tuple[int, Style]], curves: Sequence[Curve], *, log: bool) -> list[Line]:
    """Return curves from elsewhere as lines: with intervals on a linear axis, with the middle 80 % on a logarithmic."""
    found = []
    for curve in curves:
        number, style = places[curve.label]
        low, high = curve.low, curve.high
        if not log:
            low, high = (None, None) if curve.half is None else (curve.regret - curve.half, curve.regret + curve.half)
        kept = shown(curve.t)
        found.append(
            Line(
                label=curve.label,
                number=number,
                style=style,
                x=curve.t[kept],
                y=curve.regret[kept],
                low=None if low is None else low[kept],
                high=None if high is None else high[kept],
            )
        )
    return found


def strip_chart(summary: Summary) -> Chart:
    """Return every algorithm's ratio to the best reference player, regime by regime, for who is near 1 everywhere."""
    lines = []
    for label in summary.labels:
        rated = [panel.ratings.get(label) for panel in summary.panels]
        if label in summary.scores:
            found = np.array([(one.value, *one.interval) for one in rated if one is not None])
            x, y = np.arange(1, len(found) + 1).astype(np.float64), found[:, 0]
            low, high = (np.where(np.isnan(ends), y, ends) for ends in found.T[1:])
            style, number = summary.styles[label], summary.labels.index(label)
            lines.append(Line(label=label, number=number, style=style, x=x, y=y, low=low, high=high, dots=True))
    ranked = sorted(summary.scores.items(), key=lambda item: item[1].value)
    worst = "; ".join(f"{label} {score.value:.3g} in {score.regime}" for label, score in ranked)
    return Chart(
        name="strip",
        title="Ratio to the best reference player, regime by regime",
        description=f"One line for every algorithm; 1 is as good as the best reference. At worst: {worst}.",
        y_label="ratio to the best reference player (1: as good; logarithmic)",
        x_label="",
        x_log=False,
        y_log=True,
        x_names=tuple(panel.name for panel in summary.panels),
        lines=lines,
    )


def linear_chart(panel: Panel) -> Chart:
    """Return mean regret with 95 % intervals against log t: logarithmic regret is a straight line."""
    lines = [_curve(entry, entry.run.regret, entry.half_width, entry.half_width) for entry in panel.entries]
    told = "Mean cumulative regret with 95 % intervals against the round."
    ranked, marks = f"{told} {_ranking(panel)}", corruption_marks(panel)
    return _chart_of(panel, lines, "log-x", "regret", ranked, axes=": logarithmic time", marks=marks)


def double_log_chart(panel: Panel, bounds: Bounds = NO_BOUNDS) -> Chart:
    """Return mean regret with the middle 80 % of replications, both axes logarithmic: the slope is the exponent."""
    lines = []
    for entry in panel.entries:
        low, high = entry.run.quantiles([0.1, 0.9])
        mean = entry.run.regret
        lines.append(_curve(entry, mean, mean - low, high - mean))
        proved = bound_curve(panel, entry, bounds)
        lines += [] if proved is None or vacuous(proved, entry.rounds).all() else [_bound_line(entry, proved)]
    told = "Mean cumulative regret and the 10 % to 90 % quantiles of replications."
    ranked, marks = f"{told} {_ranking(panel)}", corruption_marks(panel)
    return _chart_of(panel, lines, "log-log", "regret", ranked, axes=": both axes logarithmic", y_log=True, marks=marks)


def _chart_of(
    panel: Panel, lines: list[Line], name: str, what: str, told: str, *, axes: str = "", **options: Any
) -> Chart:
    """Return a chart of what one regime has, against the round."""
    title = f"{what.capitalize()}, {panel.name}{axes}"
    return Chart(name=f"{panel.ident}-{name}", title=title, description=told, y_label=what, lines=lines, **options)


def _curve(entry: Entry, mean: Floats, below: Floats, above: Floats) -> Line:
    """Return a curve with its band, without the first rounds of a long run."""
    t = entry.rounds
    kept = shown(t)
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
    """Return the line of a theorem's bound, where it says more than that losses lie within [-1, 1]."""
    return _fine(entry, "bound for", np.where(vacuous(values, entry.rounds), np.nan, values))


def _fine(entry: Entry, word: str, values: Floats) -> Line:
    """Return what is said of an algorithm as a line of fine dots in its colour."""
    t = entry.rounds
    kept = shown(t)
    style, label = bound_style(entry.style), f"{word} {entry.label}"
    return Line(label=label, number=entry.number, style=style, x=t[kept].astype(np.float64), y=values[kept], thin=True)


def shown(rounds: Ints | Floats) -> Ints:
    """Return the places of the checkpoints that are drawn: not the first rounds of a long run, and not too many."""
    late = np.flatnonzero(rounds >= min(10, rounds[-1] // 1000))
    return np.unique(late[np.linspace(0, len(late) - 1, MOST_POINTS).astype(np.int64)])


def vacuous(bound: Floats, rounds: Ints) -> np.ndarray:
    """Tell where a bound says nothing: regret is never above 2 t."""
    return np.asarray(bound >= 2.0 * rounds * (1.0 - 1e-12))


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
    told = "Slope of log regret against log t over the decade before t, with 95 % intervals."
    return _chart_of(panel, lines, "exponent", "growth exponent", told, y_limits=(-0.25, 1.5))


def exploration_chart(panel: Panel) -> Chart:
    """Return gamma_t against log t with its 95 % interval, what a tuning may explore at most, and t0."""
    lines, marks = [], []
    for part in panel.exploration:
        entry = part.entry
        lines.append(_rate_line(part))
        if part.scheduled is not None and not part.exact:
            lines.append(_fine(entry, "limit for", part.scheduled))
        if 1.0 < part.t0 < panel.horizon:
            marks.append(Mark(start=part.t0, end=part.t0, text=f"t0 = {part.t0:,.0f}", colour=entry.style.colour))
    unique = {mark.text: mark for mark in reversed(marks)}
    told = "Exploration rate gamma against the round; dotted rules mark t0, until which half may be exploration."
    highest = max(float(line.y.max()) for line in lines)
    limits, kept = (0.0, 1.25 * highest or 1.0), list(unique.values())  # with room for the words of marks
    return _chart_of(panel, lines, "exploration", "exploration rate", told, y_limits=limits, marks=kept)


def _rate_line(part: Exploration) -> Line:
    """Return the rate of an algorithm, with its interval unless it is too narrow to be seen."""
    gamma, half = part.gamma, interval_of(part.rates)
    line = _curve(part.entry, gamma, np.minimum(half, gamma), half)
    return line if half.max() > VISIBLE else replace(line, low=None, high=None)


def _ranking(panel: Panel) -> str:
    """Return the algorithms from the smallest regret to the largest, in words."""
    ranked = sorted(panel.entries, key=lambda entry: entry.regret.value)
    return "At the end: " + "; ".join(f"{entry.label} {entry.regret.value:,.4g}" for entry in ranked) + "."
