"""Wrong inputs of open problems: a sentence and an unchanged state, or served where that is possible."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bothworlds as bw
from bothworlds import Column, OpenPolicy, OpenProblem

VISITORS = [Column.number("age", 18, 90), Column.category("device", ["mobile", "desktop"]), Column.boolean("member")]
PRODUCTS = [Column.number("price", 0, 100), Column.category("brand", ["a", "b", "c"])]
GOOD = {"age": 30, "device": "mobile", "member": True}
GOODS = [{"price": 3.0, "brand": "a"}, {"price": 70.0, "brand": "b"}]


def named() -> OpenPolicy:
    problem = OpenProblem(context=VISITORS, arms=["red", "blue"], reward_range=(0, 1))
    return bw.LCTsallisINF().start(problem, rng=7, interpreted=True)


def listing() -> OpenPolicy:
    problem = OpenProblem(context=VISITORS, candidates=PRODUCTS, reward_range=(0, 1))
    return bw.LCTsallisINF().start(problem, rng=7, interpreted=True)


def arrays() -> OpenPolicy:
    return bw.LinUCB().start(OpenProblem(context=3, arms=["red", "blue"]), rng=7, interpreted=True)


def shop() -> OpenPolicy:
    problem = OpenProblem(candidates=PRODUCTS, id_column="sku")
    return bw.LinUCB().start(problem, rng=7, interpreted=True)


Act = Callable[[Any], Any]
REFUSED: list[tuple[Callable[[], OpenPolicy], Act, str]] = [
    # contexts
    (named, lambda p: p.act(), "the context is missing; it has age, device, member"),
    (named, lambda p: p.act({"age": 30, "device": "mobile"}), "has no 'member'; its columns are age, device, member"),
    (named, lambda p: p.act({**GOOD, "age": "old"}), "column 'age' has numbers; got 'old'"),
    (named, lambda p: p.act({**GOOD, "age": True}), "column 'age' has numbers; got True"),
    (named, lambda p: p.act({**GOOD, "age": float("inf")}), "give a finite number"),
    (named, lambda p: p.act({**GOOD, "age": 1 + 2j}), "column 'age' has numbers"),
    (named, lambda p: p.act({**GOOD, "age": [30]}), "column 'age' has numbers"),
    (named, lambda p: p.act({**GOOD, "member": "perhaps"}), "column 'member' has truth values; got 'perhaps'"),
    (named, lambda p: p.act({**GOOD, "member": 2}), "column 'member' has truth values; got 2"),
    (named, lambda p: p.act((30, "mobile")), "a context has 3 values, age, device, member; got 2"),
    (named, lambda p: p.act((30, "mobile", True, 1)), "a context has 3 values"),
    (named, lambda p: p.act("mobile"), "a context is a dictionary or a row of 3 values; got 'mobile'"),
    (named, lambda p: p.act(7), "a context is a dictionary or a row of 3 values; got 7"),
    (named, lambda p: p.act(pd.DataFrame([GOOD])), "a table has several rows, and one context is needed"),
    (arrays, lambda p: p.act([1.0, 2.0]), r"a context is 3 numbers; got an array of shape \(2,\)"),
    (arrays, lambda p: p.act([[1.0, 2.0, 3.0]]), "a context is 3 numbers; got an array of shape"),
    (arrays, lambda p: p.act(["a", "b", "c"]), "a context is 3 numbers: its type is"),
    (arrays, lambda p: p.act([1.0, None, 3.0]), "a context is 3 numbers: its type is object"),
    (arrays, lambda p: p.act([1.0, float("nan"), 3.0]), "the number nan: all must be finite"),
    (arrays, lambda p: p.act([1.0, 1e40, 3.0]), r"the number 1e\+40: all must be finite and at most 1e\+30"),
    (arrays, lambda p: p.act(np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])), "a context is 3 numbers"),
    (shop, lambda p: p.act(GOOD, candidates=[{"sku": 1, **GOODS[0]}]), "this problem has no context"),
    # candidates
    (named, lambda p: p.act(GOOD, candidates=GOODS), "the arms of this problem have names"),
    (listing, lambda p: p.act(GOOD), "candidates= is missing"),
    (listing, lambda p: p.act(GOOD, candidates=[]), "there are no candidates: a request needs at least one"),
    (listing, lambda p: p.act(GOOD, candidates={}), "there are no candidates"),
    (listing, lambda p: p.act(GOOD, candidates=pd.DataFrame(columns=["price", "brand"])), "there are no candidates"),
    (listing, lambda p: p.act(GOOD, candidates=[{"price": 3.0}]), "the candidate has no 'brand'"),
    (listing, lambda p: p.act(GOOD, candidates=pd.DataFrame({"price": [3.0]})), "the candidate has no 'brand'"),
    (listing, lambda p: p.act(GOOD, candidates="all"), "candidates come as a table or as a list of rows; got 'all'"),
    (listing, lambda p: p.act(GOOD, candidates=5), "candidates come as a table or as a list of rows; got 5"),
    (listing, lambda p: p.act(GOOD, candidates=[(3.0,)]), "a candidate has 2 values, price, brand; got 1"),
    (listing, lambda p: p.act(GOOD, candidates={"1": GOODS[0], 1: GOODS[1]}), "the candidate '1' is given twice"),
    (shop, lambda p: p.act(candidates=GOODS), "every candidate needs a 'sku', its id"),
    (shop, lambda p: p.act(candidates=pd.DataFrame(GOODS)), "the candidates have no column 'sku' for their ids"),
    (shop, lambda p: p.act(candidates=[{"sku": 1, **row} for row in GOODS]), "the candidate '1' is given twice"),
    # offers and ids
    (named, lambda p: p.act(GOOD, offered=[]), "offers nothing: a request needs at least one candidate"),
    (named, lambda p: p.act(GOOD, offered=[False, False]), "offers nothing"),
    (named, lambda p: p.act(GOOD, offered=["rde"]), "unknown candidate in offered= 'rde'; did you mean 'red'"),
    (named, lambda p: p.act(GOOD, offered="red"), "is a list of names; got a single text, 'red'"),
    (named, lambda p: p.act(GOOD, offered=[True]), "has 1 truth values for 2 candidates"),
    (listing, lambda p: p.act(GOOD, candidates=GOODS, offered=["7"]), "unknown candidate in offered= '7'"),
    (named, lambda p: p.act(GOOD, id=""), "an id is a string of 1 to 200 characters"),
    (named, lambda p: p.act(GOOD, id="@5e.1"), "reserved for ids issued by the library"),
    # batches
    (named, lambda p: p.act_batch(), "contexts are missing"),
    (named, lambda p: p.act_batch(GOOD), "contexts come as a table or as a list of rows"),
    (named, lambda p: p.act_batch([GOOD, {"age": 3}]), "has no 'device'"),
    (named, lambda p: p.act_batch([GOOD, GOOD], offered=[["red"]]), "offered= has 1 entries for 2 requests"),
    (named, lambda p: p.act_batch([GOOD, GOOD], ids=["one"]), "2 requests need as many ids; got 1"),
    (named, lambda p: p.act_batch([GOOD, GOOD], ids=["one", "one"]), "an id is given twice"),
    (listing, lambda p: p.act_batch([GOOD, GOOD], candidates=[GOODS]), "2 contexts need as many lists of candidates"),
    (listing, lambda p: p.act_batch([GOOD, GOOD], candidates=[GOODS, []]), "there are no candidates"),
    # feedback
    (named, lambda p: p.update(p.plan().act(GOOD)), "give either loss= or reward="),
    (named, lambda p: p.update(p.plan().act(GOOD), reward=1, loss=1), "give either loss= or reward="),
    (named, lambda p: p.update(p.plan().act(GOOD), reward=1.5), r"reward 1.5 is outside \[0, 1\]"),
    (named, lambda p: p.update(p.plan().act(GOOD), reward=float("nan")), "is outside"),
    (named, lambda p: p.update(p.plan().act(GOOD), reward="1"), "reward must be a number; got '1'"),
    (named, lambda p: p.update([p.plan().act(GOOD)], reward=[1, 0]), "a batch of 1 decisions needs as many values"),
    (named, lambda p: p.update([p.plan().act(GOOD, id="a")] * 2, reward=[1, 0]), "is in the batch twice"),
    (named, lambda p: p.update(p.plan().act(GOOD).to_dict(), reward=1), "convert it with OpenDecision.from_dict"),
    (named, lambda p: p.update("visit", reward="v" * 5), "a decision, as returned by act"),
    (named, lambda p: p.update(p.plan().act(GOOD)._replace(propensity=0.0), reward=1), "number of the decision is"),
    (named, lambda p: p.update(p.plan().act(GOOD)._replace(direction=np.full(5, np.nan)), reward=1), "is damaged"),
    (named, lambda p: p.update(p.plan().act(GOOD)._replace(direction=np.zeros(2)), reward=1), "they do not fit"),
    (named, lambda p: p.update(p.plan().act(GOOD)._replace(place=5), reward=1), "was not offered"),
    (named, lambda p: p.update(p.plan().act(GOOD)._replace(fingerprint="0"), reward=1), "made on another problem"),
]


@pytest.mark.parametrize(("start", "request_", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_sentence_and_an_unchanged_state(start: Callable[[], OpenPolicy], request_: Act, message: str) -> None:
    policy = start()
    before, rounds = policy.learnt(), policy.rounds
    with pytest.raises(ValueError, match=message):
        request_(policy)
    assert (policy.rounds, policy.updates, policy.open_rounds) == (rounds, 0, 0)
    assert all((part == before[name]).all() for name, part in policy.learnt().items())


NAN = float("nan")
SERVED: list[tuple[Callable[[], OpenPolicy], Act]] = [
    (named, lambda p: p.act({**GOOD, "age": None})),
    (named, lambda p: p.act({**GOOD, "age": NAN, "device": NAN, "member": None})),
    (named, lambda p: p.act({**GOOD, "age": pd.NA, "member": pd.NaT})),
    (named, lambda p: p.act({"age": "30", "device": "mobile", "member": "true"})),  # a line of a CSV file
    (named, lambda p: p.act({**GOOD, "device": "watch"})),
    (named, lambda p: p.act({**GOOD, "device": 7})),
    (named, lambda p: p.act({**GOOD, "age": 10**9})),
    (named, lambda p: p.act({**GOOD, "hour": 17})),
    (named, lambda p: p.act(pd.Series(GOOD))),
    (named, lambda p: p.act((30, "mobile", np.bool_(True)), offered=["red"])),
    (named, lambda p: p.act_batch(pd.DataFrame([GOOD, GOOD]), offered=["red"])[1]),
    (named, lambda p: p.act_batch([GOOD, GOOD], offered=np.array([[True, False], [True, True]]))[0]),
    (listing, lambda p: p.act(GOOD, candidates=GOODS[:1])),
    (listing, lambda p: p.act(GOOD, candidates=GOODS * 5000)),
    (listing, lambda p: p.act(GOOD, candidates={"x": {"price": None, "brand": "new"}, "y": GOODS[0]})),
    (listing, lambda p: p.act(GOOD, candidates=pd.DataFrame(GOODS), offered=[True, False])),
    (listing, lambda p: p.act_batch([GOOD, GOOD], candidates=[GOODS, GOODS * 3])[1]),
    (listing, lambda p: p.act_batch([GOOD, GOOD], candidates=GOODS)[1]),
    (shop, lambda p: p.act(candidates=[{"sku": i, **row} for i, row in enumerate(GOODS)], offered=[1])),
    (shop, lambda p: p.act_batch(candidates=[pd.DataFrame([{"sku": 1, **GOODS[0]}])])[0]),
    (arrays, lambda p: p.act(np.array([1, 2, 3]))),
    (arrays, lambda p: p.act([1e20, -1e20, 0.0])),
]


@pytest.mark.parametrize(("start", "request_"), SERVED, ids=range(len(SERVED)))
def test_served(start: Callable[[], OpenPolicy], request_: Act) -> None:
    """A decision is made, learned from, and the next one is made, too."""
    policy = start()
    for _ in range(2):
        decision = request_(policy)
        assert 0.0 < decision.propensity <= 1.0
        policy.update(decision, loss=0.5)
    assert all(np.isfinite(part).all() for part in policy.learnt().values())


WRONG_PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({}, "give either arms=, their names, or candidates="),
    ({"context": 2, "arms": ["a", "b"], "candidates": 2}, "give either arms="),
    ({"context": 2, "arms": ["a"]}, "arms must be a list of at least two names"),
    ({"context": 2, "arms": "ab"}, "arms must be a list of at least two names; got 'ab'"),
    ({"context": 2, "arms": ["a", "a"]}, "arm name 'a' is given twice"),
    ({"context": 2, "arms": ["a", 1]}, "arm names must be strings"),
    ({"arms": ["a", "b"]}, "nothing to tell visitors apart"),
    ({"context": 0, "arms": ["a", "b"]}, "the number of features, at least 1; got 0"),
    ({"context": 1.5, "arms": ["a", "b"]}, "the number of features, at least 1"),
    ({"context": "age", "arms": ["a", "b"]}, "context must be a list of Column, or the number of features"),
    ({"context": [], "arms": ["a", "b"]}, "context must be a list of Column"),
    ({"context": VISITORS * 2, "arms": ["a", "b"]}, "two columns of the context are called 'age'"),
    ({"candidates": 2, "own_models": True}, "arm_features and own_models are for arms with names"),
    ({"context": 2, "arms": ["a", "b"], "own_models": True}, "own_models goes with arm_features"),
    ({"arms": ["a", "b"], "arm_features": [[1.0]]}, "arm_features must have a row of numbers per arm, 2 rows"),
    ({"arms": ["a", "b"], "arm_features": [["x"], ["y"]]}, "arm_features must be a regular array of numbers"),
    ({"context": 2, "arms": ["a", "b"], "id_column": "sku"}, "id_column names the column with the ids of candidates"),
    ({"context": 2, "arms": ["a", "b"], "reward_range": (1, 0)}, "reward_range must be"),
    ({"candidates": 20_000}, "take fewer columns or categories, or interactions=False"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_PROBLEMS, ids=range(len(WRONG_PROBLEMS)))
def test_a_wrong_problem_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenProblem(**options)
