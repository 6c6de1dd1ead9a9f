"""Cost of writing, reading and converting logs: seconds of one core, bytes per row, peak memory.

python benchmarks/logs.py [--rows 1000000] [--folder FOLDER]
python benchmarks/logs.py --synthetic      # rounds per second of synthetic logs

Each step runs in its own process, whose peak memory is measured.
"""

import argparse
import itertools
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bothworlds as bw
from bothworlds import environments as en
from bothworlds import logs
from bothworlds.logs import Reward, Row

ARMS = ("red", "blue", "green", "gold", "grey")
PROBABILITIES = (0.5, 0.2, 0.1, 0.1, 0.1)


def generated_rows(count: int, *, rewarded: bool = True) -> Iterator[Row]:
    for t in range(count):
        a = t % 5
        yield Row(
            id=f"visit {t}",
            time=1.7e9 + t,
            context=f"context {t % 97}",
            offered=ARMS,
            probabilities=PROBABILITIES,
            arm=ARMS[a],
            propensity=PROBABILITIES[a],
            policy="ads",
            version=t,
            digest="0123456789abcdef0123456789abcdef",
            reward=float(t % 3 == 0) if rewarded else None,
        )


def write_followed(path: str, count: int) -> int:
    """Write a log as servers do: decisions, and later their rewards in separate lines."""
    log, rows = logs.Log(path), generated_rows(count, rewarded=False)
    while batch := list(itertools.islice(rows, 10_000)):
        log.append(*batch)
        log.append(*(Reward(id=row.id, time=1.7e9, reward=1.0) for row in batch))
    return count


def count_of(rows: Iterator[Row]) -> int:
    return sum(1 for _ in rows)


def steps(folder: Path, count: int) -> dict[str, Callable[[], int]]:
    plain, followed, table, events = (
        str(folder / name) for name in ("log.jsonl", "followed.jsonl", "log.parquet", "log.dsjson")
    )
    return {
        "make rows": lambda: count_of(generated_rows(count)),
        "write JSON lines": lambda: logs.write(generated_rows(count), plain),
        "read JSON lines": lambda: count_of(logs.read(plain)),
        "write JSON lines, separate rewards": lambda: write_followed(followed, count),
        "read JSON lines, separate rewards": lambda: count_of(logs.read(followed)),
        "write Parquet": lambda: logs.write(generated_rows(count), table),
        "read Parquet": lambda: count_of(logs.read(table)),
        "write dsjson": lambda: logs.write(generated_rows(count), events),
        "read dsjson": lambda: count_of(logs.read(events)),
    }


def measured(name: str, folder: str, count: int) -> None:
    started = time.process_time()
    rows = steps(Path(folder), count)[name]()
    seconds = time.process_time() - started
    if rows != count:
        raise SystemExit(f"{name}: {rows} of {count} rows")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    print(f"| {name} | {seconds:.1f} | {1e6 * seconds / count:.1f} | {peak:,.0f} |", flush=True)


def synthetic_logs(rounds: int = 300_000) -> None:
    world = en.stochastic(en.random_instance(contexts=10, arms=5, dimension=5, gap=0.2, seed=1))
    players: dict[str, Any] = {"matched": bw.Matched(), "certified": bw.Certified()}
    algorithms = {label: bw.LCTsallisINF(tuning=tuning) for label, tuning in players.items()}
    for label, algorithm in {**algorithms, "LinUCB": bw.LinUCB()}.items():
        bw.rehearse(world, algorithm, rounds=10)  # compiles
        started = time.process_time()
        log = bw.rehearse(world, algorithm, rounds=rounds)
        middle = time.process_time()
        count_of(log.rows())
        ended = time.process_time()
        print(
            f"{label}: {rounds / (middle - started):,.0f} rounds/s, {rounds / (ended - middle):,.0f} rows/s", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--folder")
    parser.add_argument("--only", default="", help="steps with this word")
    parser.add_argument("--synthetic", action="store_true")
    options = parser.parse_args()
    if options.synthetic:
        synthetic_logs()
        return
    count = int(options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(
            f"| {count:,} rows | seconds of one core | microseconds per row | peak memory, MB |\n|---|---|---|---|",
            flush=True,
        )
        for name in (name for name in steps(Path(folder), count) if options.only in name):
            process = multiprocessing.get_context("spawn").Process(target=measured, args=(name, folder, count))
            process.start()
            process.join()
        for file in sorted(Path(folder).iterdir()):
            print(f"{file.name}: {file.stat().st_size / count:.0f} bytes per row")


if __name__ == "__main__":
    main()
