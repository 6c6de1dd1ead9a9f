"""The current plan and the rewards by arm and context, as HTML; of many arms, the likeliest ones come first."""

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy.health import Totals
from bothworlds.policy.health_report import Health, Rate
from bothworlds.problem import Problem
from bothworlds.report.html_parts import MOST_SHOWN, table
from bothworlds.service.dashboard.view import ARMS, View
from bothworlds.service.dashboard_data import Overview
from bothworlds.service.reward_series import Bucket
from bothworlds.theory.confidence.checks import level_of

STEPS = 20  # shades of a probability
RANKED = 6  # arms of a context, if there are too many for a column each


def clipped(text: str, most: int = 40) -> str:
    """Return a name as HTML; a long one is cut and has the whole name as its title."""
    if len(text) <= most:
        return escape(text)
    return f'<span title="{escape(text)}">{escape(text[: most - 1])}…</span>'


def busiest(problem: Problem) -> list[int]:
    """Return the most probable contexts, at most ``MOST_SHOWN``, in their order."""
    return sorted(sorted(range(problem.n_contexts), key=lambda x: -problem.probabilities[x])[:MOST_SHOWN])


def plan_table(overview: Overview) -> str:
    """Return the current plan: the probability of each arm in each context, or the likeliest arms of each."""
    problem, pi = overview.experiment.plan.problem, overview.experiment.plan.probabilities()
    ranks = problem.n_arms > MOST_SHOWN
    what = f"The {RANKED} likeliest of {problem.n_arms:,} arms in each context" if ranks else "Probability of each arm"
    more = ""
    if problem.n_contexts > MOST_SHOWN:
        more = f" Shown: the {MOST_SHOWN} most probable of {problem.n_contexts:,} contexts."
    caption = f"{what}, in percent; beside each context, its share of the traffic.{more}"
    body = _ranked(overview, problem, pi) if ranks else _by_arm(overview, problem, pi)
    kind = "c0 ranked" if ranks else "c0"
    return f'<p class="small soft">{caption}</p><div class="policies"><table class="{kind}">{body}</table></div>'


def _by_arm(overview: Overview, problem: Problem, pi: Floats) -> str:
    """Return a column per arm."""
    head = "".join(f'<th scope="col">{clipped(name, 24)}</th>' for name in problem.arms)
    rows = []
    for x in busiest(problem):
        cells = [_shade(float(pi[x, a]), offered=bool(problem.available[x, a])) for a in range(problem.n_arms)]
        rows.append(f"<tr>{_context_cell(overview, x)}{''.join(cells)}</tr>")
    return f'<thead><tr><th scope="col">context</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'


def _ranked(overview: Overview, problem: Problem, pi: Floats) -> str:
    """Return a column per rank."""
    head = "".join(f'<th scope="col">{rank}</th>' for rank in range(1, RANKED + 1))
    rows = []
    for x in busiest(problem):
        first = np.argsort(-pi[x], kind="stable")[:RANKED].tolist()
        cells = [_shade(float(pi[x, a]), name=problem.arms[a]) for a in first]
        rest = f"<td>{_percent(max(0.0, 1.0 - float(pi[x, first].sum())))}</td>"
        rows.append(f"<tr>{_context_cell(overview, x)}{''.join(cells)}{rest}</tr>")
    head += '<th scope="col">all others</th>'
    return f'<thead><tr><th scope="col">context</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'


def _context_cell(overview: Overview, x: int) -> str:
    """Return the name of a context, with a link to its page, and its share of the traffic."""
    problem = overview.experiment.plan.problem
    name, share = problem.contexts[x], f"<small> {100 * problem.probabilities[x]:.3g} %</small>"
    href = View(overview.experiment.name, name=ARMS, context=name).href
    return f'<th scope="row"><a href="{href}">{clipped(name)}</a>{share}</th>'


def _shade(p: float, *, offered: bool = True, name: str = "") -> str:
    if not offered:
        return '<td class="p0">–</td>'
    title = f"{clipped(name, 20)} <b>" if name else ""
    return f'<td class="p{round(STEPS * p)}">{title}{_percent(p)}{"</b>" if name else ""}</td>'


def _percent(p: float) -> str:
    """Return a probability in percent; one below 10 % has a decimal.

    >>> [_percent(p) for p in (0.5, 0.034, 0.004, 0.0001, 1.0)]
    ['50', '3.4', '0.4', '&lt;0.1', '100']
    """
    if 0.0 < p < 0.0005:
        return "&lt;0.1"
    return f"{100 * p:.1f}" if 0.0 < p < 0.0995 else f"{100 * p:.0f}"


def rates(health: Health) -> str:
    """Return mean rewards by arm and by context, and the health readings without an alarm."""
    tables = [_rates("arm", health.arms, health.alpha), _rates("context", health.contexts, health.alpha)]
    quiet = [health.explored, health.smallest_propensity, *([] if health.traffic.alarm else [health.traffic])]
    lines = [f"<li><b>{escape(reading.name)}</b>: {escape(reading.sentence)}</li>" for reading in quiet]
    return (
        f'<div class="charts"><div>{tables[0]}</div><div>{tables[1]}</div></div><ul class="small">{"".join(lines)}</ul>'
    )


