"""How long until the first decision: import time against numba's, and the first decision with a warm cache.

    python benchmarks/startup.py [--repeats 9]

Every figure is a fresh process; the two imports alternate. The cache is warmed by a first run.
"""

import argparse
import subprocess
import sys

import numpy as np

NUMBA = "import time; t = time.perf_counter(); import numba; print(time.perf_counter() - t)"
OURS = "import time; t = time.perf_counter(); import bothworlds; print(time.perf_counter() - t)"
FIRST = """
import bothworlds as bw, numpy as np, time
t = time.perf_counter()
phi = np.random.default_rng(0).normal(size=(10, 5, 5))
problem = bw.Problem(features=phi, probabilities=np.full(10, 0.1))
policy = bw.LCTsallisINF().start(problem, rng=7)
policy.update(policy.act(3), loss=0.5)
print(time.perf_counter() - t)
"""


def seconds(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    print(f"first decision, whatever the cache holds: {seconds(FIRST):.2f} s")
    times = np.array([[seconds(NUMBA), seconds(OURS), seconds(FIRST)] for _ in range(repeats)])
    numba, ours, first = np.median(times, axis=0)
    print(f"import numba      {numba:.3f} s")
    print(f"import bothworlds {ours:.3f} s, {ours / numba:.2f} times numba's")
    print(f"first decision after that, warm cache: {first:.2f} s")


if __name__ == "__main__":
    main()
