"""Health: numbers by hand, sentences that fit, intervals that hold while everything changes."""

from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.policy.health_report import MOST_SHOWN
from bothworlds.theory.confidence import average_rate_interval
from context_distribution_bias import distribution_error_bound

PROBLEM = bw.Problem.from_sample(
    ["mobile", "desktop", "mobile", "mobile"], arms=["red", "blue", "green"], reward_range=(0, 2)
)
GOOD: dict[str, Any] = {
    "decided": [[300, 300, 150], [100, 100, 50]],
    "answered": [[300, 290, 150], [100, 90, 50]],
    "rewards": [[60.0, 30.0, 3.0], [10.0, 20.0, 1.0]],
    "probabilities": [[0.5, 0.3, 0.2], [0.2, 0.7, 0.1]],
}


def test_numbers_by_hand() -> None:
    found = bw.health_of(PROBLEM, **GOOD)
    assert [(rate.name, rate.decisions, rate.answers) for rate in found.arms] == [
        ("red", 400, 400), ("blue", 400, 380), ("green", 200, 200),
    ]  # fmt: skip
    assert [rate.mean for rate in found.arms] == pytest.approx([70 / 400, 50 / 380, 4 / 200])
    assert [rate.mean for rate in found.contexts] == pytest.approx([93 / 740, 31 / 240])
    low, high = average_rate_interval(400, 35.0, alpha=0.05 / 6)
    assert (found.arms[0].low, found.arms[0].high) == pytest.approx((2 * float(low), 2 * float(high)))
    assert found.explored.value == pytest.approx(0.75 * 0.5 + 0.25 * 0.3)
    assert found.smallest_propensity.value == 0.1
    assert "arm 'green' in context 'desktop'" in found.smallest_propensity.sentence
    assert found.unanswered.value == pytest.approx(0.02)
    assert "20 of 1,000 decisions (2.0%) have no feedback" in found.unanswered.sentence
    assert found.drift.p_value == 1.0
    assert "consistent with the problem" in found.traffic.sentence
    assert found.alarms == ()
    assert "!" not in str(found)


def test_alarms() -> None:
    found = bw.health_of(
        PROBLEM,
        decided=[[300, 300, 150], [1000, 1000, 500]],
        answered=np.zeros((2, 3)),
        rewards=np.zeros((2, 3)),
        probabilities=[[0.999, 0.001, 0.0], [0.2, 0.7, 0.1]],
    )
    assert [reading.name for reading in found.alarms] == ["smallest propensity", "unanswered", "traffic"]
    text = str(found)
    assert "as much as 1,000 others; 1 offered pairs of context and arm are never played" in text
    assert "No click must be sent as reward=0" in text
    assert "'mobile' comes 0.31 times as often" in text
    assert text.count("\n! ") == 3
    assert "nan" in text  # no answers, no mean


def test_before_the_first_decision() -> None:
    nothing = np.zeros((2, 3))
    found = bw.health_of(
        PROBLEM, decided=nothing, answered=nothing, rewards=nothing, probabilities=np.full((2, 3), 1 / 3)
    )
    assert found.alarms == ()
    assert found.unanswered.sentence == "there are no decisions yet"
    assert " nan " not in str(found)
    assert all((rate.low, rate.high) == (0.0, 2.0) for rate in (*found.arms, *found.contexts))


def test_losses_without_a_range() -> None:
    problem = bw.Problem(features=np.eye(2)[None], probabilities=[1.0])
    found = bw.health_of(
        problem, decided=[[50, 50]], answered=[[50, 50]], rewards=[[-50.0, 50.0]], probabilities=[[0.5, 0.5]]
    )
    assert found.arms[0].low == -1.0
    assert found.arms[1].high == 1.0
    assert found.arms[0].high < 0.0 < found.arms[1].low


def test_the_busiest_contexts_are_shown() -> None:
    S = MOST_SHOWN + 5
    problem = bw.Problem(features=np.eye(2)[None].repeat(S, 0), probabilities=np.full(S, 1 / S))
    counts = np.repeat(np.arange(S)[:, None], 2, axis=1)
    found = bw.health_of(
        problem, decided=counts, answered=counts, rewards=0 * counts, probabilities=np.full((S, 2), 0.5)
    )
    assert "... and 5 more" in str(found)
    assert f"\n{S - 1} " in str(found)
    assert "\n0 " not in str(found).split("context")[1]


def test_a_name_cannot_break_the_tables_or_move_the_terminal() -> None:
    problem = bw.Problem.from_sample(["a\nb", "c"], arms=["red\x1b[31m", "blue"], reward_range=(0, 1))
    ones = np.ones((2, 2))
    text = str(bw.health_of(problem, decided=ones, answered=ones, rewards=ones, probabilities=ones / 2))
    assert "\x1b" not in text
    assert "\nred\\x1b[31m  " in text
    assert "\na\\nb     " in text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"decided": [[1, 2, 3]]}, r"decided must be a table of \(2, 3\)"),
        ({"rewards": np.full((2, 3), np.nan)}, "finite numbers"),
        ({"answered": np.full((2, 3), 1000)}, "answered must lie between 0 and decided"),
        ({"rewards": np.full((2, 3), 1000.0)}, "cannot sum to"),
    ],
)
def test_mistakes_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.health_of(PROBLEM, **{**GOOD, **wrong})


def test_an_alarm_elsewhere_is_read_here() -> None:
    alarm = bw.DriftAlarm.against(PROBLEM.probabilities).observe([0, 100])
    found = bw.health_of(PROBLEM, **GOOD, drift=alarm.drift)
    assert [reading.name for reading in found.alarms] == ["traffic"]


@pytest.mark.parametrize("alpha", [0, 1, 1.0, 1.5, 5.0, 95, -0.1, float("nan"), "0.05"])
def test_an_alpha_that_is_no_probability_is_refused(alpha: Any) -> None:
    """Split among many intervals 1.5 would pass, as an interval of -50 %."""
    with pytest.raises(ValueError, match=r"alpha is the probability .* got '?-?\w*(\.\w+)?'?$"):
        bw.health_of(PROBLEM, **GOOD, alpha=alpha)
    with pytest.raises(ValueError, match="alpha is the probability"):
        distribution_error_bound([50, 50], [0.5, 0.5], alpha=alpha)
