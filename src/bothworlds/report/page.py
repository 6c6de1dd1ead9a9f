"""The report: one self-contained HTML file. No network, no script needed to read it."""

import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from bothworlds.plain import to_json
from bothworlds.problem.storage import write_bytes
from bothworlds.report import parts
from bothworlds.report.chart import Chart
from bothworlds.report.data import chart_data, curves_csv, headline_data
from bothworlds.report.figures import (
    NO_BOUNDS,
    Bounds,
    bounds_at_end,
    exploration_chart,
    exponent_chart,
    overlay_places,
    regret_charts,
    strip_chart,
)
from bothworlds.report.from_results import summary_from
from bothworlds.report.overlays import NO_OVERLAYS, Overlays
from bothworlds.report.palette import Style
from bothworlds.report.panels import Panel, Summary
from bothworlds.report.script import script
from bothworlds.report.tables import latex_table
from bothworlds.report.terminal import NOT_POLICY_REGRET
from bothworlds.report.words import sentence_of
from bothworlds.simulation.references import REFERENCES
from bothworlds.simulation.results import Results
from bothworlds.simulation.toml import to_toml

Figure = Callable[..., str]  # (chart, caption, kind) -> HTML, and remembers the chart for the script
Player = tuple[str, int, Style]  # label, number on the page, look


