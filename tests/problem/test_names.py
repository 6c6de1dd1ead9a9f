"""Numbers with names are matched to a problem's contexts and arms by name, or refused."""

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bothworlds as bw
from bothworlds.evaluation import Logged
from bothworlds.problem.rows import ContextRows
from bothworlds.theory.confidence import DriftAlarm

VISITS = pd.Series(["tablet"] * 7 + ["mobile"] * 2 + ["desktop"])
PROBLEM = bw.Problem.from_sample(["mobile", "desktop", "tablet"], arms=["red", "blue"], reward_range=(0, 1))


@pytest.mark.parametrize("named", [VISITS.value_counts(normalize=True), {"tablet": 0.7, "mobile": 0.2, "desktop": 0.1}])
def test_context_distributions_are_matched_by_name(named: Any) -> None:
    expected = [0.2, 0.1, 0.7]
    assert PROBLEM.with_probabilities(named).probabilities.tolist() == pytest.approx(expected)
    policy = bw.LinUCB().start(PROBLEM, rng=1)
    policy.change_probabilities(named)
    assert policy.problem.probabilities.tolist() == pytest.approx(expected)
    problem = bw.Problem(features=np.ones((3, 2, 1)), probabilities=named, contexts=PROBLEM.contexts)
    assert problem.probabilities.tolist() == pytest.approx(expected)


def test_numbers_without_names_are_matched_by_position() -> None:
    g = [0.2, 0.1, 0.7]
    for given in (pd.Series(g), pd.Series(g, index=[10, 20, 30]), np.array(g), tuple(g)):
        assert PROBLEM.with_probabilities(given).probabilities.tolist() == pytest.approx(g)


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ({"tablet": 0.7, "mobile": 0.3}, "'desktop' is missing"),
        ({"tablet": 0.7, "mobile": 0.2, "desktop": 0.05, "watch": 0.05}, "'watch' is no context"),
    ],
)
def test_other_names_are_refused(probabilities: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PROBLEM.with_probabilities(probabilities)


def test_tables_of_contexts_and_arms() -> None:
    offered = pd.DataFrame({"z": [True, True], "y": [True, True], "x": [False, True]}, index=["b", "a"])
    problem = bw.Problem(
        features=np.ones((2, 3, 1)), probabilities=[0.5, 0.5], contexts=["a", "b"], arms=["x", "y", "z"],
        available=offered,
    )  # fmt: skip
    assert problem.available.tolist() == [[True, True, True], [False, True, True]]
    rewards = pd.DataFrame({"blue": [0.1] * 3, "red": [0.9] * 3}, index=["tablet", "mobile", "desktop"])
    losses = PROBLEM.features @ bw.Prior.from_rewards(PROBLEM, rewards, rounds=500).theta
    assert losses == pytest.approx(np.array([[-0.8, 0.8]] * 3))


def test_expected_rewards_of_arms_as_a_table_is_grouped() -> None:
    clicks = pd.DataFrame({"banner": [2, 1, 2, 2, 2], "click": [1, 0, 0, 0, 0]})
    problem = bw.Problem.from_sample(["day", "night"], arms=[1, 2], reward_range=(0, 1))
    means = clicks.groupby("banner").click.mean()
    for rewards in (means, means.to_dict(), {"1": 0.0, "2": 0.25}):
        prior = bw.Prior.from_rewards(problem, rewards, rounds=4)
        assert (problem.features @ prior.theta).round(9).tolist() == [[1.0, 0.5]] * 2


def test_probabilities_of_a_log() -> None:
    rows = pd.DataFrame({"blue": [0.9, 0.8], "red": [0.1, 0.2]}, index=["first visit", "second visit"])
    logged = Logged.from_columns(
        PROBLEM, context=["mobile", "tablet"], arm=["blue", "red"], reward=[1, 0], probabilities=rows
    )
    assert logged.propensity.tolist() == [0.9, 0.2]


@pytest.mark.parametrize(
    "take",
    [
        bw.TrafficMix.known,
        bw.TrafficMix.estimated(PROBLEM.probabilities).observe,
        DriftAlarm.against(PROBLEM.probabilities).observe,
    ],
)
def test_counts_matched_by_position_refuse_names(take: Callable[[Any], object]) -> None:
    with pytest.raises(ValueError, match=r"have names: give \w+\.reindex\(problem\.contexts, fill_value=0\)"):
        take(VISITS.value_counts(normalize=True))
    take(VISITS.value_counts(normalize=True).reindex(PROBLEM.contexts, fill_value=0).to_numpy())


def test_a_prior_is_refused_for_other_features() -> None:
    january = bw.Problem.from_sample(["mobile", "desktop", "mobile"], arms=["red", "blue"], reward_range=(0, 1))
    february = bw.Problem.from_sample(["desktop", "mobile", "mobile"], arms=["red", "blue"], reward_range=(0, 1))
    rewards = pd.DataFrame({"red": [0.9, 0.1], "blue": [0.1, 0.9]}, index=["mobile", "desktop"])
    prior = bw.Prior.from_rewards(january, rewards, rounds=100)
    from_policy = bw.LinUCB().start(january, rng=1, prior=prior).prior()
    for belief in (prior, from_policy):
        with pytest.raises(ValueError, match="'mobile' has other features there"):
            bw.LCTsallisINF().start(february, prior=belief)
        bw.LCTsallisINF().start(january.with_probabilities([0.5, 0.5]), rng=1, interpreted=True, prior=belief)
    by_hand = bw.Prior(theta=prior.theta, information=prior.information, rounds=1)
    bw.LCTsallisINF().start(february, rng=1, interpreted=True, prior=by_hand)


def test_numbers_given_as_strings_match_the_same_numbers() -> None:
    file = io.StringIO("device,age\nmobile,25\nmobile,25\ndesktop,40\nwatch,9\n")
    problem = bw.Problem.from_sample(list(csv.DictReader(file)), arms=2, other="the rest", rare=0.3)
    for age in (25, 25.0, "25", np.int64(25)):
        assert problem.contexts[problem.context_index({"device": "mobile", "age": age})] == "mobile, 25"
    assert problem.contexts[problem.context_index({"device": "mobile", "age": 26})] == "the rest"
    alike = ContextRows(None, (("a", 1.0), ("a", "1"), ("b", 2)))
    assert [alike.index_of(("a", 1)), alike.index_of(("a", "1")), alike.index_of(("a", "1.0"))] == [0, 1, None]
    assert alike.index_of(("b", "2")) == 2


def test_new_arms_need_features() -> None:
    with pytest.raises(ValueError, match="new arms come with features"):
        PROBLEM.with_arms(["green"])  # type: ignore[arg-type]
