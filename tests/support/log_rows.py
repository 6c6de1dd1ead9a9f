"""Rows as readers accept them, for property tests of formats."""

import importlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from bothworlds.logs import Row

WORDS = ("red", "blue", "grün", 'a "quoted" name', "with, comma", "line\nfeed", "")
REALS = st.floats(-1e9, 1e9)
DIGITS = ("0", "1", "2")
ROW = Row(id="a", context="day", offered=("0", "1"), probabilities=(0.25, 0.75), arm="1", propensity=0.75, reward=1.0)
TIMES = st.integers(-(2**40), 2**40).map(lambda step: step / 64)  # microseconds, exactly


@st.composite
def one_row(draw: Any, *, names: tuple[str, ...] = WORDS, dimension: int = 2) -> Row:
    """Return a row that can be relied on."""
    offered = tuple(draw(st.permutations(names)))[: draw(st.integers(1, len(names)))]
    weights = draw(st.lists(st.integers(0, 64), min_size=len(offered), max_size=len(offered)))
    chosen = draw(st.integers(0, len(offered) - 1))
    weights[chosen] += 1
    chances = tuple(weight / sum(weights) for weight in weights)
    lines = draw(st.sampled_from([0, 1, len(offered)]))
    numbers = st.tuples(*[REALS] * dimension)
    return Row(
        id="later",
        time=draw(st.none() | TIMES),
        context=draw(st.none() | st.sampled_from(["mobile", "desk,top", "ü"])),
        features=tuple(draw(numbers) for _ in range(lines)) if lines else None,
        offered=offered,
        probabilities=chances,
        arm=offered[chosen],
        propensity=chances[chosen],
        policy=draw(st.sampled_from(["unknown", "ads/2"])),
        version=draw(st.integers(0, 2**40)),
        digest=draw(st.none() | st.just("5e")),
        holdout=draw(st.booleans()),
        direction=draw(st.just(()) | numbers),
        baseline=draw(st.none() | numbers),
        reward=draw(st.none() | REALS),
        reward_time=draw(st.none() | TIMES),
    )


def some_rows(**changes: Any) -> st.SearchStrategy[list[Row]]:
    """Return lists of rows with different ids, and some fields as given."""
    options = {name: changes.pop(name) for name in ("names", "dimension") if name in changes}

    def numbered(rows: list[Row]) -> list[Row]:
        return [replace(row, id=f"visit {number}", **changes) for number, row in enumerate(rows, 1)]

    return st.lists(one_row(**options), max_size=5).map(numbered)


def kept(row: Row, lost: tuple[str, ...]) -> Row:
    """Return a row without what a format cannot express."""
    plain = Row(id="", arm="", propensity=1.0)
    return replace(row, **{name: getattr(plain, name) for name in lost})


def package(name: str, why: str) -> Any:
    """Return a package, or skip the test where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed; {why}")


def shared_only(rows: Iterable[Row]) -> list[Row]:
    """Return rows with rewards, and features that all arms share, if any."""
    made = [replace(row, reward=row.reward or 0.5) for row in rows]
    described = any(row.features is not None for row in made)
    return [replace(row, features=((1.0, -0.5),) if described else None) for row in made]
