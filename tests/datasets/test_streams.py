"""Streams: orders by hand, rewards that do not depend on players, and inputs that are refused."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.datasets import Stream, StreamOrder, in_order
from bothworlds.datasets.streams import ORDERS


def toy(labels: list[int], arms: int = 3) -> Stream:
    return Stream.labelled("toy", contexts=np.arange(len(labels), dtype=float)[:, None], labels=labels, arms=arms)


def test_labels_shift_from_the_middle_on() -> None:
    rows = in_order(toy([0, 1, 2, 0, 1]), "drift")
    assert rows.labels.tolist() == [0, 1, 0, 1, 2]  # the middle of five rounds is round 2
    assert rows.rewards.argmax(axis=1).tolist() == rows.labels.tolist()


def test_the_first_tenth_is_flipped_and_its_labels_stay() -> None:
    rows = in_order(toy([0, 1] * 10), "corrupted")
    assert rows.rewards[:3].tolist() == [[0, 1, 1], [1, 0, 1], [1, 0, 0]]
    assert rows.labels.tolist() == [0, 1] * 10
    assert in_order(toy([0] * 9), "corrupted").rewards.tolist() == toy([0] * 9).rewards.tolist()  # 9 // 10 rounds


def test_every_third_block_of_a_hundred_is_shifted() -> None:
    labels = in_order(toy([2] * 650), "alternating").labels
    shifted = [*range(200, 300), *range(500, 600)]
    assert np.flatnonzero(labels == 0).tolist() == shifted
    assert np.flatnonzero(labels == 2).tolist() == sorted(set(range(650)) - set(shifted))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=400), st.sampled_from(get_args(StreamOrder)))
def test_orders_change_no_context_and_no_round_without_reason(labels: list[int], order: StreamOrder) -> None:
    rows = toy(labels, arms=4)
    found = in_order(rows, order)
    assert found.contexts.tolist() == rows.contexts.tolist()
    right = found.rewards[np.arange(len(rows)), found.labels]
    flipped = len(rows) // 10 if order == "corrupted" else 0
    assert right.tolist() == [0.0] * flipped + [1.0] * (len(rows) - flipped)
    assert in_order(rows, "shuffled") is rows


def test_shifting_as_often_as_there_are_arms_changes_nothing() -> None:
    rows = shifted = toy([0, 1, 2, 2, 1, 0])
    for _ in range(3):
        shifted = ORDERS["drift"](shifted)
    assert shifted.rewards.tolist() == rows.rewards.tolist()
    assert shifted.labels.tolist() == rows.labels.tolist()


def test_rewards_that_do_not_depend_on_players() -> None:
    rows = Stream.labelled("line", contexts=[[-2.0], [-1.0], [1.0], [2.0]], labels=[0, 0, 1, 1], arms=2)
    assert (rows.uniform_reward(), rows.constant_reward(), rows.linear_reward()) == (0.5, 0.5, 1.0)
    both_sides = Stream.labelled("sides", contexts=[[-1.0], [0.0], [0.0], [1.0]], labels=[0, 1, 1, 0], arms=2)
    assert both_sides.linear_reward(ridge=1e-9) == 0.5  # no line separates them: a constant is as good
    flipped = replace(rows, rewards=1.0 - rows.rewards)
    assert flipped.linear_reward() == 1.0
    assert len(rows.from_round(1)) == 3
    assert rows.from_round(3).labels.tolist() == [1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"contexts": [[0.0]]}, "contexts must have shape"),
        ({"contexts": [0.0, 1.0]}, "contexts must have shape"),
        ({"contexts": [[0.0], [np.nan]]}, "contexts"),
        ({"rewards": [[1.0, 2.0], [0.0, 1.0]]}, r"rewards must lie in \[0, 1\]; they lie in \[0, 2\]"),
        ({"rewards": [[1.0], [0.0]]}, "at least two arms"),
        ({"labels": [0, 2]}, "labels must be numbers of arms, from 0 to 1"),
        ({"labels": [0.5, 1.0]}, "labels must be a list of whole numbers"),
    ],
)
def test_wrong_streams_are_refused(change: dict[str, Any], sentence: str) -> None:
    good: dict[str, Any] = {"name": "two", "contexts": [[0.0], [1.0]], "rewards": np.eye(2), "labels": [0, 1]}
    assert len(Stream(**good)) == 2
    with pytest.raises(ValueError, match=sentence):
        Stream(**good | change)


def test_wrong_labels_and_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 2"):
        toy([0, 3])
    with pytest.raises(ValueError, match="from 0 to 2"):
        toy([-1, 0])
    with pytest.raises(ValueError, match="unknown order 'drft'; did you mean 'drift'"):
        in_order(toy([0, 1]), "drft")  # type: ignore[arg-type]
    assert repr(toy([0, 1])) == "Stream(toy: 2 rounds, 3 arms, 1 features)"
