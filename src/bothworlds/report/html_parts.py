"""Parts of the page, each a function from results to HTML. They escape all names that users can choose."""

import base64
import gzip
import math
from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.problem import Problem
from bothworlds.report.assets import stylesheet
from bothworlds.report.chart import Chart
from bothworlds.report.figures import vacuous
from bothworlds.report.palette import Style, bound_style
from bothworlds.report.summary import Entry, Panel, Summary
from bothworlds.report.svg import svg
from bothworlds.report.tables import headline_rows, number, with_interval

MOST_SHOWN = 12  # contexts and arms of a policy
ACCOUNT = (
    "Paths’ account: the sum of the stability, exploration and penalty terms in the proof of the matched tuning, "
    "computed along a path without knowledge of the world. Its mean bounds the expected regret; a single path may "
    "exceed its own."
)


def document(title: str, body: str, *, script: str = "") -> str:
    """Return a whole page: title and body, with the style of all our pages, self-contained."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,">'
        f"<style>{stylesheet()}</style></head>\n<body><main>\n{body}\n</main>{script}</body></html>\n"
    )


def key(style: Style, *, thin: bool = False) -> str:
    """Return a short line in an algorithm's colour and style, for legends and tables."""
    kind = "line thin" if thin else "line"
    dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
    path = f'<path class="{kind}" d="M0 6h30"{dash}/>'
    return f'<svg class="key c{style.colour}" viewBox="0 0 30 12" aria-hidden="true">{path}</svg>'


def legend(players: Iterable[tuple[str, int, Style]]) -> str:
    """Return a legend whose buttons show and hide an algorithm in all charts."""
    items = [
        f'<li><button type="button" aria-pressed="true" data-algorithm="{number}">'
        f"{key(style)}{escape(label)}</button></li>"
        for label, number, style in players
    ]
    return f'<ul class="legend" aria-label="Show or hide algorithms">{"".join(items)}</ul>'


def figure(chart: Chart, caption: str, kind: str = "") -> str:
    """Return a chart with its caption; the page's script looks up the chart's data by its name."""
    drawn = svg(chart, ident=chart.name)
    name = f' class="{kind}"' if kind else ""
    return f'<figure{name} data-chart="{chart.name}">{drawn}<figcaption>{caption}</figcaption></figure>'


