"""Distinct rows of a sample of contexts, their frequencies, and rare rows."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.problem.checks import frozen_array, is_number
from bothworlds.problem.frames import frame_of, values_of
from bothworlds.problem.rows import has_names

FeatureMap = Callable[[Any, str], Any]


class Support(NamedTuple):
    """Distinct rows of a sample in order of first appearance, column names if any, frequencies, and the sample size."""

    rows: list[tuple[Any, ...]]
    columns: tuple[str, ...] | None
    probabilities: Floats
    n_rows: int


def support_of(sample: Any, weights: Any = None) -> Support:
    """Return the distinct rows of a sample and their frequencies.

    ``sample`` is a data frame (pandas, Polars, Arrow), a sequence of rows (tuples, or dictionaries as `csv.DictReader`
    has them), a two-dimensional array, or a sequence of single values.
    ``weights`` are the number of visits of each row, 1 by default.

    >>> support = support_of([("young", 1), ("old", 0), ("young", 1), ("young", 0)])
    >>> support.rows, support.probabilities.tolist()
    ([('young', 1), ('old', 0), ('young', 0)], [0.5, 0.25, 0.25])
    """
    rows, columns = _rows_of(sample)
    if not rows:
        raise ValueError("the sample of contexts is empty; give a row for each past visit")
    counts = np.ones(len(rows)) if weights is None else frozen_array(weights, "weights")
    if counts.shape != (len(rows),) or (counts < 0.0).any():
        raise ValueError(f"weights must be {len(rows)} finite numbers, none negative; got shape {counts.shape}")
    total: dict[tuple[Any, ...], float] = {}
    for row, count in zip(rows, counts, strict=True):
        _check_row(row)
        if count > 0.0:
            total[row] = total.get(row, 0.0) + float(count)
    if not total:
        raise ValueError("all weights are zero: no context occurs")
    frequencies = np.array(list(total.values()))
    return Support(list(total), columns, frequencies / frequencies.sum(), len(rows))


def _check_row(row: tuple[Any, ...]) -> None:
    """Raise ValueError for a row with a missing value, or with a list as a value."""
    several = next((value for value in row if not isinstance(value, Hashable)), None)
    if several is not None:
        raise ValueError(f"the sample has {several!r:.60} where a single value belongs, in row {row!r:.120}")
    if any(is_missing(value) for value in row):
        raise ValueError(f"the sample has a missing value in row {row}; fill or leave out such rows")


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' NA; NaN and NA do not compare equal to themselves."""
    return value is None or not isinstance(equal := value == value, bool | np.bool_) or not equal


def _rows_of(sample: Any) -> tuple[list[tuple[Any, ...]], tuple[str, ...] | None]:
    """Return rows as tuples of plain values, and column names where the sample has them."""
    _check_sample(sample)
    names: tuple[str, ...] | None = None
    frame = frame_of(sample)
    if frame is not None:
        names, sample = frame
    else:
        sample, names = _without_names(list(values_of(sample)))
    rows = [_plain_row(row) for row in sample]
    width = len(rows[0]) if rows else 0
    odd = next((row for row in rows if len(row) != width), None)
    if odd is not None:
        raise ValueError(f"the rows of the sample have different lengths, {width} and {len(odd)}: {rows[0]} and {odd}")
    return rows, names


def _check_sample(sample: Any) -> None:
    """Raise ValueError for objects that do not iterate over rows: strings, dictionaries of columns, other tables."""
    if frame_of(sample) is not None:
        return
    if isinstance(sample, str | bytes | Mapping) or not isinstance(sample, Iterable):
        raise ValueError(f"the sample of contexts is a table, or a list of rows or values; got {sample!r:.80}")
    if hasattr(sample, "columns"):
        raise ValueError(
            f"a sample that is a table must be a data frame of pandas, Polars or Arrow; got {type(sample).__name__}. "
            "Turn it into one, or into a list of dictionaries"
        )
    if np.ma.is_masked(sample):
        raise ValueError("the sample has masked values, which are missing; fill or leave out such rows")


def _without_names(sample: list[Any]) -> tuple[list[Any], tuple[str, ...] | None]:
    """Return dictionaries as tuples, and their keys; other rows unchanged."""
    if not any(has_names(row) for row in sample):
        return sample, None
    if not all(has_names(row) for row in sample) or any(set(row.keys()) != set(sample[0].keys()) for row in sample):
        raise ValueError("the rows of the sample have different columns; give every row the same ones")
    keys = list(sample[0].keys())
    return [tuple(row[key] for key in keys) for row in sample], tuple(str(key) for key in keys)


def _plain_row(row: Any) -> tuple[Any, ...]:
    """Return a row as a tuple of Python values; a single value becomes a row of one."""
    values = (row,) if isinstance(row, str) or not hasattr(row, "__iter__") else tuple(row)
    return tuple(value.item() if isinstance(value, np.generic) else value for value in values)


def context_names(support: Support) -> list[str]:
    """Return readable names of the rows: their values, joined by commas.

    >>> context_names(support_of([("young", 1), ("old", 0)]))
    ['young, 1', 'old, 0']
    """
    return [", ".join(str(value) for value in row) for row in support.rows]


def mapped_features(support: Support, feature_map: FeatureMap, arms: Sequence[str]) -> Floats:
    """Return features (S, K, d) from a user's function of (row, arm); rows with column names are dictionaries."""
    if not callable(feature_map):
        raise ValueError(f"features must be a function of (row, arm) that returns a vector; got {feature_map!r:.80}")
    columns = support.columns
    rows: list[Any] = [
        dict(zip(columns, row, strict=True)) if columns else (row[0] if len(row) == 1 else row) for row in support.rows
    ]
    vectors = [[frozen_array(feature_map(row, arm), f"features({row!r:.60}, {arm!r})") for arm in arms] for row in rows]
    shapes = {vector.shape for line in vectors for vector in line}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ValueError(f"features(row, arm) must always return a vector of one length; got shapes {shapes}")
    return np.array(vectors)


def rare_rows(support: Support, rare: float, other: str | None) -> Bools:
    """Return a mask of the rows with a share below ``rare``, which become the context ``other``."""
    if not is_number(rare) or not 0.0 <= rare < 1.0:
        raise ValueError(f"rare is a share of the traffic in [0, 1); got {rare!r}")
    is_rare: Bools = support.probabilities < rare
    if rare > 0.0 and other is None:
        raise ValueError("rare rows need a context to join: name it with other=")
    return is_rare


def without(support: Support, rare: Bools) -> Support:
    """Return the support without rare rows; its probabilities may sum to less than 1."""
    rows = [row for row, out in zip(support.rows, rare, strict=True) if not out]
    return Support(rows, support.columns, support.probabilities[~rare], support.n_rows)


def joined(values: Any, shares: Floats, rare: Bools) -> Floats:
    """Return an array over rows in which one last entry, the mean weighted by share, replaces the rare rows.

    Losses stay linear in the features: the mean loss of the rare rows is the loss at their mean features.

    >>> joined([[1.0], [2.0], [4.0]], np.array([0.5, 0.375, 0.125]), np.array([False, True, True])).tolist()
    [[1.0], [2.5]]
    """
    array = np.asarray(values, dtype=np.float64)
    if not rare.any():
        return array
    mean = np.average(array[rare], axis=0, weights=shares[rare])
    return np.concatenate([array[~rare], mean[None]])
