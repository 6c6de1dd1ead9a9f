"""Questions about choices: the inverse, a bandit per context, features, designs, feedback."""

from collections.abc import Mapping

import numpy as np

from answers.common import (
    NOT_SEEN,
    OPEN,
    SEEN,
    Answer,
    Question,
    final,
    interval,
    number,
    plain_chart,
    regret_chart,
    run_of,
    t0_of,
    verdict,
)
from bothworlds.report.statistics import mean_of
from bothworlds.studies.folder import Finished


def inverse(finished: Mapping[str, Finished]) -> Answer:
    """Return regret and cost with the exact inverse and with resampling."""
    study = finished["inverse"]
    rows = []
    for environment in study.study.environments:
        exact = run_of(study, environment, "exact")[2].paths[:, -1]
        for algorithm in study.study.algorithms:
            cost = next(
                results.manifest["run"]["microseconds_per_round"]["cell"]
                for cell, results in study.cells
                if (cell.environment, cell.algorithm) == (environment, algorithm)
            )
            run = run_of(study, environment, algorithm)[2]
            more = mean_of(run.paths[:, -1] - exact)
            difference = "-" if algorithm == "exact" else interval(more)
            rows.append((environment, algorithm, interval(final(run)), difference, f"{cost:,.1f}"))
    words = (
        "The difference is paired. The number of draws for a given bias grows like 1/gamma_t, and so does the cost "
        "of a round; that of the exact inverse does not. A fixed number of draws costs the same always, and its "
        "bias grows."
    )
    head = ("world", "covariance", "R_T", "more than exact", "microseconds a round")
    return Answer(OPEN, words, head, rows, [regret_chart("inverse", study, "stochastic")])


def per_context(finished: Mapping[str, Finished]) -> Answer:
    """Find the sizes for which it is better to share features."""
    study = finished["per-context"]
    grid = study.study.sizes
    rows, lines = [], {}
    wins = dict.fromkeys(study.study.algorithms, 0)
    for environment in study.study.environments:
        for K in grid["arms"]:
            for d in grid["dimension"]:
                ratios = []
                for S in grid["contexts"]:
                    runs = {a: run_of(study, environment, a, contexts=S, arms=K, dimension=d)[2] for a in wins}
                    finals = {a: final(run) for a, run in runs.items()}
                    best = min(finals, key=lambda a: finals[a].value)
                    wins[best] += 1
                    ratios.append(finals["certified"].value / max(finals["per context"].value, 1.0))
                    rows.append((environment, str(S), str(K), str(d), *(interval(v) for v in finals.values()), best))
                if environment == "stochastic":
                    lines[f"K = {K}, d = {d}"] = (np.array(grid["contexts"], dtype=float), np.array(ratios))
    words = (
        "Smallest regret, in cells: "
        + ", ".join(f"{a} {n}" for a, n in wins.items())
        + ". The chart shows the regret of "
        "`certified` over that of a Tsallis-INF per context in the stochastic regime: below 1 sharing is better."
    )
    title = "certified over per-context Tsallis-INF, stochastic"
    head = ("world", "S", "K", "d", *study.study.algorithms, "smallest")
    charts = [plain_chart("per-context", title, "contexts S", "ratio of regrets", lines)]
    return Answer(OPEN, words, head, rows, charts)


def features(finished: Mapping[str, Finished]) -> Answer:
    """Compare d with d K dimensions for the same losses."""
    study = finished["features"]
    draws = [name.split()[1] for name in study.study.environments if name.startswith("shared")]
    rows, right = [], []
    for algorithm in study.study.algorithms:
        for draw in draws:
            cell, _, shared = run_of(study, f"shared {draw}", algorithm)
            other, _, stacked = run_of(study, f"stacked {draw}", algorithm)
            more = mean_of(stacked.paths[:, -1] - shared.paths[:, -1])
            if algorithm == "certified":
                right.append(more.value > more.half)
            sizes = f"{cell.make_environment().problem.dimension}, {other.make_environment().problem.dimension}"
            shown = (interval(final(shared)), interval(final(stacked)), interval(more))
            rows.append((algorithm, draw, sizes, *shown))
    words = (
        "The losses are the same, number by number; 'stacked' hides from the learner that arms share a parameter, "
        "as an algorithm for arm-independent features has to. FTRL-LC is such an algorithm: it stacks by itself. "
        "The verdict is about `certified`: more regret with more dimensions in every draw."
    )
    head = ("algorithm", "draw", "dimensions", "R_T shared", "R_T stacked", "difference")
    return Answer(verdict(right), words, head, rows, [])


