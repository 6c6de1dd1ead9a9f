"""One Dask worker against two, on this machine: seconds for one study, alternating, and the load meanwhile.

python benchmarks/workers.py [--repeats 3] [--rounds 100000]

Every worker is a process with one thread. Compilation is done before, and clusters are up when the clock starts.
"""

import argparse
import importlib
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import bothworlds as bw

WORKERS = (1, 2)
distributed: Any = importlib.import_module("distributed")


def study(horizon: int) -> bw.Study:
    return bw.Study.from_dict(
        {
            "name": "workers",
            "horizon": horizon,
            "replications": 32,
            "sizes": {"contexts": 10, "arms": 5, "dimension": 5, "gap": 0.2},
            "environments": {
                "calm": {"kind": "stochastic"},
                "hit": {"kind": "corrupted", "budget": 500},
                "phases": {"kind": "growing-phases"},
                "evil": {"kind": "adaptive-adversary"},
            },
            "algorithms": {"LinUCB": {"kind": "LinUCB"}, "certified": {"kind": "LCTsallisINF", "tuning": "certified"}},
        }
    )


def seconds(workers: int, horizon: int) -> float:
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        bw.run_study(study(100), Path(folder) / "first", executor=client.get_executor(), quiet=True)
        began = time.perf_counter()
        bw.run_study(study(horizon), Path(folder) / "timed", executor=client.get_executor(), quiet=True)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=100_000, help="of every replication")
    options = parser.parse_args()
    took: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    for _ in range(options.repeats):
        for workers in WORKERS:
            took[workers].append(seconds(workers, options.rounds))
            print(f"{workers} workers: {took[workers][-1]:6.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    one, two = (statistics.median(took[workers]) for workers in WORKERS)
    print(f"medians {one:.1f} s and {two:.1f} s: {one / two:.2f} times as fast with two")


if __name__ == "__main__":
    main()
