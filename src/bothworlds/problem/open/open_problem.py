"""OpenProblem: contexts that are not listed, with columns; named arms, or candidates that come with each request."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds._hooks import provided
from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.problem import checks
from bothworlds.problem.frames import frame_of
from bothworlds.problem.open.columns import Column, columns_from, infer_column
from bothworlds.problem.open.encoder import Encoder, encoder_of
from bothworlds.problem.open.requests import Request, Requests, combine, request_of, requests_of
from bothworlds.problem.rows import has_names

MOST_ENTRIES = 10**8  # of the matrices of a learner


class Shape(NamedTuple):
    """Layout of the features: a block of p numbers for every arm, or one block where candidates have their own rows."""

    blocks: int
    size: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OpenProblem:
    """A bandit problem whose contexts are not listed: any visitor, and any candidates.

    Expected rewards are linear in features. With ``arms`` alone, every arm has its own model of the context. With
    ``arm_features``, arms share one model of their own features and of products of these with the context's. With
    ``candidates`` in place of arms, they come with each request, and share such a model. A constant is always added.

    Parameters
    ----------
    context
        The columns of a context, or the number of features if contexts are arrays; None if there are candidates only.
    arms
        Names of the arms, at least two.
    arm_features
        One row of features per arm, for a model that arms share.
    own_models
        With ``arm_features``: whether every arm has a model of its own beside the shared one.
    candidates
        The columns of a candidate, or the number of features if candidates are arrays.
    interactions
        Whether shared models have products of candidate and context; without them the context cannot change which
        candidate is best.
    id_column
        The column of a table of candidates that has their ids.
    reward_range
        (lowest, highest) reward in your units, as in `Problem`.

    >>> visitors = [Column.number("age", 18, 90), Column.category("device", ["mobile", "desktop"])]
    >>> OpenProblem(context=visitors, arms=["red", "blue"], reward_range=(0, 1))
    OpenProblem(2 arms, each with a model of 4 features)
    >>> OpenProblem(context=visitors, candidates=[Column.number("price", 0, 100)])
    OpenProblem(candidates with each request, 8 features)
    """

    context: Sequence[Column] | int | None = None
    arms: Sequence[str] | None = None
    arm_features: Any = None
    own_models: bool = False
    candidates: Sequence[Column] | int | None = None
    interactions: bool = True
    id_column: str | None = None
    reward_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        self._set(
            context=self._plain(encoder_of(self.context, "context")),
            candidates=self._plain(encoder_of(self.candidates, "candidate")),
            reward_range=checks.check_reward_range(self.reward_range),
        )
        if (self.arms is None) == (self.candidates is None):
            raise ValueError("give either arms=, their names, or candidates=, the columns of what comes with a request")
        if self.arms is not None:
            self._check_arms(self.arms)
        elif self.arm_features is not None or self.own_models:
            raise ValueError("arm_features and own_models are for arms with names; candidates bring their features")
        if self.id_column is not None and (self.candidates is None or not isinstance(self.id_column, str)):
            raise ValueError(f"id_column names the column with the ids of candidates; got {self.id_column!r}")
        blocks, size = self.shape
        if blocks * size * size > MOST_ENTRIES:
            raise ValueError(
                f"{blocks * size:,} features need matrices of {blocks * size * size:,} numbers, more than "
                f"{MOST_ENTRIES:,}: take fewer columns or categories, or interactions=False"
            )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def _plain(encoder: Encoder | None) -> tuple[Column, ...] | int | None:
        return None if encoder is None else encoder.columns or encoder.width

    def _check_arms(self, given: Sequence[str]) -> None:
        if isinstance(given, str) or not hasattr(given, "__len__") or len(given) < 2:
            raise ValueError(f"arms must be a list of at least two names; got {given!r}")
        self._set(arms=checks.names_of(given, len(given), "arm"))
        if self.context is None and self.arm_features is None:
            raise ValueError("without a context and features of arms there is nothing to tell visitors apart: give one")
        if self.arm_features is None:
            if self.own_models:
                raise ValueError("own_models goes with arm_features; without them every arm has its own model anyway")
            return
        table = checks.frozen_array(self.arm_features, "arm_features")
        if table.ndim != 2 or len(table) != len(given):
            raise ValueError(f"arm_features must have a row of numbers per arm, {len(given)} rows; got {table.shape}")
        self._set(arm_features=table)

    @classmethod
    def from_frame(
        cls,
        contexts: Any = None,
        *,
        arms: Sequence[str] | None = None,
        candidates: Any = None,
        categories: Iterable[str] = (),
        ignore: Iterable[str] = (),
        id_column: str | None = None,
        reward_range: tuple[float, float] | None = None,
        **options: Any,
    ) -> Self:
        """Read columns from tables of past visitors and candidates: DataFrames, or lists of dictionaries.

        Numbers become numbers in units of their standard deviation, truth values stay what they are, everything else
        becomes categories; `notes` says what was assumed.

        Parameters
        ----------
        contexts, candidates
            Tables; only the columns are used, what was shown or earned does not matter.
        categories
            Columns of numbers that are names, such as postal codes.
        ignore
            Columns to leave out.
        id_column
            The column of candidates that has their ids; it is no feature.
        arms, reward_range, options
            As for the class.

        >>> import pandas as pd
        >>> visitors = pd.DataFrame({"age": [19, 25, 41], "device": ["mobile", "desktop", "mobile"]})
        >>> problem = OpenProblem.from_frame(visitors, arms=["red", "blue"], reward_range=(0, 1))
        >>> problem.features
        ('1', 'age', 'device = desktop', 'device, other')
        """
        notes: list[str] = []
        named = {"categories": _names(categories, "categories"), "ignore": _names(ignore, "ignore")}
        found = [
            _columns(contexts, "contexts", named, notes, None),
            _columns(candidates, "candidates", named, notes, id_column),
        ]
        known = {name for _, names in found for name in names}
        for word, names in named.items():
            checks.check_known(names, sorted(known), f"column in {word}=")
        (context, _), (candidate, _) = found
        return cls(
            context=context,
            arms=arms,
            candidates=candidate,
            id_column=id_column,
            reward_range=reward_range,
            notes=tuple(notes),
            **options,
        )

    @cached_property
    def context_encoder(self) -> Encoder | None:
        """What turns contexts into features."""
        return encoder_of(self.context, "context")

    @cached_property
    def candidate_encoder(self) -> Encoder | None:
        """What turns candidates into features."""
        return encoder_of(self.candidates, "candidate")

    @cached_property
    def arm_table(self) -> Floats | None:
        """Features of the arms where these share a model: a constant, their features, and an indicator of each."""
        if self.arm_features is None:
            return None
        rows = np.asarray(self.arm_features)
        own = [np.eye(len(rows))] if self.own_models else []
        return np.hstack([np.ones((len(rows), 1)), rows, *own])

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the features of a block: of one arm's model, or of the model that all share."""
        context = ("1", *(self.context_encoder.features if self.context_encoder else ()))
        if self.candidate_encoder is not None:
            shared: tuple[str, ...] = self.candidate_encoder.features
        elif self.arm_table is not None and self.arms is not None:
            count = np.asarray(self.arm_features).shape[1]
            shared = tuple(f"arm feature {i}" for i in range(count)) + (tuple(self.arms) if self.own_models else ())
        else:
            return context
        if not self.interactions:
            return (*context, *shared)
        return tuple(
            "1" if left == right == "1" else right if left == "1" else left if right == "1" else f"{left} * {right}"
            for left in ("1", *shared)
            for right in context
        )

    @cached_property
    def shape(self) -> Shape:
        """Number of blocks, and of features in each."""
        in_blocks = self.arms is not None and self.arm_features is None
        return Shape(len(self.arms) if in_blocks and self.arms is not None else 1, len(self.features))

    @property
    def dimension(self) -> int:
        """Number of features of all models together."""
        return self.shape.blocks * self.shape.size

    @internal
    def request(self, context: Any, candidates: Any, offered: Any) -> Request:
        """Return the features, the candidates offered and the names of one request."""
        return request_of(self, context, candidates, offered)

    @internal
    def requests(self, contexts: Any, candidates: Any, offered: Any) -> Requests:
        """Return the features, the candidates offered and the names of many requests."""
        return requests_of(self, contexts, candidates, offered)

    @internal
    def combined(self, x: Floats, rows: Floats) -> Floats:
        """Return the features of candidates, (candidates, features), from those of context and candidates."""
        return combine(x, rows, interactions=self.interactions)

    @internal
    def blank_request(self) -> tuple[Any, Any]:
        """Return a context and two candidates without values, for rehearsals."""
        context = None if self.context_encoder is None else self.context_encoder.blank()
        if self.candidate_encoder is None:
            return context, None
        blank = self.candidate_encoder.blank()
        if self.id_column is None:
            return context, [blank, blank]
        return context, [
            {**dict(zip(self.candidate_encoder.names, blank, strict=True)), self.id_column: i} for i in (0, 1)
        ]

    def describe(self) -> str:
        """Return features, cost and what is proved as text."""
        text: str = provided("describe_open")(self)
        return text

    @internal
    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain values, for a file."""

        def plain(side: Any) -> Any:
            return [column.to_dict() for column in side] if isinstance(side, tuple) else side

        return {
            "context": plain(self.context),
            "arms": self.arms,
            "arm_features": None if self.arm_features is None else np.asarray(self.arm_features).tolist(),
            "own_models": self.own_models,
            "candidates": plain(self.candidates),
            "interactions": self.interactions,
            "id_column": self.id_column,
            "reward_range": self.reward_range,
            "notes": self.notes,
        }

    @classmethod
    @internal
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild a problem from `to_dict`."""

        def side(given: Any) -> Any:
            return columns_from(given) if isinstance(given, list) else given

        limits = values["reward_range"]
        return cls(
            **{
                **values,
                "context": side(values["context"]),
                "candidates": side(values["candidates"]),
                "reward_range": None if limits is None else tuple(limits),
                "notes": tuple(values["notes"]),
            }
        )

    @cached_property
    @internal
    def fingerprint(self) -> str:
        """A short hash of the problem."""
        return hashlib.blake2b(json.dumps(self.to_dict()).encode(), digest_size=6).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenProblem) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        blocks, size = self.shape
        if blocks > 1:
            return f"OpenProblem({blocks} arms, each with a model of {size} features)"
        who = "candidates with each request" if self.arms is None else f"{len(self.arms)} arms that share a model"
        return f"OpenProblem({who}, {size} features)"


