"""The BanditFeedback dictionary of Open Bandit Pipeline (obp): columns as arrays, arms as numbers.

Its keys are ``n_rounds``, ``n_actions``, ``action``, ``position``, ``reward``, ``pscore``, ``context`` (rounds,
dimension), ``action_context`` and sometimes ``pi_b`` (rounds, actions, positions), the whole vectors of probabilities.

It cannot express `LOST`, rounds without a reward, or features of each arm in each round. ``arm_names``,
``context_names``, ``offered`` and ``described`` (whether contexts have features, or names only) are keys of this
library, which obp ignores: without them names are numbers and all arms are offered. ``action_context``, features of the
arms that are the same in all rounds, is not read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from bothworlds.arrays import Bools, Floats, Ints
from bothworlds.logs.schema import Row
from bothworlds.logs.validation import TOLERANCE, Limits, LogError, Numbered, checked_rows, shown, writable_rows

LOST = ("id", "time", "policy", "version", "digest", "fingerprint", "holdout", "direction", "baseline", "reward_time")
NAME = "the obp feedback"
Feedback: TypeAlias = Mapping[str, Any]


def from_obp(feedback: Feedback, *, reward_range: Limits = None, tolerance: float = TOLERANCE) -> Iterator[Row]:
    """Yield rows from obp's BanditFeedback; a row's number is its id.

    Context vectors become features shared by all arms. With several positions, contexts are named "position 0",
    "position 1", ...: each position is a separate decision with its own probabilities. Whole vectors come from
    ``pi_b``; without it ``probabilities`` is empty.

    Parameters
    ----------
    feedback
        The dictionary, for example from ``dataset.obtain_batch_bandit_feedback(...)``.
    reward_range, tolerance
        Those of `checked`.

    >>> feedback = {"n_rounds": 2, "n_actions": 3, "action": [0, 2], "reward": [1, 0], "pscore": [0.5, 0.25],
    ...     "position": None, "context": [[0.1], [0.7]]}
    >>> [(row.arm, row.propensity, row.features, row.reward) for row in from_obp(feedback)]
    [('0', 0.5, ((0.1,),), 1.0), ('2', 0.25, ((0.7,),), 0.0)]
    """
    return checked_rows(_rows(feedback), NAME, reward_range, tolerance)


def to_obp(rows: Iterable[Row]) -> dict[str, Any]:
    """Return rows as obp's BanditFeedback; all rows must have rewards.

    ``context`` has their shared features, or one-hot columns of the names if contexts have names only.

    >>> rows = [Row(id="a", context="day", offered=("red", "blue"), arm="blue", propensity=0.75, reward=1.0)]
    >>> feedback = to_obp(rows)
    >>> feedback["action"].tolist(), feedback["pscore"].tolist(), feedback["arm_names"]
    ([1], [0.75], ['red', 'blue'])
    >>> next(from_obp(feedback)).context
    'day'
    """
    checked = [row for _, row in writable_rows(rows, NAME)]
    for number, row in enumerate(checked, 1):
        if row.reward is None:
            raise LogError(NAME, number, "there is no reward, which obp cannot express; leave such rows out")
        if row.features is not None and len(row.features) != 1:
            raise LogError(NAME, number, "obp cannot express features of each arm in each round")
    arms = list(dict.fromkeys(arm for row in checked for arm in (*row.offered, row.arm)))
    index = {arm: a for a, arm in enumerate(arms)}
    names = [row.context for row in checked]
    feedback = {
        "n_rounds": len(checked),
        "n_actions": len(arms),
        "action": np.array([index[row.arm] for row in checked], dtype=np.int64),
        "position": np.zeros(len(checked), dtype=np.int64),
        "reward": np.array([row.reward for row in checked], dtype=np.float64),
        "pscore": np.array([row.propensity for row in checked], dtype=np.float64),
        "context": _contexts(checked),
        "action_context": np.eye(len(arms)),
        "arm_names": arms,
        "context_names": names if any(name is not None for name in names) else None,
        "described": any(row.features is not None for row in checked),
        "offered": _offered(checked, index),
    }
    if checked and all(row.probabilities for row in checked):
        feedback["pi_b"] = _vectors(checked, index)
    return feedback


def _contexts(rows: list[Row]) -> Floats:
    """Return the features that arms share, or one-hot columns of the context names."""
    if any(row.features is not None for row in rows):
        lengths = [len(row.features[0]) if row.features else -1 for row in rows]
        if len(set(lengths)) > 1:
            number = next(i for i, length in enumerate(lengths, 1) if length != lengths[0])
            raise LogError(NAME, number, "its features are missing, or differ in length from those of other rows")
        return np.array([row.features[0] for row in rows if row.features], dtype=np.float64)
    names = {name: i for i, name in enumerate(dict.fromkeys(row.context for row in rows))}
    return np.asarray(np.eye(len(names))[[names[row.context] for row in rows]])


def _offered(rows: list[Row], index: dict[str, int]) -> Bools:
    """Return which arms were offered, shape (rounds, arms); all if a row has no list."""
    table = np.zeros((len(rows), len(index)), dtype=bool)
    for number, row in enumerate(rows):
        table[number, [index[arm] for arm in row.offered or index]] = True
    return table


def _vectors(rows: list[Row], index: dict[str, int]) -> Floats:
    """Return the probabilities, shape (rounds, arms, 1), zero for arms that were not offered."""
    table = np.zeros((len(rows), len(index), 1))
    for number, row in enumerate(rows):
        table[number, [index[arm] for arm in row.offered], 0] = row.probabilities
    return table


def _rows(feedback: Feedback) -> Numbered:
    """Yield the numbered rows of a dictionary."""
    columns = _columns(feedback)
    arms, rounds, K = columns["arms"], columns["rounds"], len(columns["arms"])
    pi, context, names = columns["pi_b"], columns["context"], columns["names"]
    position, several = columns["position"], len(np.unique(columns["position"])) > 1
    for t in range(rounds):
        action = int(columns["action"][t])
        if not 0 <= action < K:
            raise LogError(NAME, t + 1, f"action {action} is out of range: there are {K}, numbered from 0")
        offered = np.flatnonzero(columns["offered"][t])
        yield (
            t + 1,
            Row(
                id=str(t + 1),
                context=names[t] if names is not None else f"position {int(position[t])}" if several else None,
                features=None if context is None else (tuple(context[t].tolist()),),
                offered=tuple(arms[a] for a in offered),
                probabilities=() if pi is None else tuple(pi[t][offered].tolist()),
                arm=arms[action],
                propensity=float(columns["pscore"][t]),
                reward=float(columns["reward"][t]),
            ),
        )


def _columns(feedback: Feedback) -> dict[str, Any]:
    """Return the columns as arrays of the same length; raise a LogError for missing keys."""
    if not isinstance(feedback, Mapping):
        raise LogError(NAME, None, f"must be a dictionary; got {shown(feedback)}")
    missing = [key for key in ("n_rounds", "n_actions", "action", "reward", "pscore") if feedback.get(key) is None]
    if missing:
        why = "; propensities cannot be guessed" if "pscore" in missing else ""
        raise LogError(NAME, None, f"there is no {missing[0]!r}{why}")
    rounds, actions = (_count(feedback[key], key) for key in ("n_rounds", "n_actions"))
    columns: dict[str, Any] = {key: _column(feedback[key], rounds, key) for key in ("reward", "pscore")}
    columns |= {key: _integers(feedback.get(key), rounds, key) for key in ("action", "position")}
    described = feedback.get("described", feedback.get("context") is not None)
    columns["context"] = _table(feedback.get("context"), rounds, "context") if described else None
    columns["pi_b"] = _vectors_of(feedback.get("pi_b"), rounds, actions, columns["position"])
    arms = _names(feedback.get("arm_names"), actions, "arm_names") or [str(arm) for arm in range(actions)]
    names = _names(feedback.get("context_names"), rounds, "context_names")
    offered = _offered_in(feedback.get("offered"), (rounds, actions))
    return columns | {"arms": arms, "names": names, "rounds": rounds, "offered": offered}


def _names(values: Any, count: int, key: str) -> list[Any] | None:
    """Return names, or None if there are none."""
    if values is None:
        return None
    if not isinstance(values, list | tuple | np.ndarray) or len(values) != count:
        size = len(values) if isinstance(values, list | tuple | np.ndarray) else shown(values)
        raise LogError(NAME, None, f"{key!r} must be a list of {count} names; got {size}")
    return list(values)


def _offered_in(values: Any, shape: tuple[int, int]) -> Bools:
    """Return which arms are offered; all without the key."""
    table = np.ones(shape) if values is None else _array(values, "offered")
    if table.shape != shape:
        raise LogError(NAME, None, f"'offered' has shape {table.shape}, not {shape}")
    return np.asarray(table != 0.0)


def _count(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise LogError(NAME, None, f"{key!r} must be a whole number; got {shown(value)}")
    return int(value)


def _array(values: Any, key: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise LogError(NAME, None, f"{key!r} must be an array of numbers; got {shown(values)}") from None


def _column(values: Any, rounds: int, key: str) -> Floats:
    """Return a column of numbers, one for each round."""
    column = _array(values, key)
    if column.shape != (rounds,):
        raise LogError(NAME, None, f"{key!r} has shape {column.shape}, but there are {rounds} rounds")
    return column


def _integers(values: Any, rounds: int, key: str) -> Ints:
    """Return a column of whole numbers, zeros if there is none."""
    column = np.zeros(rounds) if values is None else _column(values, rounds, key)
    wrong = np.flatnonzero(~(np.abs(column) < 2**53) | (column != np.floor(column)))
    if len(wrong):
        raise LogError(NAME, int(wrong[0]) + 1, f"{key!r} is {column[wrong[0]]}, not a whole number")
    return column.astype(np.int64)


def _table(values: Any, rounds: int, key: str) -> Floats:
    table = _array(values, key)
    if table.ndim != 2 or len(table) != rounds:
        raise LogError(NAME, None, f"{key!r} has shape {table.shape}, but there are {rounds} rounds")
    return table


def _vectors_of(values: Any, rounds: int, actions: int, position: Ints) -> Floats | None:
    """Return the probabilities at each round's position, shape (rounds, actions)."""
    if values is None:
        return None
    table = _array(values, "pi_b")
    if table.ndim == 2:
        table = table[:, :, None]
    if table.shape[:2] != (rounds, actions) or table.ndim != 3 or not table.shape[2]:
        raise LogError(NAME, None, f"'pi_b' has shape {table.shape}, not ({rounds}, {actions}, positions)")
    if table.shape[2] == 1:
        return np.asarray(table[:, :, 0])
    if rounds and not 0 <= position.min() <= position.max() < table.shape[2]:
        raise LogError(NAME, None, f"'position' has numbers beyond the {table.shape[2]} positions of 'pi_b'")
    return np.asarray(table[np.arange(rounds), :, position])
