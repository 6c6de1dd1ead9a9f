"""Cost of an evaluation: a million rows, ten tables, ips, snips and dr with betting intervals at 200 checkpoints.

    python benchmarks/evaluation.py [--rows 1000000] [--arms 10] [--threads 2]

Seconds and memory of one run; for comparison vw-estimators' ips and snips for one table, if that is installed
(python -m pip install vw-estimators). research/evaluation-coverage.md has the figures.
"""

import argparse
import importlib
import resource
import time

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.evaluation import Logged, evaluate


def random_log(rows: int, S: int, K: int, seed: int = 7) -> tuple[Logged, dict[str, Floats]]:
    """Return a log whose policy changes with time, and ten tables from well to hardly supported."""
    rng = np.random.default_rng(seed)
    problem = bw.Problem(features=rng.normal(size=(S, K, 8)), probabilities=np.full(S, 1 / S), reward_range=(0.0, 1.0))
    means = rng.uniform(0.05, 0.95, size=(S, K))
    context = rng.integers(S, size=rows)
    sure = np.minimum(0.9, np.arange(1, rows + 1) / rows)[:, None]
    h = (1.0 - sure) / K + sure * np.eye(K)[means.argmax(axis=1)][context]
    arm = np.minimum((h.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), K - 1)
    reward = (rng.random(rows) < means[context, arm]).astype(np.float64)
    log = Logged.from_columns(problem, context=context, arm=arm, reward=reward, probabilities=h)
    return log, {f"table {i}": rng.dirichlet(np.full(K, 10.0 ** (i / 4 - 1.0)), size=S) for i in range(10)}


def oracle_seconds(log: Logged, table: Floats) -> float | None:
    """Return the seconds that vw-estimators takes for ips and snips of one table; None if it is not installed."""
    try:
        both = [importlib.import_module(f"estimators.bandits.{name}").Estimator() for name in ("ips", "snips")]
    except ModuleNotFoundError:
        return None
    start = time.perf_counter()
    columns = zip(log.propensity.tolist(), log.reward.tolist(), table[log.context, log.arm].tolist(), strict=True)
    for propensity, reward, chosen in columns:
        for estimator in both:
            estimator.add_example(propensity, reward, chosen)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("rows", 1_000_000), ("contexts", 20), ("arms", 10), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    log, tables = random_log(options.rows, options.contexts, options.arms)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start, work = time.perf_counter(), time.process_time()
    evaluation = evaluate(log, tables, threads=options.threads)
    seconds, work = time.perf_counter() - start, time.process_time() - work
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{log.rows:,} rows, {len(tables)} tables: {seconds:.1f} s ({work:.1f} s of processor), {most:,.0f} MB in all"
    )
    print(f"of which {before:,.0f} MB before: Python, the log, and its generation")
    for name, policy in evaluation.policies.items():
        low, high = policy.interval
        print(
            f"{name}: {policy.value:.4f} in [{low:.4f}, {high:.4f}], {policy.diagnostics.effective_rows:,.0f} effective"
        )
    other = oracle_seconds(log, tables["table 0"])
    print(
        "vw-estimators is not installed" if other is None else f"vw-estimators, ips and snips, one table: {other:.1f} s"
    )


if __name__ == "__main__":
    main()
