"""A user's environment in kernel functions: equal to the built-in rule it copies, compiled and interpreted."""

import importlib
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.random import NATURE, two_uniforms
from bothworlds.simulation.gymnasium import BanditEnv
from support.python_learner import INSTANCE, PAIR, PlainAlgorithm

LEARNER = bw.PerContextExp3()  # the one that is compiled soonest
RATES = [[0.3, 0.2], [0.1, 0.4]]


@kernel
def put_in_force(c: Any, index: int) -> None:
    for j in range(c.shape[0]):
        c[j] = 1.0 if j == index else 0.0


def hardest(nature: Any, t: int, key: int) -> None:
    """The adaptive adversary again: reads expected_loss."""
    chosen, highest = 0, -math.inf
    for j in range(nature.c.shape[0]):
        excess = nature.expected_loss[j] - nature.constants[j]
        if excess > highest:
            chosen, highest = j, excess
    put_in_force(nature.c, chosen)


def hit_at_random(nature: Any, t: int, key: int) -> None:
    """Random corruption again: keeps the corruption so far, and draws random numbers."""
    budget, cost, probability = nature.constants[0], nature.constants[1], nature.constants[2]
    u, _ = two_uniforms(key, t, NATURE, 0)
    share = min(1.0, (budget - nature.state[0]) / cost) if u < probability else 0.0
    nature.state[0] += share * cost
    nature.c[0] = 1.0 - share
    nature.c[1] = share


def wear_out(nature: Any, t: int, key: int) -> None:
    """Ad fatigue again: the state is exposure."""
    nature.c[0] = 1.0
    for j in range(1, nature.c.shape[0]):
        nature.c[j] = nature.constants[0] * nature.state[j - 1]


def expose(nature: Any, a: int) -> None:
    for j in range(nature.c.shape[0] - 1):
        nature.state[j] += nature.constants[1] * ((1.0 if j == a else 0.0) - nature.state[j])


def pairs() -> dict[str, tuple[en.Environment, en.Environment]]:
    """Built-in worlds beside their copies."""
    worst = en.adaptive_adversary(INSTANCE.problem, PAIR)
    hit = en.corrupted(INSTANCE, budget=9.5, placement="random", probability=0.2)
    tired = en.ad_fatigue(click_rates=RATES, probabilities=[0.4, 0.6], wear=0.1, memory=20)
    return {
        "adaptive": (
            worst,
            en.kernel_environment(worst.problem, PAIR, decide=hardest, constants=worst.constants.tolist()),
        ),
        "corrupted": (
            hit,
            en.kernel_environment(
                hit.problem,
                hit.thetas,
                decide=hit_at_random,
                state_size=1,
                constants=hit.constants[1:4].tolist(),
                stochastic=True,
                budget=9.5,
            ),
        ),
        "fatigue": (
            tired,
            en.kernel_environment(
                tired.problem,
                tired.thetas,
                decide=wear_out,
                react=expose,
                state_size=2,
                constants=tired.constants.tolist(),
                noise="normal",
            ),
        ),
    }


