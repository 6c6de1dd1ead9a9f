"""An evaluation told: a table for the terminal, plain data, and one self-contained page."""

import math
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.evaluation import ESTIMATORS, Evaluated, Evaluation
from bothworlds.evaluation.bands import Band
from bothworlds.kernels.arrays import Floats
from bothworlds.plain import finite, to_json
from bothworlds.problem.storage import write_bytes
from bothworlds.report import parts
from bothworlds.report.chart import Chart, Line
from bothworlds.report.palette import Style, styles
from bothworlds.report.terminal import aligned
from bothworlds.theory.confidence.checks import level_of

DIGITS = 4


def shown(value: float) -> str:
    """Return a number with four digits after the point, or a dash.

    >>> shown(0.12345), shown(float("nan"))
    ('0.1235', '–')
    """
    return "–" if math.isnan(value) else f"{value:.{DIGITS}f}"


def evaluation_text(found: Evaluation) -> str:
    """Return policies, differences and what is to be known as text."""
    names = list(next(iter(found.policies.values())).estimates)
    level = f"{level_of(next(iter(found.policies.values())).band.alpha)} interval"
    head = ["policy", *names, level, "kind", "effective rows"]
    rows = [head]
    for name, one in found.policies.items():
        values = [shown(one.estimates[part].value) for part in names]
        rows.append([name, *values, _span(one.band), one.band.kind, f"{one.diagnostics.effective_rows:,.0f}"])
    blocks = [aligned(rows)]
    if found.differences:
        lines = [["difference", "value", level, "kind"]]
        for (name, over), gap in found.differences.items():
            lines.append([f"{name} over {over}", shown(gap.value), _span(gap.band), gap.band.kind])
        blocks.append(aligned(lines))
    blocks.append("\n".join(f"- {text}" for text in found.sentences))
    return "\n\n".join(blocks)


def _span(band: Band) -> str:
    low, high = band.interval
    return "none left" if band.contradicted else f"{shown(low)} to {shown(high)}"


def evaluation_data(found: Evaluation) -> dict[str, Any]:
    """Return everything as plain values; None where there is no number."""
    policies = {name: _policy_data(one) for name, one in found.policies.items()}
    differences = [
        {"policy": name, "over": over, "value": one.value, **_band_data(one.band)}
        for (name, over), one in found.differences.items()
    ]
    calibration: Any = None
    if found.calibration is not None:
        arms = zip(found.calibration.arms, found.calibration.observed, found.calibration.expected, strict=True)
        calibration = {
            "p_value": found.calibration.p_value,
            "context_p_value": found.calibration.context_p_value,
            "arms": {name: {"observed": float(o), "expected": float(e)} for name, o, e in arms},
        }
    plain: dict[str, Any] = {
        "rows": found.logged.rows,
        "policies": policies,
        "differences": differences,
        "calibration": calibration,
        "notes": list(found.sentences),
    }
    return {name: finite(part) for name, part in plain.items()}


def _policy_data(one: Evaluated) -> dict[str, Any]:
    values = {name: {"value": part.value, "error": part.error} for name, part in one.estimates.items()}
    return {"about": one.about, "estimates": values, **_band_data(one.band), "diagnostics": vars(one.diagnostics)}


def _band_data(band: Band) -> dict[str, Any]:
    low, high = band.interval
    curve = {name: getattr(band, name).tolist() for name in ("rows", "estimate", "low", "high")}
    return {"interval": [low, high], "kind": band.kind, "alpha": band.alpha, "band": curve}


def write_evaluation(found: Evaluation, path: str | Path, *, command: str = "") -> Path:
    """Write the page of an evaluation; the file is there whole or not at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, evaluation_page(found, command=command).encode())
    return target


def evaluation_page(found: Evaluation, *, command: str = "") -> str:
    """Return an evaluation as one page of HTML: no network, no script."""
    style_of = dict(zip(found.policies, styles([{"kind": name} for name in found.policies]), strict=True))
    body = [
        _head(found, style_of),
        _charts(found, style_of),
        _differences(found),
        _weights(found),
        _tables(found, style_of),
    ]
    content = "\n".join([*body, _numbers(found, command)])
    return parts.document("Evaluation of a log", content)


def _head(found: Evaluation, style_of: dict[str, Style]) -> str:
    """Return title, table of values, and what is to be known."""
    names = list(next(iter(found.policies.values())).estimates)
    rows = []
    for name, one in found.policies.items():
        cells = [shown(one.estimates[part].value) for part in names]
        rows.append([f"{parts.key(style_of[name])}{escape(name)}", *cells, _span(one.band), one.band.kind])
    some = next(iter(found.policies.values())).band
    caption = f"Value per decision, and its {level_of(some.alpha)} interval"
    known = "".join(f"<li>{escape(text)}</li>" for text in found.sentences)
    kinds = {one.band.kind: one.band.about for one in found.policies.values()}
    claims = " ".join(f"“{kind}” {escape(about)}." for kind, about in kinds.items())
    return f"""<header><h1>What policies would have earned</h1>
