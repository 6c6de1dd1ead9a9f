"""Panels of the overview page: functions from dashboard data to HTML. Names given by users are escaped here.

Elements have no inline styles, as the content security policy allows the style sheet of the page only.
"""

from collections.abc import Sequence
from html import escape

from bothworlds.policy.health_report import Health, Reading
from bothworlds.report.html_parts import table
from bothworlds.report.tables import number
from bothworlds.service.dashboard.curves import PLAN, SMALL, WIDE, comparison, figure, moment, over_time, plan_over_time
from bothworlds.service.dashboard.plan_panel import clipped
from bothworlds.service.dashboard.view import ALL, View, choices, link
from bothworlds.service.dashboard_data import Newest, Overview, watched_readings
from bothworlds.service.time_buckets import RANGES


def alarms(health: Health) -> list[Reading]:
    """Return the alarms that ask for action."""
    return [reading for reading in watched_readings(health) if reading.alarm]


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


def ranges(view: View) -> str:
    """Return links to the ranges of time that the curves can show."""
    items = [(view._replace(range=name).href, name, name == view.range) for name in RANGES]
    return choices("Range of the curves", items)


def value(overview: Overview, range_: str = ALL) -> str:
    """Return the reward over time, and the policy compared with uniform play."""
    limits = overview.experiment.plan.problem.reward_range or (-1.0, 1.0)
    chart = over_time(overview.history.rewards[range_], limits, overview.events)
    figures = [] if chart is None else [figure(chart, WIDE)]
    health = overview.health
    if health.gain is None:
        text = '<p class="soft">Set a <code>holdout</code> to see what the policy gains over uniform play.</p>'
    elif all(rate.answers for rate in health.who):
        text = f'<p class="lead">{escape(_sentence(health.gain.sentence))}</p>'
        figures.append(figure(comparison(health), SMALL))
    else:
        text = '<p class="soft">Policy and holdout do not both have a reward yet.</p>'
    window = escape(overview.experiment.settings.window)
    text += f'<p class="small soft">Of decisions whose reward window of {window} has closed.{_progress(overview)}</p>'
    if not figures:
        return f"{text}{_waiting(overview)}"
    return f'{text}<div class="charts{" earns" if len(figures) > 1 else ""}">{"".join(figures)}</div>'


def _waiting(overview: Overview) -> str:
    """Return why there is no curve yet."""
    if not overview.in_window:
        return '<p class="soft">There is no reward to show yet.</p>'
    window = escape(overview.experiment.settings.window)
    return (
        f'<p class="soft">The curve begins when the first windows have closed: {overview.in_window:,} decisions are in '
        f"their window of {window}.</p>"
    )


def _progress(overview: Overview) -> str:
    if overview.read >= 1.0:
        return ""
    return f" The log is being read since the start ({overview.read:.0%}): until then, earlier figures are shown."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def plans(overview: Overview, view: View) -> str:
    """Return the plan of one context over time, with links to other contexts."""
    history = overview.history
    names = history.contexts()
    shown = view.context if view.context in names else names[0]
    items = [(view._replace(context=name).href, clipped(name, 24), name == shown) for name in names]
    series = history.plans.get(shown, {}).get(view.range)
    chart = None if series is None else plan_over_time(series, history.arms.names, shown, overview.events)
    drawn = '<p class="soft">The curve begins with the first decisions in this context.</p>'
    if chart is not None:
        drawn = f'<div class="plans">{figure(chart, PLAN)}</div>'
    return f"{choices('Context of the plan', items)}{drawn}"


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
