"""Questions about dependence: on the corruption C, and on K, d and L."""

from collections.abc import Mapping

import numpy as np

from answers.common import Answer, Question, final, interval, number, plain_chart, run_of, verdict
from bothworlds.report.statistics import Estimate, mean_of
from bothworlds.report.verdicts import scaling, steps
from bothworlds.simulation.folder import Finished

PLACEMENTS = ("first", "adaptive")


def corruption(finished: Mapping[str, Finished]) -> Answer:
    """Measure what corruption adds to the regret, and how that grows with C."""
    study = finished["corruption"]
    budgets = sorted({float(o["budget"]) for o in study.study.environments.values() if "budget" in o})
    rows, right, lines = [], [], {}
    for placement in PLACEMENTS:
        for algorithm in study.study.algorithms:
            clean = run_of(study, "C 0", algorithm)[2].paths[:, -1]
            paths = [run_of(study, f"C {c:.0f} {placement}", algorithm)[2].paths[:, -1] for c in budgets]
            added = [mean_of(path - clean) for path in paths]  # the same contexts and noise, so differences are paired
            slopes = steps(budgets, [one.value if one.value > one.half else np.nan for one in added])
            if algorithm != "adaptive":
                right.append(all(one.value - one.half <= c for one, c in zip(added, budgets, strict=True)))
            lines[f"{algorithm}, {placement}"] = (np.array(budgets), np.array([one.value for one in added]))
            told = [
                f"{a:.0f} to {b:.0f}: {s:.2f}" for a, b, s in zip(budgets, budgets[1:], slopes, strict=False) if s == s
            ]
            rows.append((placement, algorithm, *(interval(one) for one in added), "; ".join(told) or "-"))
    words = (
        "Entries are R_T(C) - R_T(0), paired. Theorem 4.4 allows min(C, sqrt(C A)) up to constants, A the regret "
        "without corruption. Slopes are those of log added regret between neighbouring C where both are clearly "
        "positive: 1 is linear, 1/2 is sqrt(C). Corruption at the start is paid back in part: while it lasts the "
        "learner plays what is then better than the comparator. The verdict says whether no more than C is added by "
        "any C, and is 'seen' for that only; whether linear turns into sqrt(C) is to be read off the slopes."
    )
    head = ("placement", "algorithm", *(f"C = {c:,.0f}" for c in budgets), "slopes")
    charts = [plain_chart("corruption", "Regret that corruption adds", "C", "R_T(C) - R_T(0)", lines)]
    return Answer(verdict(right), words, head, rows, charts)


def sizes(finished: Mapping[str, Finished]) -> Answer:
    """Slopes of log R_T against log K, log d and log L, over draws of instances."""
    rows, right, lines = [], [], {}
    for name, letter, theorem in (("arms", "K", 0.5), ("dimension", "d", 1.0), ("rarity", "L", 1.0)):
        study = finished[name]
        values = study.study.sizes[name]
        for algorithm in study.study.algorithms:
            table = np.array([_finals(study, draw, algorithm, name) for draw in study.study.environments])
            slope = scaling(values, table)
            if algorithm == "certified":
                right.append(abs(slope.value - theorem) <= slope.half)
            if algorithm == "certified":
                lines[f"against {letter}"] = (np.array(values, dtype=float), table.mean(axis=0))
            means = ", ".join(f"{letter} = {v}: {number(m)}" for v, m in zip(values, table.mean(axis=0), strict=True))
            rows.append((letter, algorithm, f"{theorem:.1f}", interval(slope), _reading(slope, theorem), means))
    words = (
        "Five draws of instances for each size; the slope is the mean over draws, its interval tells the spread of "
        "draws. The theorem's powers are those of an upper bound; 'seen' would mean that the power is attained on "
        "random instances. Random instances change with the size in other ways as well: with more arms the mean gap "
        "of an arm falls towards its smallest, with more dimensions lambda falls."
    )
    head = ("size", "tuning", "power in Theorem 4.4", "measured", "reading", "mean R_T over draws")
    charts = [plain_chart("sizes", "Regret of certified against K, d and L", "size", "mean R_T", lines)]
    return Answer(verdict(right), words, head, rows, charts)


def _finals(study: Finished, draw: str, algorithm: str, name: str) -> list[float]:
    """Return the regret at the horizon of one draw for every size."""
    return [final(run_of(study, draw, algorithm, **{name: v})[2]).value for v in study.study.sizes[name]]


def _reading(slope: Estimate, theorem: float) -> str:
    if slope.value + slope.half < theorem:
        return "slower than the bound"
    return "faster than the bound" if slope.value - slope.half > theorem else "as the bound"


QUESTIONS = [
    Question(
        "d",
        "Regret against corruption C",
        "Theorem 4.4: R_T = O(A + sqrt(C A)), A = (L d sqrt(K)/Delta_*) log T; never more than C itself is added.",
        ("corruption",),
        corruption,
    ),
    Question(
        "e",
        "Dependence on K, d and L: is d sqrt(K) seen? Is L?",
        "Theorem 4.4: the constant in front of log T is L d sqrt(K)/Delta_*.",
        ("arms", "dimension", "rarity"),
        sizes,
    ),
]
