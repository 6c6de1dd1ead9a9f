"""A log as columns, independent of the format of its file."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Bools, Floats, Ints
from bothworlds.evaluation.log_columns import (
    Columns,
    Missing,
    columns_of,
    from_files,
    in_files,
    in_memory,
    rescaled,
    with_rewards,
)
from bothworlds.logs import Log, Row
from bothworlds.logs.column_mapping import MISSING
from bothworlds.logs.json_lines import read_current
from bothworlds.logs.validation import TOLERANCE
from bothworlds.problem import Problem
from bothworlds.problem.frames import names_of_columns, values_of
from bothworlds.problem.lookup import columns_in_order

CLOSE = 1e-6  # largest distance of a sum of probabilities from 1, and of a propensity from the arm's probability
RAREST = 1e-30  # an arm with a smaller propensity is practically never chosen; its weight would dominate all others


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
        The rewards, in the problem's units.
    probabilities
        The whole row of probabilities, shape (rows, arms), zero for arms that were not offered; None if only the
        propensity is known. Doubly robust intervals, support and calibration need it.
    holdout, version
        Whether the decision was held out, and the version of the plan that took it.
    folder
        The folder of the columns, if they are in files.

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
        """Return the log with these columns: lists, arrays, columns of a data frame (pandas, Polars, Arrow).

        Parameters
        ----------
        context
            Names, indices, or rows as `Problem.context_indices` takes them.
        arm
            Names or indices.
        reward
            Numbers; None, pandas' NA or not-a-number if the reward is missing.
        propensity, probabilities
            At least one of them; without a propensity it is the arm's entry in the row of probabilities. Named columns
            of a DataFrame are matched to arms by name.
        missing
            What becomes of rows without a reward: a number is the reward to assume, for example 0 for "no click";
            "drop" leaves them out, which is right only if rewards get lost independently of their values; "refuse"
            raises.
        tolerance
            For rounded logs: a row of probabilities whose sum is within this distance of one is divided by its sum,
            and a propensity within this distance of the arm's probability is replaced by it. Weights keep the rounding
            error: a tenth, if 0.05 was written for 0.045.
        """
        contexts, arms = _contexts(problem, context), _arms(problem, arm)
        n = len(contexts)
        rows = None
        if probabilities is not None:
            rows = _numbers(columns_in_order(probabilities, problem.arms), "probabilities")
            _check_shape(rows, arms, problem)
        if propensity is None:
            if rows is None:
                raise ValueError("give propensity=, or probabilities= with the whole row for every decision")
            propensity = rows[np.arange(len(arms)), arms]
        columns: Columns = {
            "context": contexts,
            "arm": arms,
            "propensity": _numbers(propensity, "propensity"),
            "reward": _numbers([np.nan if _is_missing(r) else r for r in _listed(reward, "reward")], "reward"),
            "probabilities": rows,
            "holdout": np.zeros(n, dtype=bool) if holdout is None else _booleans(holdout),
            "version": np.zeros(n, dtype=np.int64) if version is None else _integers(version),
        }
        (complete,) = with_rewards(rescaled([columns], tolerance), missing)
        return cls(problem=problem, **complete)

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
        """Return the log with these rows in their order, as `bothworlds.logs.read` and `joined` yield them.

        If a row has no whole vector of probabilities, the log has propensities only. ``missing`` and ``tolerance`` are
        those of `from_columns`. An id that occurs twice is refused. ``rows`` may be any iterator; they are read in
        batches. With ``folder`` the columns are written to files there and memory-mapped (`from_folder` opens them
        again), so that memory does not grow with the number of rows; ids are then not compared.
        """
        parts = with_rewards(rescaled(columns_of(problem, rows, unique=folder is None), tolerance), missing)
        if folder is None:
            return cls(problem=problem, **in_memory(parts, problem))
        in_files(parts, problem, Path(folder))
        return cls.from_folder(problem, folder)

    @classmethod
    def from_folder(cls, problem: Problem, folder: str | Path) -> Self:
        """Open the files that `from_rows` has written to a folder."""
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
        """Return the decisions of a log, each once; of several rewards the last one in the range counts, a correction.

        Decisions from before the last change of the policy's problem (`bothworlds.logs.Change`) are left out: they are
        for another problem. The other parameters are those of `from_rows`.
        """
        rows = decisions(log, tolerance=tolerance, reward_range=problem.reward_range or (-1.0, 1.0))
        return cls.from_rows(problem, rows, missing=missing, tolerance=tolerance, folder=folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the name of the folder if the columns are in files."""
        if self.folder is not None:
            return type(self).from_folder, (self.problem, self.folder)
        return super().__reduce__()  # type: ignore[return-value]

    @property
    def rows(self) -> int:
        """Number of decisions."""
        return len(self.arm)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(lowest, highest) reward: the problem's, or (-1, 1)."""
        return self.problem.reward_range or (-1.0, 1.0)

    @internal
    def scaled(self, where: slice) -> Floats:
        """Return the rewards of some rows, scaled to [0, 1]."""
        low, high = self.reward_range
        return (self.reward[where] - low) / (high - low)

    def part(self, where: Any) -> Self:
        """Return some of the rows, by a slice or a column of booleans, such as ``logged.part(logged.holdout)``."""
        rows = None if self.probabilities is None else self.probabilities[where]
        names = ("context", "arm", "propensity", "reward", "holdout", "version")
        columns = {name: getattr(self, name)[where] for name in names}
        return type(self)(problem=self.problem, probabilities=rows, **columns)

    def __repr__(self) -> str:
        what = "propensities only" if self.probabilities is None else "whole rows of probabilities"
        return f"Logged({self.rows:,} rows, {self.problem.n_contexts} contexts, {self.problem.n_arms} arms, {what})"