def table(head: Iterable[str], rows: Iterable[Iterable[str]], *, caption: str, kind: str = "") -> str:
    """Return a table; cells are HTML, and the first cell of a row is its header."""
    titles = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = []
    for first, *others in rows:
        cells = "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in others)
        body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    name = f' class="{kind}"' if kind else ""
    text = escape(caption)
    return (
        f'<p class="caption">{text}</p><div class="scroll" tabindex="0" role="region" aria-label="{text}">'
        f'<table{name} aria-label="{text}"><thead><tr>{titles}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def headline(summary: Summary) -> str:
    """Return the headline table: regret at the horizon with intervals, and the score."""
    head, *lines = headline_rows(summary)
    rows = []
    count = len(summary.panels)
    for label, *values in lines:
        by_panel = zip(summary.panels, values[:count], strict=True)
        cells = [_headline_cell(cell, best=label in panel.leaders) for panel, cell in by_panel]
        cells += [_headline_cell(cell, best=False) for cell in values[count : count + 1]]
        cells += [escape(cell) for cell in values[count + 1 :]]
        rows.append([f"{key(summary.styles[label])}{escape(label)}", *cells])
    over = f" over {summary.instances} instances" if summary.instances > 1 else ""
    caption = f"Mean{over} at the horizon, with its 95 % interval; marked: the best, and all not significantly worse"
    return table(map(escape, head), rows, caption=caption, kind="headline")


def _headline_cell(cell: str, *, best: bool) -> str:
    """Return one cell of the headline table."""
    value, _, half = cell.partition(" ± ")
    interval = f"<small>± {half}</small>" if half else ""
    if cell.endswith("]"):
        value, _, ends = cell.removesuffix("]").partition(" [")
        interval = f"<small>{ends.replace(', ', ' to ')}</small>"
    mark = ' class="best"' if best else ""
    return f"<td{mark}>{value}{interval}</td>"


def growth(panel: Panel, bounds: Mapping[str, float]) -> str:
    """Return regret and growth exponents of a panel, and the theorems' bounds at the horizon, if there are any."""
    rows, accounts = [], {entry.label: panel.account(entry) for entry in panel.entries}
    others = ["against own best", "against the best policy" if panel.environment.changing else "dynamic"]
    has_accounts = any(account is not None for account in accounts.values())
    for entry in panel.entries:
        low, middle, high = entry.run.quantiles([0.1, 0.5, 0.9])[:, -1]
        cells = [with_interval(entry.regret), number(low), number(middle), number(high)]
        played = entry.results[entry.label]
        compared = played.regret if panel.environment.changing else played.dynamic_regret
        cells += [number(float(played.regret_against_own_best[-1])), number(float(compared[-1]))]
        cells += [with_interval(entry.exponent)]
        account = accounts[entry.label]
        cells += ["–" if account is None else with_interval(account)] if has_accounts else []
        cells += [_bound(entry, bounds)] if bounds else []
        rows.append([f"{key(entry.style)}{escape(entry.label)}", *cells])
    head = ["algorithm", panel.regret_name, "10 %", "median", "90 %", *others, "growth exponent"]
    head += ["paths’ account"] if has_accounts else []
    head += ["theorem’s bound"] if bounds else []
    void = any(vacuous(np.array(bounds[e.label]), e.rounds[-1]) for e in panel.entries if e.label in bounds)
    title = f"{panel.regret_name.capitalize()} at T = {panel.horizon:,}"
    caption = f"{title}: mean with 95 % interval, quantiles of {panel.unit}; exponent over the last decade"
    caption += f"; a bound of 2 T = {2 * panel.horizon:,} or more is vacuous: regret is never larger" if void else ""
    return table(head, rows, caption=caption) + (f'<p class="small soft">{ACCOUNT}</p>' if has_accounts else "")


def _bound(entry: Entry, bounds: Mapping[str, float]) -> str:
    """Return the bound of a theorem for an algorithm at the horizon, with its line style."""
    if entry.label not in bounds:
        return "–"
    if vacuous(np.array(bounds[entry.label]), entry.rounds[-1]):
        return f'<td class="soft" title="Regret is never above 2 T = {2 * entry.rounds[-1]:,}">vacuous</td>'
    return f"{key(bound_style(entry.style), thin=True)}{number(bounds[entry.label])}"


def rewards(panel: Panel) -> str:
    """Return the total rewards of algorithms and of fixed policies replayed, best first."""
    lines = [
        (panel.reward(entry.run), escape(entry.label), entry.style.colour, key(entry.style)) for entry in panel.entries
    ]
    lines += [(panel.reward(run), f"<em>{escape(label)}</em>", 7, "") for label, run in panel.replayed.items()]
    lines.sort(key=lambda line: -line[0].value)
    best = lines[0][0].value
    shares = best > 0.0 and lines[-1][0].value >= 0.0  # shares make no sense for negative rewards
    rows = []
    for reward, label, colour, mark in lines:
        cells = [number(best - reward.value)]
        if shares:
            bar = f'<span class="bar c{colour}" style="width:{8 * reward.value / best:.2f}rem"></span>'
            cells = [f"{reward.value / best:.1%}", f"<td>{bar}</td>"]
        rows.append([f"{mark}{label}", with_interval(reward), *cells])
    head = [
        "algorithm or fixed policy",
        "total reward",
        *(["of the best", ""] if shares else ["below the best"]),
    ]
    return table(head, rows, caption=f"Total reward over T = {panel.horizon:,} rounds", kind="bars" if shares else "")


def exploration_table(panel: Panel) -> str:
    """Return lambda, t0 and the exploration of each algorithm that has an exploration rate."""
    rows = []
    for part in panel.exploration:
        coverage = "–" if math.isnan(part.coverage) else f"{part.coverage:.4g}"
        t0 = number(part.t0) if part.t0 > 1.0 else "–"
        explored = number(part.explored) if part.explored >= 1.0 else f"{part.explored:.2g}"
        cells = [coverage, t0, f"{part.gamma[-1]:.3g}", explored]
        rows.append([f"{key(part.entry.style)}{escape(part.entry.label)}", *cells])
    head = ["algorithm", "coverage λ", "t<sub>0</sub>", "γ at T", "explored"]
    caption = f"Exploration up to T = {panel.horizon:,}, mean over {panel.unit}; explored: rounds, from the checkpoints"
    return table(head, rows, caption=caption)


def policies(panel: Panel) -> str:
    """Return the final policy of each algorithm, in percent, with a star at the truly best arms."""
    problem = panel.environment.problem
    star = " ★: the best arm of the clean world." if panel.environment.stochastic else ""
    left_out = ""
    if max(problem.n_contexts, problem.n_arms) > MOST_SHOWN:
        left_out = f" Only the {MOST_SHOWN} likeliest contexts and the first {MOST_SHOWN} arms are shown."
    tables = "".join(_policy(panel, place) for place in range(len(panel.entries)))
    about = "Probability of each arm at t = T, in percent, mean over replications; after a context, its frequency"
    return f'<p class="small soft">{about}.{star}{left_out}</p><div class="policies">{tables}</div>'


def _policy(panel: Panel, place: int) -> str:
    """Return the final policy of one algorithm, the likeliest contexts first."""
    entry, problem = panel.entries[place], panel.environment.problem
    best = panel.environment.comparator if panel.environment.stochastic else None
    shown = sorted(range(problem.n_contexts), key=lambda x: -problem.probabilities[x])[:MOST_SHOWN]
    frequencies = {x: f"{100 * problem.probabilities[x]:.3g} %" for x in sorted(shown)}
    return which_arm_where(entry.label, entry.style, entry.run.policy, problem, frequencies, best=best)


def which_arm_where(
    label: str, style: Style, pi: Floats, problem: Problem, frequencies: Mapping[int, str], *, best: Ints | None = None
) -> str:
    """Return a policy as a table in percent: some contexts with their frequencies, and the first arms.

    ``best``, if given, is the best arm of each context, which gets a star.
    """
    arms = range(min(problem.n_arms, MOST_SHOWN))
    head = "".join(f'<th scope="col">{escape(problem.arms[a])}</th>' for a in arms)
    body = []
    for x, frequency in frequencies.items():
        cells = [
            f'<td style="--p:{pi[x, a]:.3f}"{" class=star" if best is not None and best[x] == a else ""}>'
            f"{100 * pi[x, a]:.0f}</td>"
            for a in arms
        ]
        name = f"{escape(problem.contexts[x])}<small> {frequency}</small>"
        body.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    return (
        f'<table class="c{style.colour}"><caption>{escape(label)}</caption>'
        f'<thead><tr><th scope="col">x \\ arm</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    )


def cost(summary: Summary) -> str:
    """Return the cost of a round of every algorithm in every panel."""
    head = [
        "algorithm",
        *(f"{escape(panel.name)}, d = {panel.environment.problem.dimension}" for panel in summary.panels),
    ]
    rows = []
    for label in summary.labels:
        entries = [next((e for e in panel.entries if e.label == label), None) for panel in summary.panels]
        cells = ["–" if entry is None else number(entry.cost) for entry in entries]
        rows.append([f"{key(summary.styles[label])}{escape(label)}", *cells])
    return table(head, rows, caption="Microseconds of processor time per round, with nature, without compilation")


def download(name: str, kind: str, content: str) -> str:
    """Return a link that saves a text embedded in the page; the text is compressed if the name ends in .gz."""
    packed = gzip.compress(content.encode(), mtime=0) if name.endswith(".gz") else content.encode()
    coded = base64.b64encode(packed).decode()
    return f'<a download="{escape(name)}" href="data:{kind};base64,{coded}">{escape(name)}</a>'
