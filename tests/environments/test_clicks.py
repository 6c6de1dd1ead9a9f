"""Rare clicks: rates in range and linear, contexts as rare as asked for, changes, and the gain over uniform play."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.environments.environment import KERNEL


def rates_of(world: en.Environment, j: int = 0) -> np.ndarray:
    return np.asarray((1.0 - world.tables[j]) / 2.0)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.integers(2, 5), st.integers(0, 50), st.floats(1.0, 40.0))
def test_rates_fill_their_range_and_the_rarest_context_is_as_asked(
    attributes: list[int], arms: int, seed: int, factor: float
) -> None:
    S = int(np.prod(attributes))
    world = en.clicks(attributes=attributes, arms=arms, rates=(0.003, 0.05), rarity=factor * S, seed=seed)
    problem = world.problem
    assert (problem.n_contexts, problem.n_arms) == (S, arms)
    assert problem.dimension == arms * (1 + sum(n - 1 for n in attributes)) == problem.features.shape[2]
    assert rates_of(world).min() == pytest.approx(0.003, abs=1e-12)
    assert rates_of(world).max() == pytest.approx(0.05, abs=1e-12)
    assert 1.0 / problem.probabilities.min() == pytest.approx(factor * S, rel=1e-9)
    assert problem.probabilities.argmax() == 0
    assert set(np.unique(problem.features)) == {0.0, 1.0}


def test_the_sizes_that_are_promised() -> None:
    world = en.clicks()
    assert world.problem.features.shape == (24, 4, 28)
    assert world.problem.rarity >= 500.0
    assert world.stochastic
    assert world.gap > 0.0
    assert world.problem.loss_of(1) == -1.0
    assert not np.array_equal(world.thetas, en.clicks(seed=1).thetas)
    assert en.clicks(seed=1).problem == world.problem


def test_an_arm_passes_its_rates_on_to_the_next_at_every_change() -> None:
    world = en.clicks(changes=[3, 5])
    nature = world.begin()
    seen = []
    for t in range(1, 8):
        KERNEL.decide(nature, t, 0)
        seen.append(int(np.argmax(nature.c)))
    assert seen == [0, 0, 0, 1, 1, 2, 2]
    assert np.array_equal(world.tables[0], en.clicks().tables[0])
    for j in (1, 2):
        assert rates_of(world, j) == pytest.approx(np.roll(rates_of(world), j, axis=1), abs=1e-12)
    assert not world.stochastic
    assert "changing" in world.name
    assert bw.check_environment(world) == []


def test_many_at_once_give_the_same_as_one_by_one() -> None:
    world = en.clicks(attributes=[2, 3], arms=3, rates=(0.05, 0.5), rarity=30, changes=[20, 45])
    run = bw.simulate(world, {"own": bw.LCTsallisINF(tuning="certified")}, horizon=70, replications=5, rng=9)["own"]
    for number in range(5):
        path = bw.replay(world, bw.LCTsallisINF(tuning="certified"), horizon=70, replication=number, rng=9)
        assert path.expected[-1] == run.expected[number, -1]
        assert path.sums[-1].tolist() == [20.0, 25.0, 25.0]


def test_clicks_come_at_their_rates() -> None:
    """Realised losses against expected ones, common to all replications: within 4 standard errors (measured 0.9)."""
    world = en.clicks(rates=(0.01, 0.2))
    run = bw.simulate(world, {"even": bw.FixedPolicy()}, horizon=2_000, replications=16, rng=3)["even"]
    off = (run.realised - run.expected)[:, -1]
    assert abs(off.mean()) <= 4.0 * off.std(ddof=1) / 4.0


@pytest.mark.parametrize("changes", [[], [100, 250]])
def test_the_possible_gain_is_the_regret_of_uniform_play(changes: list[int]) -> None:
    world = en.clicks(attributes=[2, 3], rarity=20, changes=changes, seed=2)
    run = bw.simulate(world, {"even": bw.FixedPolicy()}, horizon=400, replications=2)["even"]
    gain = en.possible_gain(world, horizon=400)
    assert run.regret[-1] == pytest.approx(gain, rel=1e-9)
    assert en.captured_gain(world, run.paths[:, -1], horizon=400) == pytest.approx(np.zeros(2), abs=1e-9)
    assert en.captured_gain(world, gain / 4, horizon=400) == pytest.approx(0.75)


def test_a_nature_that_answers_has_no_gain_known_beforehand() -> None:
    problem = en.clicks().problem
    for world in (
        en.ad_fatigue(click_rates=[[0.3, 0.4]], probabilities=[1.0]),
        en.from_function(problem, lambda t, pi: np.zeros(28)),
    ):
        with pytest.raises(ValueError, match="are not known in advance"):
            en.possible_gain(world, horizon=10)
    flat = en.stochastic(en.Instance(problem, np.zeros(28)))
    with pytest.raises(ValueError, match="no policy is better"):
        en.captured_gain(flat, 1.0, horizon=10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rates": (0.05, 0.003)}, "lowest and the highest"),
        ({"rates": (0.1,)}, "lowest and the highest"),
        ({"rates": (0.1, 1.2)}, "lowest and the highest"),
        ({"rarity": 10}, "at least the number of contexts"),
        ({"rarity": float("nan")}, "at least the number of contexts"),
        ({"attributes": (3, 1)}, "a number of levels"),
        ({"attributes": ()}, "at least one"),
        ({"changes": (5, 5)}, "increasing order"),
        ({"changes": (0,)}, "a round of changes"),
        ({"arms": 1}, "arms must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_mistakes_are_answered_with_sentences(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        en.clicks(**options)  # type: ignore[arg-type]