def decisions(log: Log, *, tolerance: float = 0.0, reward_range: tuple[float, float] | None = None) -> Iterator[Row]:
    """Yield every decision of a log since the last change of the problem, in order, with its last reward.

    Rewards outside ``reward_range`` do not count; probabilities may be rounded by ``tolerance``.
    """
    if not log.path.exists():
        return iter(())
    return read_current(log.path, reward_range=reward_range, tolerance=max(TOLERANCE, tolerance))


def _listed(values: Any, name: str) -> Any:
    """Return a column as a sequence."""
    if isinstance(values, np.ndarray | list | tuple):
        return values
    try:
        return list(values_of(values))
    except TypeError:
        raise ValueError(f"{name} must be a column, one entry for each row; got {values!r:.60}") from None


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, or pandas' NA, which equals nothing and is neither true nor false."""
    return value is None or type(value).__name__ in MISSING


def _is_mixed(values: Any) -> bool:
    """Return whether the entries of a column may have different types."""
    return not isinstance(values, np.ndarray) or (values.dtype == object and values.ndim == 1)


def _numbers(values: Any, name: str) -> Floats:
    """Return a column of numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one entry for each row; got {values!r:.60}") from None


def _booleans(values: Any) -> Bools:
    """Return a column of booleans; refuse texts and missing values, which would all convert to true."""
    listed = _listed(values, "holdout")
    column = np.asarray([None if _is_missing(value) else value for value in listed] if _is_mixed(listed) else listed)
    if column.dtype != np.bool_ and not all(value in (0, 1) for value in column.ravel().tolist()):
        raise ValueError(f"holdout must be true or false in every row; got {values!r:.60}")
    return column.astype(bool)


def _integers(values: Any) -> Ints:
    """Return a column of whole numbers."""
    column = _numbers(values, "version")
    if not ((column == np.floor(column)) & (np.abs(column) < 2.0**53)).all():
        raise ValueError(f"version must be a whole number in every row; got {values!r:.60}")
    return column.astype(np.int64)


def _contexts(problem: Problem, given: Any) -> Ints:
    """Return the indices of contexts."""
    if isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.integer):
        return given.astype(np.int64)
    indices = problem.context_indices(given if names_of_columns(given) is not None else list(values_of(given)))
    return np.atleast_1d(np.array(indices, dtype=np.int64))


def _arms(problem: Problem, given: Any) -> Ints:
    """Return the indices of arms given by name or index."""
    if isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.integer):
        return given.astype(np.int64)
    index: dict[Any, int] = {**{a: a for a in range(problem.n_arms)}, **{n: a for a, n in enumerate(problem.arms)}}
    try:
        return np.array([index[_not_boolean(arm)] for arm in _listed(given, "arm")], dtype=np.int64)
    except (KeyError, TypeError) as error:
        raise ValueError(f"unknown arm {error}; the arms are {', '.join(problem.arms[:8])}") from None


def _not_boolean(arm: Any) -> Any:
    """Return an arm's name or index; refuse booleans, which are neither but equal 0 or 1."""
    if isinstance(arm, bool | np.bool_):
        raise KeyError(arm)
    return arm


