"""Interactions of coba: dictionaries with context, action, reward, probability and sometimes actions.

coba recognizes an interaction by its keys and preserves other keys, which hold ``probabilities``, ``id``, ``time``,
``policy``, ``version`` and ``holdout``. It cannot express `LOST`, rows without a reward, or features of each arm in
addition to its name. A row cannot express interactions with the rewards of all actions (``rewards``): they are
simulations and are refused. Contexts and actions that are not texts are named by their JSON.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bothworlds.logs.column_mapping import number_of
from bothworlds.logs.schema import Row
from bothworlds.logs.validation import (
    TOLERANCE,
    Limits,
    LogError,
    Numbered,
    are_finite,
    checked_rows,
    shown,
    writable_rows,
)

LOST = ("digest", "fingerprint", "direction", "baseline", "reward_time")
NAME = "the coba interactions"
EXTRA_KEYS = ("id", "time", "policy", "version", "holdout")


def from_coba(
    interactions: Iterable[Mapping[str, Any]], *, reward_range: Limits = None, tolerance: float = TOLERANCE
) -> Iterator[Row]:
    """Yield rows from coba's logged interactions; without an ``id`` a row's number is its id.

    A context that is a text is a name; a list of numbers is features shared by all arms; a name followed by numbers is
    both.

    Parameters
    ----------
    interactions
        Dictionaries, for example from ``environment.read()``.
    reward_range, tolerance
        Those of `checked`.

    >>> logged = {"context": (1.0, 0.5), "action": "red", "reward": 1, "probability": 0.25, "actions": ["red", "blue"]}
    >>> row = next(from_coba([logged]))
    >>> row.features, row.arm, row.propensity, row.offered, row.reward
    (((1.0, 0.5),), 'red', 0.25, ('red', 'blue'), 1.0)
    """
    return checked_rows(_rows(interactions), NAME, reward_range, tolerance)


def to_coba(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield rows as coba's interactions, plain dictionaries; all rows must have rewards.

    >>> row = Row(id="a", context="day", offered=("red", "blue"), arm="red", propensity=0.25, reward=1.0)
    >>> next(to_coba([row]))["action"], next(from_coba(to_coba([row]))) == row
    ('red', True)
    """
    for number, row in writable_rows(rows, NAME):
        if row.reward is None:
            raise LogError(NAME, number, "there is no reward, which coba cannot express; leave such rows out")
        if row.features is not None and len(row.features) != 1:
            raise LogError(NAME, number, "coba cannot express features of each arm in addition to its name")
        interaction = {
            "context": _written_context(row),
            "action": row.arm,
            "reward": row.reward,
            "probability": row.propensity,
            **({"actions": list(row.offered)} if row.offered else {}),
            **({"probabilities": list(row.probabilities)} if row.probabilities else {}),
        }
        yield interaction | {key: value for key in EXTRA_KEYS if (value := getattr(row, key)) is not None}


def _written_context(row: Row) -> Any:
    if row.features is None:
        return row.context
    return row.features[0] if row.context is None else (row.context, *row.features[0])


def _rows(interactions: Iterable[Mapping[str, Any]]) -> Numbered:
    for number, interaction in enumerate(interactions, 1):
        try:
            yield number, _row(interaction, number)
        except ValueError as error:
            raise LogError(NAME, number, str(error)) from None


def _row(interaction: Any, number: int) -> Row:
    """Return the row of one interaction."""
    if not isinstance(interaction, Mapping):
        raise ValueError(f"an interaction must be a dictionary; got {shown(interaction)}")
    if "rewards" in interaction and "reward" not in interaction:
        raise ValueError(
            "it has the rewards of all actions: that is a simulation, not a log; use Logged(learner) first"
        )
    if interaction.get("probability") is None:
        raise ValueError("there is no probability, and it cannot be guessed")
    for key in ("action", "reward"):
        if interaction.get(key) is None:
            raise ValueError(f"there is no {key}")
    context, features = _read_context(interaction.get("context"))
    extra = {key: interaction[key] for key in EXTRA_KEYS if interaction.get(key) is not None}
    probabilities = interaction.get("probabilities")
    return Row(
        **{"id": str(number), **extra},
        context=context,
        features=features,
        offered=tuple(_name(action) for action in _listed(interaction.get("actions"), "actions")),
        probabilities=tuple(number_of(p) for p in _listed(probabilities, "probabilities")),
        arm=_name(interaction["action"]),
        propensity=number_of(interaction["probability"]),
        reward=number_of(interaction["reward"]),
    )


def _listed(values: Any, key: str) -> list[Any]:
    if not (values is None or isinstance(values, list | tuple)):
        raise ValueError(f"{key} must be a list; got {shown(values)}")
    return list(values or ())


def _read_context(context: Any) -> tuple[str | None, tuple[tuple[float, ...], ...] | None]:
    """Return name and features of a context."""
    if context is None or isinstance(context, str):
        return context, None
    if isinstance(context, list | tuple) and context:
        first = context[0] if isinstance(context[0], str) else None
        rest = tuple(context[0 if first is None else 1 :])
        if rest and are_finite(rest):
            return first, (rest,)
    return _name(context), None


def _name(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"{shown(value)} cannot be a name: it must be a text, or plain numbers and lists") from None
