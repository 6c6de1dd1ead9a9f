"""The report of a study: one self-contained HTML file, readable without network and without scripts."""

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from bothworlds.problem.file_format import write_bytes
from bothworlds.report import html_parts
from bothworlds.report.assets import script
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
from bothworlds.report.overlay_curves import NO_OVERLAYS, Overlays
from bothworlds.report.palette import Style
from bothworlds.report.picture import picture, sentences
from bothworlds.report.regime_descriptions import sentence_of
from bothworlds.report.summary import Panel, Summary, summary_from
from bothworlds.report.tables import latex_table
from bothworlds.report.terminal import NOT_POLICY_REGRET
from bothworlds.serialization import to_json
from bothworlds.simulation.results import Results
from bothworlds.studies.references import REFERENCES
from bothworlds.studies.toml import to_toml

DYNAMIC = (
    "Learners are judged by dynamic regret: expected losses less those of the best arm of every round in every "
    "context. Theorems bound the regret against the best fixed policy, so no bounds are drawn."
)
Figure = Callable[..., str]  # (chart, caption, kind) -> HTML; registers the chart for the script
Player = tuple[str, int, Style]  # label, number on the page, style


def write_report(
    summary: Summary | Results, path: str | Path, *, bounds: Bounds = NO_BOUNDS, overlays: Overlays = NO_OVERLAYS
) -> Path:
    """Write the report of a study, or of the results of `simulate`, atomically; return its path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, page(summary, bounds=bounds, overlays=overlays).encode())
    return target


def page(summary: Summary | Results, *, bounds: Bounds = NO_BOUNDS, overlays: Overlays = NO_OVERLAYS) -> str:
    """Return the report of a study, or of the results of `simulate`, as HTML.

    ``bounds`` maps labels of algorithms to functions (environment, rounds) -> bound, drawn as thin lines. ``overlays``
    are curves from other sources by regime, drawn over those of regret.
    """
    summary = summary_from(summary) if isinstance(summary, Results) else summary
    charts: dict[str, Chart] = {}

    def figure(chart: Chart, caption: str, kind: str = "") -> str:
        charts[chart.name] = chart
        return html_parts.figure(chart, caption, kind)

    places = overlay_places(summary, overlays)

    def regime(panel: Panel) -> str:
        pair = regret_charts(summary, panel, bounds, overlays)
        return _regime(panel, bounds, figure, pair, [(c.label, *places[c.label]) for c in overlays.get(panel.name, [])])

    sections = [regime(panel) for panel in summary.panels]
    whole = [_head(summary, figure), *sections, _cost(summary), _numbers(summary, bounds), _again(summary)]
    data = to_json({name: chart_data(chart) for name, chart in charts.items()}, separators=(",", ":"))
    safe = data.replace("<", "\\u003c")  # a name may contain the end tag of a script
    scripts = f'<script type="application/json" id="charts">{safe}</script><script>{script()}</script>'
    return html_parts.document(f"{summary.study.name}: regret report", "\n".join(whole), script=scripts)


def _head(summary: Summary, figure: Figure) -> str:
    """Return the title, the main picture and its sentences, the strip of ratios and the headline table."""
    settings = summary.study.settings
    links = [f'<a href="#regime-{panel.ident}">{escape(panel.name)}</a>' for panel in summary.panels]
    links += ['<a href="#cost">cost</a>', '<a href="#numbers">numbers</a>', '<a href="#again">run it again</a>']
    about = f"{_about_changes(summary)}{_about_comparators(summary)}{_about_scores(summary)}"
    missing = ""
    if summary.missing:
        missing = (
            f'<p class="warn c1">{len(summary.missing)} cells are not finished and left out; the run can continue.</p>'
        )
    return f"""<header><h1>{escape(summary.study.name)}</h1>
{_picture(summary, figure)}{_finding(summary)}
<p class="soft">{len(summary.labels)} algorithms, {len(summary.panels)} regimes, T = {settings["horizon"]:,} rounds,
{_runs(summary)}. All algorithms meet the same contexts and the same noise.</p>
{_strip(summary, figure)}
<nav aria-label="Sections">{" ".join(links)}</nav></header>{missing}
{html_parts.headline(summary)}
<p class="small soft">Regret is exact: expected losses given the past, summed over contexts and arms, less those of
the best fixed policy in hindsight. Smaller is better; where nature reacts to the plays the table shows total reward,
and larger is better. <strong>Negative regret</strong> is possible where the world changes: the learner followed the
change and did better than any fixed policy.{about}</p>"""


def _runs(summary: Summary) -> str:
    """Say how many instances and replications there are, and from which seeds."""
    seeds, replications = summary.study.seeds, summary.study.settings["replications"]
    if len(seeds) == 1:
        return f"{replications:,} replications, seed {seeds[0]}"
    each = f"{replications:,} replication{'s' if replications > 1 else ''} of each"
    return f"{len(seeds)} random instances of every regime (seeds {min(seeds)} to {max(seeds)}), {each}"


def _picture(summary: Summary, figure: Figure) -> str:
    """Return the charts of the main picture side by side, with the sentences that they show."""
    main = picture(summary)
    if main is None:
        return ""
    panels = [f'<div><p class="world">{escape(one.title)}</p>{figure(one, "", "picture")}</div>' for one in main.charts]
    lead = f'<p class="lead">{escape(" ".join(sentences(summary)))}</p>' if sentences(summary) else ""
    return f'<div class="charts">{"".join(panels)}</div><p class="small soft">{escape(main.title)}</p>{lead}'


def _strip(summary: Summary, figure: Figure) -> str:
    """Return the ratios of all algorithms in all regimes, and a sentence for each regime."""
    items = [
        f'<li><a href="#regime-{panel.ident}">{escape(panel.name)}</a>: {escape(_sentence(panel))}</li>'
        for panel in summary.panels
    ]
    regimes = f'<ul class="regimes">{"".join(items)}</ul>'
    if not summary.scores:
        return regimes
    spots = "; small dots: single instances" if summary.instances > 1 else ""
    caption = (
        "Regret, as a multiple of that of the best reference player: 1 is as good, up is worse. Large dots: the mean; "
        f'whiskers: its 95 % interval{spots}. <span class="hint">Point at a chart, or focus it and use the arrow keys, '
        "for values; the buttons hide and show.</span>"
    )
    players = [(label, number, summary.styles[label]) for number, label in enumerate(summary.labels)]
    return f"{figure(strip_chart(summary), caption, 'strip')}{html_parts.legend(players)}{regimes}"


def _sentence(panel: Panel) -> str:
    """Return the description of a regime."""
    cell = panel.entries[0].cell
    return sentence_of(panel.environment, {"margin": cell.sizes.get("margin"), **cell.environment_options})


def _finding(summary: Summary) -> str:
    """Return the findings that are clear beyond noise."""
    return f'<p class="lead">{escape(" ".join(summary.finding))}</p>' if summary.finding else ""


def _about_comparators(summary: Summary) -> str:
    """Explain the fixed policy that regret is measured against, where each instance was played once."""
    if summary.instances == 1 or summary.study.settings["replications"] > 1:
        return ""
    return (
        " Each instance was played once. So where nature adapts to the learner, the best fixed policy is that of the "
        "run itself, a stronger comparator than the best policy in expectation."
    )


def _about_changes(summary: Summary) -> str:
    """Explain dynamic regret, if there are worlds that are judged by it."""
    if not any(panel.environment.changing for panel in summary.panels):
        return ""
    return (
        " <strong>Dynamic</strong> regret, where learners should follow a world that changes, is against the best arm "
        "of every round in every context, and never negative."
    )


def _about_scores(summary: Summary) -> str:
    """Explain the ratios, if there are any."""
    if not summary.scores:
        return ""
    return (
        " The worst ratio is the largest over the regimes of (R + s)/(R<sub>ref</sub> + s), negative regret counting "
        "as 0, with s = √(d T)/10 so that small differences do not decide, and R<sub>ref</sub> the smallest regret of "
        f"the reference players {escape(', '.join(REFERENCES))}, which are always played, and of the algorithm itself: "
        "1 is as good as any of them, whichever other algorithms are compared. Where nature reacts to the plays, "
        "regret is against the best fixed policy replayed."
    )


def _regime(panel: Panel, bounds: Bounds, figure: Figure, pair: list[Chart], others: list[Player]) -> str:
    """Return the section of one regime."""
    environment, ident = panel.environment, f"regime-{panel.ident}"
    problem = environment.problem
    facts = [f"S = {problem.n_contexts} contexts, K = {problem.n_arms} arms, d = {problem.dimension}"]
    facts += [f"rarity L = {_range([one.problem.rarity for one in panel.environments])}"]
    facts += [f"smallest gap {_range([one.gap for one in panel.environments])}"] if environment.stochastic else []
    spent = max(float(entry.run.corruption.mean()) for entry in panel.entries)
    facts += [f"corruption up to C = {spent:,.4g} (marked)"] if spent > 0.0 else []
    at_end = bounds_at_end(panel, bounds)
    first, second = pair
    charts = [figure(first, _linear_caption(first)), figure(second, _double_log_caption(second, panel.unit))]
    blocks = [f'<h2 id="{ident}">{escape(panel.name)}</h2><p class="plainly">{escape(_sentence(panel))}</p>']
    blocks += [f'<p class="soft">{"; ".join(facts)}.</p>']
    if environment.changing:
        blocks += [f'<p class="soft">{DYNAMIC}</p>']
    if environment.reacts:
        blocks += [f'<p class="warn c1">{NOT_POLICY_REGRET}</p>', html_parts.rewards(panel)]
    players = [(entry.label, entry.number, entry.style) for entry in panel.entries]
    blocks += [
        html_parts.legend([*players, *others]),
        f'<div class="charts">{"".join(charts)}</div>',
        html_parts.growth(panel, at_end),
    ]
    blocks += [_exponents(panel, figure), _exploration(panel, figure)]
    which = f", on the instance of seed {panel.entries[0].cell.settings['seed']}" if panel.instances > 1 else ""
    title = f"<summary>Which arm where: final policies{which}</summary>"
    blocks += [f"<details>{title}{html_parts.policies(panel)}</details>"]
    return f'<section aria-labelledby="{ident}">{"".join(blocks)}</section>'


def _range(values: Sequence[float]) -> str:
    """Return a number, or the smallest and the largest of several.

    >>> _range([0.2, 0.2]), _range([5.0, 7.5])
    ('0.2', '5 to 7.5')
    """
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _linear_caption(chart: Chart) -> str:
    """Explain the first chart, and which curves it cuts off."""
    low, high = chart.y_range
    text = f"Mean {chart.y_label} and its 95 % interval. Logarithmic regret is straight."
    if any(line.y[-1] > high for line in chart.lines):
        text += " ↑: curves far above the others leave the chart; hide the others, and it rescales."
    if low < 0.0:
        text += " Below 0: better than every fixed policy."
    return text + _marked(chart)


def _double_log_caption(chart: Chart, unit: str) -> str:
    """Explain the second chart: slopes, and bounds if there are any."""
    text = f"The same, both axes logarithmic: the slope is the growth exponent. Bands: the middle 80 % of {unit}."
    if any(line.thin for line in chart.lines):
        on = " on the first instance" if unit == "instances" else ""
        text += f" Fine dots: the theorem’s bound for the algorithm of that colour{on}, where it is below 2 t."
    if any((line.y <= 0.0).any() for line in chart.lines):
        text += " A curve is missing, or ends in ↓, where regret is not positive; so is a band that mostly is not."
    return text


def _marked(chart: Chart) -> str:
    """Explain the marks, if there are any."""
    if not chart.marks:
        return ""
    if any(mark.start < mark.end for mark in chart.marks):
        return " Grey: the rounds in which feedback was tampered with."
    return " Dotted rules: when nature had spent its corruption on the algorithm of that colour."


def _exponents(panel: Panel, figure: Figure) -> str:
    """Return the chart of growth exponents over time."""
    caption = (
        "Slope of log regret over the decade before t, with 95 % intervals: 1 is linear, 1/2 a square root, and "
        "logarithmic regret tends to 0. Missing where the regret is not positive."
    )
    chart = figure(exponent_chart(panel), caption)
    summary = "<summary>How the growth exponent develops</summary>"
    return f'<details>{summary}<div class="charts">{chart}<div></div></div></details>'


def _exploration(panel: Panel, figure: Figure) -> str:
    """Return the chart and the table of exploration rates; nothing where no algorithm has one."""
    if not panel.exploration:
        return ""
    chart = exploration_chart(panel)
    caption = "Exploration rate γ of the plans that were played: mean and 95 % interval."
    if any(line.thin for line in chart.lines):
        caption += " Fine dots: the largest rate that the schedule of that colour allows."
    caption += " Dotted rules: t<sub>0</sub>." if chart.marks else ""
    rates = html_parts.exploration_table(panel)
    return (
        "<details><summary>How much is explored: γ and t<sub>0</sub></summary>"
        f'<div class="charts">{figure(chart, caption)}<div>{rates}</div></div></details>'
    )


def _cost(summary: Summary) -> str:
    return f'<section><h2 id="cost">Cost per round</h2>{html_parts.cost(summary)}</section>'


def _numbers(summary: Summary, bounds: Bounds) -> str:
    """Return the links to the embedded numbers, and the table for a paper."""
    latex = latex_table(summary)
    study = {} if summary.from_python else {"study_toml": to_toml(summary.study)}
    results = to_json({**headline_data(summary), **study}, separators=(",", ":"))
    links = [
        html_parts.download("curves.csv.gz", "application/gzip", curves_csv(summary, bounds)),
        html_parts.download("results.json", "application/json", results),
        html_parts.download("table.tex", "text/x-tex", latex),
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
    same = "every number will be the same, on any number of cores"
    if summary.on_gpu:
        same = "played on a GPU, so without one the numbers will be the same up to rounding"
    today = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    seeds = summary.study.seeds
    seed = f"Seed {seeds[0]}" if len(seeds) == 1 else f"Seeds {min(seeds)} to {max(seeds)}"
    return f"""<section><h2 id="again">Run it again</h2>
{_call(summary) if summary.from_python else _study(summary, same)}
<p class="small soft">{seed}; made with {made} on {escape(machine)}
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
        f"<p>Save {html_parts.download('study.toml', 'application/toml', study)} and run these; {same}.{files}</p>"
        f"<pre>{lines}</pre><details open><summary>The study</summary><pre>{escape(study)}</pre></details>"
    )


def _call(summary: Summary) -> str:
    """Return the call of `simulate` that made the results, with the arguments that are known."""
    settings = summary.study.settings
    arguments = [f"{key}={settings[key]}" for key in ("horizon", "replications", "delay", "batch")]
    call = f"bw.simulate(world, algorithms, {', '.join(arguments)}, rng={settings['seed']})"
    algorithms = to_json(summary.manifest.get("algorithms", {}), indent=1)
    return (
        f"<p>Made from Python, in the world {escape(summary.study.name)!r}:</p><pre>{escape(call)}</pre>"
        f"<details><summary>The algorithms</summary><pre>{escape(algorithms)}</pre></details>"
    )
