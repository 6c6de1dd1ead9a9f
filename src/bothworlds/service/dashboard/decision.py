"""The page of one decision: probabilities, the random number it was drawn with, verification and reward."""

from html import escape
from itertools import accumulate

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.report.html_parts import table
from bothworlds.service.dashboard.curves import moment
from bothworlds.service.dashboard.operations import facts_html
from bothworlds.service.dashboard.plan_panel import clipped
from bothworlds.service.dashboard.view import link
from bothworlds.service.dashboard_data import uniform_of
from bothworlds.service.experiment import Experiment
from bothworlds.service.messages import Known

COLOURS = 8  # of the palette
LENGTH, HEIGHT = 600.0, 34.0


def decision_html(known: Known, experiment: Experiment) -> str:
    """Return everything known about a decision, as HTML."""
    names, probabilities = list(known.probabilities), np.array(list(known.probabilities.values()))
    arm = names.index(known.arm)
    uniform = None if known.holdout else uniform_of(known.id, experiment.plan.secret, probabilities, arm)
    facts = {
        "context": clipped(known.context, 200),
        "arm": f"<b>{clipped(known.arm, 200)}</b>, with probability {known.propensity:.6g}",
        "decided": moment(known.time),
        "by": _decided_by(known),
        "the draw": _draw_text(known, uniform, names, probabilities),
        "recomputed": _confirmed(known),
        "reward": _reward(known),
        **({} if known.traceparent is None else {"trace": f"<code>{escape(known.traceparent)}</code>"}),
    }
    return (
        f'<p><a href="{link(experiment.name)}">← {clipped(experiment.name)}</a></p>'
        f"<h1>Decision {clipped(known.id, 200)}</h1>"
        f"{facts_html(facts)}{_bar(names, probabilities, arm, uniform)}{_table(names, probabilities, arm)}"
    )


def _decided_by(known: Known) -> str:
    if known.holdout:
        return "the holdout: drawn uniformly from the offered arms, to compare the policy with"
    return f"version {known.version:,} of the plan"


def _draw_text(known: Known, uniform: float | None, names: list[str], probabilities: Floats) -> str:
    how = "a keyed hash of the id"
    if known.holdout:
        return f"by {how}: the same id gets the same arm"
    if uniform is None:
        return f"by {how}, with this algorithm's own sampling: the same id and version give the same arm"
    ends = [0.0, *accumulate(probabilities.tolist())]
    index = names.index(known.arm)
    return f"{how} is {uniform:.6f}; the interval of {escape(known.arm)} is {ends[index]:.6f} to {ends[index + 1]:.6f}"


def _confirmed(known: Known) -> str:
    if known.confirmed is None:
        return (
            f"version {known.version:,} is not the current plan; "
            "<code>bothworlds service verify STORE</code> recomputes it and compares every bit"
        )
    if known.confirmed:
        return "equal, bit for bit: arm, propensity and the vectors for learning"
    return (
        '<strong class="failing">the plan makes a different decision for this id</strong>: '
        "run <code>bothworlds service verify</code>"
    )


def _reward(known: Known) -> str:
    if not known.active:
        return "none: the decision is inactive, that is, not reported as shown"
    late = "" if known.late_reward is None else f"; {known.late_reward:g} came late: stored for evaluation, not learned"
    if known.reward is None:
        return f"none came within the window; nothing is learned{late}" if known.unanswered else "none yet"
    when = "" if known.reward_time is None else f" after {known.reward_time - known.time:,.1f} s"
    by = ", the default reward, as none came within the window" if known.by_default else ""
    learned = "; not learned, as it belongs to the holdout" if known.holdout else ""
    learned = learned if known.learned_in is None else f"; learned in version {known.learned_in:,}"
    return f"<b>{known.reward:g}</b>{when}{by}{learned}{late}"


def _bar(names: list[str], probabilities: Floats, arm: int, uniform: float | None) -> str:
    """Return a bar of all probabilities, with a marker at the number drawn."""
    starts = [0.0, *accumulate(probabilities.tolist())]
    parts = []
    for index, (start, p) in enumerate(zip(starts, probabilities.tolist(), strict=False)):
        kind = f"slice c{index % COLOURS}{' chosen' if index == arm else ''}"
        title = f"<title>{escape(names[index])}: {p:.4g}</title>"
        size = f'x="{LENGTH * start:.2f}" y="10" width="{LENGTH * p:.2f}" height="{HEIGHT - 10:.0f}"'
        parts.append(f'<rect class="{kind}" {size}>{title}</rect>')
    if uniform is not None:
        at = LENGTH * uniform
        parts.append(f'<path class="uniform" d="M{at:.2f} 8V{HEIGHT:.0f}M{at:.2f} 9l-5 -9h10z"/>')
    label = "Probabilities of all arms, and the number drawn"
    bar = f'<svg viewBox="-6 0 {LENGTH + 12:.0f} {HEIGHT:.0f}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    return f'<figure class="strip">{bar}<figcaption>{label}</figcaption></figure>'


def _table(names: list[str], probabilities: Floats, arm: int) -> str:
    rows = [
        [clipped(name), f"<td{' class=best' if index == arm else ''}>{p:.6g}</td>"]
        for index, (name, p) in enumerate(zip(names, probabilities.tolist(), strict=True))
    ]
    return table(["arm", "probability"], rows, caption="Probabilities of all arms at the time of the decision")
