"""The dashboard pages: an overview per experiment, and one decision. Without scripts; the overview refreshes itself."""

import base64
import hashlib
from functools import cache
from html import escape

from bothworlds.report.assets import asset, stylesheet
from bothworlds.service.dashboard import panels
from bothworlds.service.dashboard.decision import decision_html
from bothworlds.service.dashboard_data import OverviewCache

REFRESH = 5  # seconds
SHADES = "".join(f".p{step}{{--p:{step / panels.STEPS:g}}}" for step in range(panels.STEPS + 1))


@cache
def style() -> str:
    """Return the style sheet of the pages."""
    return f"{stylesheet()}{SHADES}\n{asset('bothworlds.service', 'dashboard.css')}"


@cache
def headers() -> list[tuple[str, str]]:
    """Return the headers of the pages; the policy allows no scripts, no requests, and one style sheet by its hash."""
    hashed = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    allowed = f"style-src 'sha256-{hashed}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    return [
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", f"default-src 'none'; {allowed}"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ]


def page(overviews: OverviewCache, name: str | None, decision: str | None) -> str:
    """Return the page of an experiment or of one of its decisions; an unknown one is a KeyError."""
    service = overviews.service
    experiment = next(iter(service.experiments.values())) if name is None else service.experiment(name)
    failing = panels.banner(service.failures, [])
    if decision is not None:
        known = service.decision(decision, experiment.name)
        if known is None:
            raise KeyError(f"there is no decision {decision[:200]!r}")
        return _document(f"{decision} · {experiment.name}", failing + decision_html(known, experiment), refresh=False)
    overview = overviews.overview(experiment)
    title = escape(experiment.name)
    parts = [
        _tabs(list(service.experiments), experiment.name),
        f"<h1>{title}</h1>",
        f'<p class="soft">{escape(str(experiment.plan.spec.algorithm))}</p>',
        panels.banner(service.failures, panels.alarms(overview.health)),
        panels.tiles(overview, service.start_time),
        f"<h2>Reward</h2>{panels.value(overview)}",
        f"<h2>Current plan</h2>{panels.plan_table(overview)}",
        f"<h2>Newest decisions</h2>{_search(experiment.name)}{panels.newest(overview)}",
        f"<h2>Rewards by arm and context</h2>{panels.rates(overview.health)}",
        f'<p class="small soft">Refreshes every {REFRESH} seconds. <a href="/openapi.json">OpenAPI</a>, '
        '<a href="/metrics">metrics</a>, <a href="/v1/health">health</a>.</p>',
    ]
    return _document(experiment.name, "".join(parts), refresh=True)


def _document(title: str, body: str, *, refresh: bool) -> str:
    meta = f'<meta http-equiv="refresh" content="{REFRESH}">' if refresh else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">{meta}'
        f"<title>{escape(title)} · bothworlds</title><style>{style()}</style></head>"
        f"<body><main>{body}</main></body></html>"
    )


def _tabs(names: list[str], current: str) -> str:
    """Return links to all experiments, or nothing if there is only one."""
    if len(names) == 1:
        return ""
    links = [
        f'<a href="{panels.link(name)}"{" aria-current=page" if name == current else ""}>{panels.clipped(name)}</a>'
        for name in names
    ]
    return f'<nav aria-label="Experiments">{"".join(links)}</nav>'


def _search(experiment: str) -> str:
    """Return a form that opens the page of a decision by its id."""
    return (
        f'<form action="/" method="get"><input type="hidden" name="experiment" value="{escape(experiment)}">'
        '<label for="id">Decision</label><input id="id" name="decision" required placeholder="its id">'
        "<button>Explain</button></form>"
    )
