"""Columns as features, problems from tables, and what a problem says about itself."""

import contextlib
import csv
import io
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds import Column, OpenProblem

AGES = [19.0, 25.0, 41.0, 62.0]
TABLE = {"age": AGES, "device": ["mobile", "tv", "mobile", "pc"], "member": [True, False, True, True]}
TEXT = "age,device,member\n19,mobile,True\n25,tv,False\n41,mobile,True\n62,pc,True\n"
FRAMES = {
    "pandas": pd.DataFrame(TABLE),
    "polars": pl.DataFrame(TABLE),
    "arrow": pa.table(TABLE),
    "dictionaries": pd.DataFrame(TABLE).to_dict("records"),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_tables_of_all_kinds_give_the_same_problem(frame: object) -> None:
    problem = OpenProblem.from_frame(frame, arms=["red", "blue"])
    assert problem == OpenProblem.from_frame(pd.DataFrame(TABLE), arms=["red", "blue"])
    assert problem.features == ("1", "age", "device = tv", "device = pc", "device, other", "member")
    z = problem.requests(frame, None, None).z
    assert (z == problem.requests(pd.DataFrame(TABLE), None, None).z).all()
    np.testing.assert_allclose(z[:, 0, 1], (np.array(AGES) - 36.75) / np.std(AGES))
    assert z[:, 0, 2:].tolist() == [[0, 0, 0, 1], [1, 0, 0, -1], [0, 0, 0, 1], [0, 1, 0, 1]]


def test_lines_of_a_csv_file_are_rows_too() -> None:
    """All cells are texts; numbers are found, and truth values are categories, which give the same linear models."""
    rows = list(csv.DictReader(io.StringIO(TEXT)))
    problem = OpenProblem.from_frame(rows, arms=["red", "blue"])
    kinds = [column.kind for column in problem.context] if isinstance(problem.context, tuple) else []
    assert kinds == ["number", "category", "category"]
    assert problem.request({"age": 25, "device": "tv", "member": False}, None, None).z[0].tolist() == (
        problem.request(rows[1], None, None).z[0].tolist()
    )


def test_missing_numbers_have_a_feature_if_the_table_has_some() -> None:
    table = pd.DataFrame({"age": [20.0, math.nan, 40.0]})
    problem = OpenProblem.from_frame(table, arms=["red", "blue"])
    assert problem.features == ("1", "age", "age is missing")
    assert problem.request({"age": None}, None, None).z[0].tolist() == [1.0, 0.0, 1.0]
    assert problem.request({"age": 30}, None, None).z[0].tolist() == [1.0, 0.0, 0.0]


def test_rare_categories_and_those_never_seen_share_a_place() -> None:
    table = [{"town": f"town {i % 70}"} for i in range(140)]
    problem = OpenProblem.from_frame(table, arms=["red", "blue"])
    assert problem.notes == ("column 'town' has 70 categories; the 50 most frequent have features of their own",)
    rows = [problem.request({"town": town}, None, None).z[0].tolist() for town in ("town 69", "Atlantis", None)]
    assert rows[0] == rows[1] == rows[2]
    assert problem.shape == (2, 51)


def test_whole_numbers_are_amounts_unless_they_are_named() -> None:
    table = [{"zip": 10115, "age": 30}, {"zip": 20095, "age": 41}, {"zip": 80331, "age": 55}]
    amounts = OpenProblem.from_frame(table, arms=["red", "blue"])
    assert amounts.features == ("1", "zip", "age")
    assert (
        amounts.notes[0]
        == "column 'zip' has whole numbers, taken for an amount; categories=['zip'] makes each a category"
    )
    named = OpenProblem.from_frame(table, arms=["red", "blue"], categories=["zip"], ignore=["age"])
    assert named.features == ("1", "zip = 20095", "zip = 80331", "zip, other")
    encoded = [named.request({"zip": zip_code}, None, None).z[0].tolist() for zip_code in (20095, "20095", 20095.0)]
    assert encoded[0] == encoded[1] == encoded[2] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contexts": []}, "contexts has no rows"),
        ({"contexts": [[1, 2]]}, "contexts must be a DataFrame or a list of dictionaries"),
        ({"contexts": "visits.csv"}, "contexts must be a DataFrame or a list of dictionaries; got 'visits.csv'"),
        ({"contexts": [{"a": None}]}, "column 'a' has no values: leave it out"),
        ({"contexts": [{"a": 1.0}, {"a": math.inf}]}, "column 'a' has a number that is not finite"),
        ({"contexts": [{"a": 1}], "ignore": ["a"]}, "contexts has no column left"),
        ({"contexts": [{"a": 1}], "ignore": ["b"]}, "unknown column in ignore= 'b'"),
        ({"contexts": [{"a": 1}], "categories": [3]}, "categories are names of columns"),
        ({"contexts": [{"a": 1}], "id_column": "sku"}, "id_column names the column with the ids of candidates"),
    ],
)
def test_wrong_tables(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenProblem.from_frame(arms=["red", "blue"], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column.number("age", 90, 18), "needs numbers lowest < highest; got 90 and 18"),
        (lambda: Column.number("", 0, 1), "the name of a column must be a text that is not empty"),
        (lambda: Column.category("device", []), "needs categories, each once"),
        (lambda: Column.category("device", [1, "1"]), "needs categories, each once"),
        (lambda: Column.category("device", "mobile"), "values come as a list; got a single text, 'mobile'"),
        (
            lambda: Column("age", "amount"),  # type: ignore[arg-type]
            "kind must be one of number, category, boolean",
        ),
    ],
)
def test_wrong_columns(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


@given(st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=5), st.booleans()))
def test_every_cell_is_encoded_or_refused(cell: object) -> None:
    """Features are finite and at most 8 in size, whatever the cell."""
    for column in (Column.number("a", 0, 1), Column.category("b", ["x", "1"]), Column.boolean("c")):
        with contextlib.suppress(ValueError):
            row = column.encode([cell])[0]
            assert row.shape == (len(column.features),)
            assert (np.abs(row) <= 8.0).all()


