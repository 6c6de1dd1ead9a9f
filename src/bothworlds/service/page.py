"""The first page: how every experiment is doing, and one decision explained. No script; it asks for itself anew."""

import base64
import hashlib
from functools import cache
from html import escape

from bothworlds.report.style import stylesheet
from bothworlds.service import panels
from bothworlds.service.explained import explained
from bothworlds.service.glance import Watch

REFRESH = 5  # seconds
SHADES = "".join(f".p{step}{{--p:{step / panels.STEPS:g}}}" for step in range(panels.STEPS + 1))
OWN = """
nav[aria-label=Experiments] a{padding:.15rem .6rem;border:1px solid var(--rule);border-radius:1.1rem;
margin:0 .4rem .4rem 0;text-decoration:none}
nav a[aria-current]{background:var(--good);color:var(--ink);font-weight:600}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.7rem;margin:1rem 0}
.tiles div{background:var(--card);border-radius:10px;padding:.55rem .8rem}
.tiles dt{color:var(--soft);font-size:.88rem}
.tiles dd{margin:0;font-size:1.45rem;font-weight:600;line-height:1.25;font-variant-numeric:tabular-nums}
.tiles small{display:block;font-size:.8rem;font-weight:400;line-height:1.3;overflow-wrap:anywhere}
.earns{grid-template-columns:560fr 346fr}.newest td:nth-child(3),.newest td:nth-child(4){text-align:left}
.newest th:nth-child(3),.newest th:nth-child(4){text-align:left}
.facts{margin:1rem 0}
.facts div{display:grid;grid-template-columns:8.5rem 1fr;gap:.2rem 1rem;padding:.3rem 0;
border-bottom:1px solid var(--rule)}
.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
.failing{--c:#d32f2f}strong.failing{color:var(--c)}
.slice{fill:var(--c);opacity:.35}.chosen{opacity:1}.lot{stroke:var(--ink);stroke-width:2;fill:var(--ink)}
form{margin:.8rem 0;display:flex;gap:.5rem;flex-wrap:wrap;align-items:center}
input,button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--rule);border-radius:8px;
padding:.25rem .6rem;max-width:100%}
input{flex:1 1 8rem;max-width:18rem}
.small{padding-left:1.2rem}p.small{padding:0}
@media (max-width:600px){.facts div{grid-template-columns:1fr}.tiles{grid-template-columns:1fr 1fr}
.tiles dd{font-size:1.2rem}.earns{grid-template-columns:1fr}}
"""


@cache
def style() -> str:
    """Return the style of the page."""
    return stylesheet() + SHADES + OWN


@cache
def headers() -> list[tuple[str, str]]:
    """Return the headers of the page: nothing runs, nothing is fetched, and one style sheet counts, by its hash."""
    hashed = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    allowed = f"style-src 'sha256-{hashed}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    return [
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", f"default-src 'none'; {allowed}"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ]


def page(watch: Watch, name: str | None, decision: str | None) -> str:
    """Return the page of an experiment, or of one of its decisions; KeyError for what is not there."""
    service = watch.service
    experiment = next(iter(service.experiments.values())) if name is None else service.of(name)
    failing = panels.banner(service.failures, [])
    if decision is not None:
        known = service.known(decision, experiment.name)
        if known is None:
            raise KeyError(f"there is no decision {decision[:200]!r}")
        return _document(f"{decision} · {experiment.name}", failing + explained(known, experiment), refresh=False)
    glance = watch.glance(experiment)
    title = escape(experiment.name)
    parts = [
        _tabs(list(service.experiments), experiment.name),
        f"<h1>{title}</h1>",
        f'<p class="soft">{escape(str(experiment.plan.footing.algorithm))}</p>',
        panels.banner(service.failures, glance.health.alarms),
        panels.tiles(glance, service.began),
        f"<h2>What it earns</h2>{panels.value(glance)}",
        f"<h2>The plan of now</h2>{panels.plan_table(glance)}",
        f"<h2>Newest decisions</h2>{_search(experiment.name)}{panels.newest(glance)}",
        f"<h2>Rewards by arm and context</h2>{panels.rates(glance.health)}",
        f'<p class="small soft">Renewed every {REFRESH} seconds. <a href="/openapi.json">OpenAPI</a>, '
        '<a href="/metrics">metrics</a>, <a href="/v1/health">health</a>.</p>',
    ]
    return _document(experiment.name, "".join(parts), refresh=True)


def _document(title: str, body: str, *, refresh: bool) -> str:
    again = f'<meta http-equiv="refresh" content="{REFRESH}">' if refresh else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">{again}'
        f"<title>{escape(title)} · bothworlds</title><style>{style()}</style></head>"
        f"<body><main>{body}</main></body></html>"
    )


def _tabs(names: list[str], current: str) -> str:
    """Return links to all experiments, where there are several."""
    if len(names) == 1:
        return ""
    links = [
        f'<a href="{panels.link(name)}"{" aria-current=page" if name == current else ""}>{panels.clipped(name)}</a>'
        for name in names
    ]
    return f'<nav aria-label="Experiments">{"".join(links)}</nav>'


def _search(experiment: str) -> str:
    """Return a form that leads to a decision by its id."""
    return (
        f'<form action="/" method="get"><input type="hidden" name="experiment" value="{escape(experiment)}">'
        '<label for="id">Decision</label><input id="id" name="decision" required placeholder="its id">'
        "<button>Explain</button></form>"
    )
