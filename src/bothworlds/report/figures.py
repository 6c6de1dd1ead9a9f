"""The charts of a report: regret in each regime, and what LC-Tsallis-INF explores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.environments import Environment
from bothworlds.report.chart import Chart, Line, Mark, Picture
from bothworlds.report.overlay_curves import NO_OVERLAYS, Curve, Overlays, check_regimes
from bothworlds.report.palette import Style, bound_style, styles
from bothworlds.report.picture import picture
from bothworlds.report.statistics import interval_of, local_exponents
from bothworlds.report.summary import Entry, Exploration, Panel, Summary

# A theorem's bound on the regret: (environment, rounds) -> the bound at these rounds, or None where it does not apply.
Bound = Callable[[Environment, Ints], Floats | None]
Bounds = Mapping[str, Bound]
NO_BOUNDS: Bounds = {}
MOST_POINTS = 80  # of a curve
VISIBLE = 1e-3  # least half width of an interval of a rate between 0 and 1/2 that is drawn
STRIP_SPAN = 0.7  # of a regime's width: where the dots of the algorithms are


def all_figures(
    summary: Summary, bounds: Bounds = NO_BOUNDS, overlays: Overlays = NO_OVERLAYS
) -> list[Chart | Picture]:
    """Return every figure of a report: the main picture, if there is one, and all charts."""
    main = picture(summary)
    return [*([] if main is None else [main]), *all_charts(summary, bounds, overlays)]


def all_charts(summary: Summary, bounds: Bounds = NO_BOUNDS, overlays: Overlays = NO_OVERLAYS) -> list[Chart]:
    """Return every chart of a report but those of the main picture; ``overlays`` are drawn over those of regret."""
    charts = [strip_chart(summary)] if summary.scores else []
    for panel in summary.panels:
        charts += [*regret_charts(summary, panel, bounds, overlays), exponent_chart(panel)]
        charts += [exploration_chart(panel)] if panel.exploration else []
    return charts


def regret_charts(summary: Summary, panel: Panel, bounds: Bounds, overlays: Overlays) -> list[Chart]:
    """Return the two charts of regret of a regime, with overlay curves."""
    pair = [linear_chart(panel), double_log_chart(panel, bounds)]
    places = overlay_places(summary, overlays)
    curves = overlays.get(panel.name, [])
    return [replace(one, lines=[*one.lines, *laid_over(places, curves, log=one.y_log)]) for one in pair]


def overlay_places(summary: Summary, overlays: Overlays) -> dict[str, tuple[int, Style]]:
    """Return number and style of every overlay curve by its label, the same in all regimes."""
    check_regimes(overlays, [panel.name for panel in summary.panels])
    labels = list(dict.fromkeys(curve.label for curves in overlays.values() for curve in curves))
    mine = list(summary.study.algorithms.values())
    free = styles([*mine, *({"kind": f"overlay {label}"} for label in labels)])[len(mine) :]
    return {label: (len(summary.labels) + n, style) for n, (label, style) in enumerate(zip(labels, free, strict=True))}


def laid_over(places: Mapping[str, tuple[int, Style]], curves: Sequence[Curve], *, log: bool) -> list[Line]:
    """Return overlay curves as lines: with intervals on a linear axis, with the middle 80 % on a logarithmic one."""
    lines = []
    for curve in curves:
        number, style = places[curve.label]
        low, high = curve.low, curve.high
        if not log:
            low, high = (None, None) if curve.half is None else (curve.regret - curve.half, curve.regret + curve.half)
        drawn = shown(curve.t)
        lines.append(
            Line(
                label=curve.label,
                number=number,
                style=style,
                x=curve.t[drawn],
                y=curve.regret[drawn],
                low=None if low is None else low[drawn],
                high=None if high is None else high[drawn],
            )
        )
    return lines


def strip_chart(summary: Summary) -> Chart:
    """Return every algorithm's ratio to the best reference player in every regime: mean, interval and instances."""
    rated = [label for label in summary.labels if label in summary.scores]
    places = STRIP_SPAN * (np.arange(len(rated)) - (len(rated) - 1) / 2.0) / max(1, len(rated))
    lines = []
    for label, place in zip(rated, places.tolist(), strict=True):
        ratings = [panel.ratings[label] for panel in summary.panels]
        values = np.array([(rating.value, *rating.interval) for rating in ratings])
        low, high = (np.where(np.isnan(ends), values[:, 0], ends) for ends in values.T[1:])
        spots = [panel.ratios_by_instance.get(label) for panel in summary.panels]
        lines.append(
            Line(
                label=label,
                number=summary.labels.index(label),
                style=summary.styles[label],
                x=np.arange(1, len(ratings) + 1) + place,
                y=values[:, 0],
                low=low,
                high=high,
                dots=True,
                joined=False,
                spots=_padded(spots),
            )
        )
    ranked = sorted(summary.scores.items(), key=lambda item: item[1].value)
    worst = "; ".join(f"{label} {score.value:.3g} in {score.regime}" for label, score in ranked)
    return Chart(
        name="strip",
        title="Ratio to the best reference player, regime by regime",
        description=f"One dot for every algorithm; 1 is as good as the best reference. At worst: {worst}.",
        y_label="ratio to the best reference player",
        x_label="",
        x_log=False,
        y_log=True,
        x_names=tuple(panel.name for panel in summary.panels),
        lines=lines,
    )


