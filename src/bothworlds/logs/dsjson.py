"""Vowpal Wabbit's decision-service format (dsjson): one event a line, costs for rewards, the chosen arm first.

A line has ``EventId``, ``Timestamp``, ``a`` (arms from 1, the chosen one first), ``p`` (their probabilities), ``c``
(what is known: of the context, and in ``_multi`` of each arm), ``VWState.m`` (the model) and, once there is a reward,
``_label_cost`` (minus the reward), ``_label_probability``, ``_label_Action`` and ``_labelIndex``.

It cannot express `LOST`; times are kept to the microsecond. Of what it has and a row has not: slots and slates (several
decisions in one line), thinned logs (``pdrop``), events that were not shown (``_skipLearn``) and outcomes without a
decision are refused; features with names become the name of the context.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bothworlds.logs.checking import TOLERANCE, Limits, Numbered, are_finite, checked_rows, is_finite, sound_rows
from bothworlds.logs.faults import LogError, shown
from bothworlds.logs.lines import numbered_lines, written_lines
from bothworlds.logs.named import time_of
from bothworlds.logs.schema import Row

WRITTEN = "the rows for dsjson"
LOST = ("digest", "footing", "holdout", "direction", "baseline", "reward_time")
REFUSED = {
    "_slots": "several slots in one event",
    "_outcomes": "several slots in one event",
    "RewardValue": "a reward without its decision",
    "ActionTaken": "a note that the decision was shown, without it",
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
        A file with one event a line.
    arm
        Where in an arm's object its name stands, ``"i.id"`` say. Without it: ``_tag``, else ``arm``, if they tell arms
        apart, else its number in the list, from 1.
    context
        Which fields of ``c`` make the name of the context, joined by commas: ``("device", "user.hour")``. Without it
        all of them count, as a text of JSON; a field ``context`` alone is its own name.
    reward_range, tolerance
        As `checked` has them.
    """
    return checked_rows(_rows(path, arm, context), path, reward_range, tolerance)


def write_dsjson(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows as Vowpal Wabbit's dsjson; return how many. What it cannot express is left out, see `LOST`.

    >>> row = Row(id="visit 9", context="mobile", offered=("red", "blue"), probabilities=(0.25, 0.75), arm="blue",
    ...     propensity=0.75, reward=1.0)
    >>> write_dsjson([row], "log.dsjson")
    1
    >>> next(read_dsjson("log.dsjson")) == row
    True
    """
    return written_lines((_line(number, row) for number, row in sound_rows(rows, WRITTEN)), path)


def _line(number: int, row: Row) -> bytes:
    """Return a row as a line."""
    if not row.probabilities:
        raise LogError(WRITTEN, number, f"row {row.id!r} has no vector of probabilities, which dsjson needs")
    order = sorted(range(len(row.offered)), key=lambda k: row.offered[k] != row.arm)  # the chosen one first
    chosen = order[0]
    event: dict[str, Any] = {"Version": "1", "EventId": row.id}
    if row.time is not None:
        event["Timestamp"] = _stamp(row.time, number)
    event |= {"a": [k + 1 for k in order], "c": _known(row), "p": [row.probabilities[k] for k in order]}
    event["VWState"] = {"m": f"{row.policy}/{row.version}"}
    if row.reward is not None:
        label = {"_label_cost": 0.0 - row.reward, "_label_probability": row.propensity}
        event = label | {"_label_Action": chosen + 1, "_labelIndex": chosen} | event
    return json.dumps(event, allow_nan=False).encode() + b"\n"


def _stamp(time: float, number: int) -> str:
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        raise LogError(WRITTEN, number, f"time {time!r} is no date that dsjson can have") from None


def _known(row: Row) -> dict[str, Any]:
    """Return what is known of the context and of the arms."""
    shared: dict[str, Any] = {} if row.context is None else {"context": row.context}
    arms: list[dict[str, Any]] = [{"_tag": arm, "arm": arm} for arm in row.offered]
    if row.features is not None and len(row.features) == 1:
        shared["x"] = {"f": list(row.features[0])}
    elif row.features is not None:
        for arm, line in zip(arms, row.features, strict=True):
            arm["x"] = {"f": list(line)}
    return {**shared, "_multi": arms}


def _rows(path: str | Path, arm: str | None, context: Sequence[str] | None) -> Numbered:
    for number, line, whole in numbered_lines(path):
        try:
            yield number, _row(_event(line, whole), arm, context)
        except (ValueError, RecursionError) as error:
            raise LogError(path, number, str(error)) from None


def _event(line: bytes, whole: bool) -> dict[str, Any]:
    """Return a line as an event of one decision."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        what = "it is no JSON" if whole else "the last line is not finished: the file was cut off, or is being written"
        raise ValueError(f"{what}: {shown(line)}") from None
    if not isinstance(event, dict):
        raise ValueError(f"an event must be an object of JSON; got {shown(line)}")
    known: Any = event.get("c")
    for key, what in REFUSED.items():
        if key in event or (isinstance(known, dict) and key in known):
            raise ValueError(f"{what} ({key}) cannot be a row; leave such lines out")
    if event.get("pdrop"):
        raise ValueError(f"the log was thinned (pdrop {shown(event['pdrop'])}), which a row cannot say")
    if event.get("_skipLearn"):
        raise ValueError("the decision was not shown (_skipLearn); leave such lines out")
    return event


def _row(event: dict[str, Any], arm: str | None, context: Sequence[str] | None) -> Row:
    known = event.get("c")
    items = known.get("_multi") if isinstance(known, dict) else None
    if not isinstance(known, dict) or not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("there is no c with a list _multi of arms")
    shared = {key: value for key, value in known.items() if key != "_multi"}
    names, rest = _arms_of(items, arm)
    chosen, chances = _choice(event, len(items))
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
        probabilities=chances,
        arm=names[chosen],
        propensity=chances[chosen],
        policy=policy,
        version=version,
        reward=None if cost is None else 0.0 - cost,
    )


