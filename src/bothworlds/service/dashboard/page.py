"""The dashboard pages: three views per experiment, and one decision. Without scripts; views refresh themselves."""

import base64
import hashlib
from functools import cache
from html import escape

from bothworlds.report.assets import asset, stylesheet
from bothworlds.service.dashboard import operations, panels, plan_panel
from bothworlds.service.dashboard.decision import decision_html
from bothworlds.service.dashboard.plan_panel import STEPS, clipped
from bothworlds.service.dashboard.view import ARMS, SERVICE, VIEWS, View, choices
from bothworlds.service.dashboard_data import Overview, OverviewCache
from bothworlds.service.request_stats import RequestStats
from bothworlds.service.service import Service

REFRESH = 5  # seconds
SHADES = "".join(f".p{step}{{--p:{step / STEPS:g}}}" for step in range(STEPS + 1))


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


def page(overviews: OverviewCache, stats: RequestStats, view: View) -> str:
    """Return the page of an experiment or of one of its decisions; an unknown one is a KeyError."""
    service = overviews.service
    name = view.experiment
    experiment = next(iter(service.experiments.values())) if name is None else service.experiment(name)
    failing = panels.banner(service.failures, [])
    if view.decision is not None:
        known = service.decision(view.decision, experiment.name)
        if known is None:
            raise KeyError(f"there is no decision {view.decision[:200]!r}")
        title = f"{view.decision} · {experiment.name}"
        return document(title, failing + decision_html(known, experiment), refresh=False)
    overview, refreshes = overviews.overview(experiment), view.name != ARMS  # nobody types into a page that reloads
    parts = [
        _experiments(list(service.experiments), view._replace(experiment=experiment.name)),
        f"<h1>{escape(experiment.name)}</h1>",
        f'<p class="soft">{escape(str(experiment.plan.spec.algorithm))}</p>',
        choices(
            "Views",
            [(View(experiment.name, name=key).href, word, key == view.name) for key, word in VIEWS.items()],
        ),
        panels.banner(service.failures, panels.alarms(overview.health)),
        *_content(overviews.service, overview, stats, view),
        f'<p class="small soft">{f"Refreshes every {REFRESH} seconds. " if refreshes else ""}'
        '<a href="/openapi.json">OpenAPI</a>, <a href="/metrics">metrics</a>, <a href="/v1/health">health</a>.</p>',
    ]
    return document(experiment.name, "".join(parts), refresh=refreshes)


def _content(service: Service, overview: Overview, stats: RequestStats, view: View) -> list[str]:
    """Return the panels of a view."""
    name = overview.experiment.name
    view = view._replace(experiment=name)
    if view.name == SERVICE:
        return [
            f"<h2>Latency and errors</h2>{operations.traffic(stats)}",
            f"<h2>Changes, rollbacks and restarts</h2>{operations.events(overview)}",
            f"<h2>Now</h2>{operations.state(service)}",
            f"<h2>Settings of {escape(name)}</h2>{operations.experiment_settings(overview)}",
            f"<h2>Settings of the service</h2>{operations.service_settings(service)}",
        ]
    if view.name == ARMS and view.context is not None:
        return [plan_panel.context_html(overview, view.context)]
    if view.name == ARMS:
        return [
            f"<h2>Rewards by arm and context</h2>{plan_panel.context_search(overview)}"
            f"{plan_panel.pair_table(overview)}{plan_panel.rates(overview.health)}",
            f"<h2>Find a decision</h2>{_search(name)}",
        ]
    return [
        panels.tiles(overview, service.start_time),
        f"<h2>Reward</h2>{panels.ranges(view)}{panels.value(overview, view.range)}",
        f"<h2>Plan</h2>{panels.plans(overview, view)}{plan_panel.plan_table(overview)}",
        f"<h2>Newest decisions</h2>{panels.newest(overview)}",
    ]


def document(title: str, body: str, *, refresh: bool) -> str:
    """Return a whole page; with ``refresh`` it reloads itself."""
    meta = f'<meta http-equiv="refresh" content="{REFRESH}">' if refresh else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">{meta}'
        f"<title>{escape(title)} · bothworlds</title><style>{style()}</style></head>"
        f"<body><main>{body}</main></body></html>"
    )


def _experiments(names: list[str], view: View) -> str:
    """Return links to all experiments, or nothing if there is only one."""
    if len(names) == 1:
        return ""
    items = [(View(name, name=view.name).href, clipped(name), name == view.experiment) for name in names]
    return choices("Experiments", items)


def _search(experiment: str) -> str:
    """Return a form that opens the page of a decision by its id."""
    return (
        f'<form action="/" method="get"><input type="hidden" name="experiment" value="{escape(experiment)}">'
        '<label for="id">Decision</label><input id="id" name="decision" required placeholder="its id">'
        "<button>Explain</button></form>"
    )
