"""Data frames of Polars and Arrow give the same problems, contexts and logs as those of pandas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import bothworlds as bw
from bothworlds.evaluation import Logged
from bothworlds.logs import from_records
from bothworlds.problem.frames import frame_of

pl = pytest.importorskip("polars")
VISITS = {"device": ["mobile", "desktop", "mobile", "mobile"], "new": ["yes", "no", "yes", "no"]}
LOG = {"device": ["mobile", "desktop"], "banner": ["red", "blue"], "click": [1, None], "p": [0.25, 0.5]}


class Streamed:
    """A table with only the Arrow C stream interface, like query results of databases."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._table = pa.table(columns)
        self.columns = list(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Polars": pl.DataFrame,
    "Arrow table": pa.table,
    "Arrow batch": pa.RecordBatch.from_pydict,
    "Arrow stream": Streamed,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_a_sample_and_a_list_of_contexts(kind: str) -> None:
    make = KINDS[kind]
    expected = bw.Problem.from_sample(pd.DataFrame(VISITS), arms=["red", "blue"])
    problem = bw.Problem.from_sample(make(VISITS), arms=["red", "blue"])
    assert problem == expected
    assert problem.rows == expected.rows
    assert problem.context_indices(make(VISITS)) == [0, 1, 0, 2]
    policy = bw.FixedPolicy().start(problem, rng=7)
    assert [decision.context for decision in policy.act(make(VISITS))] == [0, 1, 0, 2]
    with_features = bw.Problem.from_sample(
        make(VISITS), arms=["red", "blue"], features=lambda row, arm: [1.0, row["new"] == "yes", arm == "red"]
    )
    assert with_features.n_contexts == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_a_log(kind: str) -> None:
    columns: dict[str, Any] = {"context": "device", "arm": "banner", "reward": "click", "propensity": "p"}
    rows = list(from_records(KINDS[kind](LOG), **columns))
    assert rows == list(
        from_records([dict(zip(LOG, row, strict=True)) for row in zip(*LOG.values(), strict=True)], **columns)
    )
    assert [row.reward for row in rows] == [1.0, None]


@pytest.mark.parametrize("kind", ["Polars", "Arrow table"])
def test_columns_and_tables_of_frames(kind: str) -> None:
    make = KINDS[kind]
    problem = bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
    frame = make(LOG)
    logged = Logged.from_columns(
        problem,
        context=frame["device"],
        arm=frame["banner"],
        reward=frame["click"],
        propensity=frame["p"],
        missing=0.0,
    )
    assert (logged.context.tolist(), logged.arm.tolist(), logged.propensity.tolist()) == ([0, 1], [0, 1], [0.25, 0.5])
    table = make({"blue": [0.75, 0.5], "red": [0.25, 0.5]})  # matched by column name, not by order
    policy = bw.FixedPolicy(table).start(problem, rng=7)
    assert policy.probabilities("mobile").tolist() == [0.25, 0.75]
    whole = Logged.from_columns(
        problem, context=frame["device"], arm=frame["banner"], reward=[1, 0], probabilities=table
    )
    assert whole.propensity.tolist() == [0.25, 0.5]
    assert bw.Problem.from_sample(frame["device"], arms=2).contexts == ("mobile", "desktop")
    assert problem.context_indices(frame["device"]) == [0, 1]
    named = bw.Prior.from_rewards(problem, table, rounds=10)
    assert repr(named) == repr(bw.Prior.from_rewards(problem, [[0.25, 0.75], [0.5, 0.5]], rounds=10))


def test_other_objects_are_not_frames() -> None:
    with pytest.raises(ValueError, match=r"lazy frame.*frame\.collect"):
        bw.Problem.from_sample(pl.DataFrame(VISITS).lazy(), arms=2)
    for given in ([1, 2], np.eye(2), "text", {"a": 1}, pl.Series([1]), pa.chunked_array([[1]])):
        assert frame_of(given) is None
