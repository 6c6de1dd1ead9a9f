"""Requests as arrays: features of a context and its candidates, which of them are offered, and their names."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem.checks import check_known
from bothworlds.problem.frames import frame_of
from bothworlds.problem.open.encoder import Encoder
from bothworlds.problem.rows import has_names

if TYPE_CHECKING:
    from bothworlds.problem.open.open_problem import OpenProblem


class Request(NamedTuple):
    """One request: features (rows, p), 1.0 for every candidate offered, and names of the candidates."""

    z: Floats
    offered: Floats
    names: Sequence[str]


class Requests(NamedTuple):
    """Many requests: features (requests, rows, p), candidates offered (requests, candidates), names of each."""

    z: Floats
    offered: Floats
    names: Sequence[Sequence[str]]


def combine(x: Floats, rows: Floats, *, interactions: bool) -> Floats:
    """Return features of candidates: all products of x (p,) with ``rows`` (k, c), or both side by side."""
    if interactions:
        return np.asarray((rows[:, :, None] * x).reshape(len(rows), rows.shape[1] * len(x)))
    return np.hstack([np.broadcast_to(x, (len(rows), len(x))), rows[:, 1:]])


def request_of(problem: "OpenProblem", context: Any, candidates: Any, offered: Any) -> Request:
    """Return one request as arrays; raise ValueError for whatever does not fit the problem."""
    x = _with_constant(_context(problem.context_encoder, context))
    if problem.candidate_encoder is not None:
        names, rows = _candidates(problem, problem.candidate_encoder, candidates)
        return Request(problem.combined(x, rows), _offered(offered, names), names)
    if candidates is not None:
        raise ValueError("the arms of this problem have names: choose among them with offered=, not candidates=")
    names = problem.arms or ()
    table = problem.arm_table
    z = x[None] if table is None else problem.combined(x, table)
    return Request(z, _offered(offered, names), names)


def requests_of(problem: "OpenProblem", contexts: Any, candidates: Any, offered: Any) -> Requests:
    """Return many requests as arrays. Candidates and offers are one for all, or a list with one for each request."""
    encoder = problem.context_encoder
    if encoder is None and contexts is not None:
        raise ValueError("this problem has no context: leave it out")
    if encoder is not None and contexts is None:
        raise ValueError("contexts are missing: give a table or a list of rows")
    each = problem.candidate_encoder
    if (
        encoder is None
        and each
        and not (isinstance(candidates, list) and candidates and not _is_row(each, candidates[0]))
    ):
        raise ValueError("without contexts, candidates come as a list with those of each request")
    if encoder is None and each is None:
        raise ValueError("without a context all requests are alike: decide one by one")
    xs = np.ones((len(candidates), 1)) if encoder is None else _with_constant(encoder.table(contexts))
    n = len(xs)
    if problem.candidate_encoder is None:
        if candidates is not None:
            raise ValueError("the arms of this problem have names: choose among them with offered=, not candidates=")
        names: Sequence[Sequence[str]] = [problem.arms or ()] * n
        table = problem.arm_table
        z = xs[:, None, :] if table is None else np.stack([problem.combined(x, table) for x in xs])
        return Requests(np.ascontiguousarray(z), _offers(offered, names), names)
    return _with_candidates(problem, xs, candidates, offered)


def _with_candidates(problem: "OpenProblem", xs: Floats, candidates: Any, offered: Any) -> Requests:
    """Return requests whose candidates are the same for all, or a list of those of each."""
    encoder, n = problem.candidate_encoder, len(xs)
    assert encoder is not None
    each = isinstance(candidates, list) and not (candidates and _is_row(encoder, candidates[0]))
    if each and len(candidates) != n:
        raise ValueError(f"{n} contexts need as many lists of candidates; got {len(candidates)}")
    sets = [_candidates(problem, encoder, part) for part in (candidates if each else [candidates])]
    sets = sets if each else sets * n
    widest = max((len(names) for names, _ in sets), default=1)
    z = np.zeros((n, widest, problem.shape.size))
    for row, x, (_, table) in zip(z, xs, sets, strict=True):
        row[: len(table)] = problem.combined(x, table)
    names = [part for part, _ in sets]
    return Requests(z, _offers(offered, names), names)


def _is_row(encoder: Encoder, given: Any) -> bool:
    """Return whether an entry of a list is one candidate, and not the candidates of a request."""
    if frame_of(given) is not None:
        return False
    if encoder.columns:
        return has_names(given) and set(encoder.names) <= set(given.keys())
    return np.ndim(given) == 1


def _with_constant(x: Floats) -> Floats:
    return np.concatenate([np.ones((*x.shape[:-1], 1)), x], axis=-1)


def _context(encoder: Encoder | None, given: Any) -> Floats:
    """Return the features of a context, without the constant."""
    if encoder is None:
        if given is not None:
            raise ValueError("this problem has no context: give the candidates alone")
        return np.zeros(0)
    if given is None:
        raise ValueError(f"the context is missing; it has {', '.join(encoder.names) or f'{encoder.width} numbers'}")
    return encoder.row(given)


def _candidates(problem: "OpenProblem", encoder: Encoder, given: Any) -> tuple[Sequence[str], Floats]:
    """Return ids and features, with a constant, of the candidates of a request."""
    if given is None:
        raise ValueError("candidates= is missing: this problem has no arms with names")
    names: Sequence[Any] | None = None
    table = given
    if isinstance(given, Mapping):
        names, table = list(given), list(given.values())
    elif problem.id_column is not None:
        names = _ids(given, problem.id_column)
    if hasattr(table, "__len__") and len(table) == 0:
        raise ValueError("there are no candidates: a request needs at least one")
    rows = encoder.table(table)
    if len(rows) == 0:
        raise ValueError("there are no candidates: a request needs at least one")
    if names is None:
        return _numbered(len(rows)), _with_constant(rows)
    ids = [str(name) for name in names]
    if len(set(ids)) < len(ids):
        raise ValueError(f"the candidate {next(name for name in ids if ids.count(name) > 1)!r} is given twice")
    return ids, _with_constant(rows)


@lru_cache(maxsize=256)
def _numbered(count: int) -> tuple[str, ...]:
    """Return the names of candidates without ids: their numbers."""
    return tuple(str(i) for i in range(count))


def _ids(given: Any, column: str) -> list[Any]:
    """Return the ids of candidates, from a column of a DataFrame or of dictionaries."""
    frame = frame_of(given)
    if frame is not None:
        if column not in frame.names:
            raise ValueError(f"the candidates have no column {column!r} for their ids; they have {frame.names}")
        return [row[frame.names.index(column)] for row in frame.rows]
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ValueError(f"candidates come as a table or as a list of rows; got {given!r:.80}")
    rows = list(given)
    if not all(has_names(row) and column in row.keys() for row in rows):  # noqa: SIM118 - also rows of DataFrames
        raise ValueError(f"every candidate needs a {column!r}, its id")
    return [row[column] for row in rows]


def _offered(given: Any, names: Sequence[str]) -> Floats:
    """Return 1.0 for every candidate that is offered: all, those named, or those that a mask marks."""
    if given is None:
        return np.ones(len(names))
    if isinstance(given, str):
        raise ValueError(f"offered= is a list of names; got a single text, {given!r}")
    mask = given if isinstance(given, np.ndarray) else list(given) if isinstance(given, Iterable) else [given]
    if len(mask) and all(isinstance(part, bool | np.bool_) for part in mask):
        if len(mask) != len(names):
            raise ValueError(f"offered= has {len(mask)} truth values for {len(names)} candidates; give one for each")
        chosen = np.array(mask, dtype=np.float64)
    else:
        texts = [part if isinstance(part, str) else str(part) for part in mask]
        check_known(texts, list(names), "candidate in offered=")
        chosen = np.isin(np.array(names, dtype=object), texts).astype(np.float64)
    if not chosen.any():
        raise ValueError("offered= offers nothing: a request needs at least one candidate")
    return chosen


def _offers(given: Any, names: Sequence[Sequence[str]]) -> Floats:
    """Return the candidates offered in many requests, (requests, candidates), padded with 0."""
    widest = max((len(part) for part in names), default=1)
    table = np.zeros((len(names), widest))
    if given is None:
        if all(len(part) == widest for part in names):
            return np.ones(table.shape)
        each: Sequence[Any] = [None] * len(names)
    elif isinstance(given, np.ndarray) and given.shape == table.shape and given.dtype == bool:
        if not given.any(axis=1).all():
            raise ValueError("offered= offers nothing in some request: each needs at least one candidate")
        return given.astype(np.float64)
    elif len(given) and all(isinstance(part, str) for part in given):
        each = [given] * len(names)
    elif len(given) != len(names):
        raise ValueError(f"offered= has {len(given)} entries for {len(names)} requests: give one list for each")
    else:
        each = given
    for row, part, offered in zip(table, names, each, strict=True):
        row[: len(part)] = _offered(offered, part)
    return table