def _padded(rows: Sequence[Floats | None]) -> Floats | None:
    """Return rows of different lengths as one array, filled up with NaN; None if all rows are missing."""
    known = [np.zeros(0) if row is None else row for row in rows]
    longest = max(map(len, known))
    return (
        np.array([np.pad(row, (0, longest - len(row)), constant_values=np.nan) for row in known]) if longest else None
    )


def linear_chart(panel: Panel) -> Chart:
    """Return mean regret with 95 % intervals against log t: logarithmic regret is a straight line."""
    lines = [_curve(entry, entry.run.regret, entry.half_width, entry.half_width) for entry in panel.entries]
    about = f"Mean cumulative {panel.regret_name} with 95 % intervals against the round. {_ranking(panel)}"
    return _chart_of(
        panel, lines, "log-x", panel.regret_name, about, axes=": logarithmic time", marks=corruption_marks(panel)
    )


def double_log_chart(panel: Panel, bounds: Bounds = NO_BOUNDS) -> Chart:
    """Return mean regret and the middle 80 % of the runs, both axes logarithmic: the slope is the growth exponent."""
    lines = []
    for entry in panel.entries:
        low, high = entry.run.quantiles([0.1, 0.9])
        mean = entry.run.regret
        lines.append(_curve(entry, mean, mean - low, high - mean))
        proved = bound_curve(panel, entry, bounds)
        lines += [] if proved is None or vacuous(proved, entry.rounds).all() else [_bound_line(entry, proved)]
    about = f"Mean cumulative {panel.regret_name} and the 10 % to 90 % quantiles of {panel.unit}. {_ranking(panel)}"
    axes, marks = ": both axes logarithmic", corruption_marks(panel)
    return _chart_of(panel, lines, "log-log", panel.regret_name, about, axes=axes, y_log=True, marks=marks)


def _chart_of(
    panel: Panel, lines: list[Line], name: str, quantity: str, about: str, *, axes: str = "", **options: Any
) -> Chart:
    """Return a chart of a quantity in one regime against the round."""
    title = f"{quantity.capitalize()}, {panel.name}{axes}"
    return Chart(name=f"{panel.ident}-{name}", title=title, description=about, y_label=quantity, lines=lines, **options)


def _curve(entry: Entry, mean: Floats, below: Floats, above: Floats) -> Line:
    """Return a curve with its band; a long run starts after its first rounds."""
    t = entry.rounds
    drawn = shown(t)
    low, high = mean - below, mean + above
    return Line(
        label=entry.label,
        number=entry.number,
        style=entry.style,
        baseline=entry.cell.algorithm_options.get("kind") == "uniform",
        x=t[drawn].astype(np.float64),
        y=mean[drawn],
        low=low[drawn],
        high=high[drawn],
    )


def _bound_line(entry: Entry, values: Floats) -> Line:
    """Return the line of a theorem's bound where it is below the trivial bound 2 t."""
    return _fine(entry, "bound for", np.where(vacuous(values, entry.rounds), np.nan, values))


def _fine(entry: Entry, word: str, values: Floats) -> Line:
    """Return a bound or limit for an algorithm as a line of fine dots in its colour."""
    t = entry.rounds
    drawn = shown(t)
    style, label = bound_style(entry.style), f"{word} {entry.label}"
    return Line(
        label=label, number=entry.number, style=style, x=t[drawn].astype(np.float64), y=values[drawn], thin=True
    )


