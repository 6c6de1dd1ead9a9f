"""Charts of the dashboard: rewards, plan and latency over time."""

import datetime
import itertools
import math
from collections.abc import Sequence
from html import escape

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy.health_report import Health
from bothworlds.report.chart import Chart, Line, Mark
from bothworlds.report.palette import Style
from bothworlds.report.svg import Frame, svg
from bothworlds.service.outcome_history import Event
from bothworlds.service.plan_series import PlanSeries
from bothworlds.service.request_stats import Sample, by_route, since, total
from bothworlds.service.reward_series import Bucket, RewardSeries, merge_buckets
from bothworlds.theory.confidence.checks import level_of

POLICY, HOLDOUT = Style(0, ""), Style(1, "7 4")
STYLES = tuple(Style(colour, dash) for colour, dash in ((0, ""), (1, ""), (3, ""), (4, ""), (5, ""), (6, "2 3")))
LEAST_REWARDS = 40  # per point of the curve
POINTS = 32  # of the curve, about
MOST_MARKS = 6
LEAST_SHARE = 0.002  # of an arm with a curve of its own
LEAST_SECONDS = 5.0  # of a rate
SPANS = ((172_800.0, 86_400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
WIDE, SMALL = Frame(height=300, right=80, bottom=46), Frame(width=346, height=300, right=20, bottom=52)
PLAN = Frame(height=290, right=124, bottom=46)
HALF = Frame(width=440, height=270, left=48, right=96, bottom=46)


def figure(chart: Chart, frame: Frame) -> str:
    """Return a chart with its caption."""
    return f"<figure>{svg(chart, ident=chart.name, frame=frame)}<figcaption>{escape(chart.title)}</figcaption></figure>"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return a unit for a duration, in seconds, and its name.

    >>> time_unit(90.0), time_unit(10_000.0)
    ((1.0, 'seconds'), (3600.0, 'hours'))
    """
    return next((unit, word) for least, unit, word in SPANS if seconds >= least)


def moment(time: float) -> str:
    """Return a time (seconds since 1970) as text.

    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.datetime.fromtimestamp(time, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"


def over_time(reward_series: RewardSeries, limits: tuple[float, float], events: Sequence[Event] = ()) -> Chart | None:
    """Return a chart of the mean reward over the time of decision, or None while there are too few rewards.

    ``limits`` is the reward range; ``events`` are marked.
    """
    policy, holdout = (reward_series.buckets(holdout=flag) for flag in (False, True))
    both = sorted([*policy, *holdout])
    if not policy or both[-1].start == both[0].start:
        return None
    start, width = both[0].start, reward_series.width
    end = both[-1].start + width
    unit, word = time_unit(end - start)
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
        whole=True,
        lines=lines,
        marks=_marks(events, start, end, unit),
    )


def _marks(events: Sequence[Event], start: float, end: float, unit: float) -> list[Mark]:
    """Return the newest events as marks in a chart."""
    shown = [event for event in events if start < event.time < end and event.word != "start"][:MOST_MARKS]
    places = [(event.word, (event.time - start) / unit) for event in reversed(shown)]
    return [Mark(start=place, end=place, text=word) for word, place in places]


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


def plan_over_time(series: PlanSeries, arms: Sequence[str], context: str, events: Sequence[Event]) -> Chart | None:
    """Return a chart of the probability of the likeliest arms in a context, and of all others together."""
    starts, table = series.means(arms=len(arms))
    if len(starts) < 2:
        return None
    unit, word = time_unit(starts[-1] + series.width - starts[0])
    ranked = np.argsort(-table[-max(1, len(table) // 4) :].mean(axis=0), kind="stable").tolist()
    count = len(STYLES) if len(arms) <= len(STYLES) else len(STYLES) - 1
    curves = [(arms[a], table[:, a]) for a in ranked[:count] if table[:, a].max() >= LEAST_SHARE]
    if len(arms) > count:
        curves.append((f"{len(arms) - count} others", table[:, ranked[count:]].sum(axis=1)))  # they may sum to much
    x = (starts + series.width / 2 - starts[0]) / unit
    lines = [
        Line(label=name, number=number, style=STYLES[number], x=x, y=100.0 * y)
        for number, (name, y) in enumerate(curves)
    ]
    return Chart(
        name="plans",
        title=f"Probability of each arm in context {context}, as it was when decisions were taken",
        description=f"The probabilities of {', '.join(name for name, _ in curves)} in context {context} over time.",
        y_label="percent",
        x_label=f"{word} since {moment(float(starts[0]))}",
        x_log=False,
        y_limits=(0.0, 100.0),
        lines=lines,
        marks=_marks(events, float(starts[0]), float(starts[-1] + series.width), unit),
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


def latency_over_time(samples: Sequence[Sample], route: str) -> Chart | None:
    """Return a chart of the latency of a route in the last hour, or None while there are too few samples."""
    pairs = _pairs(samples)
    x, quantiles = [], []
    for before, now in pairs:
        latencies = by_route(since(now, before)).get(route)
        if latencies is not None:
            x.append((now.time - samples[-1].time) / 60.0)
            quantiles.append([1e3 * min(latencies.quantile(share), 20.0) for share in (0.5, 0.99)])
    if len(x) < 2:
        return None
    return _of_last_hour(
        "latency", f"Latency of {route}: an upper bound of half and of 99 % of the requests", "milliseconds",
        x, np.array(quantiles).T, ("p50", "p99"),
    )  # fmt: skip


def traffic_over_time(samples: Sequence[Sample]) -> Chart | None:
    """Return a chart of all requests and of those with errors of the service, per second."""
    pairs = _pairs(samples)
    x = [(now.time - samples[-1].time) / 60.0 for _, now in pairs]
    if len(x) < 2:
        return None
    rates = []
    for before, now in pairs:
        made, seconds = since(now, before), now.time - before.time
        groups = ([one for (_, status), one in made.items() if low <= status < 600] for low in (0, 400, 500))
        rates.append([total(group).total / seconds for group in groups])
    return _of_last_hour(
        "traffic", "Requests, those with status 400 and above, and those with 500 and above", "per second",
        x, np.array(rates).T, ("all", "4xx and 5xx", "5xx"),
    )  # fmt: skip


def _pairs(samples: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """Return samples with the one before, some at most; a clock that was set back leaves out a pair."""
    step = max(1, math.ceil(len(samples) / 60))
    kept = [*samples[:-1:step], samples[-1]] if samples else []
    return [(before, now) for before, now in itertools.pairwise(kept) if now.time - before.time >= LEAST_SECONDS]


def _of_last_hour(name: str, title: str, unit: str, x: Sequence[float], rows: Floats, words: Sequence[str]) -> Chart:
    lines = [
        Line(label=word, number=number, style=STYLES[number], x=np.array(x), y=row)
        for number, (word, row) in enumerate(zip(words, rows, strict=True))
    ]
    return Chart(
        name=name, title=title, description=title, y_label=unit, x_label="minutes, until now", x_log=False,
        whole=True, lines=lines,
    )  # fmt: skip
