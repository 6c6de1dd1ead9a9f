"""Questions about dependence: on the corruption C, and on K, d and L."""

from collections.abc import Mapping

import numpy as np

from answers.common import Answer, Question, final, interval, number, plain_chart, run_of, verdict
from answers.verdicts import scaling, steps
from bothworlds.arrays import Floats, Ints
from bothworlds.report.statistics import Estimate, mean_of
from bothworlds.simulation.results import Run
from bothworlds.studies.folder import Finished
from bothworlds.studies.study import Cell


def corruption(finished: Mapping[str, Finished]) -> Answer:
    """Measure what corruption adds to the regret, also counted in clean losses, and how that grows with C."""
    study = finished["corruption"]
    budgets = sorted({float(o["budget"]) for o in study.study.environments.values() if "budget" in o})
    rows, right, lines = [], [], {}
    for count, placement in (("R_T", "first"), ("R_T", "adaptive"), ("clean", "first")):
        for algorithm in study.study.algorithms:
            clean = run_of(study, "C 0", algorithm)[2].paths[:, -1]
            cells = [run_of(study, f"C {c:.0f} {placement}", algorithm) for c in budgets]
            paths = [_in_clean_losses(*cell) if count == "clean" else cell[2].paths[:, -1] for cell in cells]
            added = [mean_of(path - clean) for path in paths]  # the same contexts and noise, so differences are paired
            slopes = steps(budgets, [one.value if one.value > one.half else np.nan for one in added])
            if count == "clean":
                known = [slope for slope in slopes if slope == slope]
                right.append(len(known) > 1 and abs(known[0] - 1.0) < 0.25 and abs(known[-1] - 0.5) < 0.25)
            if count == "clean":
                lines[algorithm] = (np.array(budgets), np.array([one.value for one in added]))
            told = ["-" if slope != slope else f"{slope:.2f}" for slope in slopes]
            rows.append((count, placement, algorithm, *(interval(one) for one in added), ", ".join(told)))
    words = (
        "Entries are what corruption adds to the regret without it, paired. Regret R_T is counted in the losses "
        "that occurred, as the theorem counts it: while corruption lasts the learner earns what the comparator "
        "loses, and R_T falls. Rows 'clean' count the gaps of what was played in uncorrupted losses instead (at "
        "most C more than R_T), for corruption in the first rounds. Slopes are those of log added regret from each "
        "C to the next, where both are clearly positive: 1 is linear, 1/2 is sqrt(C). 'Seen' needs a first slope "
        "within 1/4 of 1 and a last one within 1/4 of 1/2, in clean losses."
    )
    head = ("losses", "placement", "algorithm", *(f"C = {c:,.0f}" for c in budgets), "slopes")
    charts = [plain_chart("corruption", "Clean regret that corruption adds", "C", "added regret", lines)]
    return Answer(verdict(right), words, head, rows, charts)


def _in_clean_losses(cell: Cell, rounds: Ints, run: Run) -> Floats:
    """Return sum_t sum_x g(x) <Delta(x), pi_t(x)> of every replication, corruption by -theta_0 in the first rounds.

    Until round n = C/cost losses are minus the clean ones; what was lost until then is interpolated.
    """
    world = cell.make_environment()
    n = world.budget / world.corruption_of(world.thetas[1])
    until = np.array([np.interp(n, rounds, path) for path in run.expected])
    return np.asarray(run.expected[:, -1] - 2.0 * until - rounds[-1] * world.best_losses(np.array([1.0, 0.0])))


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
        "draws. The theorem's powers are those of an upper bound with a large constant; 'seen' means that the power "
        "is attained on random instances, and 'faster' contradicts nothing while the regret is below the bound. "
        "Random instances change with the size in other ways as well: with two arms every other arm is a near one, "
        "with more the mean gap rises, and with it the price of exploration; with more dimensions lambda falls."
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
        "Theorem 4.4: R_T = O(A + sqrt(C A)), A = (L d sqrt(K)/Delta_*) log T: linear in C at first, then sqrt(C).",
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