def _names(given: Iterable[str], word: str) -> tuple[str, ...]:
    """Return names of columns."""
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{word} are names of columns; got {given!r}")
    return names


def _columns(
    table: Any, word: str, named: dict[str, tuple[str, ...]], notes: list[str], id_column: str | None
) -> tuple[tuple[Column, ...] | None, tuple[str, ...]]:
    """Return the columns of a table that are features, and the names of all; append notes."""
    if table is None:
        return None, ()
    names, rows = _table(table, word)
    if id_column is not None and id_column not in names:
        raise ValueError(f"{word} have no column {id_column!r}, which id_column= names; they have {', '.join(names)}")
    if not rows:
        raise ValueError(f"{word} has no rows: columns are read from a table of some")
    columns = []
    for i, name in enumerate(names):
        if name in named["ignore"] or name == id_column:
            continue
        column, noted = infer_column(name, [row[i] for row in rows], named["categories"])
        columns.append(column)
        notes.extend(noted)
    if not columns:
        raise ValueError(f"{word} has no column left that could be a feature")
    return tuple(columns), names


def _table(table: Any, word: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return names and rows of a DataFrame, or of a list of dictionaries."""
    frame = frame_of(table)
    if frame is not None:
        return frame.names, list(frame.rows)
    rows: list[Any] = list(table) if hasattr(table, "__iter__") and not isinstance(table, str | dict) else [None]
    if not all(has_names(row) for row in rows):
        raise ValueError(f"{word} must be a DataFrame or a list of dictionaries; got {table!r:.80}")
    names = tuple(dict.fromkeys(name for row in rows for name in row.keys()))  # noqa: SIM118 - also rows of DataFrames
    return names, [tuple(row[name] if name in row.keys() else None for name in names) for row in rows]  # noqa: SIM118
