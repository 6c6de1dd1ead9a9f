"""One decision explained: what was asked, how likely each arm was, which number was drawn, what came of it."""

from html import escape
from itertools import accumulate

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.report.parts import table
from bothworlds.service.experiment import Experiment
from bothworlds.service.glance import lot_of
from bothworlds.service.messages import Known
from bothworlds.service.panels import clipped, link, moment

COLOURS = 8  # of the palette
LENGTH, HEIGHT = 600.0, 34.0


def explained(known: Known, experiment: Experiment) -> str:
    """Return all that is known of a decision."""
    names, chances = list(known.probabilities), np.array(list(known.probabilities.values()))
    arm = names.index(known.arm)
    lot = None if known.holdout else lot_of(known.id, experiment.plan.secret, chances, arm)
    facts = {
        "context": clipped(known.context, 200),
        "arm": f"<b>{clipped(known.arm, 200)}</b>, with probability {known.propensity:.6g}",
        "decided": moment(known.time),
        "by": _who(known),
        "the draw": _drawn(known, lot, names, chances),
        "computed again": _confirmed(known),
        "reward": _reward(known),
    }
    rows = "".join(f"<div><dt>{word}</dt><dd>{text}</dd></div>" for word, text in facts.items())
    return (
        f'<p><a href="{link(experiment.name)}">← {clipped(experiment.name)}</a></p>'
        f"<h1>Decision {clipped(known.id, 200)}</h1>"
        f'<dl class="facts">{rows}</dl>{_bar(names, chances, arm, lot)}{_table(names, chances, arm)}'
    )


def _who(known: Known) -> str:
    if known.holdout:
        return "nobody: it was held out, and is uniform among the arms offered, to compare the policy with"
    return f"version {known.version:,} of the plan"


def _drawn(known: Known, lot: float | None, names: list[str], chances: Floats) -> str:
    how = "a keyed hash of the id"
    if known.holdout:
        return f"by {how}: the same id gets the same arm"
    if lot is None:
        return f"by {how}, in the way of this algorithm: the same id gets the same arm from the same version"
    ends = [0.0, *accumulate(chances.tolist())]
    place = names.index(known.arm)
    return f"{how} is the number {lot:.6f}, and {escape(known.arm)} has {ends[place]:.6f} to {ends[place + 1]:.6f}"


def _confirmed(known: Known) -> str:
    if known.confirmed is None:
        return (
            f"version {known.version:,} does not decide any more; <code>bothworlds verify STORE</code> learns it again "
            "and compares every bit"
        )
    if known.confirmed:
        return "the plan decides just so for this id: arm, propensity and what learning takes, bit for bit"
    return '<strong class="failing">the plan decides otherwise for this id</strong>: run <code>bothworlds verify</code>'


def _reward(known: Known) -> str:
    if not known.active:
        return "none: it is inactive, that is, nobody has said that it was shown"
    if known.reward is None:
        return "none yet"
    when = "" if known.reward_time is None else f", {known.reward_time - known.time:,.1f} s later"
    by = " by default, as none came within the window" if known.by_default else ""
    late = "" if known.late_reward is None else f"; then came {known.late_reward:g}, kept for evaluation and not learnt"
    learnt = "; counted, and not learnt" if known.holdout else ""
    learnt = learnt if known.learned_in is None else f"; learnt in version {known.learned_in:,}"
    return f"<b>{known.reward:g}</b>{by}{when}{learnt}{late}"


def _bar(names: list[str], chances: Floats, arm: int, lot: float | None) -> str:
    """Return the probabilities side by side as a bar, with the number that was drawn."""
    starts = [0.0, *accumulate(chances.tolist())]
    parts = []
    for place, (start, p) in enumerate(zip(starts, chances.tolist(), strict=False)):
        kind = f"slice c{place % COLOURS}{' chosen' if place == arm else ''}"
        title = f"<title>{escape(names[place])}: {p:.4g}</title>"
        size = f'x="{LENGTH * start:.2f}" y="10" width="{LENGTH * p:.2f}" height="{HEIGHT - 10:.0f}"'
        parts.append(f'<rect class="{kind}" {size}>{title}</rect>')
    if lot is not None:
        at = LENGTH * lot
        parts.append(f'<path class="lot" d="M{at:.2f} 8V{HEIGHT:.0f}M{at:.2f} 9l-5 -9h10z"/>')
    label = "Probabilities of all arms side by side, and the number that was drawn"
    drawn = f'<svg viewBox="-6 0 {LENGTH + 12:.0f} {HEIGHT:.0f}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    return f'<figure class="strip">{drawn}<figcaption>{label}</figcaption></figure>'


def _table(names: list[str], chances: Floats, arm: int) -> str:
    rows = [
        [clipped(name), f"<td{' class=best' if place == arm else ''}>{p:.6g}</td>"]
        for place, (name, p) in enumerate(zip(names, chances.tolist(), strict=True))
    ]
    return table(["arm", "probability"], rows, caption="Probabilities of all arms when it was decided")
