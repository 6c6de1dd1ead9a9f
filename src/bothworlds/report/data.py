"""The numbers of a report, for machines: everything as JSON, the curves as CSV."""

import csv
import io
import math
from typing import Any

import numpy as np

from bothworlds.report.figures import NO_BOUNDS, Bounds, bound_curve
from bothworlds.report.panels import Entry, Panel, Summary
from bothworlds.report.statistics import Estimate
from bothworlds.simulation.study import Study
from bothworlds.simulation.toml import to_toml

COLUMNS = ("regime", "algorithm", "t", "regret", "standard_error", "q10", "median", "q90", "realised_loss", "spent")
BOUND = "bound"  # the last column: what a theorem says of the regret, where one does


def study_as_dict(study: Study) -> dict[str, Any]:
    """Return a study as plain values."""
    return {
        "name": study.name,
        **study.numbers,
        "sizes": study.sizes,
        "environments": study.environments,
        "algorithms": study.algorithms,
    }


def headline_data(summary: Summary) -> dict[str, Any]:
    """Return the headline of a study as plain values: what `--json` prints."""
    return {
        "study": study_as_dict(summary.study),
        "versions": summary.manifest.get("versions", {}),
        "regimes": [_panel_data(panel) for panel in summary.panels],
        "scores": {label: {"mean": s.value, "lowest": s.half} for label, s in summary.scores.items()},
        "missing": summary.missing,
    }


def all_data(summary: Summary, bounds: Bounds = NO_BOUNDS) -> dict[str, Any]:
    """Return the headline and the curves as plain values."""
    curves = [
        {"regime": panel.name, "algorithm": entry.label, "t": entry.rounds.tolist(), **_curves(panel, entry, bounds)}
        for panel in summary.panels
        for entry in panel.entries
    ]
    return {**headline_data(summary), "study_toml": to_toml(summary.study), "curves": curves}


def curves_csv(summary: Summary, bounds: Bounds = NO_BOUNDS) -> str:
    """Return the curves as CSV, one row per regime, algorithm and checkpoint."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, BOUND])
    for panel in summary.panels:
        for entry in panel.entries:
            for row in zip(entry.rounds.tolist(), *_curves(panel, entry, bounds).values(), strict=True):
                writer.writerow([panel.name, entry.label, *("" if value is None else value for value in row)])
    return text.getvalue()


def _curves(panel: Panel, entry: Entry, bounds: Bounds) -> dict[str, list[float | None]]:
    """Return the curves of an entry by the names of the columns."""
    run = entry.run
    low, middle, high = run.quantiles([0.1, 0.5, 0.9])
    arrays = (run.regret, run.standard_error, low, middle, high, run.realised.mean(axis=0), run.spent)
    proved = bound_curve(panel, entry, bounds)
    last = np.full(len(entry.rounds), np.nan) if proved is None else proved
    named = zip((*COLUMNS[3:], BOUND), (*arrays, last), strict=True)
    return {name: [plain(value) for value in values.tolist()] for name, values in named}


def plain(value: float) -> float | None:
    """Return a number as JSON knows it: eight digits, and None for what is not a number.

    >>> plain(1 / 3), plain(math.inf)
    (0.33333333, None)
    """
    return float(f"{value:.8g}") if math.isfinite(value) else None


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"mean": plain(estimate.value), "half_width_95": plain(estimate.half)}


def _panel_data(panel: Panel) -> dict[str, Any]:
    """Return one regime as plain values."""
    explored = {part.entry.label: part for part in panel.exploration}
    algorithms = []
    for entry in panel.entries:
        row: dict[str, Any] = {
            "algorithm": entry.label,
            "regret": _estimate(entry.regret),
            "regret_against_own_best": plain(float(entry.run.regret_against_own_best[-1])),
            "growth_exponent": _estimate(entry.exponent),
            "corruption": plain(float(entry.run.corruption.mean())),
            "score": plain(panel.scores[entry.label]),
            "microseconds_per_round": plain(entry.cost),
            "final_policy": [[plain(p) for p in row] for row in entry.run.policy.tolist()],
        }
        if panel.environment.reacts:
            row["total_reward"] = _estimate(panel.reward(entry.run))
        if entry.label in explored:
            part = explored[entry.label]
            row["exploration"] = {"coverage": plain(part.coverage), "t0": plain(part.t0), "exact": part.exact}
        algorithms.append(row)
    return {
        "regime": panel.name,
        "horizon": panel.horizon,
        "reacts": panel.environment.reacts,
        "algorithms": algorithms,
        "replayed": {label: _estimate(panel.reward(run)) for label, run in panel.replayed.items()},
    }
