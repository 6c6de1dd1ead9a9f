"""Negative control: optimism grows linearly against an adversary that sees it, the best of both worlds does not.

Thresholds leave room for the draws: in brackets what six seeds gave, least to largest.
"""

import importlib
import math
from pathlib import Path

import pytest

import bothworlds as bw
from bothworlds import environments as en
from support.soak import size

EARLY, LATE = 4000, 32_000


def exponents(algorithms: dict[str, object]) -> dict[str, tuple[float, float]]:
    """Regret at the end, and log R(LATE)/R(EARLY) over log LATE/EARLY: 1 is linear."""
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    world = en.adaptive_adversary(instance.problem, en.opposite(instance.theta))
    found = bw.simulate(world, algorithms, horizon=LATE, replications=size(8, 64), rng=3, checkpoints=[EARLY])
    regrets = {label: found[label].regret for label in algorithms}
    return {label: (late, math.log(late / early) / math.log(LATE / EARLY)) for label, (early, late) in regrets.items()}


@pytest.mark.soak
def test_optimists_grow_linearly_and_the_robust_do_not() -> None:
    optimists = {"LinUCB": bw.LinUCB(width=0.5), "OFUL": bw.OFUL(), "LinTS": bw.LinTS(spread="theory", draws=10)}
    robust = {
        "certified": bw.LCTsallisINF(tuning="certified"),
        "matched": bw.LCTsallisINF(tuning="matched"),
        "copies": bw.PerContextTsallisINF(),
    }
    found = exponents({**optimists, **robust})
    for label in optimists:
        assert found[label][1] > 0.8  # 1.05, 1.14, 1.09 (0.95 to 1.14)
    for label in robust:  # their exponents are noise, 0.07 to 0.86: what is left to see is that regret stays small
        assert found[label][0] < math.sqrt(4 * LATE)  # 99, 101, 150 of 358
    worst = max(found[label][0] for label in robust)
    for label, factor in {"LinUCB": 20.0, "OFUL": 20.0, "LinTS": 4.0}.items():
        assert found[label][0] > factor * worst  # 8339, 7976, 1275 against 150


def test_the_benchmark_prints_every_world_and_algorithm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    module = importlib.import_module("negative_control")
    monkeypatch.setattr("sys.argv", ["x", "--horizon", "80", "--instances", "1", "--replications", "1"])
    module.main()
    printed = capsys.readouterr().out
    for label in module.algorithms(80):
        assert printed.count(f"{label} ") == 4
