"""Growth of regret far beyond t0: T = 10^7 with 65,536 replications, which takes a GPU.

    python studies/ten_million.py run        # writes studies/ten-million.json; the same command resumes
    python studies/ten_million.py page       # section of research/benchmarks.md and figure, from that file

The stochastic regime, S = 10, K = 5, d = 5, gap 0.2, losses +-1, LC-Tsallis-INF with the constants of the paper.
`--horizon`, `--replications` and `--device cpu` make it small.
"""

import argparse
import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import bothworlds as bw
from answers.page import table
from bothworlds import environments as en
from bothworlds.problem.file_format import write_bytes
from bothworlds.report.chart import Chart, Line, Mark
from bothworlds.report.palette import styles
from bothworlds.report.svg import standalone

HERE = Path(__file__).parent
DATA = HERE / "ten-million.json"
PAGE = HERE.parent / "research" / "benchmarks.md"
BEGIN, END = "<!-- ten million rounds: begin, made by studies/ten_million.py -->", "<!-- ten million rounds: end -->"
LEVELS = (0.05, 0.5, 0.95)
TUNINGS: dict[str, tuple[Any, float]] = {  # and the share of the horizon
    "paper": (bw.Paper(), 1.0),
    "certified, c = 1/8": (bw.Certified(c=0.125), 0.1),
}


def world() -> en.Environment:
    """Return the world of the benchmarks."""
    return en.stochastic(en.random_instance(contexts=10, arms=5, dimension=5, gap=0.2, seed=1))


def progress(total: int) -> Any:
    """Return a callback that reports progress on stderr every ten seconds."""
    started = reported = time.monotonic()
    done = 0

    def advance(rounds: int) -> None:
        nonlocal done, reported
        done += rounds
        if time.monotonic() - reported > 10.0:
            reported = time.monotonic()
            print(f"  {done / total:.0%}, {done / (reported - started) / 1e6:,.0f} million rounds/s", file=sys.stderr)

    return advance


def measured(environment: en.Environment, label: str, options: argparse.Namespace) -> dict[str, Any]:
    """Play one tuning; return its curves."""
    tuning, share = TUNINGS[label]
    horizon = int(share * options.horizon)
    started = time.monotonic()
    run = bw.simulate(
        environment,
        {label: bw.LCTsallisINF(tuning=tuning)},
        horizon=horizon,
        replications=options.replications,
        checkpoints=100,
        device=options.device,
        progress=progress(horizon * options.replications),
        resume_file=options.resume_file,
    )
    seconds = time.monotonic() - started
    result = run[label]
    low, middle, high = result.quantiles(LEVELS)
    curves = {"mean": result.regret, "error": result.standard_error, "low": low, "middle": middle, "high": high}
    rounded = {name: [float(f"{value:.6g}") for value in values] for name, values in curves.items()}
    return {"checkpoints": run.checkpoints.tolist(), "seconds": round(seconds, 1), **rounded}


def run(options: argparse.Namespace) -> None:
    """Play all tunings that are not in the file yet, and write their curves."""
    environment = world()
    t0 = bw.LCTsallisINF(tuning="paper").forecast(environment.problem, horizon=options.horizon).t0
    data = {"horizon": options.horizon, "replications": options.replications, "t0": t0, "tunings": {}}
    if options.data.exists():
        saved = json.loads(options.data.read_text(encoding="utf-8"))
        if all(saved.get(name) == data[name] for name in ("horizon", "replications", "t0")):
            data = saved
    for label in TUNINGS:
        if label not in data["tunings"]:
            print(label, file=sys.stderr)
            data["tunings"][label] = measured(environment, label, options)
            write_bytes(options.data, (json.dumps(data) + "\n").encode())