@pytest.mark.parametrize("world", ["a learner", *pairs()])
def test_a_copy_of_a_rule_gives_the_same_arrays(world: str) -> None:
    """Against uniform play, and the adaptive one against a learner, whose expected loss changes."""
    algorithm = LEARNER if world == "a learner" else bw.FixedPolicy()
    rule, copy = pairs()["adaptive" if world == "a learner" else world]
    if world == "fatigue":
        rule = en.ad_fatigue(click_rates=RATES, probabilities=[0.4, 0.6], wear=0.1, memory=20, noise="normal")
    one, two = (bw.simulate(w, {"a": algorithm}, horizon=2000, replications=3, rng=6)["a"] for w in (rule, copy))
    for name in ("expected", "realised", "own_best", "round_best", "best", "corruption", "spent"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert rule.reacts is copy.reacts


@pytest.mark.parametrize("world", pairs())
def test_own_text_is_the_same_compiled_and_interpreted(world: str) -> None:
    copy = pairs()[world][1]
    algorithm = LEARNER if world == "adaptive" else bw.FixedPolicy()
    one, two = (bw.replay(copy, algorithm, horizon=150, rng=2, interpreted=flag) for flag in (False, True))
    assert one.trace.tolist() == two.trace.tolist()
    for name in ("expected", "realised", "sums"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    slow = bw.replay(copy, PlainAlgorithm(), horizon=20, rng=2)
    assert slow.trace[:, 0].tolist() == one.trace[:20, 0].tolist()


@pytest.mark.parametrize("world", pairs())
def test_own_worlds_conform(world: str) -> None:
    assert bw.check_environment(pairs()[world][1]) == []


def test_the_example_conforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    assert bw.check_environment(importlib.import_module("own_world").world()) == []


def test_own_noise() -> None:
    """Losses of three values with the right mean."""

    def coarse(nature: Any, mean: float, u: float, key: int, t: int) -> float:
        side = 1.0 if mean > 0.0 else -1.0
        return side if u < abs(mean) else 0.0

    def still(nature: Any, t: int, key: int) -> None:
        nature.c[0] = 1.0

    world = en.kernel_environment(INSTANCE.problem, [INSTANCE.theta], decide=still, noisy=coarse, stochastic=True)
    assert bw.check_environment(world) == []
    losses = np.diff(bw.simulate(world, {"a": bw.FixedPolicy()}, horizon=50, checkpoints=range(1, 51))["a"].realised)
    assert set(losses.ravel().tolist()) == {-1.0, 0.0, 1.0}
    assert world.gap == pytest.approx(0.2)


def test_a_rule_that_leaves_the_range_is_stopped() -> None:
    def swell(nature: Any, t: int, key: int) -> None:
        nature.c[0] = 0.01 * t
        nature.c[1] = 0.0

    world = en.kernel_environment(INSTANCE.problem, PAIR, decide=swell, name="swelling")
    for algorithm in (bw.FixedPolicy(), PlainAlgorithm()):
        with pytest.raises(ValueError, match=r"'swelling' made a mean loss of .* stay in \[-1, 1\]"):
            bw.simulate(world, algorithm, horizon=500)


@pytest.mark.parametrize("replications", [1, 8])
def test_a_mean_loss_outside_is_found_though_nobody_plays_its_arm(replications: int) -> None:
    def swell(nature: Any, t: int, key: int) -> None:
        nature.c[0] = 2.0 if t == 30 else 1.0

    problem = bw.Problem(features=[[[1, 0], [0, 1], [1, 1]]], probabilities=[1], available=[[True, True, False]])
    world = en.kernel_environment(problem, [[0.3, -0.9]], decide=swell)
    first = bw.FixedPolicy(np.array([[1.0, 0.0, 0.0]]))
    words = r"made a mean loss of -1\.8 in round .* stay in \[-1, 1\]"
    with pytest.raises(ValueError, match=words):
        bw.simulate(world, first, horizon=60, replications=replications)
    for interpreted in (False, True):
        with pytest.raises(ValueError, match=words):
            bw.replay(world, first, horizon=60, interpreted=interpreted)
    with pytest.raises(ValueError, match=words):
        bw.rehearse(world, first, rounds=60)
    assert bw.simulate(world, first, horizon=29)["FixedPolicy(table)"].expected.shape[0] == 1
    calm = en.kernel_environment(problem, [[0.9, 0.4]], decide=swell_never)  # 1.3 where no arm is offered
    bw.simulate(calm, first, horizon=60, replications=replications)
    assert bw.check_environment(calm) == []


def swell_never(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 1.0


def test_gymnasium_plays_own_text() -> None:
    env = BanditEnv(pairs()["fatigue"][1], horizon=30)
    env.reset(seed=3)
    means = [env.step(np.int64(0))[4]["mean_loss"] for _ in range(30)]
    assert max(means) > min(means) + 0.1  # the first ad tires


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decide": lambda nature: None}, r"function decide\(nature, t, key\)"),
        ({"decide": 3}, "decide"),
        ({"react": lambda nature: None}, r"function react\(nature, a\)"),
        ({"noisy": lambda nature: 0.0}, "function noisy"),
        ({"constants": [math.nan]}, "finite numbers"),
        ({"state_size": -1}, "state_size must be a whole number"),
        ({"state_size": 1.5}, "state_size must be a whole number"),
        ({"budget": 3.0}, "needs stochastic=True"),
        ({"thetas": [[1.0, 2.0]]}, "one entry per feature"),
        ({"thetas": [50 * INSTANCE.theta], "stochastic": True}, "leave"),
    ],
)
def test_impossible_rules_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        en.kernel_environment(INSTANCE.problem, **{"thetas": PAIR, "decide": hardest, **options})


RULE = """
from bothworlds.kernels.jit.compile import kernel
SWITCH = {switch}
@kernel
def late(t):
    return {sign}(t > SWITCH)
@kernel
def decide(t):
    return late(t)
"""


def driver(rule: Any) -> Any:
    def run(t: int) -> float:
        value: float = 10.0 * rule(t)
        return value

    return run


def test_an_edited_rule_is_never_served_old_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edit a constant, then a helper, beside an unchanged entry function: each time the new rule runs."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("bothworlds.kernels.jit.compile.cache_folder", lambda: tmp_path / "cache")
    seen = []
    for number, (switch, sign) in enumerate([("5", ""), ("8", ""), ("5", "-"), ("5", "-")]):
        (tmp_path / "edited_rule.py").write_text(RULE.format(switch=switch, sign=sign))
        os.utime(tmp_path / "edited_rule.py", (number, number))  # Python's own cache looks at the time
        sys.modules.pop("edited_rule", None)
        made: Any = compiled(driver(importlib.import_module("edited_rule").decide))
        seen.append((made(6), sum(made.stats.cache_hits.values())))
    assert seen == [(10.0, 0), (0.0, 0), (-10.0, 0), (-10.0, 1)]  # the last one comes from the disk
