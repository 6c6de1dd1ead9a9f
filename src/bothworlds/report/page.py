"""The report: one self-contained HTML file. No network, no script needed to read it."""

import json
import shlex
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from bothworlds.problem.storage import write_bytes
from bothworlds.report import parts
from bothworlds.report.data import all_data, curves_csv
from bothworlds.report.figures import (
    NO_BOUNDS,
    Bounds,
    bounds_at_end,
    double_log_chart,
    exploration_chart,
    exponent_chart,
    linear_chart,
)
from bothworlds.report.panels import Panel, Summary
from bothworlds.report.style import SCRIPT, stylesheet
from bothworlds.report.tables import latex_table
from bothworlds.simulation.toml import to_toml

NOT_POLICY_REGRET = (
    "Nature reacts to the plays here: a fixed policy would have met other losses, so regret is not policy regret. "
    "What counts is the total reward, beside that of fixed policies replayed."
)


def write_report(summary: Summary, path: str | Path, *, bounds: Bounds = NO_BOUNDS) -> Path:
    """Write the report of a study; the file is there whole or not at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, page(summary, bounds=bounds).encode())
    return target


def page(summary: Summary, *, bounds: Bounds = NO_BOUNDS) -> str:
    """Return the report of a study as HTML.

    ``bounds`` maps labels of algorithms to functions (environment, rounds) -> bound, drawn as thin lines.
    """
    title = escape(summary.study.name)
    sections = [_regime(panel, bounds) for panel in summary.panels]
    body = "\n".join([_head(summary), *sections, _cost(summary), _numbers(summary, bounds), _again(summary)])
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<title>{title}: regret report</title><link rel="icon" href="data:,">'
        f"<style>{stylesheet()}</style></head>\n<body><main>\n{body}\n</main><script>{SCRIPT}</script></body></html>\n"
    )


def _head(summary: Summary) -> str:
    """Return title, summary and headline table."""
    numbers = summary.study.numbers
    links = [f'<a href="#regime-{panel.ident}">{escape(panel.name)}</a>' for panel in summary.panels]
    links += ['<a href="#cost">cost</a>', '<a href="#numbers">numbers</a>', '<a href="#again">run it again</a>']
    missing = ""
    if summary.missing:
        missing = (
            f'<p class="warn c1">{len(summary.missing)} cells are not finished and left out; the run can go on.</p>'
        )
    return f"""<header><h1>{escape(summary.study.name)}</h1>
