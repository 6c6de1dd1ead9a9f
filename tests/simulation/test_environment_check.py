"""`check_environment` accepts every built-in environment and reports every broken one."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.environments.registry import WORLDS, make_environment
from bothworlds.simulation.checks import environment
from support.python_learner import INSTANCE, PAIR

SIZES = {"contexts": 4, "arms": 3, "dimension": 3, "gap": 0.2, "rarity": 20.0, "margin": None}
BUDGET = en.corrupted(INSTANCE, budget=5.0)


@pytest.mark.parametrize("kind", WORLDS)
def test_the_worlds_of_the_package_conform(kind: str) -> None:
    assert bw.check_environment(make_environment({"kind": kind}, SIZES, {"seed": 3, "horizon": 400})) == []


@pytest.mark.parametrize("noise", ["none", "uniform", "normal"])
def test_every_noise_conforms(noise: Any) -> None:
    assert bw.check_environment(en.stochastic(INSTANCE, noise=noise)) == []


def test_worlds_from_arrays_and_functions_conform() -> None:
    assert bw.check_environment(en.given(INSTANCE.problem, np.tile(INSTANCE.theta, (40, 1)))) == []
    available = np.ones((4, 3), dtype=bool)
    available[0, 1] = available[2, 0] = False
    masked = bw.Problem(
        features=INSTANCE.problem.features, probabilities=INSTANCE.problem.probabilities, available=available
    )
    assert bw.check_environment(en.adaptive_adversary(masked, PAIR)) == []
    assert bw.check_environment(en.from_function(masked, lambda t, pi: INSTANCE.theta * math.cos(t))) == []


def own(decide: Any, **options: Any) -> en.Environment:
    return en.kernel_environment(INSTANCE.problem, PAIR, decide=decide, **options)


def first(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 1.0
    nature.c[1] = 0.0


def swelling(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 1.0 + 0.01 * t
    nature.c[1] = 0.0


def undefined(nature: Any, t: int, key: int) -> None:
    nature.c[0] = math.nan if t == 7 else 1.0
    nature.c[1] = 0.0


def changes_tables(nature: Any, t: int, key: int) -> None:
    first(nature, t, key)
    nature.tables[0, 0, 0] = 0.5


def changes_expected_loss(nature: Any, t: int, key: int) -> None:
    first(nature, t, key)
    nature.expected_loss[0] = 0.0


def beyond(nature: Any, t: int, key: int) -> None:
    first(nature, t, key)
    nature.state[1] = 1.0


def far_beyond(nature: Any, t: int, key: int) -> None:
    first(nature, t, key)
    nature.state[12] = 1.0


def always_corrupt(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 0.0
    nature.c[1] = 1.0


def says_nothing(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 1.0 if t != 3 else 0.0
    nature.c[1] = 1.0 - nature.c[0]


def follows(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 1.0 if nature.state[0] == 0.0 else 0.0
    nature.c[1] = 1.0 - nature.c[0]


def remember(nature: Any, a: int) -> None:
    nature.state[0] = float(a)


def power(nature: Any, t: int, key: int) -> None:
    nature.c[0] = (1.0 + 0.37 * t) ** -2
    nature.c[1] = 0.0


def biased(nature: Any, mean: float, u: float, key: int, t: int) -> float:
    return 1.0 if u < 0.5 * (1.0 + mean) - 0.01 else -1.0


def biased_by_round(nature: Any, mean: float, u: float, key: int, t: int) -> float:
    return mean + (1.0 - abs(mean)) * (0.3 if t % 3 else 0.1)


def outside(nature: Any, mean: float, u: float, key: int, t: int) -> float:
    return mean + (u - 0.5)


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (own(swelling), r"means: round \d+: the mean loss of arm \d in context \d is -?1\.0"),
        (own(undefined), "means: round 7: .* is nan"),
        (own(changes_tables), "rounds: round 1: the rule writes nature.tables"),
        (own(changes_expected_loss), "rounds: round 1: the rule writes nature.expected_loss"),
        (own(beyond, state_size=1), "rounds: round 1: the rule writes beyond its state_size = 1"),
        (own(far_beyond, state_size=1), "rounds: round 1: index 12 is out of bounds"),
        (own(first, noisy=biased), "noise: losses have the mean .* not mean-zero"),
        (own(first, noisy=biased_by_round), "noise: losses have the mean .* not mean-zero"),
        (own(first, noisy=outside), r"noise: a mean loss of -1.0 gave the loss -1\.\d+, not in"),
        (own(always_corrupt, stochastic=True), "claims: round 1: the corruption so far is .*, the budget 0"),
        (replace(BUDGET, budget=1.0), "claims: round .* the budget 1 "),
        (
            own(says_nothing, stochastic=True, budget=50.0, state_size=1),
            r"claims: round 3: state\[0\] is 0, but the corruption is",
        ),
        (replace(BUDGET, stochastic=False), "claims: it has a corruption budget but is not stochastic"),
        (replace(own(follows, react=remember, state_size=1), reacts=False), "repetition: round .* but reacts=False"),
        (own(power), r"kernel: round \d+: nature.c is .* compiled and .* interpreted"),
        (object(), "it is not an Environment"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_worlds_are_caught(world: Any, words: str) -> None:
    found = bw.check_environment(world)
    assert len(found) >= 1
    assert re.search(words, " | ".join(found)), found


def test_functions_that_misbehave_are_caught() -> None:
    rng = np.random.default_rng(0)
    kept: list[Floats] = []
    calls: list[int] = []

    def undecided(t: int, probabilities: Floats) -> Floats:
        return np.asarray(INSTANCE.theta * rng.choice([-1.0, 1.0]))

    def hoards(t: int, probabilities: Floats) -> Floats:
        kept.append(probabilities)
        return INSTANCE.theta

    def counts(t: int, probabilities: Floats) -> Floats:
        if t == 1:
            calls.append(t)
        return np.asarray(INSTANCE.theta * (0.5 if t > 20 and len(calls) % 2 else 1.0))

    def small(t: int, probabilities: Floats) -> Floats:
        return np.ones(2)

    for function, words in (
        (undecided, "the same seed and the same plays give different parameters"),
        (hoards, "memory: memory grows by"),
        (counts, "the same seed"),
        (small, "rounds: round 1: the function must return 3 finite numbers"),
    ):
        found = bw.check_environment(en.from_function(INSTANCE.problem, function))
        assert any(words in sentence for sentence in found), (words, found)


def test_replications_that_depend_on_each_other_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reproducible, but the third replication differs when played alone."""
    begun = {"count": 0}
    plain = en.from_function(INSTANCE.problem, lambda t, pi: INSTANCE.theta * (0.9 if begun["count"] > 2 else 1.0))
    played = bw.simulate

    def simulate(*arguments: Any, **options: Any) -> Any:
        begun["count"] = 0
        result = played(*arguments, **options)
        begun["count"] = 3
        return result

    monkeypatch.setattr(environment, "simulate", simulate)
    found = bw.check_environment(plain)
    assert found == ["threads: expected losses of a replication depend on the other replications"]
