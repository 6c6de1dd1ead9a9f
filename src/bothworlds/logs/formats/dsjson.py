"""Vowpal Wabbit's decision-service format (dsjson): one event per line, with costs and the chosen arm first.

A line has ``EventId``, ``Timestamp``, ``a`` (arms from 1, the chosen one first), ``p`` (their probabilities), ``c``
(features of the context, and in ``_multi`` of each arm), ``VWState.m`` (the model) and, once there is a reward,
``_label_cost`` (minus the reward), ``_label_probability``, ``_label_Action`` and ``_labelIndex``.

It cannot express `LOST`; times are kept to the microsecond. Lines that a row cannot express are refused: slots and
slates (several decisions in one line), subsampled logs (``pdrop``), events that were not shown (``_skipLearn``) and
outcomes without a decision. Named features become the name of the context.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bothworlds.logs.column_mapping import time_of
from bothworlds.logs.lines import numbered_lines, write_lines
from bothworlds.logs.schema import Row
from bothworlds.logs.validation import (
    TOLERANCE,
    Limits,
    LogError,
    Numbered,
    are_finite,
    checked_rows,
    is_finite,
    shown,
    writable_rows,
)

SOURCE = "the rows for dsjson"
LOST = ("digest", "fingerprint", "holdout", "direction", "baseline", "reward_time")
REFUSED = {
    "_slots": "several slots in one event",
    "_outcomes": "several slots in one event",
    "RewardValue": "a reward without its decision",
    "ActionTaken": "a message that a decision was shown, without the decision",
}


def read_dsjson(
    path: str | Path,
    *,
    arm: str | None = None,
    context: Sequence[str] | None = None,
    reward_range: Limits = None,
    tolerance: float = TOLERANCE,
) -> Iterator[Row]:
    """Read Vowpal Wabbit's dsjson lazily.

    Parameters
    ----------
    path
        A file with one event per line.
    arm
        Path to an arm's name in its object, for example ``"i.id"``. By default ``_tag`` or ``arm``, whichever is
        distinct for all arms, otherwise the arm's number in the list, from 1.
    context
        Fields of ``c`` whose values, joined by commas, name the context: ``("device", "user.hour")``. By default the
        name is all fields as JSON, or the value of ``context`` if it is the only field.
    reward_range, tolerance
        Those of `checked`.
    """
    return checked_rows(_rows(path, arm, context), path, reward_range, tolerance)


def write_dsjson(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows as Vowpal Wabbit's dsjson; return their number. Fields in `LOST` are left out.

    >>> row = Row(id="visit 9", context="mobile", offered=("red", "blue"), probabilities=(0.25, 0.75), arm="blue",
    ...     propensity=0.75, reward=1.0)
    >>> write_dsjson([row], "log.dsjson")
    1
    >>> next(read_dsjson("log.dsjson")) == row
    True
    """
    return write_lines((_line(number, row) for number, row in writable_rows(rows, SOURCE)), path)


def _line(number: int, row: Row) -> bytes:
    """Return the line of a row."""
    if not row.probabilities:
        raise LogError(SOURCE, number, f"row {row.id!r} has no vector of probabilities, which dsjson requires")
    order = sorted(range(len(row.offered)), key=lambda k: row.offered[k] != row.arm)  # the chosen arm first
    chosen = order[0]
    event: dict[str, Any] = {"Version": "1", "EventId": row.id}
    if row.time is not None:
        event["Timestamp"] = _stamp(row.time, number)
    event |= {"a": [k + 1 for k in order], "c": _c_of(row), "p": [row.probabilities[k] for k in order]}
    event["VWState"] = {"m": f"{row.policy}/{row.version}"}
    if row.reward is not None:
        label = {"_label_cost": 0.0 - row.reward, "_label_probability": row.propensity}
        event = label | {"_label_Action": chosen + 1, "_labelIndex": chosen} | event
    return json.dumps(event, allow_nan=False).encode() + b"\n"


def _stamp(time: float, number: int) -> str:
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        raise LogError(SOURCE, number, f"time {time!r} cannot be written as a date") from None


def _c_of(row: Row) -> dict[str, Any]:
    """Return the ``c`` of a row: context, arms and features."""
    shared: dict[str, Any] = {} if row.context is None else {"context": row.context}
    arms: list[dict[str, Any]] = [{"_tag": arm, "arm": arm} for arm in row.offered]
    if row.features is not None and len(row.features) == 1:
        shared["x"] = {"f": list(row.features[0])}
    elif row.features is not None:
        for arm, line in zip(arms, row.features, strict=True):
            arm["x"] = {"f": list(line)}
    return {**shared, "_multi": arms}


def _rows(path: str | Path, arm: str | None, context: Sequence[str] | None) -> Numbered:
    for number, line, finished in numbered_lines(path):
        try:
            yield number, _row(_event(line, finished), arm, context)
        except (ValueError, RecursionError) as error:
            raise LogError(path, number, str(error)) from None


