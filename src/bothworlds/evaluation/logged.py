"""A log as columns: all that evaluation looks at, whatever the format of the file it comes from."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from bothworlds.evaluation.columns import (
    Columns,
    Missing,
    answered,
    columns_of,
    from_files,
    in_files,
    in_memory,
    rescaled,
)
from bothworlds.kernels.arrays import Bools, Floats, Ints
from bothworlds.logs import Log, Row
from bothworlds.logs.checking import TOLERANCE
from bothworlds.logs.json_lines import read_of_now
from bothworlds.logs.named import MISSING
from bothworlds.problem import Problem
from bothworlds.problem.labelled import columns_in_order

CLOSE = 1e-6  # how far probabilities of a row may be from 1, and a propensity from its place in the row
RAREST = 1e-30  # what was chosen with less does not come in the life of a world; its weight would be all there is


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Logged:
    """Decisions and their rewards as columns, one entry for each row of a log, in the order decided.

    Attributes
    ----------
    problem
        Contexts, arms, features and the range of rewards; without a range rewards lie in [-1, 1].
    context, arm
        Indices into the problem's contexts and arms.
    propensity
        The probability with which the arm was chosen.
    reward
        What came back, in the problem's units.
    probabilities
        The whole row of probabilities, shape (rows, arms), zero for arms that were not offered; None where only the
        propensity is known. Doubly robust intervals, support and calibration need it.
    holdout, version
        Whether the row was decided apart from the policy, and with which plan.
    folder
        Where the columns are, if they are in files.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> Logged.from_columns(problem, context=["0", "0"], arm=["a", "b"], reward=[1, 0], propensity=[0.5, 0.5])
    Logged(2 rows, 1 contexts, 2 arms, propensities only)
    """

    problem: Problem
    context: Ints
    arm: Ints
    propensity: Floats
    reward: Floats
    probabilities: Floats | None = None
    holdout: Bools
    version: Ints
    folder: Path | None = None

    def __post_init__(self) -> None:
        _check_lengths(self)
        _check_values(self)
        if self.probabilities is not None:
            _check_probabilities(self)
        _check_offers(self)

    @classmethod
    def from_columns(
        cls,
        problem: Problem,
        *,
        context: Any,
        arm: Any,
        reward: Any,
        propensity: Any = None,
        probabilities: Any = None,
        holdout: Any = None,
        version: Any = None,
        missing: Missing = "refuse",
        tolerance: float = 0.0,
    ) -> Self:
        """Make it from columns: lists, arrays, columns of a DataFrame.

        Parameters
        ----------
        context
            Names, indices, or rows as `Problem.context_indices` takes them.
        arm
            Names or indices.
        reward
            Numbers; None, pandas' NA or not-a-number where none came.
        propensity, probabilities
            One of them at least; the propensity is read from the whole row of probabilities where that is given. A
            DataFrame whose columns have names goes by these.
        missing
            What a row without a reward means: a number, say 0 for "no click", "drop" to leave it out, which is right
            only if rewards get lost whatever they are, or "refuse".
        tolerance
            For logs that were rounded: a row of probabilities whose sum is at most so far from one is divided by it,
            and a propensity at most so far from the arm's place in the row becomes what stands there. Rounding stays
            in the weights: by a tenth, if 0.05 was written for 0.045.
        """
        contexts, arms = _contexts(problem, context), _arms(problem, arm)
        n = len(contexts)
        rows = None
        if probabilities is not None:
            rows = _numbers(columns_in_order(probabilities, problem.arms), "probabilities")
            _check_places(rows, arms, problem)
        if propensity is None:
            if rows is None:
                raise ValueError("give propensity=, or probabilities= with the whole row for every decision")
            propensity = rows[np.arange(len(arms)), arms]
        columns: Columns = {
            "context": contexts,
            "arm": arms,
            "propensity": _numbers(propensity, "propensity"),
            "reward": _numbers([np.nan if _is_nothing(r) else r for r in _listed(reward, "reward")], "reward"),
            "probabilities": rows,
            "holdout": np.zeros(n, dtype=bool) if holdout is None else _truths(holdout),
            "version": np.zeros(n, dtype=np.int64) if version is None else _wholes(version),
        }
        (found,) = answered(rescaled([columns], tolerance), missing)
        return cls(problem=problem, **found)

    @classmethod
    def from_rows(
        cls,
        problem: Problem,
        rows: Iterable[Row],
        *,
        missing: Missing = "refuse",
        tolerance: float = 0.0,
        folder: str | Path | None = None,
    ) -> Self:
        """Make it from rows of a log in their order, as `bothworlds.logs.read` and `joined` give them.

        Where a row has no whole vector of probabilities, propensities are all that is known. ``missing`` and
        ``tolerance`` are as `from_columns` has them. An id that stands there twice is refused. ``rows`` may be any
        iterator: some rows are in memory at a time. With ``folder`` the columns are, too: they are written to files
        there and read where they are looked at (`from_folder` finds them again), so that memory does not grow with
        the number of rows; then ids are not compared.
        """
        parts = answered(rescaled(columns_of(problem, rows, once=folder is None), tolerance), missing)
        if folder is None:
            return cls(problem=problem, **in_memory(parts, problem))
        in_files(parts, problem, Path(folder))
        return cls.from_folder(problem, folder)

    @classmethod
    def from_folder(cls, problem: Problem, folder: str | Path) -> Self:
        """Make it from the files that `from_rows` has left in a folder."""
        return cls(problem=problem, folder=Path(folder), **from_files(Path(folder), problem))

    @classmethod
    def from_log(
        cls,
        problem: Problem,
        log: Log,
        *,
        missing: Missing = "refuse",
        tolerance: float = 0.0,
        folder: str | Path | None = None,
    ) -> Self:
        """Make it from a log: every decision once; of several rewards the last, a correction, that lies in the range.

        What was decided before a policy's problem was last changed (`bothworlds.logs.Change`) is left out: it was
        another problem. The rest is as `from_rows` has it.
        """
        rows = decisions(log, tolerance=tolerance, reward_range=problem.reward_range or (-1.0, 1.0))
        return cls.from_rows(problem, rows, missing=missing, tolerance=tolerance, folder=folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process: by the name of the folder where there is one."""
        if self.folder is not None:
            return type(self).from_folder, (self.problem, self.folder)
        return super().__reduce__()  # type: ignore[return-value]

    @property
    def rows(self) -> int:
        """How many decisions there are."""
        return len(self.arm)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(lowest, highest) reward: the problem's, or (-1, 1)."""
        return self.problem.reward_range or (-1.0, 1.0)

    def scaled(self, where: slice) -> Floats:
        """Return the rewards of some rows, scaled to [0, 1]. Internal."""
        low, high = self.reward_range
        return (self.reward[where] - low) / (high - low)

    def part(self, where: Any) -> Self:
        """Return some of the rows: a slice, or a column of truth values, say ``logged.part(logged.holdout)``."""
        rows = None if self.probabilities is None else self.probabilities[where]
        names = ("context", "arm", "propensity", "reward", "holdout", "version")
        columns = {name: getattr(self, name)[where] for name in names}
        return type(self)(problem=self.problem, probabilities=rows, **columns)

    def __repr__(self) -> str:
        what = "propensities only" if self.probabilities is None else "whole rows of probabilities"
        return f"Logged({self.rows:,} rows, {self.problem.n_contexts} contexts, {self.problem.n_arms} arms, {what})"


