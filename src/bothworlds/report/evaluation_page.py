"""The report of an evaluation: a table for the terminal, plain data, and one self-contained page."""

import math
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.evaluation import ESTIMATORS, Evaluated, Evaluation
from bothworlds.evaluation.intervals import Band
from bothworlds.problem.file_format import write_bytes
from bothworlds.report import html_parts
from bothworlds.report.chart import Chart, Line
from bothworlds.report.palette import Style, styles
from bothworlds.report.terminal import aligned
from bothworlds.serialization import finite, to_json
from bothworlds.theory.confidence.checks import level_of

DIGITS = 4


def shown(value: float) -> str:
    """Return a number with four decimals, or a dash for NaN.

    >>> shown(0.12345), shown(float("nan"))
    ('0.1235', '–')
    """
    return "–" if math.isnan(value) else f"{value:.{DIGITS}f}"


def evaluation_text(evaluation: Evaluation) -> str:
    """Return policies, differences and notes as text."""
    names = list(next(iter(evaluation.policies.values())).estimates)
    level = f"{level_of(next(iter(evaluation.policies.values())).band.alpha)} interval"
    head = ["policy", *names, level, "kind", "effective rows"]
    rows = [head]
    for name, one in evaluation.policies.items():
        values = [shown(one.estimates[part].value) for part in names]
        rows.append([name, *values, _span(one.band), one.band.kind, f"{one.diagnostics.effective_rows:,.0f}"])
    blocks = [aligned(rows)]
    if evaluation.differences:
        lines = [["difference", "value", level, "kind"]]
        for (name, over), gap in evaluation.differences.items():
            lines.append([f"{name} over {over}", shown(gap.value), _span(gap.band), gap.band.kind])
        blocks.append(aligned(lines))
    blocks.append("\n".join(f"- {text}" for text in evaluation.sentences))
    return "\n\n".join(blocks)


def _span(band: Band) -> str:
    low, high = band.interval
    return "none left" if band.contradicted else f"{shown(low)} to {shown(high)}"


def evaluation_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return the evaluation as plain values; None stands for numbers that are not finite."""
    policies = {name: _policy_data(one) for name, one in evaluation.policies.items()}
    differences = [
        {"policy": name, "over": over, "value": one.value, **_band_data(one.band)}
        for (name, over), one in evaluation.differences.items()
    ]
    calibration: Any = None
    if evaluation.calibration is not None:
        arms = zip(
            evaluation.calibration.arms, evaluation.calibration.observed, evaluation.calibration.expected, strict=True
        )
        calibration = {
            "p_value": evaluation.calibration.p_value,
            "context_p_value": evaluation.calibration.context_p_value,
            "arms": {name: {"observed": float(o), "expected": float(e)} for name, o, e in arms},
        }
    plain: dict[str, Any] = {
        "rows": evaluation.logged.rows,
        "policies": policies,
        "differences": differences,
        "calibration": calibration,
        "notes": list(evaluation.sentences),
    }
    return {name: finite(part) for name, part in plain.items()}


def _policy_data(one: Evaluated) -> dict[str, Any]:
    values = {name: {"value": part.value, "error": part.error} for name, part in one.estimates.items()}
    return {"about": one.about, "estimates": values, **_band_data(one.band), "diagnostics": vars(one.diagnostics)}


def _band_data(band: Band) -> dict[str, Any]:
    low, high = band.interval
    curve = {name: getattr(band, name).tolist() for name in ("rows", "estimate", "low", "high")}
    return {"interval": [low, high], "kind": band.kind, "alpha": band.alpha, "band": curve}


def write_evaluation(evaluation: Evaluation, path: str | Path, *, command: str = "") -> Path:
    """Write the page of an evaluation atomically; return its path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, evaluation_page(evaluation, command=command).encode())
    return target


def evaluation_page(evaluation: Evaluation, *, command: str = "") -> str:
    """Return an evaluation as one HTML page, without network and scripts."""
    style_of = dict(zip(evaluation.policies, styles([{"kind": name} for name in evaluation.policies]), strict=True))
    body = [
        _head(evaluation, style_of),
        _charts(evaluation, style_of),
        _differences(evaluation),
        _weights(evaluation),
        _tables(evaluation, style_of),
    ]
    content = "\n".join([*body, _numbers(evaluation, command)])
    return html_parts.document("Evaluation of a log", content)


def _head(evaluation: Evaluation, style_of: dict[str, Style]) -> str:
    """Return the title, the table of values, and the notes."""
    names = list(next(iter(evaluation.policies.values())).estimates)
    rows = []
    for name, one in evaluation.policies.items():
        cells = [shown(one.estimates[part].value) for part in names]
        rows.append([f"{html_parts.key(style_of[name])}{escape(name)}", *cells, _span(one.band), one.band.kind])
    some = next(iter(evaluation.policies.values())).band
    caption = f"Value per decision, and its {level_of(some.alpha)} interval"
    notes = "".join(f"<li>{escape(text)}</li>" for text in evaluation.sentences)
    kinds = {one.band.kind: one.band.about for one in evaluation.policies.values()}
    claims = " ".join(f"“{kind}” {escape(about)}." for kind, about in kinds.items())
    return f"""<header><h1>What policies would have earned</h1>
<p class="lead">{evaluation.logged.rows:,} decisions of a log, {evaluation.logged.problem.n_contexts} contexts,
{evaluation.logged.problem.n_arms} arms.</p></header>
{html_parts.table(["policy", *names, "interval", "kind"], rows, caption=caption)}
<p class="small soft">Interval: {claims}</p>
<h2 id="know">To know before using the numbers</h2><ul>{notes}</ul>"""