def _event(line: bytes, finished: bool) -> dict[str, Any]:
    """Return the event in a line; refuse events that are not one shown decision."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        what = "not JSON" if finished else "the last line is not finished: the file was truncated, or is being written"
        raise ValueError(f"{what}: {shown(line)}") from None
    if not isinstance(event, dict):
        raise ValueError(f"an event must be a JSON object; got {shown(line)}")
    c: Any = event.get("c")
    for key, what in REFUSED.items():
        if key in event or (isinstance(c, dict) and key in c):
            raise ValueError(f"{what} ({key}) cannot be a row; leave such lines out")
    if event.get("pdrop"):
        raise ValueError(f"the log was subsampled (pdrop {shown(event['pdrop'])}), which a row cannot express")
    if event.get("_skipLearn"):
        raise ValueError("the decision was not shown (_skipLearn); leave such lines out")
    return event


def _row(event: dict[str, Any], arm: str | None, context: Sequence[str] | None) -> Row:
    c = event.get("c")
    items = c.get("_multi") if isinstance(c, dict) else None
    if not isinstance(c, dict) or not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("there is no c with a list _multi of arms")
    shared = {key: value for key, value in c.items() if key != "_multi"}
    names, rest = _arms_of(items, arm)
    chosen, probabilities = _choice(event, len(items))
    features, rest = _features_of(shared, rest)
    policy, version = _model(event)
    cost = event.get("_label_cost")
    if not (cost is None or is_finite(cost)):
        raise ValueError(f"_label_cost must be a number; got {shown(cost)}")
    if "EventId" not in event:
        raise ValueError("there is no EventId")
    return Row(
        id=event["EventId"],
        time=time_of(event["Timestamp"], "UTC") if event.get("Timestamp") is not None else None,
        context=_context(shared, rest) if context is None else ", ".join(str(_at(shared, path)) for path in context),
        features=features,
        offered=names,
        probabilities=probabilities,
        arm=names[chosen],
        propensity=probabilities[chosen],
        policy=policy,
        version=version,
        reward=None if cost is None else 0.0 - cost,
    )


def _arms_of(items: list[dict[str, Any]], arm: str | None) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the names of the arms, and the other fields of each."""
    if arm is not None:
        return tuple(str(_at(item, arm)) for item in items), items
    key = next((key for key in ("_tag", "arm") if _is_distinct(items, key)), None)
    names = [str(number) if key is None else item[key] for number, item in enumerate(items, 1)]
    rest = [
        {name: value for name, value in item.items() if not (name in ("_tag", "arm") and value == own_name)}
        for item, own_name in zip(items, names, strict=True)
    ]
    return tuple(names), rest


def _is_distinct(items: list[dict[str, Any]], key: str) -> bool:
    """Return whether each arm has a text under the key, different from all others."""
    names = [item.get(key) for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _choice(event: dict[str, Any], count: int) -> tuple[int, tuple[float, ...]]:
    """Return the index of the chosen arm, and the probabilities of all arms in the order of the list."""
    order, p = event.get("a"), event.get("p")
    if p is None:
        raise ValueError("there are no probabilities (p), and they cannot be guessed")
    if not isinstance(order, list) or any(type(a) is not int for a in order) or sorted(order) != [*range(1, count + 1)]:
        raise ValueError(f"a must list the {count} arms from 1, each once, the chosen one first; got {shown(order)}")
    if not isinstance(p, list) or len(p) != count or not are_finite(tuple(p)):
        raise ValueError(f"p must be {count} numbers; got {shown(p)}")
    if not count:
        raise ValueError("no arm was offered")
    probabilities = [0.0] * count
    for number, probability in zip(order, p, strict=True):
        probabilities[number - 1] = probability
    chosen = order[0] - 1
    labels = {"_label_Action": chosen + 1, "_labelIndex": chosen}
    for key, expected in labels.items():
        if event.get(key, expected) != expected:
            raise ValueError(f"{key} is {shown(event[key])}, but the first of a is arm {chosen + 1}")
    labelled = event.get("_label_probability", probabilities[chosen])
    if not is_finite(labelled) or abs(labelled - probabilities[chosen]) > 1e-5:  # single precision
        raise ValueError(f"_label_probability is {shown(labelled)}, but p has {probabilities[chosen]!r}")
    return chosen, tuple(probabilities)


def _features_of(
    shared: dict[str, Any], rest: list[dict[str, Any]]
) -> tuple[tuple[tuple[float, ...], ...] | None, list[dict[str, Any]]]:
    """Return features if they are lists of numbers as this package writes them, and the arms' other fields."""
    if (line := _numbers_in(shared)) is not None:
        del shared["x"]
        return (line,), rest
    lines = [line for item in rest if (line := _numbers_in(item)) is not None]
    if not rest or len(lines) < len(rest):
        return None, rest
    return tuple(lines), [{key: value for key, value in item.items() if key != "x"} for item in rest]


def _numbers_in(item: dict[str, Any]) -> tuple[float, ...] | None:
    namespace = item.get("x")
    values = namespace.get("f") if isinstance(namespace, dict) and len(namespace) == 1 else None
    return tuple(values) if isinstance(values, list) and are_finite(tuple(values)) else None


def _context(shared: dict[str, Any], rest: list[dict[str, Any]]) -> str | None:
    """Return the name of a context: its ``context`` field, or all fields as JSON."""
    fields = {**shared, **({"_multi": rest} if any(rest) else {})}
    if not fields:
        return None
    if list(fields) == ["context"] and isinstance(fields["context"], str):
        return str(fields["context"])
    return json.dumps(fields, sort_keys=True)


def _model(event: dict[str, Any]) -> tuple[str, int]:
    """Return policy and version of a model id as this package writes it; of any other, the whole id and 0."""
    state = event.get("VWState")
    model = state.get("m") if isinstance(state, dict) else None
    if not isinstance(model, str):
        return "unknown", 0
    policy, _, version = model.rpartition("/")
    return (policy, int(version)) if version.isascii() and version.isdigit() and len(version) < 19 else (model, 0)


def _at(item: dict[str, Any], path: str) -> Any:
    """Return the value at a dotted path."""
    value: Any = item
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            raise ValueError(f"there is no {path!r} in {shown(item)}")
        value = value[key]
    return value
