"""The numbers of a report in machine-readable form: everything as JSON, the curves as CSV."""

import csv
import io
import math
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.report.chart import Chart, Line
from bothworlds.report.csv_cells import as_text
from bothworlds.report.figures import NO_BOUNDS, Bounds, bound_curve
from bothworlds.report.scores import Rating, Score
from bothworlds.report.statistics import Estimate, mean_of
from bothworlds.report.summary import Entry, Panel, Summary
from bothworlds.studies.references import REFERENCES
from bothworlds.studies.study import Study
from bothworlds.studies.toml import to_toml

DIGITS = 5  # of the numbers for charts; the curves in the CSV file have eight
# The regret, its error and quantiles are those of the measure of the regime; both regrets follow.
CURVES = (
    "regret",
    "standard_error",
    "q10",
    "median",
    "q90",
    "fixed_regret",
    "dynamic_regret",
    "realised_loss",
    "spent",
)
COLUMNS = ("regime", "algorithm", "measure", "t", *CURVES)
MORE = ("exploration_rate", "bound")  # last columns, empty where unknown: the mean of gamma_t, and a theorem's bound


def study_as_dict(study: Study) -> dict[str, Any]:
    """Return a study as plain values."""
    return {
        "name": study.name,
        **study.settings,
        "seeds": list(study.seeds),
        "sizes": study.sizes,
        "environments": study.environments,
        "algorithms": study.algorithms,
    }


def headline_data(summary: Summary) -> dict[str, Any]:
    """Return the headline of a study as plain values, as `--json` prints them."""
    return {
        "study": study_as_dict(summary.study),
        "versions": summary.manifest.get("versions", {}),
        "regimes": [_panel_data(panel) for panel in summary.panels],
        "scores": {label: _score(score) for label, score in summary.scores.items()},
        "references": list(REFERENCES) if summary.study.references else [],
        "missing": summary.missing,
    }


def all_data(summary: Summary, bounds: Bounds = NO_BOUNDS) -> dict[str, Any]:
    """Return the headline and the curves as plain values."""
    curves = [
        {
            "regime": panel.name,
            "measure": panel.regret_name,
            "algorithm": entry.label,
            "t": entry.rounds.tolist(),
            **_curves(panel, entry, bounds),
        }
        for panel in summary.panels
        for entry in panel.entries
    ]
    return {**headline_data(summary), "study_toml": to_toml(summary.study), "curves": curves}


def curves_csv(summary: Summary, bounds: Bounds = NO_BOUNDS) -> str:
    """Return the curves as CSV, one row per regime, algorithm and checkpoint."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *MORE])
    for panel in summary.panels:
        for entry in panel.entries:
            for row in zip(entry.rounds.tolist(), *_curves(panel, entry, bounds).values(), strict=True):
                cells = ["" if value is None else value for value in row]
                writer.writerow([as_text(panel.name), as_text(entry.label), panel.regret_name, *cells])
    return text.getvalue()


def _curves(panel: Panel, entry: Entry, bounds: Bounds) -> dict[str, list[float | None]]:
    """Return the curves of an entry by column."""
    run = entry.run
    low, middle, high = run.quantiles([0.1, 0.5, 0.9])
    both = entry.results[entry.label].regret, run.dynamic_regret
    arrays = (run.regret, run.standard_error, low, middle, high, *both, run.realised.mean(axis=0), run.spent)
    explored = None if run.exploration_rate is None else run.exploration_rate.mean(axis=0)
    unknown = np.full(len(entry.rounds), np.nan)
    last = [unknown if one is None else one for one in (explored, bound_curve(panel, entry, bounds))]
    columns = zip((*CURVES, *MORE), (*arrays, *last), strict=True)
    return {name: [plain(value) for value in values.tolist()] for name, values in columns}


def chart_data(chart: Chart) -> dict[str, Any]:
    """Return what the page's script needs to redraw a chart when curves are hidden or shown."""
    x = chart.lines[0].x if chart.lines else np.zeros(0)
    shared = all(np.array_equal(line.x, x) for line in chart.lines)
    return {
        "title": chart.title,
        "xlog": chart.x_log,
        "ylog": chart.y_log,
        "fixed": chart.y_limits,
        "whole": chart.whole,
        "xrange": list(chart.x_range),
        "names": list(chart.x_names),
        "x": _digits(x) if shared else None,
        "lines": [_line_data(line, chart, shared=shared) for line in chart.lines],
    }