<p class="lead">{_finding(summary)}</p>
<p class="soft">{len(summary.labels)} algorithms, {len(summary.panels)} regimes, T = {numbers["horizon"]:,} rounds,
{numbers["replications"]:,} replications, seed {numbers["seed"]}. All algorithms meet the same contexts and the same
noise.</p>
<nav aria-label="Sections">{" ".join(links)}</nav></header>{missing}
{parts.headline(summary)}
<p class="small soft">Regret is exact: expected losses given the past, summed over contexts and arms, less those of
the best policy in hindsight. Smaller is better; where nature reacts to the plays the table shows total reward, and
larger is better. In each regime the best algorithm of the table scores 100 and the worst 0, evenly in between; the
table shows the mean over regimes and the lowest.</p>"""


def _finding(summary: Summary) -> str:
    """Return the result in a sentence: who is never far from the best."""
    if len(summary.labels) < 2:
        return f"{escape(summary.labels[0])} in {len(summary.panels)} regimes."
    safest = max(summary.scores, key=lambda label: summary.scores[label].half)
    learners = [label for label in summary.scores if summary.study.algorithms[label].get("kind") != "uniform"]
    weakest = min(learners or summary.scores, key=lambda label: summary.scores[label].half)
    panel = min(summary.panels, key=lambda panel: panel.scores.get(weakest, 100.0))
    return (
        f"<strong>{escape(safest)}</strong> is the safest choice over these regimes: its lowest score is "
        f"{summary.scores[safest].half:.0f} of 100. {escape(weakest)} fails worst, in the regime {escape(panel.name)}."
    )


def _regime(panel: Panel, bounds: Bounds) -> str:
    """Return the section of one regime."""
    environment, ident = panel.environment, f"regime-{panel.ident}"
    problem = environment.problem
    facts = [f"S = {problem.n_contexts} contexts, K = {problem.n_arms} arms, d = {problem.dimension}"]
    facts += [f"rarity L = {problem.rarity:.4g}"]
    facts += [f"smallest gap {environment.gap:.3g}"] if environment.stochastic else []
    spent = max(float(entry.run.corruption.mean()) for entry in panel.entries)
    facts += [f"corruption up to C = {spent:,.4g} (marked)"] if spent > 0.0 else []
    at_end = bounds_at_end(panel, bounds)
    note = " Fine dots: the theorem’s bound for the algorithm of that colour." if at_end else ""
    charts = [
        parts.figure(
            linear_chart(panel),
            "Mean regret and its 95 % interval. Logarithmic regret is straight. Uniform play may leave the chart.",
        ),
        parts.figure(
            double_log_chart(panel, bounds),
            "Mean regret and the middle 80 % of replications, where they are mostly positive. The slope is the growth "
            f"exponent.{note}",
        ),
    ]
    blocks = [f'<h2 id="{ident}">{escape(panel.name)}</h2><p class="soft">{"; ".join(facts)}.</p>']
    if environment.reacts:
        blocks += [f'<p class="warn c1">{NOT_POLICY_REGRET}</p>', parts.rewards(panel)]
    blocks += [parts.legend(panel), f'<div class="charts">{"".join(charts)}</div>', parts.growth(panel, at_end)]
    blocks += [_exponents(panel), _exploration(panel)]
    blocks += [f"<details><summary>Which arm where: final policies</summary>{parts.policies(panel)}</details>"]
    return f'<section aria-labelledby="{ident}">{"".join(blocks)}</section>'


def _exponents(panel: Panel) -> str:
    """Return how the growth exponents develop in a regime."""
    caption = (
        "Slope of log regret over the decade before t, with 95 % intervals: 1 is linear, 1/2 a square root, and "
        "logarithmic regret tends to 0. Missing where the regret is not positive."
    )
    chart = parts.figure(exponent_chart(panel), caption)
    summary = "<summary>How the growth exponent develops</summary>"
    return f'<details>{summary}<div class="charts">{chart}<div></div></div></details>'


def _exploration(panel: Panel) -> str:
    """Return what LC-Tsallis-INF explores in a regime."""
    if not panel.exploration:
        return ""
    caption = "Exploration rate γ; where it follows the data, its upper bound. Dotted: t<sub>0</sub>."
    chart = parts.figure(exploration_chart(panel), caption)
    rates = parts.exploration_table(panel)
    return (
        "<details><summary>How much LC-Tsallis-INF explores: γ and t<sub>0</sub></summary>"
        f'<div class="charts">{chart}<div>{rates}</div></div></details>'
    )


def _cost(summary: Summary) -> str:
    return f'<section><h2 id="cost">Cost per round</h2>{parts.cost(summary)}</section>'


def _numbers(summary: Summary, bounds: Bounds) -> str:
    """Return the links to the embedded numbers, and the table for a paper."""
    latex = latex_table(summary)
    everything = json.dumps(all_data(summary, bounds), separators=(",", ":"))
    links = [
        parts.download("curves.csv", "text/csv", curves_csv(summary, bounds)),
        parts.download("results.json", "application/json", everything),
        parts.download("table.tex", "text/x-tex", latex),
    ]
    return (
        '<section><h2 id="numbers">The numbers</h2><p class="downloads">Embedded in this page: '
        f"{', '.join(links)}.</p>"
        f"<details><summary>The table in LaTeX</summary><pre>{escape(latex)}</pre></details></section>"
    )


def _again(summary: Summary) -> str:
    """Return the exact study, the versions and the commands."""
    manifest, study = summary.manifest, to_toml(summary.study)
    versions = {**manifest.get("versions", {}), "Python": manifest.get("run", {}).get("python", "?")}
    made = ", ".join(f"{escape(name)} {escape(str(value))}" for name, value in versions.items())
    run = manifest.get("run", {})
    machine = f"{run.get('processors', '?')} processors, {run.get('machine', '?')}"
    argv = [str(part) for part in run.get("command", [])]
    command = shlex.join([Path(argv[0]).name.replace("__main__.py", "bothworlds"), *argv[1:]]) if argv else ""
    lines = "bothworlds run study.toml --output results\nbothworlds report results --output report.html"
    link = parts.download("study.toml", "application/toml", study)
    same = "every number comes out the same, on any number of cores"
    if summary.on_gpu:
        same = "played on a GPU, so without one the numbers come out the same up to rounding"
    today = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"""<section><h2 id="again">Run it again</h2>
<p>Save {link} and run these; {same}.</p>
<pre>{lines}</pre>
<p class="small soft">Seed {summary.study.numbers["seed"]}; made with {made} on {escape(machine)}
by <code>{escape(command)}</code>; page written {today}.</p>
<details open><summary>The study</summary><pre>{escape(study)}</pre></details>
<p class="small soft">The algorithm: Kato and Ito, <cite>LC-Tsallis-INF: Generalized Best-of-Both-Worlds Linear
Contextual Bandits</cite>, AISTATS 2025.</p></section>"""