def _arms_of(items: list[dict[str, Any]], arm: str | None) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the names of the arms, and what else is said of each."""
    if arm is not None:
        return tuple(str(_at(item, arm)) for item in items), items
    key = next((key for key in ("_tag", "arm") if _tells_apart(items, key)), None)
    names = [str(number) if key is None else item[key] for number, item in enumerate(items, 1)]
    rest = [
        {name: value for name, value in item.items() if not (name in ("_tag", "arm") and value == own)}
        for item, own in zip(items, names, strict=True)
    ]
    return tuple(names), rest


def _tells_apart(items: list[dict[str, Any]], key: str) -> bool:
    """Tell whether each arm has a name there, and one of its own."""
    names = [item.get(key) for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _choice(event: dict[str, Any], count: int) -> tuple[int, tuple[float, ...]]:
    """Return the place of the arm chosen, and the probabilities of all in their order."""
    order, found = event.get("a"), event.get("p")
    if found is None:
        raise ValueError("there are no probabilities (p), and they cannot be guessed")
    if not isinstance(order, list) or any(type(a) is not int for a in order) or sorted(order) != [*range(1, count + 1)]:
        raise ValueError(f"a must list the {count} arms from 1, each once, the chosen one first; got {shown(order)}")
    if not isinstance(found, list) or len(found) != count or not are_finite(tuple(found)):
        raise ValueError(f"p must be {count} numbers; got {shown(found)}")
    if not count:
        raise ValueError("no arm was offered")
    chances = [0.0] * count
    for place, chance in zip(order, found, strict=True):
        chances[place - 1] = chance
    chosen = order[0] - 1
    said = {"_label_Action": chosen + 1, "_labelIndex": chosen}
    for key, right in said.items():
        if event.get(key, right) != right:
            raise ValueError(f"{key} is {shown(event[key])}, but the first of a is arm {chosen + 1}: which was chosen?")
    labelled = event.get("_label_probability", chances[chosen])
    if not is_finite(labelled) or abs(labelled - chances[chosen]) > 1e-5:  # single precision
        raise ValueError(f"_label_probability is {shown(labelled)}, but p has {chances[chosen]!r}: which is it?")
    return chosen, tuple(chances)


def _features_of(
    shared: dict[str, Any], rest: list[dict[str, Any]]
) -> tuple[tuple[tuple[float, ...], ...] | None, list[dict[str, Any]]]:
    """Take features out where they are lists of numbers as this package writes them, of the context or of each arm."""
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
    """Return the name of a context: itself, or all that is known as JSON."""
    known = {**shared, **({"_multi": rest} if any(rest) else {})}
    if not known:
        return None
    if list(known) == ["context"] and isinstance(known["context"], str):
        return str(known["context"])
    return json.dumps(known, sort_keys=True)


def _model(event: dict[str, Any]) -> tuple[str, int]:
    """Return policy and version, from a model id as this package writes it; of others, the whole id and 0."""
    state = event.get("VWState")
    model = state.get("m") if isinstance(state, dict) else None
    if not isinstance(model, str):
        return "unknown", 0
    policy, _, version = model.rpartition("/")
    return (policy, int(version)) if version.isascii() and version.isdigit() and len(version) < 19 else (model, 0)


def _at(item: dict[str, Any], path: str) -> Any:
    """Return what stands at a path with dots."""
    found: Any = item
    for key in path.split("."):
        if not isinstance(found, dict) or key not in found:
            raise ValueError(f"there is no {path!r} in {shown(item)}")
        found = found[key]
    return found
