"""Negative control: optimism grows linearly against an adversary that sees it, the best of both worlds does not."""

import importlib
import math
from pathlib import Path

import pytest

import bothworlds as bw
from bothworlds import environments as en

EARLY, LATE = 4000, 32_000


def exponents(algorithms: dict[str, object]) -> dict[str, tuple[float, float]]:
    """Regret at the end, and log R(LATE)/R(EARLY) over log LATE/EARLY: 1 is linear."""
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    world = en.adaptive_adversary(instance.problem, en.opposite(instance.theta))
    found = bw.simulate(world, algorithms, horizon=LATE, replications=8, rng=3, checkpoints=[EARLY])
    regrets = {label: found[label].regret for label in algorithms}
    return {label: (late, math.log(late / early) / math.log(LATE / EARLY)) for label, (early, late) in regrets.items()}


def test_optimists_grow_linearly_and_the_robust_do_not() -> None:
    optimists = {"LinUCB": bw.LinUCB(width=0.5), "OFUL": bw.OFUL(), "LinTS": bw.LinTS(spread="theory", draws=10)}
    robust = {
        "certified": bw.LCTsallisINF(),
        "adaptive": bw.LCTsallisINF(tuning="adaptive"),
        "copies": bw.PerContextTsallisINF(),
    }
    found = exponents({**optimists, **robust})
    worst = max(found[label][0] for label in robust)
    for label in optimists:
        assert found[label][1] > 0.9  # 1.05, 1.14, 1.03
        assert found[label][0] > 5 * worst  # 8339, 7976, 3276 against 201
    for label in robust:
        assert found[label][1] < 0.8  # 0.61, 0.49, 0.48


def test_the_benchmark_prints_every_world_and_algorithm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "benchmarks")
    module = importlib.import_module("negative_control")
    monkeypatch.setattr("sys.argv", ["x", "--horizon", "80", "--instances", "1", "--replications", "1"])
    module.main()
    printed = capsys.readouterr().out
    for label in module.algorithms(80):
        assert printed.count(f"{label} ") == 4
