"""User code: environments from functions, plain algorithms, `check_algorithm`, Gymnasium."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.simulation.gymnasium import BanditEnv
from support.problems import TUNINGS
from support.python_learner import INSTANCE, PAIR, PlainAlgorithm


def test_a_function_is_the_same_world_as_its_rule() -> None:
    """An alternating adversary written as a function: the same path, the same regret."""

    def theta(t: int, probabilities: Floats) -> Floats:
        assert probabilities.shape == (4, 3)
        return np.asarray(PAIR[(t - 1) % 2])

    own = en.from_function(INSTANCE.problem, theta)
    rule = en.alternating(INSTANCE.problem, PAIR)
    algorithm = bw.LCTsallisINF(tuning="matched")
    one, two = (bw.replay(world, algorithm, horizon=150, rng=2, interpreted=False) for world in (own, rule))
    assert one.trace.tolist() == two.trace.tolist()
    assert one.expected == pytest.approx(two.expected, abs=1e-10)
    both = bw.simulate(own, algorithm, horizon=60, replications=2)
    assert np.isfinite(next(iter(both.runs.values())).regret).all()


def test_functions_that_misbehave_are_refused() -> None:
    algorithm = bw.LCTsallisINF(tuning="paper")
    for theta, words in ((np.ones(2), "finite numbers"), (np.full(3, 50.0), "leave"), ([np.nan] * 3, "finite numbers")):
        world = en.from_function(INSTANCE.problem, lambda t, pi, theta=theta: theta)  # type: ignore[misc]
        with pytest.raises(ValueError, match=words):
            bw.simulate(world, algorithm, horizon=5)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_our_own_algorithms_conform(tuning: str) -> None:
    assert bw.check_algorithm(bw.LCTsallisINF(tuning=tuning)) == []  # type: ignore[arg-type]


class Wrapped:
    """A policy with a fault."""

    def __init__(self, policy: bw.Policy, fault: str) -> None:
        self.policy, self.fault = policy, fault

    def probabilities(self) -> Any:
        table = self.policy.probabilities()
        if self.fault == "shape":
            return table[0]
        return table * 1.1 if self.fault == "sum" else table

    def act(self, context: Any) -> Any:
        made = self.policy.act(context)
        if self.fault == "draws":
            made = min((self.policy.act(context) for _ in range(2)), key=lambda d: d.arm)
        if self.fault == "propensity":
            return type("D", (), {"arm": made.arm, "propensity": 0.123, "made": made})
        return made

    def update(self, decision: Any, *, loss: Any) -> None:
        if self.fault == "batch" and isinstance(decision, list):
            raise TypeError("no batches")
        self.policy.update(getattr(decision, "made", decision), loss=loss)


class Faulty:
    """Starts policies with a fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def start(self, problem: bw.Problem, *, rng: int) -> Wrapped:
        seed = int(np.random.default_rng().integers(2**40)) if self.fault == "seed" else rng
        return Wrapped(bw.LCTsallisINF(tuning="paper").start(problem, rng=seed), self.fault)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("shape", "probabilities have shape"),
        ("sum", "not to 1"),
        ("propensity", "the arm was drawn with probability"),
        ("batch", "TypeError: no batches"),
        ("draws", "act chooses arms with frequencies"),
        ("seed", "the same seed gives different decisions"),
    ],
)
def test_the_conformance_check_names_the_fault(fault: str, words: str) -> None:
    assert any(words in finding for finding in bw.check_algorithm(Faulty(fault)))


def test_the_conformance_check_wants_a_start() -> None:
    assert bw.check_algorithm(object()) == ["it has no method start(problem, rng=...)"]
    assert bw.check_algorithm(PlainAlgorithm()) == []


def test_gymnasium_accepts_the_adapter() -> None:
    check_env(BanditEnv(en.stochastic(INSTANCE), horizon=50), skip_render_check=True)


def test_gymnasium_sees_the_contexts_of_the_simulator() -> None:
    world = en.stochastic(INSTANCE)
    trace = bw.replay(world, bw.LCTsallisINF(tuning="paper"), horizon=40, rng=9, interpreted=False).trace
    env: gymnasium.Env[np.int64, np.int64] = BanditEnv(world, horizon=40)
    context, _ = env.reset(seed=9)
    seen = []
    for _, arm in trace:
        seen.append(context)
        context, reward, _, over, info = env.step(np.int64(arm))
        assert reward in (-1.0, 1.0)
        assert -1.0 <= info["mean_loss"] <= 1.0
    assert over
    assert seen == trace[:, 0].tolist()


def test_gymnasium_over_given_parameters_ends_in_time() -> None:
    world = en.given(INSTANCE.problem, np.tile(INSTANCE.theta, (10, 1)))
    env = BanditEnv(world, horizon=10)
    env.reset(seed=1)
    ends = [env.step(np.int64(0))[3] for _ in range(10)]
    assert ends == [False] * 9 + [True]
    for horizon in (None, 11):
        with pytest.raises(ValueError, match="for 10 rounds"):
            BanditEnv(world, horizon=horizon)
    with pytest.raises(ValueError, match="at least 1"):
        BanditEnv(en.stochastic(INSTANCE), horizon=0)