<p class="lead">{found.logged.rows:,} decisions of a log, {found.logged.problem.n_contexts} contexts,
{found.logged.problem.n_arms} arms.</p></header>
{parts.table(["policy", *names, "interval", "kind"], rows, caption=caption)}
<p class="small soft">Interval: {claims}</p>
<h2 id="know">To know before using the numbers</h2><ul>{known}</ul>"""


def _charts(found: Evaluation, style_of: dict[str, Style]) -> str:
    """Return value over time with the band, one line for each policy."""
    lines = [
        Line(
            label=name, number=i, style=style_of[name], x=one.band.rows.astype(np.float64),
            y=_inside(one.band.estimate, found), low=one.band.low, high=one.band.high,
        )
        for i, (name, one) in enumerate(found.policies.items())
    ]  # fmt: skip
    chart = Chart(
        name="value",
        title="Value over time",
        description="Doubly robust mean so far, and the interval that holds at that row.",
        y_label="value per decision",
        x_label="rows of the log",
        lines=lines,
        x_log=len(lines[0].x) > 1,
        y_limits=_limits(found),
    )
    caption = "Mean so far (line) and interval (band) after so many rows; narrower as rows come, if there is support."
    return f'<h2 id="time">Value over time</h2><div class="charts">{parts.figure(chart, caption)}</div>'


def _limits(found: Evaluation) -> tuple[float, float]:
    """Return the ends of the vertical axis: those of the bands in the later half, within the range of rewards."""
    ends = [
        (one.band.low[len(one.band.low) // 2 :], one.band.high[len(one.band.high) // 2 :])
        for one in found.policies.values()
    ]
    low, high = min(float(a.min()) for a, _ in ends), max(float(b.max()) for _, b in ends)
    room = 0.05 * max(high - low, 1e-9)
    lowest, highest = found.logged.reward_range
    return max(lowest, low - room), min(highest, high + room)


def _inside(values: Floats, found: Evaluation) -> Floats:
    low, high = found.logged.reward_range
    return np.where((values >= low) & (values <= high), values, np.nan)


def _differences(found: Evaluation) -> str:
    """Return the differences, each with its interval and whether it is beyond zero."""
    if not found.differences:
        return ""
    rows = []
    for (name, over), one in found.differences.items():
        said = found.promotes(name, over=over).sentence.partition(":")[0]
        rows.append(
            [f"{escape(name)} over {escape(over)}", shown(one.value), _span(one.band), one.band.kind, escape(said)]
        )
    head = ["difference", "value", "interval", "kind", "at the gate, by 0"]
    return (
        f'<h2 id="differences">Differences</h2>{parts.table(head, rows, caption="Value of one less that of another")}'
    )


def _weights(found: Evaluation) -> str:
    """Return weights and support, and how often arms came."""
    rows = []
    for name, one in found.policies.items():
        told = one.diagnostics
        support = "–" if math.isnan(told.without_support) else f"{told.without_support:.1%}"
        test = "–" if math.isnan(told.weight_p_value) else f"{told.weight_p_value:.2g}"
        cells = [f"{told.effective_rows:,.0f}", f"{told.largest_weight:,.1f}", support, f"{told.mean_weight:.3f}", test]
        rows.append([escape(name), *cells])
    head = [
        "policy",
        "effective rows",
        "largest weight",
        "without support",
        "mean weight",
        "p: mean weight as it must be",
    ]
    text = parts.table(head, rows, caption="How much the log says of each policy")
    if found.calibration is not None:
        arms = zip(found.calibration.arms, found.calibration.observed, found.calibration.expected, strict=True)
        counts = [[escape(name), f"{o:,.0f}", f"{e:,.1f}"] for name, o, e in list(arms)[: parts.MOST_SHOWN]]
        caption = f"Arms as they came and as logged probabilities say (p = {found.calibration.p_value:.2g} at any time)"
        text += parts.table(["arm", "came", "expected"], counts, caption=caption)
    return f'<h2 id="weights">Weights and propensities</h2>{text}'


def _tables(found: Evaluation, style_of: dict[str, Style]) -> str:
    """Return which arm each policy plays where, in percent."""
    problem = found.logged.problem
    counts = np.bincount(found.logged.context, minlength=problem.n_contexts)
    seen = sorted(np.argsort(-counts, kind="stable")[: parts.MOST_SHOWN].tolist())
    often = {x: f"{counts[x]:,}" for x in seen}
    tables = [
        parts.which_arm_where(name, style_of[name], one.table, problem, often) for name, one in found.policies.items()
    ]
    what = "How often each arm is played, in percent; after a context, how many rows it has. At most 12 of each."
    shown_here = f'<div class="policies">{"".join(tables)}</div>'
    return f'<h2 id="arms">Which arm where</h2><p class="small soft">{what}</p>{shown_here}'


def _numbers(found: Evaluation, command: str) -> str:
    """Return the numbers as a download, what the estimates are, and the command."""
    link = parts.download("evaluation.json", "application/json", to_json(evaluation_data(found)))
    names = next(iter(found.policies.values())).estimates
    about = "".join(f"<li><code>{name}</code>: {escape(ESTIMATORS[name])}</li>" for name in names)
    made = f"<pre>{escape(command)}</pre>" if command else ""
    today = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f'<h2 id="numbers">The numbers</h2><p class="downloads">Embedded in this page: {link}.</p><ul>{about}</ul>'
        f'{made}<p class="small soft">Page written {today}.</p>'
    )
