"""Validation of arguments; messages say what is wrong, where, and what to do."""

import contextlib
import operator
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from bothworlds.arrays import Bools, Floats

RAREST = 1e-100  # leverages reach its inverse, and are squared


def is_number(value: Any) -> bool:
    """Return whether a value is a real number of Python or NumPy; booleans do not count.

    >>> is_number(np.float32(0.5)), is_number(True), is_number(1j)
    (True, False, False)
    """
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def whole(value: Any, least: int, name: str) -> int:
    """Return a whole number of Python or NumPy as an int.

    Raises ValueError for fractions, booleans and numbers below ``least``.

    >>> whole(np.int64(3), 1, "horizon")
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
    return number


def check_known(given: Iterable[str], known: Sequence[str], word: str) -> None:
    """Raise ValueError for unknown names, with the nearest known one.

    >>> check_known(["windw"], ["store", "window"], "setting")
    Traceback (most recent call last):
    ValueError: unknown setting 'windw'; did you mean 'window'?
    """
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise ValueError(f"unknown {word} {name!r}{hint}")


def take_kind(options: dict[str, Any], known: Sequence[str], word: str) -> str:
    """Remove ``kind`` from a table of options and return it; raise ValueError if it is unknown.

    >>> take_kind({"kind": "LinUTS"}, ["LinUCB", "LinTS"], "algorithm")
    Traceback (most recent call last):
    ValueError: unknown kind of algorithm 'LinUTS'; did you mean 'LinTS'?
    """
    kind = options.pop("kind", None)
    if kind is None:
        raise ValueError(f"an {word} has no kind; known are {', '.join(known)}")
    check_known({str(kind): None}, known, f"kind of {word}")
    return str(kind)


@contextlib.contextmanager
def option_errors(word: str) -> Iterator[None]:
    """Turn the TypeError of a call with wrong options into a ValueError that names ``word``."""
    try:
        yield
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{word}: {str(error).split(') ', 1)[-1]}") from None


def frozen_array(values: Any, name: str) -> Floats:
    """Return a read-only float64 copy; raise ValueError for values that are not numeric, not finite, or masked."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries, which have no value; fill them, or leave them out")
    try:
        array = np.array(values, order="C")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"its type is {array.dtype}")
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a regular array of numbers: {error}") from None
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = tuple(bad[0].tolist())
        raise ValueError(f"{name}[{', '.join(map(str, where))}] is {array[where]}; all entries must be finite")
    array.setflags(write=False)
    return array


def check_features(features: Floats) -> None:
    """Raise ValueError unless features have shape (S, K, d) with S, d >= 1 and K >= 2."""
    if features.ndim != 3:
        raise ValueError(
            f"features must have shape (contexts, arms, dimension); got {features.ndim} axes, {features.shape}"
        )
    if features.shape[1] < 2:
        count = "there is one arm only" if features.shape[1] else "there are no arms"
        raise ValueError(f"{count}: nothing to decide. Give features for at least two arms")
    if min(features.shape) == 0:
        raise ValueError(f"features must not be empty; got shape {features.shape}")


def check_probabilities(probabilities: Floats, n_contexts: int) -> None:
    """Raise ValueError unless there is one positive probability per context and they sum to 1."""
    if probabilities.shape != (n_contexts,):
        raise ValueError(f"probabilities must have shape ({n_contexts},), one per context; got {probabilities.shape}")
    low = int(probabilities.argmin())
    if probabilities[low] <= 0.0:
        raise ValueError(
            f"probabilities[{low}] is {probabilities[low]}; every context needs a positive probability. "
            "Leave out contexts that never occur"
        )
    if probabilities[low] < RAREST:
        raise ValueError(
            f"probabilities[{low}] is {probabilities[low]}: a context with fewer than one visit in 1e100 rounds "
            "is too rare to compute with. Leave it out"
        )
    total = float(probabilities.sum())
    if abs(total - 1.0) > 1e-9:
        raise ValueError(f"probabilities sum to {total!r}, not to 1; divide them by their sum if they are frequencies")


def names_of(given: Sequence[Any] | None, count: int, word: str) -> tuple[str, ...]:
    """Return names, "0", "1", ... by default; raise ValueError for duplicates and non-strings."""
    if isinstance(given, str):
        raise ValueError(f"{word} names come as a list, one for each {word}; got a single text, {given!r}")
    names = tuple(str(i) for i in range(count)) if given is None else tuple(given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ValueError(f"{word} names must be strings, integers are indices; got {wrong[0]!r}")
    if len(names) != count:
        raise ValueError(f"{len(names)} {word} names for {count} {word}s; give one for each, in their order")
    if len(set(names)) != count:
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"{word} name {twice!r} is given twice; names must differ")
    return names


def check_catch_all(contexts: tuple[str, ...], other: str | None, *, rows: int | None) -> None:
    """Raise ValueError unless ``other`` is one of the contexts and there is one row per context, `other` excepted."""
    if other is not None and other not in contexts:
        raise ValueError(
            f"other={other!r} must be one of the contexts. With a sample, name one of its rows, or raise rare="
        )
    last_is_other = other is not None and contexts[-1] == other
    if rows is not None and rows != len(contexts) and not (last_is_other and rows == len(contexts) - 1):
        raise ValueError(
            f"{rows} rows for {len(contexts)} contexts; give one for each, or for all but a last one that is `other`"
        )


def availability(given: Any, shape: tuple[int, int]) -> Bools:
    """Return the read-only (S, K) table of offered arms; raise ValueError unless every context offers an arm."""
    table = np.ones(shape, dtype=bool) if given is None else np.array(given)
    if table.shape != shape or not (table.dtype == bool or np.isin(table, (0, 1)).all()):
        raise ValueError(f"available must be a boolean table of shape {shape}; got {table.dtype} {table.shape}")
    table = table.astype(bool)
    empty = np.flatnonzero(~table.any(axis=1))
    if len(empty):
        raise ValueError(f"context {int(empty[0])} offers no arm; every context must offer at least one")
    if not (table.sum(axis=1) > 1).any():
        raise ValueError("no context offers more than one arm: there is nothing to decide")
    table.setflags(write=False)
    return table


def are_distributions(table: Floats, *, within: float = 1e-6) -> bool:
    """Return whether each row of a table is a distribution: no negative values, and a sum of 1 up to rounding.

    >>> are_distributions(np.array([[0.5, 0.5], [0.0, 1.0]])), are_distributions(np.array([[0.6, 0.6]]))
    (True, False)
    """
    return bool((table >= 0.0).all() and np.abs(table.sum(axis=1) - 1.0).max(initial=0.0) <= within)


def check_reward_range(reward_range: Any) -> tuple[float, float] | None:
    """Return (lo, hi) as floats, or None; raise ValueError unless they are finite numbers with lo < hi."""
    if reward_range is None:
        return None
    ends = list(reward_range) if isinstance(reward_range, tuple | list | np.ndarray) else []
    try:
        lo, hi = (float(end) for end in ends if is_number(end))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"reward_range must be two numbers (lowest, highest); got {reward_range!r}") from None
    if not (np.isfinite(lo) and np.isfinite(hi) and lo < hi):
        raise ValueError(f"reward_range must be (lowest, highest) with lowest < highest; got {reward_range}")
    if not np.isfinite(2.0 * (abs(lo) + abs(hi))):
        raise ValueError(
            f"reward_range {reward_range} is too large to compute with: its width or its sum overflows. "
            "Measure rewards in a larger unit"
        )
    return lo, hi
