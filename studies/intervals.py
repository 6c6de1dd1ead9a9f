"""Coverage of the intervals of policy values: logs of learning policies, three targets, all checkpoints.

    python studies/intervals.py                # 200 logs by each tuning; the same command resumes
    python studies/intervals.py --logs 1000    # more logs
    python studies/intervals.py page           # the table of research/evaluation-coverage.md from what is on disk

Each log has its own instance, contexts, rewards and draws. "Inside" means that the true value lies in the interval:
at the last row, or at all checkpoints.
"""

import argparse
import json
import math
import time
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.evaluation import Logged, Target, ridge
from bothworlds.evaluation.dr_terms import Contrast, ValueQuery
from bothworlds.evaluation.intervals import Interval, NormalIntervalWarning, band_of, checkpoints_for

ROWS, CHECKPOINTS, ALPHA, SEED = 3000, 60, 0.05, 20_000
S, K, D = 10, 5, 5
Tuning = Literal["matched"]
TUNINGS: tuple[Tuning, ...] = ("matched",)
KINDS: tuple[Interval, ...] = ("betting", "bernstein", "normal")
ROOT = Path(__file__).parents[1]
PAGE, DATA = ROOT / "research" / "evaluation-coverage.md", ROOT / "build" / "intervals"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


def instance(seed: int) -> tuple[bw.Problem, Floats]:
    """Return a problem with linear click rates between 0.15 and 0.85."""
    rng = np.random.default_rng([SEED, seed])
    phi = rng.normal(size=(S, K, D))
    phi /= np.linalg.norm(phi, axis=2, keepdims=True)
    problem = bw.Problem(features=phi, probabilities=rng.dirichlet(np.full(S, 5.0)), reward_range=(0.0, 1.0))
    means = phi @ rng.normal(size=D)
    return problem, np.asarray(0.5 + 0.35 * means / np.abs(means).max())


def written(problem: bw.Problem, means: Floats, tuning: Tuning, seed: int) -> Logged:
    """Return the log of a policy that decides and learns."""
    rng = np.random.default_rng([SEED, seed, 1])
    policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=seed)
    context, chance = rng.choice(S, size=ROWS, p=problem.probabilities), rng.random(ROWS).tolist()
    h, arm, reward = np.empty((ROWS, K)), np.empty(ROWS, dtype=np.int64), np.empty(ROWS)
    for t, x in enumerate(context.tolist()):
        h[t] = policy.probabilities(x)
        decision = policy.act(x)
        arm[t], reward[t] = decision.arm, float(chance[t] < means[x, decision.arm])
        policy.update(decision, reward=reward[t])
    return Logged.from_columns(problem, context=context, arm=arm, reward=reward, probabilities=h)


def targets(means: Floats) -> dict[str, Floats]:
    """Return a table that the log supports well, the uniform one, and one that it hardly supports."""
    order = np.argsort(means, axis=1)
    return {
        "best arm": np.eye(K)[order[:, -1]],
        "uniform": np.full((S, K), 1 / K),
        "second best": np.eye(K)[order[:, -2]],
    }


def one_log(tuning: Tuning, seed: int) -> list[dict[str, Any]]:
    """Return the result of each interval on one log."""
    problem, means = instance(seed)
    log = written(problem, means, tuning, seed)
    fit, at, results = ridge(log), checkpoints_for(ROWS, CHECKPOINTS), []
    for name, table in targets(means).items():
        value = float(np.einsum("x,xa,xa->", problem.probabilities, table, means))
        weight = table[log.context, log.arm] / log.propensity
        effective = float(weight.sum() ** 2 / max(float((weight**2).sum()), 1e-300))
        for kind in KINDS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NormalIntervalWarning)
                query = ValueQuery(log, Contrast(of=Target(table=table)), fit)
                band = band_of(query, at, kind=kind, alpha=ALPHA)
            inside = (band.low <= value) & (value <= band.high)
            results.append({
                "tuning": tuning, "target": name, "kind": kind, "effective": effective,
                "last": bool(inside[-1]), "all": bool(inside.all()), "width": float(band.high[-1] - band.low[-1]),
            })  # fmt: skip
    return results


def rows_of(done: list[dict[str, Any]]) -> list[list[str]]:
    """Return the table: coverage with its standard error, at the last row and at all checkpoints, and median width."""
    rows = []
    for tuning in TUNINGS:
        for target in ("best arm", "uniform", "second best"):
            cells = [tuning, target]
            for kind in KINDS:
                selected = [
                    one for one in done if (one["tuning"], one["target"], one["kind"]) == (tuning, target, kind)
                ]
                if kind == KINDS[0]:
                    cells += [f"{len(selected)}", f"{np.median([one['effective'] for one in selected]):,.0f}"]
                last, every = (float(np.mean([one[key] for one in selected])) for key in ("last", "all"))
                cells.append(f"{last:.3f}, {every:.3f}, {np.median([one['width'] for one in selected]):.3f}")
            rows.append(cells)
    return rows


def text(done: list[dict[str, Any]]) -> str:
    """Return the section of the page."""
    head = ["written by", "target", "logs", "effective rows", *KINDS]
    lines = [" | ".join(row) for row in (head, ["---"] * len(head), *rows_of(done))]
    table = "\n".join(f"| {line} |" for line in lines)
    worst = min(
        float(np.mean([one["all"] for one in done if (one["tuning"], one["target"], one["kind"]) == (a, b, "betting")]))
        for a in TUNINGS
        for b in ("best arm", "uniform", "second best")
    )
    count = len(done) // (len(TUNINGS) * 3 * len(KINDS))
    error = math.sqrt(ALPHA * (1.0 - ALPHA) / max(count, 1))
    return (
        f"{table}\n\nEach cell: share of logs with the value inside at the last row, share with it inside at all "
        f"{CHECKPOINTS} checkpoints, median width at the last row. Logs have {ROWS:,} rows; {S} contexts, {K} arms, "
        f"{D} features, a new instance for each log. Effective rows are medians. Lowest coverage at all times by "
        f"betting: {worst:.3f} (0.95 less two standard errors is {0.95 - 2 * error:.3f})."
    )


def main() -> None:
    """Write logs, evaluate them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run", "page"], default="run")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="stop after this time; the same command resumes"
    )
    parser.add_argument("--output", type=Path, default=DATA)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    started, done = time.monotonic(), []
    for seed in range(options.logs):
        for tuning in TUNINGS:
            file = options.output / f"{tuning}-{seed}.json"
            if not file.exists():
                if options.what == "page" or time.monotonic() - started > options.seconds:
                    continue
                file.write_text(json.dumps(one_log(tuning, seed)), encoding="utf-8")
            done += json.loads(file.read_text(encoding="utf-8"))
    section = text(done)
    print(section)
    if options.what == "page":
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{section}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