def slopes(entry: dict[str, Any]) -> list[tuple[int, float, float]]:
    """Return (from round, regret added per unit of log t, standard error at most) for every factor of ten."""
    t, mean, error = (np.array(entry[name]) for name in ("checkpoints", "mean", "error"))
    marks = [int(np.searchsorted(t, t[-1] // 10**k)) for k in range(4, -1, -1)]
    rows = []
    for i, j in pairwise(marks):
        length = np.log(t[j] / t[i])
        rows.append((int(t[i]), float((mean[j] - mean[i]) / length), float((error[i] + error[j]) / length)))
    return rows


def chart(data: dict[str, Any]) -> Chart:
    """Draw regret against log t, with the 5 % and 95 % quantiles: a straight line is growth with log t."""
    lines = []
    line_styles = styles({"kind": "LCTsallisINF", "tuning": label.split(",")[0]} for label in data["tunings"])
    for number, (tuning, entry) in enumerate(data["tunings"].items()):
        x, y, low, high = (np.array(entry[name]) for name in ("checkpoints", "mean", "low", "high"))
        lines.append(Line(label=tuning, number=number, style=line_styles[number], x=x, y=y, low=low, high=high))
    return Chart(
        name="ten-million",
        title=f"Regret of {data['replications']:,} replications",
        description="Mean regret with its 5 % and 95 % quantiles; a straight line is growth with log t.",
        x_label="round t",
        y_label="regret",
        lines=lines,
        marks=[Mark(start=data["t0"], end=data["t0"], text="t0 of paper")],
    )


def page(options: argparse.Namespace) -> None:
    """Write the section between its markers in the page, and its figure."""
    data = json.loads(options.data.read_text(encoding="utf-8"))
    figures = options.page.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    write_bytes(figures / "ten-million.svg", standalone(chart(data)).encode())
    before, rest = options.page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    write_bytes(options.page, f"{before}{BEGIN}\n\n{text(data)}\n{END}{after}".encode())


def price_of_exploration() -> float:
    """Return the cost of exploration per unit of log t of `paper`: t gamma_t (constant from t0 on) times the gap."""
    environment = world()
    machine = bw.LCTsallisINF(tuning="paper").machine(environment.problem)
    rates = machine.options.rates
    table, e, g = environment.tables[0], machine.known.e, machine.known.g
    return float(rates.power_scale * rates.gain**2 * (g * (e * table).sum(axis=1) - g * table.min(axis=1)).sum())


def text(data: dict[str, Any]) -> str:
    """Return the section."""
    growth, ends = [], []
    for tuning, entry in data["tunings"].items():
        for start, slope, error in slopes(entry):
            growth.append((f"`{tuning}`", f"{start:,} to {10 * start:,}", f"{slope:,.2f}", f"{error:.2f}"))
        rounds, mean, error = (entry[name][-1] for name in ("checkpoints", "mean", "error"))
        spread = f"{entry['low'][-1]:,.0f} to {entry['high'][-1]:,.0f}"
        speed = data["replications"] * rounds / entry["seconds"] / 1e6
        ends.append((f"`{tuning}`", f"{rounds:,}", f"{mean:,.2f} ± {error:.2f}", spread, f"{speed:,.0f}"))
    return f"""## Ten million rounds, {data["replications"]:,} times

Theorem 4.4 promises regret that grows with log T in the stochastic regime. With the constants of the paper half of the
first t0 = {data["t0"]:,.0f} rounds are exploration, so the promise can only be seen far beyond t0, and small slopes
only in many replications. A GPU gets there: T = {data["horizon"]:,}, {data["replications"]:,} replications.

![Regret against log t](figures/ten-million.svg)

Logarithmic growth means that the regret added per unit of log t stays the same from one factor of ten to the next:

{table(("tuning", "rounds (about)", "regret per unit of log t", "error at most"), growth)}
From 10 t0 on `paper` pays its exploration and next to nothing else: t gamma_t times the mean gap of e* is
{price_of_exploration():,.1f} per unit of log t.

{table(("tuning", "rounds", "regret at the end", "5 % to 95 % of the replications", "million rounds/s"), ends)}
Compilation and copies are included in the last column. S = 10, K = 5, d = 5, smallest gap 0.2, losses +-1, seed 0, one
NVIDIA H200:

```console
$ python studies/ten_million.py run
$ python studies/ten_million.py page
```

The first needs `pip install '.[gpu]'`, keeps unfinished runs in `studies/unfinished/` and resumes after an
interruption; the second makes this section from `studies/ten-million.json`.
"""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("--horizon", type=int, default=10**7)
    parser.add_argument("--replications", type=int, default=65_536)
    parser.add_argument("--device", choices=("cpu", "gpu", "auto"), default="gpu")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--resume-file", type=Path, default=HERE / "unfinished" / "ten-million.npz")
    options = parser.parse_args()
    (run if options.what == "run" else page)(options)


if __name__ == "__main__":
    main()
