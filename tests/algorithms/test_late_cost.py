"""What late answers cost: it is counted, and where it is more than chance explains plans do not move by themselves."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis.regression_drift import late_cost
from support.problems import random_problem, records

PROBLEM = random_problem(5, S=4, K=3, d=3)


@pytest.mark.parametrize("batch", [1, 6])
def test_it_is_what_older_plans_lost_beyond_the_estimates_of_later_ones(batch: int) -> None:
    policy, rng, late = bw.LCTsallisINF().start(PROBLEM, rng=3), np.random.default_rng(1), 0.0
    z, g = policy._machine.known.z, PROBLEM.probabilities
    for _ in range(20):
        for decision in [policy.act(int(rng.choice(4, p=g))) for _ in range(batch)]:
            q, m = policy.state.q.copy(), policy.state.baseline.copy()
            residual = 0.3 - decision.baseline @ z[decision.context, decision.arm]
            estimate = decision.baseline + residual * decision.direction
            policy.update(decision, loss=0.3)
            if (decision.baseline != m).any():
                late += 0.3 - float(g @ (q * (z @ estimate)).sum(axis=1))
        assert float(policy.state.late[0]) == pytest.approx(late, abs=1e-9)
    assert (late != 0.0) == (batch > 1)


def test_chance_explains_two_standard_errors() -> None:
    machine = bw.LCTsallisINF().machine(PROBLEM)
    state, _, _ = records(machine)
    state.t[0] = 400.0
    for late, cost in ((100.0, 60.0), (40.0, 0.0), (-500.0, 0.0)):
        state.late[0] = late
        assert late_cost(state) == cost


@pytest.mark.parametrize(("batch", "delay"), [(200, 0), (1, 200)])
def test_an_adversary_that_sees_the_plan_gains_little_from_late_answers(batch: int, delay: int) -> None:
    """Without this count plans follow the newest answers, and the adversary answers that: 0.4 a round, for good."""
    instance = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.2, seed=1)
    both = np.concatenate([en.opposite(instance.theta), en.opposite(np.roll(instance.theta, 1))])
    world = en.adaptive_adversary(instance.problem, 0.8 * both)
    players = {"default": bw.LCTsallisINF()}
    found = bw.simulate(
        world, players, horizon=8_000, replications=8, rng=1, checkpoints=[8_000], batch=batch, delay=delay
    )
    assert found["default"].regret[-1] < 1_300.0, found["default"].regret