def designs(finished: Mapping[str, Finished]) -> Answer:
    """Compare exploration policies."""
    study = finished["designs"]
    draws = list(study.study.environments)
    rows, finals, covers = [], {}, {}
    for algorithm in study.study.algorithms:
        cells = [run_of(study, draw, algorithm) for draw in draws]
        covers[algorithm] = [
            cell.make_algorithm().design_for(cell.make_environment().problem).coverage for cell, _, _ in cells
        ]
        finals[algorithm] = [final(run) for _, _, run in cells]
        t0 = [t0_of(cell) for cell, _, _ in cells]
        rows.append(
            (
                algorithm,
                ", ".join(f"{c:.3f}" for c in covers[algorithm]),
                ", ".join(f"{t:,.0f}" for t in t0),
                *(interval(one) for one in finals[algorithm]),
            )
        )
    pairs = list(zip(finals["paper, joint-g"], finals["paper, uniform"], strict=True))
    better = [joint.value + joint.half < even.value - even.half for joint, even in pairs]
    T, first = study.study.settings["horizon"], min(t0_of(run_of(study, draw, "paper, joint-g")[0]) for draw in draws)
    early = " T is below 10 t0 for `paper`: this is the price of exploration, not a rate." if 10.0 * first > T else ""
    words = (
        f"With `paper`, the joint G-optimal design has clearly less regret than uniform exploration in {sum(better)} "
        f"of {len(better)} draws: lambda sets t0. `certified` finds its own gamma_t.{early}"
    )
    head = ("tuning, design", "lambda", "t0", *(f"R_T, {draw}" for draw in draws))
    return Answer(SEEN if all(better) else NOT_SEEN, words, head, rows, [])


def feedback(finished: Mapping[str, Finished]) -> Answer:
    """Compare feedback at once, late, and in batches."""
    names = ("feedback-at-once", "feedback-late", "feedback-batches")
    rows = []
    for environment in finished[names[0]].study.environments:
        for algorithm in finished[names[0]].study.algorithms:
            runs = [run_of(finished[name], environment, algorithm)[2] for name in names]
            more = [mean_of(run.paths[:, -1] - runs[0].paths[:, -1]) for run in runs[1:]]
            rows.append((environment, algorithm, *(interval(v) for v in [final(runs[0]), *more])))
    settings = {
        key: finished[name].study.settings[key]
        for name, key in (("feedback-late", "delay"), ("feedback-batches", "batch"))
    }
    words = (
        f"Delay {number(settings['delay'])}, batches of {number(settings['batch'])}; differences are paired. No "
        "theorem of the paper covers either; 'certified for batches' takes a batch for one round, and for batches its "
        "theorems hold with T/batch rounds, times batch."
    )
    head = ("world", "algorithm", "R_T at once", "late: more", "batches: more")
    return Answer(OPEN, words, head, rows, [regret_chart("feedback-late", finished["feedback-late"], "growing phases")])


QUESTIONS = [
    Question(
        "g",
        "The exact inverse against Matrix Geometric Resampling",
        "None; earlier algorithms resample, this one computes. What is exactness worth, and what does it cost?",
        ("inverse",),
        inverse,
    ),
    Question(
        "h",
        "Against a bandit per context",
        "Discussion: O(S K log T/Delta) and O(sqrt(S K T)) without features, against d sqrt(K) with them.",
        ("per-context",),
        per_context,
    ),
    Question(
        "i",
        "Arm-dependent against arm-independent features",
        "Theorem 4.5 and Section 1: an algorithm for arm-independent features pays for d K dimensions.",
        ("features",),
        features,
    ),
    Question(
        "j",
        "Uniform, per-context G-optimal and joint designs",
        "Section 3: exploration by an optimal design e*, for the sake of a large lambda.",
        ("designs",),
        designs,
    ),
    Question(
        "k",
        "Delay and batches",
        "None; the paper has feedback after every decision.",
        ("feedback-at-once", "feedback-late", "feedback-batches"),
        feedback,
    ),
]
