"""Which context is meant: by a name, an index, or a row, for one context or for several."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bothworlds.problem.rows import ContextRows, has_names

MOST_SHOWN = 8


def find_unlisted(context: Any, contexts: tuple[str, ...], rows: ContextRows | None, other: str | None) -> int:
    """Return the index of what is neither a name nor an index: a row, or what stands for all that is not listed."""
    is_row = rows is not None and hasattr(context, "__iter__") and not isinstance(context, str)
    found = rows.index_of(context) if is_row and rows is not None else None
    if found is not None:
        return found
    if other is not None and (is_row or isinstance(context, str)):
        return contexts.index(other)
    some = ", ".join(repr(name) for name in contexts[:MOST_SHOWN]) + (", ..." if len(contexts) > MOST_SHOWN else "")
    last = len(contexts) - 1
    raise ValueError(f"unknown context {context!r}; the contexts are {some} (or an index from 0 to {last})")


def find_all(contexts: Any, one: Callable[[Any], int], *, names: tuple[str, ...], have_rows: bool) -> int | list[int]:
    """Return the index of one context, or those of several; ``one`` finds one."""
    if isinstance(contexts, str | int | np.integer):
        return one(contexts)
    if hasattr(contexts, "itertuples"):  # a DataFrame, without importing pandas
        columns = [str(name) for name in contexts.columns]
        return [one(dict(zip(columns, row, strict=True))) for row in contexts.itertuples(index=False, name=None)]
    a_row = isinstance(contexts, tuple) and have_rows
    if has_names(contexts) or (a_row and not all(isinstance(part, str) and part in names for part in contexts)):
        return one(contexts)
    if getattr(contexts, "ndim", 1) == 0 or not hasattr(contexts, "__len__"):
        raise ValueError(f"a context is a name, an index, a row, or a sequence of those; got {contexts!r}")
    return [one(context) for context in contexts]
