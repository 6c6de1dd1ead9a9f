"""Panels of the overview page: functions from dashboard data to HTML. Names given by users are escaped here.

Elements have no inline styles, as the content security policy allows the style sheet of the page only.
"""

import datetime
import math
from collections.abc import Sequence
from html import escape
from urllib.parse import urlencode

import numpy as np

from bothworlds.policy.health import Health, Rate, Reading
from bothworlds.report.chart import Chart, Line
from bothworlds.report.html_parts import MOST_SHOWN, table
from bothworlds.report.palette import Style
from bothworlds.report.svg import Frame, svg
from bothworlds.report.tables import number
from bothworlds.service.dashboard_data import Newest, Overview
from bothworlds.service.reward_series import Bucket, RewardSeries, merge_buckets
from bothworlds.theory.confidence.checks import level_of

POLICY, HOLDOUT = Style(0, ""), Style(1, "7 4")
STEPS = 20  # shades of a probability
LEAST_REWARDS = 40  # per point of the curve
POINTS = 32  # of the curve, about
SPANS = ((172_800.0, 86_400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
WIDE, SMALL = Frame(height=300, right=80, bottom=46), Frame(width=346, height=300, right=20, bottom=52)


def link(experiment: str, *, decision: str | None = None) -> str:
    """Return the address of the page of an experiment or of one of its decisions, escaped."""
    query = {"experiment": experiment} if decision is None else {"experiment": experiment, "decision": decision}
    return escape(f"/?{urlencode(query)}")


def clipped(text: str, most: int = 40) -> str:
    """Return a name as HTML; a long one is cut and has the whole name as its title."""
    if len(text) <= most:
        return escape(text)
    return f'<span title="{escape(text)}">{escape(text[: most - 1])}…</span>'


def alarms(health: Health) -> list[Reading]:
    """Return the alarms that ask for action: a policy that plays some arms seldom or never is as it should be."""
    return [reading for reading in health.alarms if reading is not health.smallest_propensity]


def banner(failures: Sequence[str], alarms: Sequence[Reading]) -> str:
    """Return failures and alarms."""
    parts = [f'<p class="warn failing" role="alert"><b>Failing.</b> {escape(failure)}</p>' for failure in failures]
    parts += [f'<p class="warn c5"><b>{escape(alarm.name)}</b>: {escape(alarm.sentence)}.</p>' for alarm in alarms]
    return "".join(parts)


def tiles(overview: Overview, start_time: float) -> str:
    """Return counts and rates; ``start_time`` is the start of the service in seconds since 1970."""
    counts = overview.counts
    unanswered = f"; {counts['unanswered']:,} unanswered" if counts["unanswered"] else ""
    shown = {
        "decisions": (f"{counts['decisions']:,}", f"{number(overview.rate)} per second now"),
        "rewards": (f"{counts['rewards']:,}", f"{counts['late']:,} after their window"),
        "default rewards": (
            f"{counts['defaults']:,}",
            f"no reward within {escape(overview.experiment.settings.window)}",
        ),
        "in their window": (f"{overview.in_window:,}", f"count below once it has closed{unanswered}"),
        "version": (f"{overview.experiment.plan.version:,}", f"digest {escape(overview.experiment.plan.digest[:12])}"),
        "running": (ago(overview.now - start_time).removesuffix(" ago"), f"since {moment(start_time)}"),
    }
    items = [f"<div><dt>{name}</dt><dd>{big}<small>{small}</small></dd></div>" for name, (big, small) in shown.items()]
    return f'<dl class="tiles">{"".join(items)}</dl>'


def value(overview: Overview) -> str:
    """Return the reward over time, and the policy compared with uniform play."""
    limits = overview.experiment.plan.problem.reward_range or (-1.0, 1.0)
    chart = over_time(overview.reward_series, limits)
    figures = [] if chart is None else [_figure(chart, WIDE)]
    health = overview.health
    if health.gain is None:
        text = '<p class="soft">Set a <code>holdout</code> to see what the policy gains over uniform play.</p>'
    elif all(rate.answers for rate in health.who):
        text = f'<p class="lead">{escape(_sentence(health.gain.sentence))}</p>'
        figures.append(_figure(comparison(health), SMALL))
    else:
        text = '<p class="soft">Policy and holdout do not both have a reward yet.</p>'
    window = escape(overview.experiment.settings.window)
    text += f'<p class="small soft">Of decisions whose reward window of {window} has closed.{_progress(overview)}</p>'
    if not figures:
        return f'{text}<p class="soft">There is no reward to show yet.</p>'
    return f'{text}<div class="charts{" earns" if len(figures) > 1 else ""}">{"".join(figures)}</div>'


def _progress(overview: Overview) -> str:
    if overview.read >= 1.0:
        return ""
    return f" The log is being read since the start ({overview.read:.0%}): until then, earlier figures are shown."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _figure(chart: Chart, frame: Frame) -> str:
    return f"<figure>{svg(chart, ident=chart.name, frame=frame)}<figcaption>{escape(chart.title)}</figcaption></figure>"


def over_time(reward_series: RewardSeries, limits: tuple[float, float]) -> Chart | None:
    """Return a chart of the mean reward over the time of decision, or None while there are too few rewards.

    ``limits`` is the reward range.
    """
    policy, holdout = (reward_series.buckets(holdout=flag) for flag in (False, True))
    both = sorted([*policy, *holdout])
    if not policy or both[-1].start == both[0].start:
        return None
    start, width = both[0].start, reward_series.width
    seconds = both[-1].start + width - start
    unit, word = next((unit, word) for least, unit, word in SPANS if seconds >= least)
    lines = [
        _curve(name, line, style, buckets, (start, width, unit), limits)
        for line, (name, style, buckets) in enumerate((("policy", POLICY, policy), ("holdout", HOLDOUT, holdout)))
        if buckets
    ]
    return Chart(
        name="time",
        title="Mean reward by the time of the decision, default rewards included, with fixed-time 95% intervals",
        description="Mean reward of the policy and of the holdout per time interval, each with an interval.",
        y_label="mean reward",
        x_label=f"{word} since {moment(start)}",
        x_log=False,
        lines=lines,
    )


def _curve(
    name: str,
    line: int,
    style: Style,
    buckets: list[Bucket],
    scale: tuple[float, float, float],
    limits: tuple[float, float],
) -> Line:
    start, width, unit = scale
    least = max(LEAST_REWARDS, sum(bucket.rewards for bucket in buckets) // POINTS)
    points = merge_buckets(buckets, least)
    ends = [*(point.start for point in points[1:]), buckets[-1].start + width]
    x = [((point.start + end) / 2 - start) / unit for point, end in zip(points, ends, strict=True)]
    y = [point.mean for point in points]
    low, high = np.array([point.interval(limits) for point in points]).T
    return Line(
        label=name, number=line, style=style, x=np.array(x), y=np.array(y), low=low, high=high, dots=len(x) == 1
    )


def comparison(health: Health) -> Chart:
    """Return a chart of the mean rewards of policy and holdout with their intervals."""
    lines = [
        Line(
            label="",
            number=index,
            style=style,
            x=np.array([index + 1.0]),
            y=np.array([rate.mean]),
            low=np.array([rate.low]),
            high=np.array([rate.high]),
            dots=True,
        )
        for index, (style, rate) in enumerate(zip((POLICY, HOLDOUT), health.who, strict=True))
    ]
    low, high = min(rate.low for rate in health.who), max(rate.high for rate in health.who)
    room = 0.06 * (high - low)
    return Chart(
        name="holdout",
        title=f"Mean reward so far, with anytime-valid intervals ({level_of(health.alpha)})",
        description="; ".join(f"{r.name}: {r.mean:.3g}, between {r.low:.3g} and {r.high:.3g}" for r in health.who),
        y_label="mean reward",
        x_label="",
        x_log=False,
        x_names=tuple(rate.name for rate in health.who),
        y_limits=(min(0.0, low), high + room),
        lines=lines,
    )


def plan_table(overview: Overview) -> str:
    """Return the current plan: the probability of each arm in each context."""
    plan = overview.experiment.plan
    problem, pi = plan.problem, plan.probabilities()
    shown = sorted(sorted(range(problem.n_contexts), key=lambda x: -problem.probabilities[x])[:MOST_SHOWN])
    arms = range(min(problem.n_arms, MOST_SHOWN))
    head = "".join(f'<th scope="col">{clipped(problem.arms[a], 24)}</th>' for a in arms)
    rows = []
    for x in shown:
        cells = "".join(_shade(float(pi[x, a]), offered=bool(problem.available[x, a])) for a in arms)
        share = f"<small> {100 * problem.probabilities[x]:.3g} %</small>"
        rows.append(f'<tr><th scope="row">{clipped(problem.contexts[x])}{share}</th>{cells}</tr>')
    more = ""
    if problem.n_contexts > MOST_SHOWN or problem.n_arms > MOST_SHOWN:
        more = (
            f" Shown: the most probable of {problem.n_contexts:,} contexts, the first of {problem.n_arms:,} arms; "
            "<code>GET /v1/plan</code> returns all."
        )
    caption = f"Probability of each arm in percent; beside each context, its share of the traffic.{more}"
    body = f'<thead><tr><th scope="col">context</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    return f'<p class="small soft">{caption}</p><div class="policies"><table class="c0">{body}</table></div>'


def _shade(p: float, *, offered: bool) -> str:
    if not offered:
        return '<td class="p0">–</td>'
    return f'<td class="p{round(STEPS * p)}">{_percent(p)}</td>'


def _percent(p: float) -> str:
    """Return a probability in percent; one below 10 % has a decimal.

    >>> [_percent(p) for p in (0.5, 0.034, 0.004, 0.0001, 1.0)]
    ['50', '3.4', '0.4', '&lt;0.1', '100']
    """
    if 0.0 < p < 0.0005:
        return "&lt;0.1"
    return f"{100 * p:.1f}" if 0.0 < p < 0.0995 else f"{100 * p:.0f}"


def rates(health: Health) -> str:
    """Return mean rewards by arm and by context, and the health readings without an alarm."""
    tables = [_rates("arm", health.arms, health.alpha), _rates("context", health.contexts, health.alpha)]
    quiet = [health.explored, health.smallest_propensity, *([] if health.traffic.alarm else [health.traffic])]
    lines = [f"<li><b>{escape(reading.name)}</b>: {escape(reading.sentence)}</li>" for reading in quiet]
    return (
        f'<div class="charts"><div>{tables[0]}</div><div>{tables[1]}</div></div><ul class="small">{"".join(lines)}</ul>'
    )


def _rates(word: str, given: Sequence[Rate], alpha: float) -> str:
    shown = sorted(given, key=lambda rate: -rate.decisions)[:MOST_SHOWN]
    rows = [[clipped(r.name, 24), f"{r.answers:,}", *(_mean(x) for x in (r.mean, r.low, r.high))] for r in shown]
    busiest = " (those with the most decisions)" if len(given) > len(shown) else ""
    caption = f"Mean reward by {word}{busiest}; the intervals are anytime-valid and simultaneous ({level_of(alpha)})"
    return table([word, "rewards", "mean", "from", "to"], rows, caption=caption)


def _mean(reward: float) -> str:
    return f"{reward:.3g}" if math.isfinite(reward) else "–"


def newest(overview: Overview) -> str:
    """Return the newest decisions, each with a link to its page."""
    if not overview.newest:
        return '<p class="soft">No decision yet.</p>'
    rows = [
        [
            f'<a href="{link(overview.experiment.name, decision=decision.id)}">{clipped(decision.id, 28)}</a>',
            f"{ago(overview.now - decision.time)}",
            clipped(decision.body.context, 24),
            clipped(decision.body.arm, 24),
            f"{decision.body.propensity:.3g}{' <small>holdout</small>' if decision.body.holdout else ''}",
            f"{decision.body.version:,}",
            reward_of(decision),
        ]
        for decision in overview.newest
    ]
    head = ["id", "when", "context", "arm", "propensity", "version", "reward"]
    return table(head, rows, caption="Follow a link to see how a decision was made", kind="newest")


def reward_of(decision: Newest) -> str:
    """Return the reward of a decision, or the reason why there is no reward."""
    state = decision.state
    if not state.active:
        return '<span class="soft">inactive</span>'
    if state.reward is None:
        return '<span class="soft">waiting</span>'
    return f"{state.reward:g}" if state.reward_sent else f"{state.reward:g} <small>by default</small>"


def moment(time: float) -> str:
    """Return a time (seconds since 1970) as text.

    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.datetime.fromtimestamp(time, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"


def ago(seconds: float) -> str:
    """Return a duration in seconds as text.

    >>> [ago(s) for s in (0.2, 5.4, 600, 9000, 200_000)]
    ['now', '5 s ago', '10 min ago', '2.5 h ago', '2.3 days ago']
    """
    if seconds < 1.0:
        return "now"
    for least, unit, word in ((172_800.0, 86_400.0, "days"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min")):
        if seconds >= least:
            return f"{seconds / unit:.1f} {word} ago" if seconds / unit < 9.95 else f"{seconds / unit:.0f} {word} ago"
    return f"{seconds:.0f} s ago"
