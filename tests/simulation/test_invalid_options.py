"""Invalid numbers are refused with a message; huge valid numbers work."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.datasets import Rounds
from bothworlds.errors import UserCodeError
from bothworlds.simulation.gymnasium import BanditEnv
from support.problems import random_problem
from support.python_learner import INSTANCE, PAIR, PlainAlgorithm

WORLD = en.stochastic(INSTANCE)
SENSELESS: list[Any] = [0, -5, True, 2.5, float("nan"), float("inf"), "7"]
STUDY: dict[str, Any] = {
    "environments": {"calm": {"kind": "stochastic"}},
    "algorithms": {"all": {"kind": "uniform"}},
}


def rounds_given() -> Rounds:
    problem = bw.Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    contexts = np.arange(40) % 2
    return Rounds(problem=problem, contexts=contexts, rewards=np.eye(2)[contexts])


@pytest.mark.parametrize("count", SENSELESS, ids=repr)
def test_a_senseless_number_of_rounds_is_refused(count: Any) -> None:
    calls: list[Any] = [
        lambda: bw.rehearse(rounds_given(), bw.FixedPolicy(), rounds=count),
        lambda: bw.rehearse(WORLD, bw.FixedPolicy(), rounds=count),
        lambda: bw.simulate(WORLD, bw.FixedPolicy(), horizon=count),
        lambda: bw.simulate(WORLD, bw.FixedPolicy(), horizon=5, replications=count),
        lambda: bw.replay(WORLD, bw.FixedPolicy(), horizon=count),
        lambda: bw.Study.from_dict({**STUDY, "horizon": count}),
        lambda: bw.Study.from_dict({**STUDY, "replications": count}),
        lambda: BanditEnv(WORLD, horizon=count),
        lambda: en.possible_gain(WORLD, horizon=count),
        lambda: en.lower_bound(arms=2, horizon=count),
        lambda: en.alternating(INSTANCE.problem, PAIR, every=count),
        lambda: bw.check_environment(WORLD, rounds=count),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="must be a whole number of at least 1"):
            call()


@pytest.mark.parametrize("seed", [-1, True, 2.5, float("nan"), "7"], ids=repr)
def test_a_senseless_seed_is_refused(seed: Any) -> None:
    calls: list[Any] = [
        lambda: bw.simulate(WORLD, bw.FixedPolicy(), horizon=5, rng=seed),
        lambda: bw.replay(WORLD, bw.FixedPolicy(), horizon=5, rng=seed),
        lambda: bw.rehearse(rounds_given(), bw.FixedPolicy(), rng=seed),
        lambda: bw.Study.from_dict({**STUDY, "seed": seed}),
        lambda: en.random_walk(INSTANCE.problem, seed=seed),
        lambda: en.random_instance(contexts=2, arms=2, dimension=2, gap=0.2, seed=seed),
        lambda: en.clicks(seed=seed),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"must be (a whole number of at least 0|an integer in \[0, 2\*\*63\))"):
            call()


@pytest.mark.parametrize("contexts", [[0.7, 1.2], [True, False], [[0], [1]]], ids=repr)
def test_contexts_of_given_rounds_are_whole_numbers(contexts: Any) -> None:
    with pytest.raises(ValueError, match="contexts must be a list of whole numbers"):
        Rounds(problem=rounds_given().problem, contexts=contexts, rewards=np.eye(2))


def test_more_rounds_than_a_data_set_has_and_feedback_that_never_comes_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rounds": 41}, "the data set has 40 rounds, not 41"),
        ({"delay": 40}, "no feedback arrives within the horizon"),
        ({"rounds": 5, "batch": 6}, "no feedback arrives within the horizon"),
    ]
    for options, words in wrong:
        with pytest.raises(ValueError, match=words):
            bw.rehearse(rounds_given(), bw.FixedPolicy(), **options)
    assert len(bw.rehearse(rounds_given(), bw.FixedPolicy(), rounds=40, delay=3, batch=2)) == 40


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2**63}, "seed must be at most"),
        ({"horizon": 10**19}, r"horizon must be at most 2\*\*53"),
        ({"checkpoints": 10**7}, "checkpoints must be at most"),
    ],
)
def test_a_study_that_no_cell_could_play_is_refused_when_it_is_read(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.Study.from_dict({**STUDY, **change})


def test_a_horizon_that_nobody_can_count_is_refused() -> None:
    with pytest.raises(ValueError, match=r"horizon must be at most 2\*\*53"):
        bw.simulate(WORLD, bw.FixedPolicy(), horizon=10**30)


@pytest.mark.parametrize("seed", [2**53 + 1, 2**63, 2**64 + 7, 10**400], ids=["2^53", "2^63", "2^64", "10^400"])
def test_a_walk_of_any_seed_is_the_same_compiled_and_interpreted(seed: int) -> None:
    world, near = (en.random_walk(INSTANCE.problem, step=0.3, seed=one) for one in (seed, seed - 1))
    paths = [bw.replay(world, bw.FixedPolicy(), horizon=40, interpreted=flag).sums for flag in (True, False)]
    assert paths[0].tobytes() == paths[1].tobytes()
    assert world.constants[1] != near.constants[1]  # the keys of the walks


@pytest.mark.parametrize("rounds", [2**53, 2**63, 2**70, 10**400], ids=["2^53", "2^63", "2^70", "10^400"])
def test_more_rounds_than_a_run_has_are_for_ever(rounds: int) -> None:
    problem = en.random_instance(contexts=2, arms=2, dimension=2, gap=0.2).problem
    wide = bw.Problem(
        features=np.concatenate([problem.features, np.ones((2, 2, 1))], axis=2), probabilities=problem.probabilities
    )
    still = en.Instance(wide, np.zeros(3))
    worlds = [
        en.alternating(INSTANCE.problem, PAIR, every=rounds),
        en.growing_phases(INSTANCE.problem, PAIR, first=rounds),
        en.flip(INSTANCE.problem, PAIR, at=rounds),
        en.moving_level(still, level=0.2, every=rounds),
    ]
    expected = [[40.0, 0.0], [40.0, 0.0], [40.0, 0.0], [40.0, pytest.approx(8.0)]]
    for world, sums in zip(worlds, expected, strict=True):
        for interpreted in (True, False):
            path = bw.replay(world, bw.FixedPolicy(), horizon=40, interpreted=interpreted)
            assert path.sums[-1].tolist() == sums, world.name
    tired = en.ad_fatigue(click_rates=[[0.3, 0.2]], probabilities=[1.0], memory=rounds)
    assert np.isfinite(bw.replay(tired, bw.FixedPolicy(), horizon=40).expected).all()


class Boaster:
    """Has positive probability for arms that are not offered, and plays the others."""

    def start(self, problem: bw.Problem, *, rng: Any) -> Any:
        policy = bw.FixedPolicy().start(problem, rng=rng)

        class Learner:
            act, update = policy.act, policy.update

            def probabilities(self) -> Any:
                return np.full(problem.available.shape, 1.0 / problem.n_arms)

        return Learner()


def test_probabilities_of_arms_that_are_not_offered_are_refused() -> None:
    problem = random_problem(3, available=[[True, False, True]] * 4)
    world = en.from_function(problem, lambda t, pi: np.zeros(problem.features.shape[2]))
    for call in (bw.simulate, bw.replay):
        words = "the probability of arm 1 in context 0, where it is not offered, is 0.3333"
        place = r"test_invalid_options.py, line \d+, in probabilities"
        with pytest.raises(UserCodeError, match=f"{place}: round 1: {words}"):
            call(world, Boaster(), horizon=5)
    with pytest.raises(ValueError, match="in context 0, where it is not offered"):
        bw.rehearse(world, Boaster(), rounds=5)
    found = bw.rehearse(world, bw.FixedPolicy(), rounds=5)
    for table in (np.full((4, 3), 1.0 / 3.0), np.eye(3)[[0, 0, 0, 1]], 0.5 * np.eye(3)[[0, 0, 0, 2]]):
        with pytest.raises(ValueError, match="each row of a policy is a distribution over the arms offered"):
            found.value(table)


def test_labels_that_become_the_same_are_refused() -> None:
    with pytest.raises(ValueError, match="distinct labels"):
        bw.simulate(WORLD, {1: bw.FixedPolicy(), "1": PlainAlgorithm()}, horizon=5)


@pytest.mark.parametrize("arm", [-1, 3, 1.5], ids=repr)
def test_an_arm_that_is_none_is_refused_by_gymnasiums_interface(arm: Any) -> None:
    made = BanditEnv(WORLD)
    made.reset(seed=1)
    with pytest.raises(ValueError, match="is not offered"):
        made.step(arm)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (bw.LinUCB, r"^LinUCB is a class: write LinUCB\(\)"),
        ("LinUCB", r"^'LinUCB' is a name: write LinUCB\(\)"),
        ("x", "^'x' is text, not an algorithm"),
        (3, "is not an algorithm: it has neither"),
    ],
)
def test_what_is_no_algorithm_is_refused_in_a_sentence(given: Any, words: str) -> None:
    calls: list[Any] = [
        lambda: bw.simulate(WORLD, [given], horizon=5),
        lambda: bw.simulate(WORLD, given, horizon=5),
        lambda: bw.simulate(WORLD, {"mine": given}, horizon=5),
        lambda: bw.replay(WORLD, given, horizon=5),
        lambda: bw.rehearse(WORLD, given, rounds=5),
        lambda: bw.rehearse(rounds_given(), given),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize("study", ["study.toml", STUDY, None])
def test_what_is_no_study_is_refused_before_anything_is_written(study: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a study, got \w+: Study.from_toml\(path\) makes one"):
        bw.run_study(study, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shard", ["1/3", (1, 2, 3), (1.5, 3), ("1", "3")])
def test_what_is_no_part_of_the_work_is_refused(shard: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shard"):
        bw.run_study(bw.Study.from_dict(STUDY), tmp_path / "out", shard=shard)
    assert not (tmp_path / "out").exists()


def test_gymnasiums_interface_wants_an_environment_and_a_reset() -> None:
    with pytest.raises(ValueError, match="expected an environment, got Instance"):
        BanditEnv(INSTANCE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"call reset\(\) before step"):
        BanditEnv(WORLD).step(np.int64(0))
