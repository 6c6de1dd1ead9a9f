"""Contexts given as rows, whole numbers as categories, and the catch-all."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.problem.rows import ContextRows

VISITS = pd.DataFrame({"device": ["mobile", "desktop", "mobile", "mobile"], "age": [25, 40, 40, 25]})


def ads(**options: Any) -> bw.Problem:
    return bw.Problem.from_sample(VISITS, arms=["red", "blue"], **options)


@pytest.mark.parametrize(
    "row",
    [
        "desktop, 40",
        1,
        np.int64(1),
        {"device": "desktop", "age": 40},
        {"age": 40.0, "hour": 17, "device": "desktop"},
        ("desktop", 40),
        ["desktop", np.int64(40)],
        VISITS.iloc[1],
        next(VISITS.iloc[[1]].itertuples(index=False)),
    ],
)
def test_a_context_by_name_index_or_row(row: Any) -> None:
    assert ads().context_index(row) == 1


def test_rows_that_are_not_in_the_list() -> None:
    problem = ads()
    with pytest.raises(ValueError, match=r"unknown context \('desktop', 25\); the contexts are 'mobile, 25'"):
        problem.context_index(("desktop", 25))
    with pytest.raises(ValueError, match="the row has no 'age'; the columns of contexts are device, age"):
        problem.context_index({"device": "mobile"})
    with pytest.raises(ValueError, match="a row of contexts has 2 values; got 1"):
        problem.context_index(("mobile",))
    with pytest.raises(ValueError, match="unknown context 7"):
        problem.context_index(7)


def test_a_list_is_several_contexts_and_a_row_as_a_list_is_explained() -> None:
    assert ads().context_indices(np.array(["desktop", "40"])) == ads().context_index(("desktop", 40))
    for row in (["desktop", 40], pd.Series(["desktop", 40])):
        with pytest.raises(ValueError, match=r"a list is several contexts; one row is a tuple: \(.*desktop"):
            ads().context_indices(row)
    with pytest.raises(ValueError, match=r"unknown context 'desktop'.*\(or an index from 0 to 2\)$"):
        ads().context_indices(["desktop", 7])
    without = bw.Problem.from_sample([("mobile", 25.5), ("desktop", 40.5)], arms=2)
    assert without.context_index(("mobile", 25.5)) == 0
    with pytest.raises(ValueError, match="no column names: give a row as a tuple"):
        without.context_index({"device": "mobile"})
    bare = bw.Problem(features=np.eye(2)[None], probabilities=[1.0])
    with pytest.raises(ValueError, match="unknown context"):
        bare.context_index({"device": "mobile"})


@pytest.mark.parametrize("values", [[False, True, True], [2.0, 1.0, 0.5, 0.0]], ids=["truth", "numbers"])
def test_single_values_are_no_indices(values: list[Any]) -> None:
    problem = bw.Problem.from_sample(values, arms=2)
    for value in values:
        for same in (value, np.array([value])[0], (value,)):
            assert problem.contexts[problem.context_index(same)] == str(value)
    assert problem.context_indices(values) == [problem.contexts.index(str(value)) for value in values]
    plain = bw.Problem(features=[[[1, 0], [0, 1]], [[1, 1], [0, 1]]], probabilities=[0.5, 0.5])
    for value in (True, np.True_, 1.0, np.float64(1.0)):
        with pytest.raises(ValueError, match="unknown context"):
            plain.context_index(value)


def test_one_or_several() -> None:
    problem = ads()
    assert problem.context_indices("mobile, 40") == problem.context_indices(("mobile", 40)) == 2
    assert problem.context_indices({"device": "mobile", "age": 40}) == problem.context_indices(VISITS.iloc[2]) == 2
    assert problem.context_indices(["mobile, 40", 0, ("desktop", 40), {"device": "mobile", "age": 25}]) == [2, 0, 1, 0]
    assert problem.context_indices(("mobile, 40", "desktop, 40")) == [2, 1]  # names, so several
    assert problem.context_indices(np.array([2, 0])) == [2, 0]
    assert problem.context_indices(VISITS) == [0, 1, 2, 0]
    assert bw.Problem(features=np.eye(2)[None], probabilities=[1.0]).context_indices((0, 0)) == [0, 0]
    for wrong in (0.5, np.array(1.0)):
        with pytest.raises(ValueError, match="a name, an index, a row, or a sequence"):
            problem.context_indices(wrong)


def test_whole_numbers_are_categories_with_a_note() -> None:
    frame = pd.DataFrame({"product": [3, 17, 17, 99], "price": [1.5, 2.5, 2.5, 0.5], "weekend": [0, 1, 1, 0]})
    plain = bw.Problem.from_sample(frame, arms=2)
    assert plain.arm_independent_features().tolist() == [
        [1, 1, 0, 0, 1.5, 0],
        [1, 0, 1, 0, 2.5, 1],
        [1, 0, 0, 1, 0.5, 0],
    ]
    note = "column 'product' has whole numbers, taken for 3 categories; with numeric=['product'] they are amounts"
    assert plain.notes[0].startswith(note)
    assert note in plain.describe()
    declared = bw.Problem.from_sample(frame, arms=2, numeric=["product"])
    assert declared.arm_independent_features()[:, 1].tolist() == [3, 17, 99]
    assert not any("whole numbers" in text for text in declared.notes)
    by_position = bw.Problem.from_sample(frame.to_numpy(dtype=object), arms=2, numeric=[0])
    assert by_position.arm_independent_features().tolist() == declared.arm_independent_features().tolist()
    mapped = bw.Problem.from_sample(frame, arms=2, features=lambda row, arm: [row["product"], float(arm)])
    assert mapped.notes == ()


@pytest.mark.filterwarnings("ignore:contexts are whole numbers")
@given(st.lists(st.integers(0, 1), min_size=2, max_size=6).filter(lambda flags: len(set(flags)) == 2))
def test_two_whole_numbers_are_as_good_as_two_categories(flags: list[int]) -> None:
    numbers = bw.Problem.from_sample(flags, arms=2)
    words = bw.Problem.from_sample([f"w{flag}" for flag in flags], arms=2)
    assert numbers.dimension == words.dimension == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"numeric": ["device"]}, "column 'device' is declared numeric, but has 'mobile'"),
        ({"numeric": ["size"]}, "names a column 'size'; the sample has device, age"),
        ({"numeric": [2]}, "columns 0 to 1"),
        ({"numeric": [0.5]}, "by its position, must be a whole number"),
        ({"other": "rest"}, "other='rest' must be one of the contexts"),
        ({"rare": 0.3}, "name it with other="),
        ({"rare": 1.5, "other": "rest"}, "a share of the traffic"),
        ({"rare": 0.3, "other": "mobile, 25"}, "given twice"),
    ],
)
def test_mistakes_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ads(**options)


def test_rare_rows_become_the_catch_all() -> None:
    problem = ads(other="rest", rare=0.3)
    assert problem.contexts == ("mobile, 25", "rest")
    assert problem.probabilities.tolist() == [0.5, 0.5]
    assert problem.arm_independent_features().tolist() == [[1, 1, 25], [1, 0.5, 40]]  # desktop alone has no indicator
    for row in ("who knows", ("desktop", 40), ("tablet", 1), {"device": "mobile", "age": 99}):
        assert problem.context_index(row) == 1
    with pytest.raises(ValueError, match="unknown context 2"):
        problem.context_index(2)
    with pytest.raises(ValueError, match="has no 'age'"):
        problem.context_index({"device": "mobile"})
    mapped = ads(other="rest", rare=0.3, features=lambda row, arm: [row["age"], float(arm == "red")])
    assert mapped.features[1].tolist() == [[40.0, 1.0], [40.0, 0.0]]


def test_all_rows_may_be_rare(tmp_path: Path) -> None:
    plain = bw.Problem.from_sample([("m", i) for i in range(10)], arms=2, other="rest", rare=0.5)
    named = ads(other="rest", rare=0.9)
    for saved in (plain, named):
        saved.save(tmp_path / "p.json")
        for problem in (saved, bw.Problem.load(tmp_path / "p.json")):
            assert problem.contexts == ("rest",)
            assert problem.context_index(("m", 3)) == problem.context_index("whatever") == 0
    assert named.context_index({"device": "desktop", "age": 40}) == 0
    with pytest.raises(ValueError, match="has 2 values; got 1"):
        named.context_index(("mobile",))
    with pytest.raises(ValueError, match="has no 'age'"):
        named.context_index({"device": "mobile"})


def test_losses_of_the_rest_are_the_mean_of_its_rows() -> None:
    rng = np.random.default_rng(0)
    rows = [(f"c{i}", float(age)) for i, age in enumerate(rng.integers(18, 70, 12))]
    weights = rng.uniform(0.1, 1.0, 12)
    feature = {row: rng.normal(size=3) for row in rows}
    options: dict[str, Any] = {
        "arms": 2,
        "weights": weights,
        "features": lambda row, arm: feature[row] * (1 + int(arm)),
    }
    whole, merged = (
        bw.Problem.from_sample(rows, **options),
        bw.Problem.from_sample(rows, **options, other="rest", rare=0.08),
    )
    rare = whole.probabilities < 0.08
    theta = rng.normal(size=3)
    expected = whole.probabilities[rare] @ (whole.features @ theta)[rare] / whole.probabilities[rare].sum()
    assert merged.features[-1] @ theta == pytest.approx(expected)
    assert merged.probabilities.sum() == pytest.approx(1.0)


def test_a_named_catch_all_without_rows() -> None:
    problem = bw.Problem(
        features=np.eye(2)[None].repeat(2, 0), probabilities=[0.5, 0.5], contexts=["a", "b"], other="b"
    )
    assert problem.context_index("anything") == 1
    assert problem.with_probabilities([0.25, 0.75]).other == "b"
    with pytest.raises(ValueError, match="unknown context"):
        problem.context_index(("anything",))


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_files_keep_rows_and_the_catch_all(suffix: str, tmp_path: Path) -> None:
    days = [(datetime.date(2026, 1, 1), True), (datetime.date(2026, 1, 2), False)]
    problem = bw.Problem.from_sample(days, arms=2, other="2026-01-02, False")
    problem.save(tmp_path / f"p{suffix}")
    again = bw.Problem.load(tmp_path / f"p{suffix}")
    assert again == problem
    assert again.rows == problem.rows
    assert again.context_index(days[0]) == 0
    assert again.context_index((datetime.date(2027, 1, 1), True)) == 1


@pytest.mark.parametrize(
    ("columns", "rows", "words"),
    [
        (("a",), (("x", "y"),), r"has a value for each of \('a',\); got \('x', 'y'\)"),
        (None, (("x", "y"), ("z",)), r"has 2 values; got \('z',\)"),
        (("a", "a"), (("x", "y"),), "two columns of the contexts are called 'a'"),
    ],
)
def test_rows_with_ambiguous_columns_or_lengths_are_refused(columns: Any, rows: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ContextRows(columns, rows)


def test_a_number_of_half_precision_is_no_index() -> None:
    problem = bw.Problem(features=np.eye(2)[None].repeat(2, 0), probabilities=[0.5, 0.5])
    with pytest.raises(ValueError, match="unknown context"):
        problem.context_index(np.float16(1.0))
    assert bw.Problem.from_sample([0.5, 1.0], arms=2).context_index(np.float16(1.0)) == 1


def test_rows_belong_to_contexts() -> None:
    rows = ContextRows(None, (("a",), ("b",)))
    with pytest.raises(ValueError, match="2 rows for 1 contexts"):
        bw.Problem(features=np.eye(2)[None], probabilities=[1.0], rows=rows)
    with pytest.raises(ValueError, match="the same row"):
        ContextRows(None, ((1,), (1.0,)))


def test_another_context_distribution_keeps_everything_else() -> None:
    problem = bw.Problem.from_sample([18, 25, 40], arms=2, reward_range=(0, 1))
    other = problem.with_probabilities([0.5, 0.25, 0.25])
    assert other.notes == problem.notes
    assert other.rows == problem.rows
    assert np.array_equal(other.span.coordinates, problem.span.coordinates)


def test_a_float_is_a_row_in_policies_and_plans() -> None:
    problem = bw.Problem.from_sample([0.5, 1.5, 2.5], arms=2)
    policy = bw.LCTsallisINF().start(problem, rng=1, interpreted=True)
    assert policy.act(1.5).context == policy.plan().act(1.5).context == policy.act([1.5])[0].context == 1


def test_whole_numbers_that_differ_from_their_indices_give_a_warning() -> None:
    with pytest.warns(
        UserWarning, match=r"act\(3\) is context 3 of the list, not the one called 3. Give names, act\('3'\)"
    ):
        problem = bw.Problem.from_sample([3, 1, 2, 0, 3], arms=2)
    policy = bw.LCTsallisINF().start(problem, rng=1, interpreted=True)
    assert [policy.act(context).context_name for context in ("3", (3,), 3)] == ["3", "3", "0"]
    assert bw.Problem.from_sample([0, 1, 2], arms=2).contexts == ("0", "1", "2")  # no warning: names equal indices


def test_too_many_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"501 different rows and 4 arms.*make 2,\d+ dimensions; at most 2,000"):
        bw.Problem.from_sample([f"visitor {i}" for i in range(501)], arms=4)