def _charts(evaluation: Evaluation, style_of: dict[str, Style]) -> str:
    """Return the chart of value over time with bands, one line for each policy."""
    lines = [
        Line(
            label=name, number=i, style=style_of[name], x=one.band.rows.astype(np.float64),
            y=_inside(one.band.estimate, evaluation), low=one.band.low, high=one.band.high,
        )
        for i, (name, one) in enumerate(evaluation.policies.items())
    ]  # fmt: skip
    chart = Chart(
        name="value",
        title="Value over time",
        description="Doubly robust mean so far, and its interval at that row.",
        y_label="value per decision",
        x_label="rows of the log",
        lines=lines,
        x_log=len(lines[0].x) > 1,
        y_limits=_limits(evaluation),
    )
    caption = "Mean (line) and interval (band) after that many rows; narrower with more rows, if there is support."
    return f'<h2 id="time">Value over time</h2><div class="charts">{html_parts.figure(chart, caption)}</div>'


def _limits(evaluation: Evaluation) -> tuple[float, float]:
    """Return the ends of the vertical axis: those of the bands in the second half, within the reward range."""
    ends = [
        (one.band.low[len(one.band.low) // 2 :], one.band.high[len(one.band.high) // 2 :])
        for one in evaluation.policies.values()
    ]
    low, high = min(float(a.min()) for a, _ in ends), max(float(b.max()) for _, b in ends)
    room = 0.05 * max(high - low, 1e-9)
    lowest, highest = evaluation.logged.reward_range
    return max(lowest, low - room), min(highest, high + room)


def _inside(values: Floats, evaluation: Evaluation) -> Floats:
    low, high = evaluation.logged.reward_range
    return np.where((values >= low) & (values <= high), values, np.nan)


def _differences(evaluation: Evaluation) -> str:
    """Return the differences, each with its interval and the decision of the gate."""
    if not evaluation.differences:
        return ""
    rows = []
    for (name, over), one in evaluation.differences.items():
        verdict = evaluation.promotes(name, over=over).sentence.partition(":")[0]
        rows.append(
            [f"{escape(name)} over {escape(over)}", shown(one.value), _span(one.band), one.band.kind, escape(verdict)]
        )
    head = ["difference", "value", "interval", "kind", "gate, with margin 0"]
    text = html_parts.table(head, rows, caption="Value of the first policy minus that of the second")
    return f'<h2 id="differences">Differences</h2>{text}'


def _weights(evaluation: Evaluation) -> str:
    """Return weights and support of each policy, and the frequencies of arms in the log."""
    rows = []
    for name, one in evaluation.policies.items():
        checks = one.diagnostics
        support = "–" if math.isnan(checks.without_support) else f"{checks.without_support:.1%}"
        test = "–" if math.isnan(checks.weight_p_value) else f"{checks.weight_p_value:.2g}"
        cells = [f"{checks.effective_rows:,.0f}", f"{checks.largest_weight:,.1f}", support]
        cells += [f"{checks.mean_weight:.3f}", test]
        rows.append([escape(name), *cells])
    head = [
        "policy",
        "effective rows",
        "largest weight",
        "without support",
        "mean weight",
        "p-value of mean weight 1",
    ]
    text = html_parts.table(head, rows, caption="How much evidence the log has on each policy")
    if evaluation.calibration is not None:
        arms = zip(
            evaluation.calibration.arms, evaluation.calibration.observed, evaluation.calibration.expected, strict=True
        )
        counts = [[escape(name), f"{o:,.0f}", f"{e:,.1f}"] for name, o, e in list(arms)[: html_parts.MOST_SHOWN]]
        p = f"{evaluation.calibration.p_value:.2g}"
        caption = f"Arms in the log, and as expected by the logged probabilities (p = {p}, valid at any time)"
        text += html_parts.table(["arm", "played", "expected"], counts, caption=caption)
    return f'<h2 id="weights">Weights and propensities</h2>{text}'


def _tables(evaluation: Evaluation, style_of: dict[str, Style]) -> str:
    """Return the probabilities of each policy, in percent."""
    problem = evaluation.logged.problem
    counts = np.bincount(evaluation.logged.context, minlength=problem.n_contexts)
    contexts = sorted(np.argsort(-counts, kind="stable")[: html_parts.MOST_SHOWN].tolist())
    frequencies = {x: f"{counts[x]:,}" for x in contexts}
    tables = [
        html_parts.which_arm_where(name, style_of[name], one.table, problem, frequencies)
        for name, one in evaluation.policies.items()
    ]
    about = "Probability of each arm, in percent; after a context, its number of rows. At most 12 contexts and arms."
    policies = f'<div class="policies">{"".join(tables)}</div>'
    return f'<h2 id="arms">Which arm where</h2><p class="small soft">{about}</p>{policies}'


def _numbers(evaluation: Evaluation, command: str) -> str:
    """Return the numbers as a download, the definitions of the estimates, and the command."""
    link = html_parts.download("evaluation.json", "application/json", to_json(evaluation_data(evaluation)))
    names = next(iter(evaluation.policies.values())).estimates
    about = "".join(f"<li><code>{name}</code>: {escape(ESTIMATORS[name])}</li>" for name in names)
    made_by = f"<pre>{escape(command)}</pre>" if command else ""
    today = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f'<h2 id="numbers">The numbers</h2><p class="downloads">Embedded in this page: {link}.</p><ul>{about}</ul>'
        f'{made_by}<p class="small soft">Page written {today}.</p>'
    )
