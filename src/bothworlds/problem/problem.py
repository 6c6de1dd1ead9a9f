"""`Problem`: contexts, context distribution, arms, features and reward range, known before the first round."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from bothworlds._hooks import provided
from bothworlds.arrays import Bools, Floats
from bothworlds.problem import block_features, checks, file_format
from bothworlds.problem.cards import card, listed
from bothworlds.problem.feature_space import Span, span_of, with_constant
from bothworlds.problem.lookup import (
    VALUES,
    find_all,
    find_unlisted,
    numbers_in_order,
    table_in_order,
    warn_of_many,
    warn_of_numbers,
)
from bothworlds.problem.rewards import loss_of, reward_per_loss
from bothworlds.problem.rows import ContextRows, from_header, header_of
from bothworlds.problem.sample import FeatureMap, is_missing
from bothworlds.problem.tabular import tabular


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem:
    """A linear contextual bandit problem with finitely many contexts (Assumptions 1.1, 2.2, 2.3).

    Parameters
    ----------
    features
        phi(a, x), shape (contexts, arms, dimension).
    probabilities
        g(x), shape (contexts,), positive, summing to 1; a dictionary, or a Series with names, is matched by name.
    contexts, arms
        Names; "0", "1", ... by default.
    available
        Boolean (contexts, arms): False where an arm is not offered; a DataFrame with names is matched by name.
    reward_range
        (lowest, highest) reward in the user's units, say (0, 1) for clicks. Losses in [-1, 1] are then
        loss = (lo + hi - 2 reward)/(hi - lo). The shift needs a constant feature; if the features cannot express
        one, it is added and ``notes`` says so. Without ``reward_range``, loss = -reward.
    rows
        The table rows of the contexts, as `from_sample` stores them; contexts can then be given as rows.
    other
        The context used for every name or row that is not in the list; without it, unknown contexts are an error.

    Examples
    --------
    >>> problem = Problem(
    ...     features=[[[1, 0], [0, 1]], [[1, 1], [0, 1]]], probabilities=[0.25, 0.75], contexts=["day", "night"]
    ... )
    >>> problem
    Problem(2 contexts, 2 arms, 2 features, rarity 4)
    >>> problem.context_index("night")
    1
    """

    features: Floats
    probabilities: Floats
    contexts: tuple[str, ...]
    arms: tuple[str, ...]
    available: Bools
    reward_range: tuple[float, float] | None
    rows: ContextRows | None
    other: str | None
    notes: tuple[str, ...]

    def __init__(
        self,
        *,
        features: Any,
        probabilities: Any,
        contexts: Sequence[Any] | None = None,
        arms: Sequence[Any] | None = None,
        available: Any = None,
        reward_range: tuple[float, float] | None = None,
        rows: ContextRows | None = None,
        other: str | None = None,
    ) -> None:
        phi = checks.frozen_array(features, "features")
        checks.check_features(phi)
        S, K, _ = phi.shape
        context_names, arm_names = checks.names_of(contexts, S, "context"), checks.names_of(arms, K, "arm")
        g = checks.frozen_array(numbers_in_order(probabilities, context_names, "context"), "probabilities")
        checks.check_probabilities(g, S)
        offered = checks.availability(table_in_order(available, context_names, arm_names), (S, K))
        limits = checks.check_reward_range(reward_range)
        if not isinstance(rows, ContextRows | None):
            raise ValueError(
                f"rows must be ContextRows, which Problem.from_sample makes from a table; got {rows!r:.80}"
            )
        phi, notes = with_constant(phi, offered, limits)
        values = {
            "features": phi,
            "probabilities": g,
            "contexts": context_names,
            "arms": arm_names,
            "available": offered,
            "reward_range": limits,
            "rows": rows,
            "other": other,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        checks.check_catch_all(self.contexts, other, rows=None if rows is None else len(rows.rows))
        object.__setattr__(self, "notes", notes + self.span.notes)

    @classmethod
    def from_arm_independent(
        cls, features: Any, *, probabilities: Any, arms: Sequence[Any] | int, **options: Any
    ) -> Self:
        """Build a problem from one feature vector per context; each arm has its own parameters (Theorem 4.5).

        ``features`` has shape (contexts, dimension); ``arms`` are names or their number.
        """
        x = checks.frozen_array(features, "features")
        if x.ndim != 2:
            raise ValueError(f"arm-independent features must have shape (contexts, dimension); got {x.shape}")
        names = _arm_names(arms)
        limits = checks.check_reward_range(options.get("reward_range"))
        every = np.ones((len(x), 1), dtype=bool)
        wider, notes = with_constant(x[:, None, :], every, limits)
        phi = block_features.block_features(wider[:, 0, :], len(names))
        return cls(features=phi, probabilities=probabilities, arms=names, **options)._with_notes(notes)

    @classmethod
    def from_sample(
        cls,
        rows: Any,
        *,
        arms: Sequence[Any] | int,
        features: FeatureMap | None = None,
        weights: Any = None,
        numeric: Sequence[str | int] = (),
        other: str | None = None,
        rare: float = 0.0,
        **options: Any,
    ) -> Self:
        """Build a problem from a table or a sample of contexts: distinct rows are the contexts, frequencies their g(x).

        Parameters
        ----------
        rows
            A data frame (pandas, Polars, Arrow), a two-dimensional array, or a sequence of rows or of single values.
        arms
            Names, or their number.
        features
            A function (row, arm) -> vector; rows of a data frame are given as dictionaries. By default every arm
            has its own linear model in a constant, the numeric columns, and an indicator for each category of the
            others. Columns of whole numbers are categories, and ``notes`` says so.
        weights
            Number of visits of each row; 1 by default.
        numeric
            Columns of whole numbers that are amounts, by name or position.
        other
            The context for rows that are not in the sample: one of the contexts, or a new one for the rare rows.
        rare
            Rows with a smaller share of the sample become ``other``, with their mean features.

        >>> problem = Problem.from_sample(["mobile", "desktop", "mobile", "mobile"], arms=["red", "blue"])
        >>> problem.contexts, problem.probabilities.tolist(), problem.dimension
        (('mobile', 'desktop'), [0.75, 0.25], 4)
        """
        names = _arm_names(arms)
        parts = tabular(rows, names, features=features, weights=weights, numeric=numeric, other=other, rare=rare)
        warn_of_numbers(parts.options["rows"])
        make = cls.from_arm_independent if features is None else cls
        problem = make(features=parts.features, arms=names, **{**parts.options, **options})._with_notes(parts.notes)
        warn_of_many(parts.n_rows, problem.features.shape, parts.options["rows"], weighted=weights is not None)
        return problem

    def _with_notes(self, notes: tuple[str, ...]) -> Self:
        """Put notes before those of the problem, and return it."""
        object.__setattr__(self, "notes", notes + self.notes)
        return self

    def arm_independent_features(self) -> Floats:
        """Return the problem as P.Indep (Theorem 4.5): one feature vector per context.

        Shape (contexts, dimension). A problem made by `from_arm_independent` returns its original features; any
        other is stacked into dimension times arms dimensions, with a warning if the result is degenerate.
        """
        original = block_features.undo_blocks(self.features)
        return block_features.stacked_features(self.features) if original is None else original

    def with_probabilities(self, probabilities: Any) -> Self:
        """Return the same problem with another context distribution: same features, arms, names and coordinates."""
        problem = type(self)(**{**self._options(), "probabilities": probabilities})
        object.__setattr__(problem, "notes", self.notes)
        return problem

    def without_arms(self, arms: Iterable[str]) -> Self:
        """Return the same problem without the named arms; for ``policy.change``.

        >>> problem = Problem(features=[[[1, 0], [0, 1], [1, 1]]], probabilities=[1], arms=["a", "b", "c"])
        >>> problem.without_arms(["b"]).arms
        ('a', 'c')
        """
        removed = dict.fromkeys([arms] if isinstance(arms, str) else arms)
        unknown = [name for name in removed if name not in self.arms]
        if unknown:
            raise ValueError(f"there is no arm {unknown[0]!r} to leave out; the arms are {', '.join(self.arms[:8])}")
        kept = [a for a, name in enumerate(self.arms) if name not in removed]
        parts = {"features": self.features[:, kept], "available": self.available[:, kept]}
        return type(self)(**{**self._options(), **parts, "arms": [self.arms[a] for a in kept]})

    def with_arms(self, features: Mapping[str, Any]) -> Self:
        """Return the same problem with more arms, given as features by name: (contexts, columns), or (columns,).

        The columns are those of this problem, including a constant that was added. If every arm has its own columns,
        build a new problem instead.

        >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"])
        >>> problem.with_arms({"c": [1, 1]}).arms
        ('a', 'b', 'c')
        """
        S, _, D = self.features.shape
        added = []
        if not isinstance(features, Mapping):
            raise ValueError(f"new arms come with features, {{'name': [...]}}; got {features!r:.80}")
        for name, values in features.items():
            phi = checks.frozen_array(values, f"features of {name!r}")
            if phi.shape not in ((D,), (S, D)):
                raise ValueError(f"features of {name!r} must have shape ({S}, {D}) or ({D},); got {phi.shape}")
            added.append(np.broadcast_to(phi, (S, D)))
        parts = {
            "features": np.concatenate([self.features, *(phi[:, None] for phi in added)], axis=1),
            "available": np.concatenate([self.available, np.ones((S, len(added)), dtype=bool)], axis=1),
        }
        return type(self)(**{**self._options(), **parts, "arms": [*self.arms, *features]})

    def _options(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        names = ("features", "probabilities", "contexts", "arms", "available", "reward_range", "rows", "other")
        return {name: getattr(self, name) for name in names}

    @property
    def n_contexts(self) -> int:
        """S, the number of contexts."""
        return int(self.features.shape[0])

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return int(self.features.shape[1])

    @property
    def dimension(self) -> int:
        """d, the dimension of the span of the features."""
        return self.span.rank

    @property
    def rarity(self) -> float:
        """L = 1/min g(x) (Assumption 2.3)."""
        return float(1.0 / self.probabilities.min())

    @cached_property
    def span(self) -> Span:
        """The span of the features and the coordinates that the algorithms use."""
        return span_of(self.features, self.available)

    @cached_property
    def _context_of(self) -> dict[Any, int]:
        return {**{i: i for i in range(self.n_contexts)}, **{name: i for i, name in enumerate(self.contexts)}}

    def context_index(self, context: Any) -> int:
        """Return the index of a context given by name, by index, or as a row: a dictionary, a tuple, a pandas row.

        A name or row that is not in the list is the context ``other``, if there is one. Whole numbers are indices;
        booleans and floats are rows of a sample of single values, never indices.

        >>> p = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
        >>> p.context_index("never")
        Traceback (most recent call last):
        ValueError: unknown context 'never'; the contexts are 'always' (or an index from 0 to 0)
        >>> p = Problem.from_sample([("mobile", "new"), ("desktop", "known")], arms=2)
        >>> p.context_index(("desktop", "known"))
        1
        """
        if type(context) not in VALUES:  # True and 1.0 would match the index 1
            try:
                return self._context_of[context]
            except (KeyError, TypeError):
                pass
        return find_unlisted(context, self.contexts, self.rows, self.other)

    def context_indices(self, contexts: Any) -> int | list[int]:
        """Return the index of one context, as `context_index` does, or the indices of a list, an array or a table.

        If the contexts have rows, a tuple is one row unless it consists of context names. A row X[0] of an array is
        one row too, unless its values are whole numbers, which are indices: write tuple(X[0]) then. A pandas Series is
        one row if one of its labels is a column of the contexts, else a column of contexts.

        >>> p = Problem.from_sample([("mobile", "new"), ("desktop", "known")], arms=2)
        >>> p.context_indices(("desktop", "known")), p.context_indices(["mobile, new", 1, ("mobile", "new")])
        (1, [0, 1, 0])
        >>> X = np.array([[0.5, 1.5], [2.5, 3.5], [0.5, 1.5]])
        >>> p = Problem.from_sample(X, arms=2)
        >>> p.context_indices(X[1]), p.context_indices(X)
        (1, [0, 1, 0])
        """
        return find_all(contexts, self.context_index, names=self.contexts, rows=self.rows)

    def loss_of(self, reward: float) -> float:
        """Return the loss in [-1, 1] of a reward in the user's units."""
        return loss_of(reward, self.reward_range)

    @property
    def reward_per_loss(self) -> float:
        """The reward that corresponds to one unit of loss."""
        return reward_per_loss(self.reward_range)

    def describe(self) -> str:
        """Return sizes, rarity, coverage and the cost of exploration as text."""
        text: str = provided("describe")(self)
        return text

    def save(self, path: str | Path) -> None:
        """Write the problem to a .json or .npz file."""
        if Path(path).suffix == ".npz":
            header, arrays = self._header_and_arrays()
            file_format.write_arrays(path, {"format": file_format.PROBLEM, **header}, arrays)
        elif Path(path).suffix == ".json":
            content = {"format": file_format.PROBLEM, **self.to_dict()}
            file_format.write_bytes(path, json.dumps(content, indent=1).encode())
        else:
            raise ValueError(f"{path}: a problem is saved as .json or .npz")

    def _header_and_arrays(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the header and the arrays of a file."""
        names = {"contexts": self.contexts, "arms": self.arms, "reward_range": self.reward_range}
        arrays = {"features": self.features, "probabilities": self.probabilities, "available": self.available}
        return {**names, **header_of(self.rows, self.other)}, arrays

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain values; JSON preserves them exactly.

        >>> p = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
        >>> Problem.from_dict(json.loads(json.dumps(p.to_dict()))) == p
        True
        """
        header, arrays = self._header_and_arrays()
        return {**header, **{name: array.tolist() for name, array in arrays.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a problem from `to_dict`, for example from a line of a JSON log."""
        return cls._from(values, "the dictionary")

    @classmethod
    def _from(cls, values: Mapping[str, Any], word: str) -> Self:
        try:
            return cls(**{**values, **from_header(values)})
        except (TypeError, AttributeError) as error:
            raise ValueError(f"{word} is not a complete problem: {error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a problem written by `save`."""
        arrays: dict[str, Any] = {}
        if Path(path).suffix == ".npz":
            header, arrays = file_format.read_arrays(path)
        else:
            header = file_format.read_json(path)
        return cls._from({**file_format.checked_format(header, file_format.PROBLEM, path), **arrays}, str(path))

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the names and of everything that learning depends on; excludes ``rows`` and ``other``."""
        digest = hashlib.blake2b(digest_size=8)
        for array in (self.features, self.probabilities, self.available):
            digest.update(repr(array.shape).encode() + array.tobytes())
        digest.update(json.dumps([self.contexts, self.arms, self.reward_range]).encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        S, K, d = self.features.shape
        rank = "" if self.dimension == d else f" of rank {self.dimension}"
        return f"Problem({S} contexts, {K} arms, {d} features{rank}, rarity {self.rarity:.4g})"

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks: sizes, names and notes."""
        facts = {"contexts": listed(self.contexts), "arms": listed(self.arms), "features": self.features.shape[2]}
        facts |= {"dimension": self.dimension, "rarity": self.rarity}
        facts |= {} if self.reward_range is None else {"reward range": f"{self.reward_range}"}
        return card("Problem", {**facts, **({"notes": "; ".join(self.notes)} if self.notes else {})})


def _arm_names(arms: Sequence[Any] | int) -> list[str]:
    """Return the names of arms, given as names or as their number."""
    if isinstance(arms, int | np.integer):
        return [str(arm) for arm in range(checks.whole(arms, 1, "the number of arms"))]
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise ValueError(f"arms must be a list of names, ['red', 'blue'], or their number; got {arms!r}")
    names = list(arms)
    if any(is_missing(arm) for arm in names):
        raise ValueError(f"an arm has no name; leave it out of {names!r:.120}")
    return [str(arm) for arm in names]