def _check_shape(rows: Floats, arms: Ints, problem: Problem) -> None:
    """Refuse probabilities of the wrong shape, and arms that are not columns of them."""
    if rows.shape != (len(arms), problem.n_arms):
        raise ValueError(
            f"probabilities must have shape ({len(arms)}, {problem.n_arms}), rows and arms; got {rows.shape}"
        )
    _check_column(arms, "arm", 0, problem.n_arms - 1, "is no arm of the problem")


def _check_lengths(log: Logged) -> None:
    """Refuse columns of different lengths."""
    n, K = len(log.arm), log.problem.n_arms
    for name in ("context", "propensity", "reward", "holdout", "version"):
        if getattr(log, name).shape != (n,):
            raise ValueError(f"all columns have one entry per row; arm has {n}, {name} {getattr(log, name).shape}")
    if log.probabilities is not None and log.probabilities.shape != (n, K):
        raise ValueError(f"probabilities must have shape ({n}, {K}), rows and arms; got {log.probabilities.shape}")


def _check_values(log: Logged) -> None:
    """Refuse indices, propensities and rewards out of range."""
    low, high = log.reward_range
    limits = {
        "context": (0, log.problem.n_contexts - 1, "is no context of the problem"),
        "arm": (0, log.problem.n_arms - 1, "is no arm of the problem"),
        "propensity": (
            RAREST,
            1.0 + CLOSE,
            f"is not in (0, 1], or is below {RAREST:g}, so that the arm would never have been chosen",
        ),
        "reward": (low, high, f"is not in [{low:g}, {high:g}], the range of rewards"),
    }
    for name, (least, most, what) in limits.items():
        _check_column(getattr(log, name), name, least, most, what)


def _check_offers(log: Logged) -> None:
    """Refuse rows in which an arm was chosen, or could have been, that the problem does not offer in their context."""
    offered = log.problem.available
    if offered.all():
        return

    def not_offered(part: slice) -> Bools:
        arms = np.arange(log.problem.n_arms)
        played = (arms == log.arm[part, None]) if log.probabilities is None else log.probabilities[part] != 0.0
        return np.asarray(played & ~offered[log.context[part]])

    def message(i: int) -> str:
        arm = log.problem.arms[not_offered(slice(i, i + 1))[0].argmax()]
        context = log.problem.contexts[log.context[i]]
        where = f"context {context!r}, where the problem does not offer it"
        return f"arm {arm!r} was chosen, or could have been, in {where}; offer it, or leave such rows out"

    _refuse(log.rows, lambda part: np.asarray(not_offered(part).any(axis=1)), message)


def _check_column(column: Any, name: str, least: float, most: float, what: str) -> None:
    def wrong(part: slice) -> Bools:
        return np.asarray(~((column[part] >= least) & (column[part] <= most)))

    _refuse(len(column), wrong, lambda i: f"{name} {column[i].item()!r} {what}")


def _check_probabilities(log: Logged) -> None:
    """Refuse rows that are not distributions, or that disagree with the propensity."""
    table = log.probabilities
    assert table is not None

    def wrong(part: slice) -> Bools:
        return np.asarray(~((table[part] >= 0.0).all(axis=1) & (np.abs(table[part].sum(axis=1) - 1.0) <= CLOSE)))

    def differs(part: slice) -> Bools:
        chosen, p = np.take_along_axis(table[part], log.arm[part, None], axis=1)[:, 0], log.propensity[part]
        return np.asarray(np.abs(chosen - p) > CLOSE * p)

    _refuse(
        log.rows, wrong, lambda i: f"probabilities {table[i].tolist()} are not a distribution (tolerance= if rounded)"
    )
    _refuse(
        log.rows,
        differs,
        lambda i: (
            f"propensity {log.propensity[i].item()!r} is not the probability {table[i, log.arm[i]].item()!r} "
            "of the arm chosen"
        ),
    )


def _refuse(rows: int, wrong: Callable[[slice], Bools], message: Callable[[int], str]) -> None:
    """Raise if any row is wrong, with the message for the first one and the number of wrong rows."""
    wrong_rows = [part.start + np.flatnonzero(wrong(part)) for part in chunks(rows)]
    if count := sum(map(len, wrong_rows)):
        first = int(next(part[0] for part in wrong_rows if len(part)))
        raise ValueError(f"row {first}: {message(first)}; {count} such rows")


def chunks(stop: int, size: int = 1 << 15, *, start: int = 0) -> list[slice]:
    """Return slices of the rows from ``start`` to ``stop`` that fit into the processor's cache."""
    return [slice(begin, min(begin + size, stop)) for begin in range(start, stop, size)]