def shown(rounds: Ints | Floats) -> Ints:
    """Return the indices of the checkpoints that are drawn: at most 80, without the first rounds of a long run."""
    late = np.flatnonzero(rounds >= min(10, rounds[-1] // 1000))
    return np.unique(late[np.linspace(0, len(late) - 1, MOST_POINTS).astype(np.int64)])


def vacuous(bound: Floats, rounds: Ints) -> np.ndarray:
    """Tell where a bound is not below the trivial bound 2 t."""
    return np.asarray(bound >= 2.0 * rounds * (1.0 - 1e-12))


def bound_curve(panel: Panel, entry: Entry, bounds: Bounds) -> Floats | None:
    """Return a theorem's bound for an algorithm on the first instance, round by round; None if none applies."""
    return bounds[entry.label](panel.environment, entry.rounds) if entry.label in bounds else None


def bounds_at_end(panel: Panel, bounds: Bounds) -> dict[str, float]:
    """Return the theorems' bounds at the horizon, for the algorithms to which one applies."""
    curves = {entry.label: bound_curve(panel, entry, bounds) for entry in panel.entries}
    return {label: float(curve[-1]) for label, curve in curves.items() if curve is not None}


def corruption_marks(panel: Panel) -> list[Mark]:
    """Mark the rounds in which nature spends its corruption: a stripe up to 99 % of it, the same for all algorithms.

    An adaptive nature spends differently on each algorithm. Then a rule in the algorithm's colour marks 99 %, and only
    the first rule has a text, so that texts do not hide the curves.
    """
    t, spent = panel.entries[0].rounds, [entry.run.spent for entry in panel.entries]
    if all(np.array_equal(spent[0], other) for other in spent):
        if spent[0][-1] <= 0.0:
            return []
        start, end = t[np.flatnonzero(spent[0] > 0.0)[0]], t[np.searchsorted(spent[0], 0.99 * spent[0][-1])]
        text = f"corruption C = {spent[0][-1]:,.0f}"
        return [Mark(start=float(start), end=max(float(end), start + 1e-9), text=text)]
    ends = [
        (float(t[np.searchsorted(one, 0.99 * one[-1])]), entry.style.colour)
        for entry, one in zip(panel.entries, spent, strict=True)
        if one[-1] > 0.0
    ]
    first = min(ends)
    text = f"corruption spent (C up to {max(float(one[-1]) for one in spent):,.0f})"
    return [Mark(start=end, end=end, text=text if (end, c) == first else "", colour=c) for end, c in ends]


def exponent_chart(panel: Panel) -> Chart:
    """Return the growth exponent over the decade before t, with its interval."""
    lines = []
    for entry in panel.entries:
        t, slopes = local_exponents(entry.rounds, entry.run.paths)
        value, half = slopes[:, 0], np.nan_to_num(slopes[:, 1])
        low, high = value - half, value + half
        lines.append(Line(label=entry.label, number=entry.number, style=entry.style, x=t, y=value, low=low, high=high))
    about = f"Slope of log {panel.regret_name} against log t over the decade before t, with 95 % intervals."
    return _chart_of(panel, lines, "exponent", "growth exponent", about, y_limits=(-0.25, 1.5))


def exploration_chart(panel: Panel) -> Chart:
    """Return gamma_t against log t with its 95 % interval, the largest rate that a schedule allows, and t0."""
    lines, marks = [], []
    for part in panel.exploration:
        entry = part.entry
        lines.append(_rate_line(part))
        if part.scheduled is not None and not part.exact:
            lines.append(_fine(entry, "limit for", part.scheduled))
        if 1.0 < part.t0 < panel.horizon:
            marks.append(Mark(start=part.t0, end=part.t0, text=f"t0 = {part.t0:,.0f}", colour=entry.style.colour))
    unique = {mark.text: mark for mark in reversed(marks)}
    about = "Exploration rate gamma against the round; dotted rules mark t0, until which half may be exploration."
    highest = max(float(line.y.max()) for line in lines)
    limits = (0.0, 1.25 * highest or 1.0)  # leaves space for the text of marks
    return _chart_of(
        panel, lines, "exploration", "exploration rate", about, y_limits=limits, marks=list(unique.values())
    )


def _rate_line(part: Exploration) -> Line:
    """Return the exploration rate of an algorithm, with its interval if that is wide enough to be visible."""
    gamma, half = part.gamma, interval_of(part.rates)
    line = _curve(part.entry, gamma, np.minimum(half, gamma), half)
    return line if half.max() > VISIBLE else replace(line, low=None, high=None)


def _ranking(panel: Panel) -> str:
    """Return a sentence with the algorithms from the smallest regret to the largest."""
    ranked = sorted(panel.entries, key=lambda entry: entry.regret.value)
    return "At the end: " + "; ".join(f"{entry.label} {entry.regret.value:,.4g}" for entry in ranked) + "."