def decisions(log: Log, *, tolerance: float = 0.0, reward_range: tuple[float, float] | None = None) -> Iterator[Row]:
    """Yield every decision of a log since the last change of the problem once, with its last reward, as decided.

    That is the last in ``reward_range``, where one is; probabilities may be rounded by ``tolerance``.
    """
    if not log.path.exists():
        return iter(())
    return read_of_now(log.path, reward_range=reward_range, tolerance=max(TOLERANCE, tolerance))


def _listed(values: Any, name: str) -> Any:
    """Return a column as a sequence."""
    if isinstance(values, np.ndarray | list | tuple):
        return values
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a column, one entry for each row; got {values!r:.60}") from None


def _is_nothing(value: Any) -> bool:
    """Tell None and what pandas has in its place, which is equal to nothing, neither true nor false."""
    return value is None or type(value).__name__ in MISSING


def _is_mixed(values: Any) -> bool:
    """Tell a column whose entries may be of any kind."""
    return not isinstance(values, np.ndarray) or (values.dtype == object and values.ndim == 1)


def _numbers(values: Any, name: str) -> Floats:
    """Return a column of numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one entry for each row; got {values!r:.60}") from None


def _truths(values: Any) -> Bools:
    """Return a column of truth values; refuse texts, and what is missing, which would all pass for true."""
    listed = _listed(values, "holdout")
    found = np.asarray([None if _is_nothing(one) else one for one in listed] if _is_mixed(listed) else listed)
    if found.dtype != np.bool_ and not all(one in (0, 1) for one in found.ravel().tolist()):
        raise ValueError(f"holdout must be true or false in every row; got {values!r:.60}")
    return found.astype(bool)


def _wholes(values: Any) -> Ints:
    """Return a column of whole numbers."""
    found = _numbers(values, "version")
    if not ((found == np.floor(found)) & (np.abs(found) < 2.0**53)).all():
        raise ValueError(f"version must be a whole number in every row; got {values!r:.60}")
    return found.astype(np.int64)


def _contexts(problem: Problem, given: Any) -> Ints:
    """Return the indices of contexts."""
    if isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.integer):
        return given.astype(np.int64)
    found = problem.context_indices(given if hasattr(given, "columns") else list(given))
    return np.atleast_1d(np.array(found, dtype=np.int64))


def _arms(problem: Problem, given: Any) -> Ints:
    """Return the indices of arms given by name or index."""
    if isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.integer):
        return given.astype(np.int64)
    place: dict[Any, int] = {**{a: a for a in range(problem.n_arms)}, **{n: a for a, n in enumerate(problem.arms)}}
    try:
        return np.array([place[_no_truth(one)] for one in _listed(given, "arm")], dtype=np.int64)
    except (KeyError, TypeError) as error:
        raise ValueError(f"unknown arm {error}; the arms are {', '.join(problem.arms[:8])}") from None


def _no_truth(one: Any) -> Any:
    """Return what an arm was called; truth values are neither names nor indices, though equal to some."""
    if isinstance(one, bool | np.bool_):
        raise KeyError(one)
    return one


def _check_places(rows: Floats, arms: Ints, problem: Problem) -> None:
    """Refuse rows of probabilities in which the arms have no place."""
    if rows.shape != (len(arms), problem.n_arms):
        raise ValueError(
            f"probabilities must have shape ({len(arms)}, {problem.n_arms}), rows and arms; got {rows.shape}"
        )
    _check_column(arms, "arm", 0, problem.n_arms - 1, "is no arm of the problem")


def _check_lengths(log: Logged) -> None:
    """Refuse columns that do not fit together."""
    n, K = len(log.arm), log.problem.n_arms
    for name in ("context", "propensity", "reward", "holdout", "version"):
        if getattr(log, name).shape != (n,):
            raise ValueError(f"all columns have one entry per row; arm has {n}, {name} {getattr(log, name).shape}")
    if log.probabilities is not None and log.probabilities.shape != (n, K):
        raise ValueError(f"probabilities must have shape ({n}, {K}), rows and arms; got {log.probabilities.shape}")


def _check_values(log: Logged) -> None:
    """Refuse indices, propensities and rewards that cannot be."""
    low, high = log.reward_range
    limits = {
        "context": (0, log.problem.n_contexts - 1, "is no context of the problem"),
        "arm": (0, log.problem.n_arms - 1, "is no arm of the problem"),
        "propensity": (RAREST, 1.0 + CLOSE, f"is not in (0, 1], or below {RAREST:g}, and would never have come"),
        "reward": (low, high, f"is not in [{low:g}, {high:g}], the range of rewards"),
    }
    for name, (least, most, what) in limits.items():
        _check_column(getattr(log, name), name, least, most, what)


def _check_offers(log: Logged) -> None:
    """Refuse arms that were chosen, or could have been, where the problem does not offer them."""
    offered = log.problem.available
    if offered.all():
        return

    def strange(part: slice) -> Bools:
        arms = np.arange(log.problem.n_arms)
        played = (arms == log.arm[part, None]) if log.probabilities is None else log.probabilities[part] != 0.0
        return np.asarray(played & ~offered[log.context[part]])

    def said(i: int) -> str:
        arm = log.problem.arms[strange(slice(i, i + 1))[0].argmax()]
        what = f"context {log.problem.contexts[log.context[i]]!r}, where the problem does not offer it"
        return f"arm {arm!r} was chosen, or could have been, in {what}; offer it, or leave such rows out"

    _refuse(log.rows, lambda part: np.asarray(strange(part).any(axis=1)), said)


def _check_column(column: Any, name: str, least: float, most: float, what: str) -> None:
    def wrong(part: slice) -> Bools:
        return np.asarray(~((column[part] >= least) & (column[part] <= most)))

    _refuse(len(column), wrong, lambda i: f"{name} {column[i].item()!r} {what}")


def _check_probabilities(log: Logged) -> None:
    """Refuse rows of probabilities that are none, or have another place for the propensity."""
    table = log.probabilities
    assert table is not None

    def wrong(part: slice) -> Bools:
        return np.asarray(~((table[part] >= 0.0).all(axis=1) & (np.abs(table[part].sum(axis=1) - 1.0) <= CLOSE)))

    def other(part: slice) -> Bools:
        own, p = np.take_along_axis(table[part], log.arm[part, None], axis=1)[:, 0], log.propensity[part]
        return np.asarray(np.abs(own - p) > CLOSE * p)

    _refuse(log.rows, wrong, lambda i: f"probabilities {table[i].tolist()} are no distribution (tolerance= if rounded)")
    _refuse(
        log.rows,
        other,
        lambda i: (
            f"propensity {log.propensity[i].item()!r} is not the probability {table[i, log.arm[i]].item()!r} "
            "of the arm chosen"
        ),
    )


def _refuse(rows: int, wrong: Callable[[slice], Bools], said: Callable[[int], str]) -> None:
    """Refuse a log some rows of which are wrong: say what is with the first, and how many there are."""
    found = [part.start + np.flatnonzero(wrong(part)) for part in pieces(rows)]
    if count := sum(map(len, found)):
        first = int(next(places[0] for places in found if len(places)))
        raise ValueError(f"row {first}: {said(first)}; {count} such rows")


def pieces(stop: int, size: int = 1 << 15, *, start: int = 0) -> list[slice]:
    """Return the rows from one to another cut into pieces that fit into fast memory."""
    return [slice(begin, min(begin + size, stop)) for begin in range(start, stop, size)]
