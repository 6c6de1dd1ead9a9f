"""Interactions of coba: dictionaries with context, action, reward, probability and, in some, actions.

coba tells kinds of interactions by their keys, and keeps further ones: ``probabilities``, ``id``, ``time``, ``policy``,
``version`` and ``holdout`` are written so. It cannot express `LOST`, rows without a reward, or features of each arm
beside their names. Of what it has and a row has not: interactions with the rewards of all actions (``rewards``) are no
log, and are refused; contexts and actions that are no names become such, as JSON.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bothworlds.logs.checking import TOLERANCE, Limits, Numbered, are_finite, checked_rows, sound_rows
from bothworlds.logs.faults import LogError, shown
from bothworlds.logs.named import number_of
from bothworlds.logs.schema import Row

LOST = ("digest", "footing", "direction", "baseline", "reward_time")
NAME = "the coba interactions"
FURTHER = ("id", "time", "policy", "version", "holdout")


def from_coba(
    interactions: Iterable[Mapping[str, Any]], *, reward_range: Limits = None, tolerance: float = TOLERANCE
) -> Iterator[Row]:
    """Make rows of coba's logged interactions, lazily; without an ``id`` a row's number is its id.

    A context that is a text is a name, a list of numbers is features that all arms share, and a name followed by
    numbers is both.

    Parameters
    ----------
    interactions
        Dictionaries, from ``environment.read()`` say.
    reward_range, tolerance
        As `checked` has them.

    >>> logged = {"context": (1.0, 0.5), "action": "red", "reward": 1, "probability": 0.25, "actions": ["red", "blue"]}
    >>> row = next(from_coba([logged]))
    >>> row.features, row.arm, row.propensity, row.offered, row.reward
    (((1.0, 0.5),), 'red', 0.25, ('red', 'blue'), 1.0)
    """
    return checked_rows(_rows(interactions), NAME, reward_range, tolerance)


def to_coba(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield rows as interactions of coba, plain dictionaries; all of them must have rewards.

    >>> row = Row(id="a", context="day", offered=("red", "blue"), arm="red", propensity=0.25, reward=1.0)
    >>> next(to_coba([row]))["action"], next(from_coba(to_coba([row]))) == row
    ('red', True)
    """
    for number, row in sound_rows(rows, NAME):
        if row.reward is None:
            raise LogError(NAME, number, "there is no reward, and coba cannot say so; leave such rows out")
        if row.features is not None and len(row.features) != 1:
            raise LogError(NAME, number, "features of each arm cannot be said beside their names in coba")
        made = {
            "context": _written_context(row),
            "action": row.arm,
            "reward": row.reward,
            "probability": row.propensity,
            **({"actions": list(row.offered)} if row.offered else {}),
            **({"probabilities": list(row.probabilities)} if row.probabilities else {}),
        }
        yield made | {key: value for key in FURTHER if (value := getattr(row, key)) is not None}


def _written_context(row: Row) -> Any:
    if row.features is None:
        return row.context
    return row.features[0] if row.context is None else (row.context, *row.features[0])


def _rows(interactions: Iterable[Mapping[str, Any]]) -> Numbered:
    for number, given in enumerate(interactions, 1):
        try:
            yield number, _row(given, number)
        except ValueError as error:
            raise LogError(NAME, number, str(error)) from None


def _row(given: Any, number: int) -> Row:
    """Return one interaction as a row."""
    if not isinstance(given, Mapping):
        raise ValueError(f"an interaction must be a dictionary; got {shown(given)}")
    if "rewards" in given and "reward" not in given:
        raise ValueError(
            "it has the rewards of all actions: that is a simulation, not a log; use Logged(learner) first"
        )
    if given.get("probability") is None:
        raise ValueError("there is no probability, and it cannot be guessed")
    for key in ("action", "reward"):
        if given.get(key) is None:
            raise ValueError(f"there is no {key}")
    context, features = _read_context(given.get("context"))
    further = {key: given[key] for key in FURTHER if given.get(key) is not None}
    chances = given.get("probabilities")
    return Row(
        **{"id": str(number), **further},
        context=context,
        features=features,
        offered=tuple(_name(action) for action in _listed(given.get("actions"), "actions")),
        probabilities=tuple(number_of(chance) for chance in _listed(chances, "probabilities")),
        arm=_name(given["action"]),
        propensity=number_of(given["probability"]),
        reward=number_of(given["reward"]),
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
    """Return a text as it is, and anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"{shown(value)} cannot be a name: it is neither a text nor plain numbers and lists") from None
