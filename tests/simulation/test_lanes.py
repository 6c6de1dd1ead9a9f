"""Eight or sixteen replications at once give, bit for bit, what each gives alone."""

from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.engine import make_setting
from bothworlds.simulation.replication import Replications

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


@pytest.mark.parametrize(("algorithm", "count"), CASES, ids=repr)
def test_many_at_once_are_the_same_as_one_by_one(algorithm: Any, count: int) -> None:
    world = en.corrupted(en.random_instance(contexts=5, arms=3, dimension=3, gap=0.2, seed=2), budget=5.0)
    machine = algorithm.machine(world.problem)
    setting = make_setting(world, 300, 4, 20, 2, 3)
    some = Replications(machine, setting, range(3, 3 + count), trace=True)
    some.advance(110)
    some.advance(1000)
    for number, together in zip(range(3, 3 + count), some.outcomes(), strict=True):
        alone = Replications(machine, setting, [number], trace=True)
        alone.advance(300)
        [one] = alone.outcomes()
        for name in ("expected", "realised", "own_best", "sums", "rates", "policy", "trace"):
            np.testing.assert_array_equal(getattr(together, name), getattr(one, name))
        assert together.spent.tobytes() == one.spent.tobytes()
        for name, values in one.final.items():
            np.testing.assert_array_equal(together.final[name], values)