def _line_data(line: Line, chart: Chart, *, shared: bool) -> dict[str, Any]:
    """Return one curve with few digits, and its band as it is drawn."""
    drawn = chart.band(line) is not None
    low, high = (line.low, line.high) if drawn else (None, None)
    return {
        "n": line.number,
        "label": line.label,
        "short": line.short,
        **({} if shared else {"x": _digits(line.x)}),
        "y": _digits(line.y),
        **({} if low is None or high is None else {"low": _digits(low), "high": _digits(high)}),
        **({} if line.spots is None else {"spots": [_digits(row) for row in line.spots]}),
        **{flag: True for flag in ("thin", "baseline", "dots") if getattr(line, flag)},
    }


def _digits(values: Floats) -> list[float | None]:
    """Return numbers with few digits, integers as such; None for numbers that are not finite."""
    rounded = [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values.tolist()]
    return [int(one) if one is not None and one.is_integer() and abs(one) < 1e15 else one for one in rounded]


def plain(value: float) -> float | None:
    """Return a number for JSON: eight digits, and None for a number that is not finite.

    >>> plain(1 / 3), plain(math.inf)
    (0.33333333, None)
    """
    return float(f"{value:.8g}") if math.isfinite(value) else None


def _score(score: Score) -> dict[str, Any]:
    return {"worst_ratio": _ratio(score.rating), "regime": score.regime}


def _ratio(rating: Rating) -> dict[str, Any]:
    return {"value": plain(rating.value), "interval_95": [plain(end) for end in rating.interval]}


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"mean": plain(estimate.value), "half_width_95": plain(estimate.half)}


def _panel_data(panel: Panel) -> dict[str, Any]:
    """Return one regime as plain values."""
    explored = {part.entry.label: part for part in panel.exploration}
    algorithms = []
    for entry in panel.entries:
        played = entry.results[entry.label]
        row: dict[str, Any] = {
            "algorithm": entry.label,
            "regret": _estimate(mean_of(played.paths[:, -1])),
            "dynamic_regret": _estimate(mean_of(played.dynamic_paths[:, -1])),
            "regret_against_own_best": plain(float(entry.run.regret_against_own_best[-1])),
            "growth_exponent": _estimate(entry.exponent),
            "corruption": plain(float(entry.run.corruption.mean())),
            "ratio": _ratio(panel.ratings[entry.label]) if panel.ratings else None,
            "microseconds_per_round": plain(entry.cost),
            "final_policy": [[plain(p) for p in row] for row in entry.run.policy.tolist()],
        }
        account = panel.account(entry)
        if account is not None:
            row["account"] = _estimate(account)
        if panel.environment.reacts:
            row["total_reward"] = _estimate(panel.reward(entry.run))
        if entry.label in panel.ratios_by_instance:
            row["ratios_by_instance"] = [plain(value) for value in panel.ratios_by_instance[entry.label].tolist()]
        if entry.label in explored:
            part = explored[entry.label]
            row["exploration"] = {
                "coverage": plain(part.coverage),
                "t0": plain(part.t0),
                "rate_at_the_end": plain(float(part.gamma[-1])),
                "explored": plain(part.explored),
            }
        algorithms.append(row)
    return {
        "regime": panel.name,
        "horizon": panel.horizon,
        "instances": panel.instances,
        "reacts": panel.environment.reacts,
        "measure": panel.measure,
        "algorithms": algorithms,
        "replayed": {label: _estimate(panel.reward(run)) for label, run in panel.replayed.items()},
    }