def write_report(
    summary: Summary | Results, path: str | Path, *, bounds: Bounds = NO_BOUNDS, overlays: Overlays = NO_OVERLAYS
) -> Path:
    """Write the report of a study, or of what `simulate` returns; the file is there whole or not at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, page(summary, bounds=bounds, overlays=overlays).encode())
    return target


def page(summary: Summary | Results, *, bounds: Bounds = NO_BOUNDS, overlays: Overlays = NO_OVERLAYS) -> str:
    """Return the report of a study, or of what `simulate` returns, as HTML.

    ``bounds`` maps labels of algorithms to functions (environment, rounds) -> bound, drawn as thin lines; ``overlays``
    are curves from elsewhere by regime, laid over those of regret.
    """
    summary = summary_from(summary) if isinstance(summary, Results) else summary
    charts: dict[str, Chart] = {}

    def figure(chart: Chart, caption: str, kind: str = "") -> str:
        charts[chart.name] = chart
        return parts.figure(chart, caption, kind)

    places = overlay_places(summary, overlays)

    def regime(panel: Panel) -> str:
        pair = regret_charts(summary, panel, bounds, overlays)
        return _regime(panel, bounds, figure, pair, [(c.label, *places[c.label]) for c in overlays.get(panel.name, [])])

    sections = [regime(panel) for panel in summary.panels]
    whole = [_head(summary, figure), *sections, _cost(summary), _numbers(summary, bounds), _again(summary)]
    data = to_json({name: chart_data(chart) for name, chart in charts.items()}, separators=(",", ":"))
    safe = data.replace("<", "\\u003c")  # a name may hold the end of a script
    scripts = f'<script type="application/json" id="charts">{safe}</script><script>{script()}</script>'
    return parts.document(f"{summary.study.name}: regret report", "\n".join(whole), script=scripts)


def _head(summary: Summary, figure: Figure) -> str:
    """Return title, the picture, what it says, and the headline table."""
    settings = summary.study.settings
    links = [f'<a href="#regime-{panel.ident}">{escape(panel.name)}</a>' for panel in summary.panels]
    links += ['<a href="#cost">cost</a>', '<a href="#numbers">numbers</a>', '<a href="#again">run it again</a>']
    missing = ""
    if summary.missing:
        missing = (
            f'<p class="warn c1">{len(summary.missing)} cells are not finished and left out; the run can go on.</p>'
        )
    return f"""<header><h1>{escape(summary.study.name)}</h1>
{_finding(summary)}
<p class="soft">{len(summary.labels)} algorithms, {len(summary.panels)} regimes, T = {settings["horizon"]:,} rounds,
{settings["replications"]:,} replications, seed {settings["seed"]}. All algorithms meet the same contexts and the same
noise.</p>
{_strip(summary, figure)}
<nav aria-label="Sections">{" ".join(links)}</nav></header>{missing}
{parts.headline(summary)}
<p class="small soft">Regret is exact: expected losses given the past, summed over contexts and arms, less those of
the best fixed policy in hindsight. Smaller is better; where nature reacts to the plays the table shows total reward,
and larger is better. <strong>Negative regret</strong> is possible where the world changes: the learner went along and
did better than any policy that stays the same.{_about_scores(summary)}</p>"""


def _strip(summary: Summary, figure: Figure) -> str:
    """Return the one picture that says who is near the best everywhere, with what the regimes are."""
    said = [
        f'<li><a href="#regime-{panel.ident}">{escape(panel.name)}</a>: {escape(_sentence(panel))}</li>'
        for panel in summary.panels
    ]
    regimes = f'<ul class="regimes">{"".join(said)}</ul>'
    if not summary.scores:
        return regimes
    caption = (
        "A line that stays near 1 belongs to an algorithm that is near the best wherever it is. Up is worse; whiskers "
        'are 95 % intervals. <span class="hint">Point at a chart, or focus it and use the arrow keys, for values; the '
        "buttons hide and show.</span>"
    )
    players = [(label, number, summary.styles[label]) for number, label in enumerate(summary.labels)]
    return f"{figure(strip_chart(summary), caption, 'strip')}{parts.legend(players)}{regimes}"


def _sentence(panel: Panel) -> str:
    """Say what a regime is."""
    cell = panel.entries[0].cell
    return sentence_of(panel.environment, {"margin": cell.sizes.get("margin"), **cell.environment_options})


def _finding(summary: Summary) -> str:
    """Return the result in sentences, where something is clear."""
    return f'<p class="lead">{escape(" ".join(summary.finding))}</p>' if summary.finding else ""


def _about_scores(summary: Summary) -> str:
    """Say what a ratio is, where there are some."""
    if not summary.scores:
        return ""
    return (
        " The worst ratio is the largest over the regimes of (R + s)/(R<sub>ref</sub> + s), negative regret counting "
        "as 0, with s = √(d T)/10 so that small differences do not decide, and R<sub>ref</sub> the smallest regret of "
        f"the reference players {escape(', '.join(REFERENCES))}, which are always played, and of the algorithm itself: "
        "1 is as good as any of them, and no other algorithm has a say in it. Where nature reacts to the plays, regret "
        "is against the best fixed policy replayed."
    )


def _regime(panel: Panel, bounds: Bounds, figure: Figure, pair: list[Chart], others: list[Player]) -> str:
    """Return the section of one regime."""
    environment, ident = panel.environment, f"regime-{panel.ident}"
    problem = environment.problem
    facts = [f"S = {problem.n_contexts} contexts, K = {problem.n_arms} arms, d = {problem.dimension}"]
    facts += [f"rarity L = {problem.rarity:.4g}"]
    facts += [f"smallest gap {environment.gap:.3g}"] if environment.stochastic else []
    spent = max(float(entry.run.corruption.mean()) for entry in panel.entries)
    facts += [f"corruption up to C = {spent:,.4g} (marked)"] if spent > 0.0 else []
    at_end = bounds_at_end(panel, bounds)
    first, second = pair
    charts = [figure(first, _linear_caption(first)), figure(second, _double_log_caption(second))]
    blocks = [f'<h2 id="{ident}">{escape(panel.name)}</h2><p class="plainly">{escape(_sentence(panel))}</p>']
    blocks += [f'<p class="soft">{"; ".join(facts)}.</p>']
    if environment.reacts:
        blocks += [f'<p class="warn c1">{NOT_POLICY_REGRET}</p>', parts.rewards(panel)]
    players = [(entry.label, entry.number, entry.style) for entry in panel.entries]
    blocks += [
        parts.legend([*players, *others]),
        f'<div class="charts">{"".join(charts)}</div>',
        parts.growth(panel, at_end),
    ]
    blocks += [_exponents(panel, figure), _exploration(panel, figure)]
    blocks += [f"<details><summary>Which arm where: final policies</summary>{parts.policies(panel)}</details>"]
    return f'<section aria-labelledby="{ident}">{"".join(blocks)}</section>'


def _linear_caption(chart: Chart) -> str:
    """Say what the first chart shows, and what it leaves out."""
    low, high = chart.y_range
    words = "Mean regret and its 95 % interval. Logarithmic regret is straight."
    if any(line.y[-1] > high for line in chart.lines):
        words += " ↑: curves far above the others leave the chart; hide the others, and it rescales."
    if low < 0.0:
        words += " Below 0: better than every fixed policy."
    return words + _marked(chart)


def _double_log_caption(chart: Chart) -> str:
    """Say what the second chart shows: slopes, and bounds where there are some."""
    words = "The same, both axes logarithmic: the slope is the growth exponent. Bands: the middle 80 % of replications."
    if any(line.thin for line in chart.lines):
        words += " Fine dots: the theorem’s bound for the algorithm of that colour, where it is below 2 t."
    if any((line.y <= 0.0).any() for line in chart.lines):
        words += " A curve is missing, or ends in ↓, where regret is not positive; so is a band that mostly is not."
    return words


def _marked(chart: Chart) -> str:
    """Say what marks are, where there are some."""
    if not chart.marks:
        return ""
    if any(mark.start < mark.end for mark in chart.marks):
        return " Grey: the rounds in which feedback was tampered with."
    return " Dotted rules: when nature had spent its corruption on the algorithm of that colour."


def _exponents(panel: Panel, figure: Figure) -> str:
    """Return how the growth exponents develop in a regime."""
    caption = (
        "Slope of log regret over the decade before t, with 95 % intervals: 1 is linear, 1/2 a square root, and "
        "logarithmic regret tends to 0. Missing where the regret is not positive."
    )
    chart = figure(exponent_chart(panel), caption)
    summary = "<summary>How the growth exponent develops</summary>"
    return f'<details>{summary}<div class="charts">{chart}<div></div></div></details>'


def _exploration(panel: Panel, figure: Figure) -> str:
    """Return what is explored in a regime."""
    if not panel.exploration:
        return ""
    chart = exploration_chart(panel)
    caption = "Exploration rate γ of the plans that were played: mean and 95 % interval."
    if any(line.thin for line in chart.lines):
        caption += " Fine dots: the most that the algorithm of that colour may explore."
    caption += " Dotted rules: t<sub>0</sub>." if chart.marks else ""
    rates = parts.exploration_table(panel)
    return (
        "<details><summary>How much is explored: γ and t<sub>0</sub></summary>"
        f'<div class="charts">{figure(chart, caption)}<div>{rates}</div></div></details>'
    )


def _cost(summary: Summary) -> str:
    return f'<section><h2 id="cost">Cost per round</h2>{parts.cost(summary)}</section>'


def _numbers(summary: Summary, bounds: Bounds) -> str:
    """Return the links to the embedded numbers, and the table for a paper."""
    latex = latex_table(summary)
    study = {} if summary.from_python else {"study_toml": to_toml(summary.study)}
    results = to_json({**headline_data(summary), **study}, separators=(",", ":"))
    links = [
        parts.download("curves.csv.gz", "application/gzip", curves_csv(summary, bounds)),
        parts.download("results.json", "application/json", results),
        parts.download("table.tex", "text/x-tex", latex),
    ]
    return (
        '<section><h2 id="numbers">The numbers</h2><p class="downloads">Embedded in this page: '
        f"{', '.join(links)}.</p>"
        f"<details><summary>The table in LaTeX</summary><pre>{escape(latex)}</pre></details></section>"
    )


def _again(summary: Summary) -> str:
    """Return the exact study, the versions and the commands."""
    manifest = summary.manifest
    versions = {**manifest.get("versions", {}), "Python": manifest.get("run", {}).get("python", "?")}
    made = ", ".join(f"{escape(name)} {escape(str(value))}" for name, value in versions.items())
    run = manifest.get("run", {})
    machine = f"{run.get('processors', '?')} processors, {run.get('machine', '?')}"
    argv = [str(part) for part in run.get("command", [])]
    command = shlex.join([Path(argv[0]).name.replace("__main__.py", "bothworlds"), *argv[1:]]) if argv else ""
    same = "every number comes out the same, on any number of cores"
    if summary.on_gpu:
        same = "played on a GPU, so without one the numbers come out the same up to rounding"
    today = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"""<section><h2 id="again">Run it again</h2>
{_call(summary) if summary.from_python else _study(summary, same)}
<p class="small soft">Seed {summary.study.settings["seed"]}; made with {made} on {escape(machine)}
by <code>{escape(command)}</code>; page written {today}.</p>
<p class="small soft">The algorithm: Kato and Ito, <cite>LC-Tsallis-INF: Generalized Best-of-Both-Worlds Linear
Contextual Bandits</cite>, AISTATS 2025.</p></section>"""


def _study(summary: Summary, same: str) -> str:
    """Return the study, and the commands that run it."""
    study = to_toml(summary.study)
    lines = "bothworlds run study.toml --output results\nbothworlds report results --output report.html"
    own = summary.manifest.get("own", {})
    files = "".join(f" It needs {escape(name)} (hash {escape(mark)}) beside it." for name, mark in own.items())
    return (
        f"<p>Save {parts.download('study.toml', 'application/toml', study)} and run these; {same}.{files}</p>"
        f"<pre>{lines}</pre><details open><summary>The study</summary><pre>{escape(study)}</pre></details>"
    )


def _call(summary: Summary) -> str:
    """Return the call that was made from Python, as far as it is known."""
    settings = summary.study.settings
    told = [f"{key}={settings[key]}" for key in ("horizon", "replications", "delay", "batch")]
    call = f"bw.simulate(world, algorithms, {', '.join(told)}, rng={settings['seed']})"
    players = to_json(summary.manifest.get("algorithms", {}), indent=1)
    return (
        f"<p>Made from Python, in the world {escape(summary.study.name)!r}:</p><pre>{escape(call)}</pre>"
        f"<details><summary>The algorithms</summary><pre>{escape(players)}</pre></details>"
    )
