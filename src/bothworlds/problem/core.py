"""Problem: what the learner knows before the first round."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats
from bothworlds.problem import checks, storage, transform
from bothworlds.problem.constant import with_constant
from bothworlds.problem.feedback import loss_of, reward_per_loss
from bothworlds.problem.finding import VALUES, find_all, find_unlisted, warn_of_numbers
from bothworlds.problem.labelled import numbers_in_order, table_in_order
from bothworlds.problem.rows import ContextRows, from_header, header_of
from bothworlds.problem.sample import FeatureMap, is_missing
from bothworlds.problem.span import Span, span_of
from bothworlds.problem.tabular import tabular


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem:
    """A linear contextual bandit problem with finitely many contexts (Assumptions 1.1, 2.2, 2.3).

    Parameters
    ----------
    features
        phi(a, x), shape (contexts, arms, dimension).
    probabilities
        g(x), shape (contexts,), positive, summing to 1; a dictionary or a Series with names goes by these.
    contexts, arms
        Names; "0", "1", ... if left out.
    available
        Boolean (contexts, arms): False where an arm is not offered; a DataFrame with names goes by these.
    reward_range
        (lowest, highest) reward in the user's units, say (0, 1) for clicks. Rewards are then turned into losses
        in [-1, 1] by loss = (lo + hi - 2 reward)/(hi - lo). The shift needs a constant among the features; where
        there is none, one is added and ``notes`` says so. Without it, loss = -reward.
    rows
        The rows of a table that the contexts stand for, as `from_sample` keeps them: contexts can then be given as
        rows.
    other
        The context that stands for every name or row that is not in the list; without it those are refused.

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
            raise ValueError(f"rows are ContextRows, as Problem.from_sample makes them of a table; got {rows!r:.80}")
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
        """Build from one feature vector per context, each arm with its own parameters (Theorem 4.5).

        ``features`` has shape (contexts, dimension); ``arms`` are names or a number.
        """
        x = checks.frozen_array(features, "features")
        if x.ndim != 2:
            raise ValueError(f"arm-independent features must have shape (contexts, dimension); got {x.shape}")
        names = _arm_names(arms)
        limits = checks.check_reward_range(options.get("reward_range"))
        every = np.ones((len(x), 1), dtype=bool)
        wider, notes = with_constant(x[:, None, :], every, limits)
        phi = transform.block_features(wider[:, 0, :], len(names))
        return cls(features=phi, probabilities=probabilities, arms=names, **options)._noting(notes)

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
        """Build from a table or a sample of contexts: distinct rows are the contexts, frequencies their g(x).

        Parameters
        ----------
        rows
            A pandas DataFrame, a two-dimensional array, or a sequence of rows or of single values.
        arms
            Names, or a number.
        features
            A function (row, arm) -> vector; rows of a DataFrame come as dictionaries. Without it every arm has its
            own linear model in a constant, the columns of numbers, and an indicator for each category in the others.
            Columns of whole numbers are categories, and ``notes`` says so.
        weights
            How many visits each row stands for; 1 if left out.
        numeric
            Columns of whole numbers that are amounts, by name or position.
        other
            The context for rows never seen: one of the contexts, or a new one made of the rare rows.
        rare
            Rows with a smaller share of the sample than that become ``other``, with their mean features.

        >>> problem = Problem.from_sample(["mobile", "desktop", "mobile", "mobile"], arms=["red", "blue"])
        >>> problem.contexts, problem.probabilities.tolist(), problem.dimension
        (('mobile', 'desktop'), [0.75, 0.25], 4)
        """
        names = _arm_names(arms)
        found = tabular(rows, names, features=features, weights=weights, numeric=numeric, other=other, rare=rare)
        warn_of_numbers(found.options["rows"])
        make = cls.from_arm_independent if features is None else cls
        return make(features=found.features, arms=names, **{**found.options, **options})._noting(found.notes)

    def _noting(self, notes: tuple[str, ...]) -> Self:
        """Return the problem with sentences put before its own."""
        object.__setattr__(self, "notes", notes + self.notes)
        return self

    def arm_independent_features(self) -> Floats:
        """Return the problem as P.Indep (Theorem 4.5): one feature vector per context.

        A problem made by `from_arm_independent` gives back what it was made from; any other is stacked into
        dimension times arms dimensions, with a warning where that is degenerate.
        """
        original = transform.undo_blocks(self.features)
        return transform.stacked_features(self.features) if original is None else original

    def with_probabilities(self, probabilities: Any) -> Self:
        """Return the same problem with other context probabilities: same features, arms, names and coordinates."""
        made = type(self)(**{**self._options(), "probabilities": probabilities})
        object.__setattr__(made, "notes", self.notes)
        return made

    def without_arms(self, arms: Iterable[str]) -> Self:
        """Return the same problem without some arms, by name; for ``policy.change``.

        >>> problem = Problem(features=[[[1, 0], [0, 1], [1, 1]]], probabilities=[1], arms=["a", "b", "c"])
        >>> problem.without_arms(["b"]).arms
        ('a', 'c')
        """
        gone = [arms] if isinstance(arms, str) else list(arms)
        strange = [name for name in gone if name not in self.arms]
        if strange:
            raise ValueError(f"there is no arm {strange[0]!r} to leave out; the arms are {', '.join(self.arms[:8])}")
        kept = [a for a, name in enumerate(self.arms) if name not in gone]
        parts = {"features": self.features[:, kept], "available": self.available[:, kept]}
        return type(self)(**{**self._options(), **parts, "arms": [self.arms[a] for a in kept]})

    def with_arms(self, features: Mapping[str, Any]) -> Self:
        """Return the same problem with more arms: for each name its features, (contexts, columns), or (columns,).

        The columns are those of this problem, a constant that was added among them. Where every arm has columns of its
        own, make the problem anew instead.

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
        a truth value or a number with a point is the row of a sample of single values, and no index.

        >>> p = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
        >>> p.context_index("never")
        Traceback (most recent call last):
        ValueError: unknown context 'never'; the contexts are 'always' (or an index from 0 to 0)
        >>> p = Problem.from_sample([("mobile", "new"), ("desktop", "known")], arms=2)
        >>> p.context_index(("desktop", "known"))
        1
        """
        if type(context) not in VALUES:  # they would equal an index
            try:
                return self._context_of[context]
            except (KeyError, TypeError):
                pass
        return find_unlisted(context, self.contexts, self.rows, self.other)

    def context_indices(self, contexts: Any) -> int | list[int]:
        """Return the index of one context, as `context_index` does, or those of several: a list, an array, a table.

        A tuple is a row where the contexts have rows, unless all it has are names of contexts; so is a pandas Series
        that has one of their columns as a label, and any other is a column of contexts.

        >>> p = Problem.from_sample([("mobile", "new"), ("desktop", "known")], arms=2)
        >>> p.context_indices(("desktop", "known")), p.context_indices(["mobile, new", 1, ("mobile", "new")])
        (1, [0, 1, 0])
        """
        return find_all(contexts, self.context_index, names=self.contexts, rows=self.rows)

    def loss_of(self, reward: float) -> float:
        """Turn a reward in the user's units into a loss in [-1, 1]."""
        return loss_of(reward, self.reward_range)

    @property
    def reward_per_loss(self) -> float:
        """How much reward one unit of loss is worth."""
        return reward_per_loss(self.reward_range)

    def describe(self) -> str:
        """Say what the algorithms will make of the problem: sizes, rarity, coverage, and the cost of exploration."""
        from bothworlds.theory.describe import describe

        return describe(self)

    def save(self, path: str | Path) -> None:
        """Write the problem to a .json or .npz file."""
        if Path(path).suffix == ".npz":
            header, arrays = self._kept()
            storage.write_arrays(path, {"format": storage.PROBLEM, **header}, arrays)
        elif Path(path).suffix == ".json":
            content = {"format": storage.PROBLEM, **self.to_dict()}
            storage.write_bytes(path, json.dumps(content, indent=1).encode())
        else:
            raise ValueError(f"{path}: a problem is saved as .json or .npz")

    def _kept(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file's header and what its arrays keep."""
        names = {"contexts": self.contexts, "arms": self.arms, "reward_range": self.reward_range}
        arrays = {"features": self.features, "probabilities": self.probabilities, "available": self.available}
        return {**names, **header_of(self.rows, self.other)}, arrays

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain values that survive JSON without losing a bit.

        >>> p = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
        >>> Problem.from_dict(json.loads(json.dumps(p.to_dict()))) == p
        True
        """
        header, arrays = self._kept()
        return {**header, **{name: array.tolist() for name, array in arrays.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a problem from `to_dict`, for instance from a line of a JSON log."""
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
            header, arrays = storage.read_arrays(path)
        else:
            header = storage.read_json(path)
        return cls._from({**storage.checked_format(header, storage.PROBLEM, path), **arrays}, str(path))

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of all that learning depends on, and of the names; how contexts may be given is not in it."""
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


def _arm_names(arms: Sequence[Any] | int) -> list[str]:
    """Return names of arms given as names, or as a number."""
    if isinstance(arms, int | np.integer):
        return [str(arm) for arm in range(checks.whole(arms, 1, "the number of arms"))]
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise ValueError(f"arms are a list of names, ['red', 'blue'], or how many there are; got {arms!r}")
    names = list(arms)
    if any(is_missing(arm) for arm in names):
        raise ValueError(f"an arm has no name; leave it out of {names!r:.120}")
    return [str(arm) for arm in names]
