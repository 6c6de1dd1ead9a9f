"""The service itself, as HTML: latency and errors, what happened, settings."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from bothworlds.report.html_parts import table
from bothworlds.report.tables import number
from bothworlds.service.dashboard.curves import HALF, figure, latency_over_time, moment, traffic_over_time
from bothworlds.service.dashboard.panels import ago
from bothworlds.service.dashboard.plan_panel import clipped
from bothworlds.service.dashboard_data import Overview
from bothworlds.service.request_stats import RequestStats, by_route, since
from bothworlds.service.service import Service
from bothworlds.service.store import StoreError

MOST_EVENTS_SHOWN = 20
DECIDE = "/v1/decide"
SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def traffic(stats: RequestStats) -> str:
    """Return latency and errors: charts of the last hour, and a table by route since then."""
    samples = stats.recent()
    charts = [latency_over_time(samples, DECIDE), traffic_over_time(samples)]
    figures = [figure(chart, HALF) for chart in charts if chart is not None]
    made = since(samples[-1], samples[0]) if len(samples) > 1 else {}
    seconds = samples[-1].time - samples[0].time
    rows = []
    for route, latencies in sorted(by_route(made).items(), key=lambda pair: -pair[1].total):
        statuses = {status: one.total for (name, status), one in made.items() if name == route}
        errors = [sum(count for status, count in statuses.items() if status // 100 == hundred) for hundred in (4, 5)]
        quantiles = [_milliseconds(latencies.quantile(share)) for share in (0.5, 0.99)]
        rows.append(
            [escape(route), number(latencies.total / max(seconds, 1.0)), *quantiles, *(f"{n:,}" for n in errors)]
        )
    if not rows:
        return '<p class="soft">No requests have been counted yet; look again in a few seconds.</p>'
    head = ["route", "per second", "p50", "p99", "4xx", "5xx"]
    caption = f"Requests of the last {ago(max(seconds, 1.0)).removesuffix(' ago')}, with upper bounds of their latency"
    return f'<div class="charts">{"".join(figures)}</div>{table(head, rows, caption=caption)}'


def _milliseconds(seconds: float) -> str:
    return f"≤ {1e3 * seconds:g} ms" if seconds < 100.0 else "&gt; 10 s"


def events(overview: Overview) -> str:
    """Return changes, rollbacks and restarts, newest first."""
    rows = [
        [moment(event.time), ago(overview.now - event.time), escape(event.word), escape(event.sentence)]
        for event in overview.events[:MOST_EVENTS_SHOWN]
    ]
    if not rows:
        return '<p class="soft">Nothing yet.</p>'
    return table(["time", "", "what", ""], rows, caption="Newest first", kind="events")


def state(service: Service) -> str:
    """Return how the service does at the moment: store and threads."""
    writer = service.writer
    facts = {
        "store": _space(service),
        "commits since the start": f"{writer.commits:,}",
        "jobs waiting for a commit": f"{writer.waiting:,}",
        "rewards waiting to be learned": ", ".join(
            f"{clipped(name)}: {experiment.unlearned:,}" for name, experiment in service.experiments.items()
        ),
    }
    threads = {f"{one.name} thread": _activity(one.fault, one.activity.name) for one in service.supervisor.threads}
    return facts_html({**facts, **threads})


def _activity(fault: str | None, activity: str) -> str:
    return escape(activity) if fault is None else f'<strong class="failing">{escape(fault)}</strong>'


def _space(service: Service) -> str:
    try:
        space = service.store.space()
    except (OSError, StoreError):
        return "its size cannot be read"
    used = " + ".join(f"{size_text(size)} {escape(part)}" for part, size in space.used.items())
    return used if space.free is None else f"{used}; {size_text(space.free)} free on its disk"


def size_text(size: float) -> str:
    """Return a number of bytes as text.

    >>> size_text(999), size_text(1_500_000)
    ('999 B', '1.5 MB')
    """
    for unit, word in SIZES:
        if size >= unit:
            return f"{size / unit:.3g} {word}"
    return f"{size:.0f} B"


def experiment_settings(overview: Overview) -> str:
    """Return the settings of an experiment."""
    settings, spec = overview.experiment.settings, overview.experiment.plan.spec
    problem = overview.experiment.plan.problem
    default = "none: the decision waits" if settings.default_reward is None else f"{settings.default_reward}"
    facts = {
        "algorithm": escape(str(spec.algorithm)),
        "problem": escape(settings.problem or "arms and contexts by name"),
        "size": f"{problem.n_arms:,} arms, {problem.n_contexts:,} contexts, {problem.dimension:,} dimensions",
        "reward range": "{:g} to {:g}".format(*(problem.reward_range or (-1.0, 1.0))),
        "window": escape(settings.window),
        "default reward": escape(default),
        "learns": "in order" if settings.in_order else "at once",
        "keeps decisions": escape(settings.keep or "forever"),
        "holdout": f"{100 * spec.holdout:g} %",
        "safe arm": _optional(settings.safe_arm),
        "other context": _optional(settings.other),
    }
    return facts_html(facts)


def service_settings(service: Service) -> str:
    """Return the settings of the service, without secrets."""
    settings = service.settings
    tokens = [f"{clipped(token.name)} ({', '.join(token.scopes)}{_rate(token.rate)})" for token in settings.tokens]
    facts = {
        "address": escape(f"{settings.host}:{settings.port}"),
        "TLS": "by the service" if settings.certificate else "none here; a proxy may do it",
        "store": escape(Path(settings.store).name),
        "durability": escape(settings.durability),
        "tokens": "; ".join(tokens) or "none: only this machine is answered",
        "refresh": f"{settings.refresh:g} s",
        "limits": f"{size_text(settings.most_bytes)} a body, {settings.most_waiting:,} waiting requests",
        "log lines": f"{settings.log_format}, from level {settings.log_level}"
        f"{', one per request' if settings.access_log else ''}",
    }
    return facts_html(facts)


def _optional(name: str | None) -> str:
    return "–" if name is None else clipped(name)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f", {rate:g} a second"


def facts_html(facts: Mapping[str, str]) -> str:
    """Return words with what stands for them."""
    rows = (f"<div><dt>{word}</dt><dd>{text}</dd></div>" for word, text in facts.items())
    return f'<dl class="facts">{"".join(rows)}</dl>'
