"""What logs cost: writing, reading and converting; seconds of one core, bytes a row, the most memory ever used.

python benchmarks/logs.py [--rows 1000000] [--folder FOLDER]
python benchmarks/logs.py --rehearsal      # rounds a second of logs whose truth is known

Each step runs in a process of its own, so that its memory is its own.
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
CHANCES = (0.5, 0.2, 0.1, 0.1, 0.1)


def made_rows(count: int, *, rewarded: bool = True) -> Iterator[Row]:
    for t in range(count):
        a = t % 5
        yield Row(
            id=f"visit {t}",
            time=1.7e9 + t,
            context=f"context {t % 97}",
            offered=ARMS,
            probabilities=CHANCES,
            arm=ARMS[a],
            propensity=CHANCES[a],
            policy="ads",
            version=t,
            digest="0123456789abcdef0123456789abcdef",
            reward=float(t % 3 == 0) if rewarded else None,
        )


def write_followed(path: str, count: int) -> int:
    """Write a log as servers do: decisions, and their rewards in lines of their own, later."""
    log, rows = logs.Log(path), made_rows(count, rewarded=False)
    while some := list(itertools.islice(rows, 10_000)):
        log.append(*some)
        log.append(*(Reward(id=row.id, time=1.7e9, reward=1.0) for row in some))
    return count


def count_of(rows: Iterator[Row]) -> int:
    return sum(1 for _ in rows)


def steps(folder: Path, count: int) -> dict[str, Callable[[], int]]:
    plain, followed, table, events = (
        str(folder / name) for name in ("log.jsonl", "followed.jsonl", "log.parquet", "log.dsjson")
    )
    return {
        "make rows": lambda: count_of(made_rows(count)),
        "write JSON lines": lambda: logs.write(made_rows(count), plain),
        "read JSON lines": lambda: count_of(logs.read(plain)),
        "write JSON lines, rewards apart": lambda: write_followed(followed, count),
        "read JSON lines, rewards apart": lambda: count_of(logs.read(followed)),
        "write Parquet": lambda: logs.write(made_rows(count), table),
        "read Parquet": lambda: count_of(logs.read(table)),
        "write dsjson": lambda: logs.write(made_rows(count), events),
        "read dsjson": lambda: count_of(logs.read(events)),
    }


def measured(name: str, folder: str, count: int) -> None:
    began = time.process_time()
    found = steps(Path(folder), count)[name]()
    seconds = time.process_time() - began
    if found != count:
        raise SystemExit(f"{name}: {found} of {count} rows")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    print(f"| {name} | {seconds:.1f} | {1e6 * seconds / count:.1f} | {peak:,.0f} |", flush=True)


def rehearsals(rounds: int = 300_000) -> None:
    world = en.stochastic(en.random_instance(contexts=10, arms=5, dimension=5, gap=0.2, seed=1))
    players: dict[str, Any] = {"matched": bw.Matched(), "certified": bw.Certified()}
    algorithms = {label: bw.LCTsallisINF(tuning=tuning) for label, tuning in players.items()}
    for label, algorithm in {**algorithms, "LinUCB": bw.LinUCB()}.items():
        bw.rehearse(world, algorithm, rounds=10)  # compiles
        began = time.process_time()
        log = bw.rehearse(world, algorithm, rounds=rounds)
        middle = time.process_time()
        count_of(log.rows())
        ended = time.process_time()
        print(
            f"{label}: {rounds / (middle - began):,.0f} rounds/s, {rounds / (ended - middle):,.0f} rows/s", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--folder")
    parser.add_argument("--only", default="", help="steps with this word")
    parser.add_argument("--rehearsal", action="store_true")
    given = parser.parse_args()
    if given.rehearsal:
        rehearsals()
        return
    count = int(given.rows)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        print(
            f"| {count:,} rows | seconds of one core | microseconds a row | peak memory, MB |\n|---|---|---|---|",
            flush=True,
        )
        for name in (name for name in steps(Path(folder), count) if given.only in name):
            one = multiprocessing.get_context("spawn").Process(target=measured, args=(name, folder, count))
            one.start()
            one.join()
        for file in sorted(Path(folder).iterdir()):
            print(f"{file.name}: {file.stat().st_size / count:.0f} bytes a row")


if __name__ == "__main__":
    main()
