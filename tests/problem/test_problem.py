"""Problems: all constructors, dropped features, refusals, and files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from support.problems import random_problem


class ByColumns:
    """A table of another library whose iterator returns columns, not rows."""

    columns = ("device", "hour")

    def __iter__(self) -> Iterator[list[str]]:
        return iter([["mobile", "desktop", "mobile"], ["1", "2", "2"]])


def test_sizes_names_and_rarity() -> None:
    problem = bw.Problem(
        features=np.random.default_rng(0).normal(size=(2, 3, 2)), probabilities=[0.2, 0.8], contexts=["a", "b"]
    )
    assert (problem.n_contexts, problem.n_arms, problem.dimension) == (2, 3, 2)
    assert problem.arms == ("0", "1", "2")
    assert problem.rarity == pytest.approx(5.0)
    assert problem.context_index("b") == problem.context_index(1) == 1
    assert problem.context_index(np.int64(1)) == 1


def test_names_may_look_like_numbers() -> None:
    problem = bw.Problem(features=np.eye(2)[None].repeat(2, axis=0), probabilities=[0.5, 0.5], contexts=["1", "0"])
    assert problem.context_index("1") == 0
    assert problem.context_index(1) == 1


def test_a_problem_cannot_be_changed() -> None:
    features = np.eye(2)[None].copy()
    problem = bw.Problem(features=features, probabilities=[1.0])
    features[0, 0, 0] = 9.0
    assert problem.features[0, 0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        problem.features[0, 0, 0] = 2.0
    with pytest.raises(AttributeError):
        problem.arms = ("x", "y")  # type: ignore[misc]


GOOD = {"features": np.eye(2)[None], "probabilities": [1.0]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": np.eye(2)}, "contexts, arms, dimension"),
        ({"features": [[[1.0, 2.0], [1.0]]]}, "regular array"),
        ({"features": [[["a"], ["b"]]]}, "array of numbers"),
        ({"features": [[[1.0, np.nan], [0.0, 1.0]]]}, r"features\[0, 0, 1\] is nan"),
        ({"features": np.ones((1, 1, 2))}, "one arm only"),
        ({"features": np.ones((1, 0, 2))}, "there are no arms"),
        ({"features": np.zeros((1, 2, 2))}, "zero: there is nothing"),
        ({"features": np.zeros((0, 2, 2))}, "not be empty"),
        ({"probabilities": [0.5, 0.5]}, r"shape \(1,\)"),
        ({"probabilities": [0.9]}, "sum to 0.9"),
        ({"features": np.ones((2, 2, 1)), "probabilities": [1.0, 0.0]}, "positive probability"),
        ({"features": np.ones((2, 2, 1)), "probabilities": [1.0, 1e-300]}, "too rare to compute with"),
        ({"contexts": ["a", "b"]}, "2 context names for 1"),
        ({"arms": ["a", "a"]}, "'a' is given twice"),
        ({"arms": [1, 0]}, "names must be strings, integers are indices; got 1"),
        ({"features": np.eye(2)[None] * 1j}, "array of numbers"),
        ({"reward_range": 1}, "two numbers"),
        ({"reward_range": (0, 1, 2)}, "two numbers"),
        ({"available": [[1, 1, 1]]}, "available must be a boolean table"),
        ({"available": [[0, 0]]}, "offers no arm"),
        ({"available": [[1, 0]]}, "nothing to decide"),
        ({"reward_range": (1.0, 0.0)}, "lowest < highest"),
        ({"reward_range": (-1e308, 1e308)}, "too large .* larger unit"),
        ({"reward_range": (1.0e308, 1.7e308)}, "too large .* larger unit"),
        ({"reward_range": "01"}, "two numbers"),
        ({"reward_range": ("0", "1")}, "two numbers"),
        ({"reward_range": (False, True)}, "two numbers"),
        ({"reward_range": (0, 10**400)}, "two numbers"),
        ({"reward_range": {1, 0}}, "two numbers"),
        ({"arms": "ab"}, "arm names come as a list, one for each arm; got a single text, 'ab'"),
        ({"contexts": "a"}, "context names come as a list"),
        ({"features": np.ma.masked_equal(np.eye(2)[None], 0.0)}, "features has masked entries"),
        ({"probabilities": np.ma.masked_array([1.0], mask=[True])}, "probabilities has masked entries"),
        ({"rows": [("mobile",)]}, "rows must be ContextRows"),
    ],
)
def test_bad_problems_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.Problem(**{**GOOD, **options})  # type: ignore[arg-type]


def test_dependent_and_zero_features_are_dropped_and_named() -> None:
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(3, 4, 2))
    wide = np.concatenate([phi, phi @ [[1.0], [2.0]], np.zeros((3, 4, 1))], axis=2)
    problem = bw.Problem(features=wide, probabilities=np.full(3, 1 / 3))
    assert problem.dimension == 2
    assert problem.notes == (
        "feature columns [3] are zero for every offered arm and were dropped",
        "the 4 features span 2 dimensions: 1 linearly dependent direction was dropped",
    )
    assert "of rank 2" in repr(problem)


@given(st.integers(0, 10_000), st.lists(st.floats(-12, 12), min_size=3, max_size=3))
def test_badly_scaled_features_keep_their_rank_and_losses(seed: int, exponents: list[float]) -> None:
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(3, 3, 3)) * 10.0 ** np.array(exponents)
    problem = bw.Problem(features=phi, probabilities=np.full(3, 1 / 3))
    z = problem.span.coordinates
    assert problem.dimension == 3
    assert np.einsum("xai,xaj->ij", z, z) / 9 == pytest.approx(np.eye(3), abs=1e-9)
    theta = rng.normal(size=3)
    in_span = np.linalg.lstsq(z.reshape(9, 3), (phi @ (theta / 10.0 ** np.array(exponents))).reshape(9), rcond=None)[0]
    assert z @ in_span == pytest.approx(phi @ (theta / 10.0 ** np.array(exponents)), abs=1e-8)


def test_reward_range_adds_a_constant_only_where_needed() -> None:
    plain = random_problem(1)
    assert bw.Problem(features=plain.features, probabilities=plain.probabilities, reward_range=(-2, 2)).notes == ()
    shifted = bw.Problem(features=plain.features, probabilities=plain.probabilities, reward_range=(0, 4))
    assert shifted.features.shape[2] == 4
    assert "constant feature was added as column 3" in shifted.notes[0]
    assert [shifted.loss_of(r) for r in (0.0, 1.0, 4.0)] == [1.0, 0.5, -1.0]
    assert shifted.reward_per_loss == 2.0
    one_hot = bw.Problem(features=np.eye(2)[None], probabilities=[1.0], reward_range=(0, 1))
    assert one_hot.notes == ()


def test_arm_independent_features_there_and_back() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2))
    problem = bw.Problem.from_arm_independent(x, probabilities=np.full(5, 0.2), arms=["a", "b", "c"])
    thetas = np.random.default_rng(1).normal(size=(3, 2))
    assert problem.features @ bw.block_parameters(thetas) == pytest.approx(x @ thetas.T)
    assert problem.arm_independent_features().tolist() == x.tolist()
    with pytest.raises(ValueError, match="arm-independent features must have shape"):
        bw.Problem.from_arm_independent(np.zeros((2, 2, 2)), probabilities=[0.5, 0.5], arms=2)


def test_arm_independent_features_keep_their_form_with_rewards() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2))
    problem = bw.Problem.from_arm_independent(x, probabilities=np.full(5, 0.2), arms=np.int64(3), reward_range=(0, 1))  # type: ignore[arg-type]
    assert problem.arm_independent_features().tolist() == np.hstack([x, np.ones((5, 1))]).tolist()
    assert "constant feature was added" in problem.notes[0]


def test_stacking_preserves_losses_and_warns_where_it_is_degenerate() -> None:
    small = random_problem(2, S=4, K=3, d=2)
    with pytest.warns(bw.DegenerateProblemWarning, match="6 dimensions but only 4 contexts"):
        x = small.arm_independent_features()
    theta = np.array([0.4, -0.7])
    assert x @ bw.stacked_parameters(theta, 3).T == pytest.approx(small.features @ theta)
    assert np.linalg.matrix_rank(x) <= 4
    large = random_problem(2, S=8, K=3, d=2)
    assert large.arm_independent_features().shape == (8, 6)


def test_from_a_data_frame() -> None:
    frame = pd.DataFrame({"device": ["mobile", "desktop", "mobile", "mobile"], "visits": [1, 2, 1, 3]})
    problem = bw.Problem.from_sample(frame, arms=["red", "blue"], numeric=["visits"])
    assert problem.contexts == ("mobile, 1", "desktop, 2", "mobile, 3")
    assert problem.probabilities.tolist() == [0.5, 0.25, 0.25]
    assert problem.arm_independent_features().tolist() == [[1, 1, 0, 1], [1, 0, 1, 2], [1, 1, 0, 3]]
    mapped = bw.Problem.from_sample(
        frame, arms=["red", "blue"], features=lambda row, arm: [row["visits"], float(arm == "red")]
    )
    assert mapped.features[1].tolist() == [[2.0, 1.0], [2.0, 0.0]]


def test_from_dictionaries_as_from_a_data_frame() -> None:
    rows = [{"device": "mobile", "visits": 1}, {"visits": 2, "device": "desktop"}, {"device": "mobile", "visits": 1}]
    problem = bw.Problem.from_sample(rows, arms=["red", "blue"], numeric=["visits"])
    assert problem == bw.Problem.from_sample(pd.DataFrame(rows), arms=["red", "blue"], numeric=["visits"])
    assert problem.context_index({"visits": 2, "device": "desktop"}) == 1


def test_from_arrays_rows_values_and_weights() -> None:
    array = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]])
    by_array = bw.Problem.from_sample(array, arms=2)
    by_rows = bw.Problem.from_sample([(0.0, 1.0), (2.0, 3.0)], arms=2, weights=[2, 1])
    assert by_array == by_rows
    single = bw.Problem.from_sample(
        ["x", "y", "x"], arms=2, features=lambda row, arm: [float(row == "x"), 1.0, int(arm)]
    )
    assert single.contexts == ("x", "y")
    assert single.features[0, 1].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], {}, "empty"),
        ([(1, 2), (1,)], {}, "different lengths"),
        ([{"a": 1}, {"b": 1}], {}, "different columns"),
        ([{"a": 1}, (1,)], {}, "different columns"),
        ([(1,), {"a": 1}], {}, "different columns"),
        ([("a", None)], {}, "missing value"),
        ([1.0, float("nan")], {}, "missing value"),
        ([("a", pd.NA)], {}, "missing value"),
        (["a", "b"], {"weights": [1.0]}, "weights must be 2"),
        (["a", "b"], {"weights": [0.0, 0.0]}, "no context occurs"),
        (["a", "b"], {"features": lambda row, arm: [1.0] * (1 + (row == "a"))}, "one length"),
        (["a", "b"], {"features": lambda row, arm: {arm: 1.0}}, r"features\('a', '0'\) must be a regular array"),
        (["a", "b"], {"features": [1.0, 0.0]}, "must be a function of"),
        (["a", "b"], {"weights": ["x", "y"]}, "weights must be a regular array of numbers"),
        (["a", "b"], {"rare": "0.1", "other": "rest"}, "rare is a share"),
        ("mobile", {}, "a table, or a list of rows or values; got 'mobile'"),
        ({"device": ["mobile", "desktop"]}, {}, "a table, or a list of rows or values"),
        (None, {}, "a table, or a list of rows or values"),
        (ByColumns(), {}, "must be a data frame of pandas, Polars or Arrow; got ByColumns"),
        ([{"device": ["mobile"]}], {}, r"\['mobile'\] where a single value belongs"),
        (np.ma.masked_array([1, 2, 3], mask=[False, True, False]), {}, "masked values"),
        (pd.DataFrame([("a", 1), ("b", 2)], columns=["x", "x"]), {}, "two columns of the contexts are called 'x'"),
    ],
)
def test_bad_samples_are_refused(rows: object, options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.Problem.from_sample(rows, arms=2, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("arms", ["red", 2.0, None, 0, True])
def test_arms_that_are_neither_names_nor_a_number_are_refused(arms: Any) -> None:
    with pytest.raises(ValueError, match=r"arms must be a list of names|the number of arms must be a whole number"):
        bw.Problem.from_sample(["x", "y"], arms=arms)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_arms_without_a_name_are_refused(missing: Any) -> None:
    with pytest.raises(ValueError, match="an arm has no name"):
        bw.Problem.from_sample(["mobile", "desktop"], arms=["red", missing])


def test_arms_to_leave_out_may_be_any_iterable() -> None:
    problem = bw.Problem(features=np.eye(4)[None], probabilities=[1], arms=["a", "b", "ab", "c"])
    assert problem.without_arms(name for name in ("b", "c")).arms == ("a", "ab")
    assert problem.without_arms("ab").arms == ("a", "b", "c")


def test_with_probabilities_changes_nothing_else() -> None:
    problem = random_problem(3, contexts=list("abcd"), reward_range=(0, 1))
    other = problem.with_probabilities([0.25] * 4)
    assert other.probabilities.tolist() == [0.25] * 4
    assert other.with_probabilities(problem.probabilities) == problem


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_files_bring_back_the_same_problem(suffix: str, tmp_path: Path) -> None:
    available = np.ones((4, 3), dtype=bool)
    available[1, 2] = False
    problem = random_problem(4, arms=["x", "y", "ż"], available=available, reward_range=(0, 2))
    path = tmp_path / f"problem{suffix}"
    problem.save(path)
    assert bw.Problem.load(path) == problem
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    for content, words in (("{", "not valid JSON"), ("[1]", "holds a list"), ("{}", "has format None")):
        path.write_text(content)
        with pytest.raises(ValueError, match=words):
            bw.Problem.load(path)
    path.write_text('{"format": "bothworlds-problem-1", "arms": ["a", "b"]}')
    with pytest.raises(ValueError, match="not a complete problem"):
        bw.Problem.load(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        bw.Problem.load(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"saved as \.json or \.npz"):
        random_problem().save(tmp_path / "p.txt")


def test_describe_shows_what_exploration_costs() -> None:
    problem = random_problem(5, S=3, K=4, d=2, rarity=10.0, reward_range=(0, 5), contexts=["rare", "b", "c"])
    text = problem.describe()
    lam = bw.design(problem).coverage
    t0 = 256 * np.sqrt(4) * 10 / (3 * lam)
    for words in ("3 contexts", "4 arms", "3 dimensions", "L = 10", "'rare'", f"lambda = {lam:.4g}"):
        assert words in text
    assert f"t0 = {t0:,.0f}" in text
    assert f"at most {t0 * 2.5:,.0f} units of reward" in text
    assert "constant feature was added" in text
