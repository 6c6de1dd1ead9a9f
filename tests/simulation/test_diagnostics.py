"""Diagnostics: the same path as the engine's, the schedule's rates, and the inequality on every path."""

from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels import ftrl_points
from bothworlds.theory.ftrl_path import path_terms

PATHS = 64
INSTANCE = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
WORLD = en.growing_phases(INSTANCE.problem, en.opposite(INSTANCE.theta), first=20)
ALGORITHMS: list[Any] = [
    bw.LCTsallisINF(tuning="paper"),
    bw.LCTsallisINF(tuning="certified"),
    bw.LCTsallisINF(tuning="certified", alpha=0.7),
    bw.RealFTRL(horizon=300),
]


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, bw.LCTsallisINF(tuning="matched")], ids=str)
def test_the_path_is_that_of_the_engine_and_the_inequality_holds(algorithm: Any) -> None:
    found = bw.diagnose(WORLD, algorithm, horizon=300, replication=2, rng=5, checkpoints=12)
    results = bw.simulate(WORLD, {"one": algorithm}, horizon=300, replications=3, rng=5, checkpoints=12)
    assert np.array_equal(found.rounds, results.checkpoints)
    assert found.outcome.expected == pytest.approx(results["one"].expected[2], rel=1e-9)  # sums in another order
    assert (found.slack >= 0.0).all()
    assert (found.estimated_regret <= found.stability + found.penalty + 1e-9).all()
    assert (found.bound >= found.stability).all()
    assert str(found).count("\n") == len(found.rounds)


@pytest.mark.parametrize("tuning", ["paper", "certified"])
def test_rates_and_margin(tuning: Any) -> None:
    algorithm = bw.LCTsallisINF(tuning=tuning)
    found = bw.diagnose(WORLD, algorithm, horizon=300, checkpoints=12)
    schedule = algorithm.schedule_for(INSTANCE.problem, algorithm.design_for(INSTANCE.problem))
    assert found.learning_rate == pytest.approx([schedule.learning_rate(float(t)) for t in found.rounds])
    assert (found.margin >= -1e-9).all()  # Lemma B.1's condition, by enumeration over all plays
    assert (found.largest_step <= found.allowed + 1e-9).all()  # and so for what happened
    assert (found.omega <= 1.0 - 1.0 / 3.0 + 1e-12).all()
    if tuning == "certified":
        # 0.42 measured: the certificate takes |l_hat| <= sqrt(leverage leverage'), the enumeration |l_hat| itself.
        assert found.margin.min() < 0.5 < bw.diagnose(WORLD, ALGORITHMS[0], horizon=300, checkpoints=12).margin.min()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_solving_for_a_plan_takes_few_evaluations(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations are those that an interpreted policy counts in its plans."""
    counted = []

    def solved(*args: Any) -> Any:
        found = ftrl_points.solved_point(*args)
        counted.append(found[2])
        return found[:2]

    monkeypatch.setattr("bothworlds.algorithms.lc_tsallis.paper.tsallis_point", solved)
    found = bw.diagnose(WORLD, algorithm, horizon=40, checkpoints=range(1, 41), interpreted=True)
    if isinstance(algorithm, bw.RealFTRL):
        assert (found.evaluations == 0.0).all()
        return
    assert found.evaluations.tolist() == counted[:40]  # all contexts are one block; one plan more is made at the end
    assert 1.0 < found.evaluations.mean() < 8.0


@pytest.mark.parametrize("tuning", [bw.Certified(), bw.Matched(), bw.Matched(drift_cap=0.0)], ids=str)
def test_the_mean_regret_is_below_the_mean_bound(tuning: Any) -> None:
    """At every checkpoint; the default has 15 and 5 standard errors."""
    world = en.stochastic(INSTANCE)
    slack = []
    for number in range(PATHS):
        algorithm = bw.LCTsallisINF(tuning=tuning)
        found = bw.diagnose(world, algorithm, horizon=150, replication=number, checkpoints=[15, 150])
        best = [float(world.best_losses(sums)) for sums in found.outcome.sums]
        slack.append(found.bound - (found.outcome.expected - best))
    assert (np.mean(slack, axis=0) > 3.0 * np.std(slack, axis=0, ddof=1) / np.sqrt(PATHS)).all()


def test_the_account_of_a_path_only_grows() -> None:
    """Sums of rounds; without drift stability and penalty alone bound the regret of the estimates."""
    found = bw.diagnose(WORLD, bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0)), horizon=300, checkpoints=12)
    for name in ("stability", "penalty", "exploration"):
        assert (np.diff(getattr(found, name)) >= 0.0).all(), name
    assert (found.slack >= -1e-9 * (1.0 + found.bound)).all()
    assert (found.estimated_regret <= found.stability + found.penalty + 1e-9).all()


def test_a_plan_that_is_not_of_ftrl_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(**path: Any) -> Any:
        terms = path_terms(**path)
        return terms._replace(stability=terms.stability - 1.0)

    monkeypatch.setattr("bothworlds.simulation.diagnostics.path_terms", backwards)
    with pytest.raises(bw.NumericalError, match="FTRL inequality fails in round"):
        bw.diagnose(WORLD, bw.LCTsallisINF(tuning="certified"), horizon=300, checkpoints=12)


def test_others_are_refused() -> None:
    other: Any = bw.LinUCB()
    with pytest.raises(ValueError, match="diagnose needs an FTRL algorithm"):
        bw.diagnose(WORLD, other, horizon=10)