def test_features_of_candidates_are_products() -> None:
    problem = OpenProblem(context=[Column.number("age", 0, 2)], candidates=[Column.number("price", 0, 2)])
    assert problem.features == ("1", "age", "price", "price * age")
    assert problem.request([2.0], [[2.0], [0.0]], None).z.tolist() == [[1, 1, 1, 1], [1, 1, -1, -1]]
    side = OpenProblem(
        context=[Column.number("age", 0, 2)], candidates=[Column.number("price", 0, 2)], interactions=False
    )
    assert side.features == ("1", "age", "price")
    assert side.request([2.0], [[2.0], [0.0]], None).z.tolist() == [[1, 1, 1], [1, 1, -1]]


def test_arms_may_share_a_model_and_have_their_own() -> None:
    options = {"context": 1, "arms": ["a", "b"], "arm_features": [[3.0], [4.0]]}
    shared = OpenProblem(**options)  # type: ignore[arg-type]
    assert shared.request([2.0], None, None).z.tolist() == [[1, 2, 3, 6], [1, 2, 4, 8]]
    both = OpenProblem(**options, own_models=True)  # type: ignore[arg-type]
    assert both.request([2.0], None, None).z.tolist() == [[1, 2, 3, 6, 1, 2, 0, 0], [1, 2, 4, 8, 0, 0, 1, 2]]
    assert len(both.features) == both.dimension == 8


def test_a_problem_survives_its_dictionary() -> None:
    problem = OpenProblem.from_frame(
        FRAMES["pandas"], candidates=[{"sku": 1, "price": 3.5}], id_column="sku", reward_range=(0, 5)
    )
    again = OpenProblem.from_dict(problem.to_dict())
    assert again == problem
    assert hash(again) == hash(problem)
    assert again != OpenProblem(context=2, arms=["a", "b"])
    assert (again.reward_range, again.id_column, again.features) == ((0.0, 5.0), "sku", problem.features)


def test_describe_says_what_it_costs_and_what_is_proved() -> None:
    text = OpenProblem.from_frame(FRAMES["pandas"], arms=["red", "blue"]).describe()
    assert text.startswith(
        "2 arms, each with its own model of 6 features: 12 dimensions\nfeatures: 1, age, device = tv"
    )
    assert "keeps 200 recent contexts" in text
    assert "proved: nothing for contexts that are not listed" in text
    assert "note: column 'age' has whole numbers" in text
    wide = OpenProblem(context=12, candidates=30)
    assert "candidates with each request; one model of 403 features" in wide.describe()
    assert repr(bw.OpenProblem(arms=["a", "b"], arm_features=[[1.0], [2.0]])) == (
        "OpenProblem(2 arms that share a model, 2 features)"
    )
