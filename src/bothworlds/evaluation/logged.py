"""A log as columns: all that evaluation looks at, whatever the format of the file it comes from."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats, Ints
from bothworlds.logs import Log, Row, joined
from bothworlds.problem import Problem

CLOSE = 1e-6  # how far probabilities of a row may be from 1, and a propensity from its place in the row
Missing = float | Literal["refuse", "drop"]
Holdouts = Literal["all", "only", "none"]


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
        Whether the row was decided apart from the policy, and after how many rewards.

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

    def __post_init__(self) -> None:
        _check_lengths(self)
        _check_values(self)
        if self.probabilities is not None:
            _check_probabilities(self)

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
    ) -> Self:
        """Make it from columns: lists, arrays, columns of a DataFrame.

        Parameters
        ----------
        context
            Names, indices, or rows as `Problem.context_indices` takes them.
        arm
            Names or indices.
        reward
            Numbers; None or not-a-number where none came.
        propensity, probabilities
            One of them at least; the propensity is read from the whole row of probabilities where that is given.
        missing
            What a row without a reward means: a number, say 0 for "no click", "drop" to leave it out, which is right
            only if rewards get lost whatever they are, or "refuse".
        """
        contexts, arms = _contexts(problem, context), _arms(problem, arm)
        n = len(contexts)
        rewards = np.array([np.nan if r is None else r for r in _listed(reward)], dtype=np.float64)
        rows = None if probabilities is None else np.asarray(probabilities, dtype=np.float64)
        if propensity is None:
            if rows is None:
                raise ValueError("give propensity=, or probabilities= with the whole row for every decision")
            propensity = rows[np.arange(n), arms]
        columns: dict[str, Any] = {
            "context": contexts,
            "arm": arms,
            "propensity": np.asarray(propensity, dtype=np.float64),
            "holdout": np.zeros(n, dtype=bool) if holdout is None else np.asarray(holdout, dtype=bool),
            "version": np.zeros(n, dtype=np.int64) if version is None else np.asarray(version, dtype=np.int64),
        }
        known = ~np.isnan(rewards)
        if not known.all() and missing == "refuse":
            raise ValueError(
                f"{int((~known).sum())} of {n} rows have no reward; say what that means: missing=0 where silence is a "
                "reward of 0, missing='drop' to leave them out"
            )
        if missing == "drop":
            columns = {name: column[known] for name, column in columns.items()}
            rewards, rows = rewards[known], None if rows is None else rows[known]
        elif missing != "refuse":
            rewards = np.where(known, rewards, float(missing))
        return cls(problem=problem, reward=rewards, probabilities=rows, **columns)

    @classmethod
    def from_rows(cls, rows: Iterable[Row], problem: Problem, *, missing: Missing = "refuse") -> Self:
        """Make it from rows of a log, as `bothworlds.logs.read` and `joined` give them.

        Where a row has no whole vector of probabilities, propensities are all that is known.
        """
        found = list(rows)
        place = {name: a for a, name in enumerate(problem.arms)}
        table = np.zeros((len(found), problem.n_arms))
        for i, row in enumerate(found):
            if row.context is None:
                raise ValueError(f"row {row.id!r} has features and no context; evaluation needs listed contexts")
            unknown = [name for name in (*row.offered, row.arm) if name not in place]
            if unknown:
                raise ValueError(f"row {row.id!r}: unknown arm {unknown[0]!r}; the arms are {', '.join(place)}")
            if row.probabilities:
                table[i, [place[name] for name in row.offered]] = row.probabilities
        return cls.from_columns(
            problem,
            context=np.array([problem.context_index(row.context) for row in found], dtype=np.int64),
            arm=np.array([place[row.arm] for row in found], dtype=np.int64),
            reward=[row.reward for row in found],
            propensity=[row.propensity for row in found],
            probabilities=table if all(row.probabilities for row in found) else None,
            holdout=[row.holdout for row in found],
            version=[row.version for row in found],
            missing=missing,
        )

    @classmethod
    def from_log(cls, log: Log, problem: Problem, *, missing: Missing = "refuse") -> Self:
        """Make it from a log: every decision once, with its first reward."""
        return cls.from_rows(joined(record for record, _ in log.read()), problem, missing=missing)

    @property
    def rows(self) -> int:
        """How many decisions there are."""
        return len(self.arm)

    @property
    def reward_range(self) -> tuple[float, float]:
        """(lowest, highest) reward: the problem's, or (-1, 1)."""
        return self.problem.reward_range or (-1.0, 1.0)

    @cached_property
    def scaled(self) -> Floats:
        """Rewards scaled to [0, 1]."""
        low, high = self.reward_range
        return (self.reward - low) / (high - low)

    def part(self, where: Any) -> Self:
        """Return some of the rows: a slice, or a column of truth values."""
        rows = None if self.probabilities is None else self.probabilities[where]
        names = ("context", "arm", "propensity", "reward", "holdout", "version")
        columns = {name: getattr(self, name)[where] for name in names}
        return type(self)(problem=self.problem, probabilities=rows, **columns)

    def holdouts(self, which: Holdouts) -> Self:
        """Return all rows, those of the holdout only, or none of them."""
        if which not in ("all", "only", "none"):
            raise ValueError(f"holdouts are 'all', 'only' or 'none'; got {which!r}")
        return self if which == "all" else self.part(self.holdout == (which == "only"))

    def __repr__(self) -> str:
        what = "propensities only" if self.probabilities is None else "whole rows of probabilities"
        return f"Logged({self.rows:,} rows, {self.problem.n_contexts} contexts, {self.problem.n_arms} arms, {what})"


def _listed(values: Any) -> Any:
    """Return a column as a sequence."""
    return values if isinstance(values, np.ndarray | list | tuple) else list(values)


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
        return np.array([place[one] for one in _listed(given)], dtype=np.int64)
    except KeyError as error:
        raise ValueError(f"unknown arm {error}; the arms are {', '.join(problem.arms[:8])}") from None


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
    for name, good, what in (
        ("context", (log.context >= 0) & (log.context < log.problem.n_contexts), "is no context of the problem"),
        ("arm", (log.arm >= 0) & (log.arm < log.problem.n_arms), "is no arm of the problem"),
        ("propensity", (log.propensity > 0.0) & (log.propensity <= 1.0 + CLOSE), "is not in (0, 1]"),
        ("reward", (log.reward >= low) & (log.reward <= high), f"is not in [{low:g}, {high:g}], the range of rewards"),
    ):
        if not good.all():
            i = int(np.flatnonzero(~good)[0])
            raise ValueError(f"row {i}: {name} {getattr(log, name)[i]!r} {what}; {int((~good).sum())} such rows")


def _check_probabilities(log: Logged) -> None:
    """Refuse rows of probabilities that are none, or have another place for the propensity."""
    table = log.probabilities
    assert table is not None
    wrong = ~((table >= 0.0).all(axis=1) & (np.abs(table.sum(axis=1) - 1.0) <= CLOSE))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"row {i}: probabilities {table[i].tolist()} are no distribution; {int(wrong.sum())} such rows"
        )
    other = np.abs(table[np.arange(len(table)), log.arm] - log.propensity) > CLOSE * log.propensity
    if other.any():
        i = int(np.flatnonzero(other)[0])
        raise ValueError(
            f"row {i}: propensity {log.propensity[i]!r} is not the probability {table[i, log.arm[i]]!r} of the arm "
            f"chosen; {int(other.sum())} such rows"
        )
