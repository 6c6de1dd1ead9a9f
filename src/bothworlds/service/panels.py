"""Parts of the first page: each a function from what was seen to HTML. Whatever a user may have named is escaped here.

Nothing has a style of its own: the policy of the page allows its one style sheet and no more.
"""

import datetime
import math
from collections.abc import Sequence
from html import escape
from urllib.parse import urlencode

import numpy as np

from bothworlds.policy.health import Health, Rate, Reading
from bothworlds.report.chart import Chart, Line
from bothworlds.report.palette import Style
from bothworlds.report.parts import MOST_SHOWN, table
from bothworlds.report.svg import Frame, svg
from bothworlds.report.tables import number
from bothworlds.service.glance import Glance, Newest
from bothworlds.service.pulse import Pulse, Stretch, merged
from bothworlds.theory.confidence.checks import level_of

OWN, HELD = Style(0, ""), Style(1, "7 4")
STEPS = 20  # shades of a probability
ENOUGH = 40  # rewards behind a point of the curve
POINTS = 32
SPANS = ((172_800.0, 86_400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
WIDE, SMALL = Frame(height=300, right=80, bottom=46), Frame(width=346, height=300, right=20, bottom=52)


def link(experiment: str, *, decision: str | None = None) -> str:
    """Return the address of an experiment, or of one of its decisions, as it stands in HTML."""
    asked = {"experiment": experiment} if decision is None else {"experiment": experiment, "decision": decision}
    return escape(f"/?{urlencode(asked)}")


def clipped(text: str, most: int = 40) -> str:
    """Return a name as HTML, cut if it is long; all of it stands in the title."""
    if len(text) <= most:
        return escape(text)
    return f'<span title="{escape(text)}">{escape(text[: most - 1])}…</span>'


def banner(failures: Sequence[str], alarms: Sequence[Reading]) -> str:
    """Return what does not work, and what asks for a look."""
    parts = [f'<p class="warn failing" role="alert"><b>Failing.</b> {escape(failure)}</p>' for failure in failures]
    parts += [f'<p class="warn c5"><b>{escape(one.name)}</b>: {escape(one.sentence)}.</p>' for one in alarms]
    return "".join(parts)


def tiles(glance: Glance, began: float) -> str:
    """Return counts and rates; ``began`` is when the service was started."""
    counts = glance.counts
    answered = counts["rewards"] + counts["defaults"]
    waiting = max(0, counts["decisions"] - answered)
    shown = {
        "decisions": (f"{counts['decisions']:,}", f"{number(glance.rate)} a second of late"),
        "rewards": (f"{counts['rewards']:,}", f"{counts['late']:,} after their window"),
        "default rewards": (f"{counts['defaults']:,}", f"no reward within {escape(glance.experiment.told.window)}"),
        "without a reward": (f"{waiting:,}", "waiting, or inactive"),
        "version": (f"{glance.experiment.plan.version:,}", f"digest {escape(glance.experiment.plan.digest[:12])}"),
        "running": (ago(glance.now - began).removesuffix(" ago"), f"since {moment(began)}"),
    }
    items = [f"<div><dt>{name}</dt><dd>{big}<small>{small}</small></dd></div>" for name, (big, small) in shown.items()]
    return f'<dl class="tiles">{"".join(items)}</dl>'


def value(glance: Glance) -> str:
    """Return the reward over time, and what the policy earns against uniform play."""
    drawn = over_time(glance.pulse)
    figures = [] if drawn is None else [_figure(drawn, WIDE)]
    health = glance.health
    if health.gain is None:
        said = '<p class="soft">Nothing is held out: with a <code>holdout</code> this says what the policy gains.</p>'
    elif all(rate.answers for rate in health.who):
        said = f'<p class="lead">{escape(_sentence(health.gain.sentence))}</p>'
        figures.append(_figure(against(health), SMALL))
    else:
        said = '<p class="soft">No reward has come yet for a decision that was held out.</p>'
    if not figures:
        return f'{said}<p class="soft">There is no reward to show yet.</p>'
    return f'{said}<div class="charts{" earns" if len(figures) > 1 else ""}">{"".join(figures)}</div>'


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _figure(chart: Chart, frame: Frame) -> str:
    return f"<figure>{svg(chart, ident=chart.name, frame=frame)}<figcaption>{escape(chart.title)}</figcaption></figure>"


def over_time(pulse: Pulse) -> Chart | None:
    """Return the mean reward over time as a chart, or None where there is too little of it."""
    own, held = (pulse.stretches(holdout=holdout) for holdout in (False, True))
    everything = sorted([*own, *held])
    if not own or everything[-1].began == everything[0].began:
        return None
    began, width = everything[0].began, pulse.width
    seconds = everything[-1].began + width - began
    unit, word = next((unit, word) for least, unit, word in SPANS if seconds >= least)
    lines = [
        _curve(name, place, style, stretches, (began, width, unit))
        for place, (name, style, stretches) in enumerate((("policy", OWN, own), ("holdout", HELD, held)))
        if stretches
    ]
    return Chart(
        name="time",
        title="Mean reward over time, default rewards included",
        description="Mean reward of decisions of the policy, and of those held out, in stretches of time.",
        y_label="mean reward",
        x_label=f"{word} since {moment(began)}",
        x_log=False,
        lines=lines,
    )


def _curve(name: str, place: int, style: Style, stretches: list[Stretch], scale: tuple[float, float, float]) -> Line:
    began, width, unit = scale
    least = max(ENOUGH, sum(one.rewards for one in stretches) // POINTS)
    points = merged(stretches, least)
    ends = [*(one.began for one in points[1:]), stretches[-1].began + width]
    x = [((one.began + end) / 2 - began) / unit for one, end in zip(points, ends, strict=True)]
    y = [one.mean for one in points]
    return Line(label=name, number=place, style=style, x=np.array(x), y=np.array(y), dots=len(x) == 1)


def against(health: Health) -> Chart:
    """Return the mean rewards of policy and holdout with their intervals as a chart."""
    lines = [
        Line(
            label="",
            number=place,
            style=style,
            x=np.array([place + 1.0]),
            y=np.array([rate.mean]),
            low=np.array([rate.low]),
            high=np.array([rate.high]),
            dots=True,
        )
        for place, (style, rate) in enumerate(zip((OWN, HELD), health.who, strict=True))
    ]
    low, high = min(rate.low for rate in health.who), max(rate.high for rate in health.who)
    room = 0.06 * (high - low)
    return Chart(
        name="holdout",
        title=f"Mean reward so far, with intervals that hold at any time ({level_of(health.alpha)})",
        description="; ".join(f"{r.name}: {r.mean:.3g}, between {r.low:.3g} and {r.high:.3g}" for r in health.who),
        y_label="mean reward",
        x_label="",
        x_log=False,
        x_names=tuple(rate.name for rate in health.who),
        y_limits=(min(0.0, low), high + room),
        lines=lines,
    )


def plan_table(glance: Glance) -> str:
    """Return the plan of now: how often each arm is played in each context."""
    plan = glance.experiment.plan
    problem, pi = plan.problem, plan.probabilities()
    shown = sorted(sorted(range(problem.n_contexts), key=lambda x: -problem.probabilities[x])[:MOST_SHOWN])
    arms = range(min(problem.n_arms, MOST_SHOWN))
    head = "".join(f'<th scope="col">{clipped(problem.arms[a], 24)}</th>' for a in arms)
    rows = []
    for x in shown:
        cells = "".join(_shade(float(pi[x, a]), offered=bool(problem.available[x, a])) for a in arms)
        often = f"<small> {100 * problem.probabilities[x]:.3g} %</small>"
        rows.append(f'<tr><th scope="row">{clipped(problem.contexts[x])}{often}</th>{cells}</tr>')
    more = ""
    if problem.n_contexts > MOST_SHOWN or problem.n_arms > MOST_SHOWN:
        more = (
            f" Of {problem.n_contexts:,} contexts the likeliest are shown, of {problem.n_arms:,} arms the first; "
            "<code>GET /v1/plan</code> has all."
        )
    what = f"How often each arm is played, in percent; after a context, how often it comes.{more}"
    made = f'<thead><tr><th scope="col">context</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    return f'<p class="small soft">{what}</p><div class="policies"><table class="c0">{made}</table></div>'


def _shade(p: float, *, offered: bool) -> str:
    if not offered:
        return '<td class="p0">–</td>'
    return f'<td class="p{round(STEPS * p)}">{_percent(p)}</td>'


def _percent(p: float) -> str:
    """Return a probability in percent; small ones with a digit.

    >>> [_percent(p) for p in (0.5, 0.034, 0.004, 0.0001, 1.0)]
    ['50', '3.4', '0.4', '&lt;0.1', '100']
    """
    if 0.0 < p < 0.0005:
        return "&lt;0.1"
    return f"{100 * p:.1f}" if 0.0 < p < 0.0995 else f"{100 * p:.0f}"


def rates(health: Health) -> str:
    """Return mean rewards by arm and by context, and the readings."""
    tables = [_rates("arm", health.arms, health.alpha), _rates("context", health.contexts, health.alpha)]
    quiet = [reading for reading in (health.explored, health.smallest_propensity, health.traffic) if not reading.alarm]
    lines = [f"<li><b>{escape(one.name)}</b>: {escape(one.sentence)}</li>" for one in quiet]
    return (
        f'<div class="charts"><div>{tables[0]}</div><div>{tables[1]}</div></div><ul class="small">{"".join(lines)}</ul>'
    )


def _rates(word: str, given: Sequence[Rate], alpha: float) -> str:
    shown = sorted(given, key=lambda rate: -rate.decisions)[:MOST_SHOWN]
    rows = [[clipped(r.name, 24), f"{r.answers:,}", *(_mean(x) for x in (r.mean, r.low, r.high))] for r in shown]
    busiest = ", the busiest" if len(given) > len(shown) else ""
    caption = f"Mean reward by {word}{busiest}; intervals hold at any time, all together ({level_of(alpha)})"
    return table([word, "rewards", "mean", "from", "to"], rows, caption=caption)


def _mean(reward: float) -> str:
    return f"{reward:.3g}" if math.isfinite(reward) else "–"


def newest(glance: Glance) -> str:
    """Return the newest decisions, each a link to all that is known of it."""
    if not glance.newest:
        return '<p class="soft">No decision yet.</p>'
    rows = [
        [
            f'<a href="{link(glance.experiment.name, decision=one.id)}">{clipped(one.id, 28)}</a>',
            f"{ago(glance.now - one.time)}",
            clipped(one.drawn.context, 24),
            clipped(one.drawn.arm, 24),
            f"{one.drawn.propensity:.3g}{' <small>held out</small>' if one.drawn.holdout else ''}",
            f"{one.drawn.version:,}",
            reward_of(one),
        ]
        for one in glance.newest
    ]
    head = ["id", "when", "context", "arm", "propensity", "version", "reward"]
    return table(head, rows, caption="Follow one to see it explained", kind="newest")


def reward_of(one: Newest) -> str:
    """Return what a decision brought so far."""
    state = one.state
    if not state.active:
        return '<span class="soft">inactive</span>'
    if state.reward is None:
        return '<span class="soft">waits</span>'
    return f"{state.reward:g}" if state.given else f"{state.reward:g} <small>by default</small>"


def moment(time: float) -> str:
    """Return a time as text.

    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.datetime.fromtimestamp(time, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"


def ago(seconds: float) -> str:
    """Return how long ago something was.

    >>> [ago(s) for s in (0.2, 5.4, 600, 9000, 200_000)]
    ['now', '5 s ago', '10 min ago', '2.5 h ago', '2.3 days ago']
    """
    if seconds < 1.0:
        return "now"
    for least, unit, word in ((172_800.0, 86_400.0, "days"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min")):
        if seconds >= least:
            return f"{seconds / unit:.1f} {word} ago" if seconds / unit < 9.95 else f"{seconds / unit:.0f} {word} ago"
    return f"{seconds:.0f} s ago"
