"""Eight or sixteen replications at once have, bit for bit, the outcomes of each alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.contract import Machine
from bothworlds.simulation.replication import Outcome, Replications
from bothworlds.simulation.setting import Setting, make_setting
from support.matched_plans import EARLY, LATER, SAFE

ALGORITHMS = [
    *(bw.LCTsallisINF(tuning=name) for name in ("paper", "certified", "matched")),
    bw.LCTsallisINF(tuning="certified", alpha=0.3),
    bw.RealFTRL(),
    bw.RealLinExp3(horizon=300, features="arm-dependent"),
    bw.OFUL(),
]
RESAMPLED = bw.LCTsallisINF(tuning="paper", covariance=bw.MGR(samples=3))
CASES = [(algorithm, 5) for algorithm in [*ALGORITHMS, RESAMPLED]]
CASES += [(algorithm, 12) for algorithm in ALGORITHMS[1::2]]


def check_each_alone(machine: Machine, setting: Setting, together: Sequence[Outcome], horizon: int) -> None:
    """Play replications 3, 4, ... one by one, and compare their outcomes."""
    for number, found in enumerate(together, start=3):
        alone = Replications(machine, setting, [number], trace=True)
        alone.advance(horizon)
        [one] = alone.outcomes()
        for name in ("expected", "realised", "own_best", "round_best", "sums", "rates", "policy", "trace"):
            np.testing.assert_array_equal(getattr(found, name), getattr(one, name))
        assert found.spent.tobytes() == one.spent.tobytes()
        for name, values in one.final.items():
            np.testing.assert_array_equal(found.final[name], values)


@pytest.mark.parametrize(("algorithm", "count"), CASES, ids=repr)
def test_many_at_once_are_the_same_as_one_by_one(algorithm: Any, count: int) -> None:
    world = en.corrupted(en.random_instance(contexts=5, arms=3, dimension=3, gap=0.2, seed=2), budget=5.0)
    machine = algorithm.machine(world.problem)
    setting = make_setting(world, horizon=300, rng=4, checkpoints=20, delay=2, batch=3)
    some = Replications(machine, setting, range(3, 3 + count), trace=True)
    some.advance(110)
    some.advance(1000)
    check_each_alone(machine, setting, some.outcomes(), 300)


def test_lanes_that_are_early_and_that_are_late() -> None:
    """The matched tuning where beta passes b in some lanes before others, and plans drift differently in each."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=2)
    world = en.alternating(instance.problem, en.opposite(instance.theta), every=50)
    machine = bw.LCTsallisINF().machine(world.problem)
    setting = make_setting(world, horizon=900, rng=4, checkpoints=20, delay=2, batch=3)
    some = Replications(machine, setting, range(3, 11), trace=True)
    some.advance(900)
    outcomes = some.outcomes()
    rates = np.array([one.rates for one in outcomes])
    late = rates[:, :, 0] <= 1.0 / machine.options.covered
    assert (late.any(axis=0) & ~late.all(axis=0)).any()
    assert len({one.final["drift"].tobytes() for one in outcomes}) == 8
    check_each_alone(machine, setting, outcomes, 900)


def test_lanes_that_can_afford_uncovered_plays_and_that_cannot() -> None:
    """The matched tuning with few plays for each dimension: in the same round, some lanes take EARLY/t and others SAFE.

    From b on, some take LATER/t and others the covering rate.
    """
    world = en.stochastic(en.random_instance(contexts=1, arms=20, dimension=20, gap=0.1, seed=1))
    machine = bw.LCTsallisINF().machine(world.problem)
    options, times = machine.options, np.arange(20, 1201, 20)
    setting = make_setting(world, horizon=1200, rng=4, checkpoints=times)
    some = Replications(machine, setting, range(3, 11), trace=True)
    some.advance(1200)
    outcomes = some.outcomes()
    eta, gamma = np.moveaxis(np.array([one.rates for one in outcomes]), -1, 0)
    late, covering = eta <= 1.0 / options.covered, np.minimum(options.curved * eta**2, options.linear * eta)
    least, safe = np.where(late, LATER, EARLY) / times, np.where(late, covering, SAFE)
    affordable = np.isclose(gamma, np.minimum(least, safe), rtol=1e-9)
    assert (affordable | np.isclose(gamma, safe, rtol=1e-9)).all()
    for which in (late, ~late):
        assert ((which & affordable).any(axis=0) & (which & ~affordable).any(axis=0)).sum() > 5
    assert (late.any(axis=0) & ~late.all(axis=0)).any()
    check_each_alone(machine, setting, outcomes, 1200)