def _rates(word: str, given: Sequence[Rate], alpha: float) -> str:
    shown = sorted(given, key=lambda rate: -rate.decisions)[:MOST_SHOWN]
    rows = [[clipped(r.name, 24), f"{r.answers:,}", *(mean_text(x) for x in (r.mean, r.low, r.high))] for r in shown]
    busiest_ones = " (those with the most decisions)" if len(given) > len(shown) else ""
    caption = (
        f"Mean reward by {word}{busiest_ones}; the intervals are anytime-valid and simultaneous ({level_of(alpha)})"
    )
    return table([word, "rewards", "mean", "from", "to"], rows, caption=caption)


def mean_text(reward: float) -> str:
    """Return a mean reward as text, a dash if there is none."""
    return f"{reward:.3g}" if math.isfinite(reward) else "–"


def pair_table(overview: Overview) -> str:
    """Return the mean reward of each arm in each context; of many, the arms with the most decisions."""
    problem = overview.experiment.plan.problem
    decided = dict.fromkeys(problem.arms, 0.0)
    for (_, arm), totals in overview.pairs.items():
        if arm in decided:
            decided[arm] += totals.decided
    arms = list(problem.arms)
    if len(arms) > MOST_SHOWN:
        arms = sorted(arms, key=lambda arm: -decided[arm])[:MOST_SHOWN]
    head = "".join(f'<th scope="col">{clipped(arm, 24)}</th>' for arm in arms)
    means = [_mean(totals) for totals in overview.pairs.values() if totals.answered]
    low, high = min(means, default=0.0), max(means, default=1.0)
    rows = []
    for x in busiest(problem):
        cells = [_pair_cell(overview.pairs.get((problem.contexts[x], arm)), low, high) for arm in arms]
        rows.append(f"<tr>{_context_cell(overview, x)}{''.join(cells)}</tr>")
    most = " (the arms with the most decisions)" if problem.n_arms > len(arms) else ""
    caption = (
        f"Mean reward of each arm in each context{most}, with the number of rewards; a context has a page of its own"
    )
    body = f'<thead><tr><th scope="col">context</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    return f'<p class="small soft">{caption}.</p><div class="policies"><table class="c3">{body}</table></div>'


def _mean(totals: Totals) -> float:
    return totals.total / totals.answered


def _pair_cell(totals: Totals | None, low: float, high: float) -> str:
    """Return a mean reward, shaded by its place between the lowest and the highest one."""
    if totals is None or not totals.answered:
        return '<td class="p0">–</td>'
    place = (_mean(totals) - low) / (high - low) if high > low else 0.0
    return f'<td class="p{round(STEPS * place)}">{mean_text(_mean(totals))}<small>{totals.answered:,.0f}</small></td>'


def context_html(overview: Overview, context: str) -> str:
    """Return a context: all its arms, the likeliest first, with their rewards; an unknown context is a KeyError."""
    plan = overview.experiment.plan
    problem = plan.problem
    if context not in problem.contexts:
        raise KeyError(f"there is no context {context[:60]!r} in {overview.experiment.name}")
    x = problem.contexts.index(context)
    limits, pi = problem.reward_range or (-1.0, 1.0), plan.probabilities()[x]
    known = [overview.pairs.get((context, arm), Totals(0.0, 0.0, 0.0, 0.0)) for arm in problem.arms]
    rows = []
    for a in sorted(range(problem.n_arms), key=lambda a: (-pi[a], -known[a].decided)):
        totals = known[a]
        p = _percent(float(pi[a])) if problem.available[x, a] else "–"
        cells = [f"{totals.decided:,.0f}", f"{totals.answered:,.0f}", *_interval_cells(totals, limits)]
        rows.append([clipped(problem.arms[a]), p, *cells])
    caption = "The likeliest arms first; rewards of closed windows, each mean with a 95% interval for a single look"
    href = View(overview.experiment.name, name=ARMS).href
    share = f"{100 * problem.probabilities[x]:.3g} % of the traffic"
    return (
        f'<p><a href="{href}">← all contexts</a></p><h2>Context {clipped(context, 200)}</h2><p class="soft">{share}</p>'
        f"{table(['arm', 'probability in %', 'decisions', 'rewards', 'mean', 'from', 'to'], rows, caption=caption)}"
    )


def _interval_cells(totals: Totals, limits: tuple[float, float]) -> list[str]:
    """Return the mean reward and the ends of its fixed-time interval."""
    if not totals.answered:
        return ["–"] * 3
    bucket = Bucket(0.0, int(totals.answered), totals.total, totals.squares)
    return [mean_text(value) for value in (bucket.mean, *bucket.interval(limits))]


def context_search(overview: Overview) -> str:
    """Return a form that opens the page of a context."""
    name = escape(overview.experiment.name)
    return (
        f'<form action="/" method="get"><input type="hidden" name="experiment" value="{name}">'
        f'<input type="hidden" name="view" value="{ARMS}"><label for="context">Context</label>'
        '<input id="context" name="context" required placeholder="its name"><button>Show</button></form>'
    )
