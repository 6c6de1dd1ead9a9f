"""What stands in a log: decisions, rewards, where batches of learning end, and changes of the problem."""

import json
import math
import time as clock
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from bothworlds.policy import Decision, Plan, Policy
from bothworlds.policy.epochs import Epoch
from bothworlds.policy.identity import parts_of
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number
from bothworlds.problem.storage import migration

SCHEMA = "bothworlds-log-1"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A decision as a log keeps it, and its reward once that is known.

    Attributes
    ----------
    id, time
        Name of the decision, never that of another, and when it was taken, in seconds since 1970; None if not known.
    context, features
        Name of the context seen; where contexts are not listed, the features instead: (arms, dimension), in the order
        of ``offered``, or (1, dimension) where the arms share them.
    offered, probabilities
        The arms that could be chosen, and with which probabilities: all of them, in the same order. Empty where a log
        from elsewhere does not have them.
    arm, propensity
        The arm chosen, and its probability.
    policy, version, digest
        Which policy decided, with which plan (`bothworlds.Policy.version`), and a hash of what it had learnt.
    holdout
        Whether the decision was taken apart from the policy, say uniformly, to compare it with.
    footing
        A mark of the problem, law and algorithm it was taken with.
    direction, baseline
        What learning from it needs besides.
    reward, reward_time
        What came back, in the units of the problem, and when; None as long as nothing has.

    >>> row = Row(id="visit 9", context="day", arm="red", propensity=0.8)
    >>> row.policy, row.reward, replace(row, reward=1.0).reward
    ('unknown', None, 1.0)
    """

    id: str
    time: float | None = None
    context: str | None = None
    features: tuple[tuple[float, ...], ...] | None = None
    offered: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()
    arm: str
    propensity: float
    policy: str = "unknown"
    version: int = 0
    digest: str | None = None
    holdout: bool = False
    footing: str | None = None
    direction: tuple[float, ...] = ()
    baseline: tuple[float, ...] | None = None
    reward: float | None = None
    reward_time: float | None = None

    def decision(self, problem: Problem | Epoch) -> Decision:
        """Return the decision itself, for ``policy.update``, where contexts are listed.

        Of a policy whose problem has changed, ``policy.listing(row)`` is the problem to give.
        """
        if self.context is None:
            raise ValueError(f"row {self.id!r} has features and no context; its decision cannot be found in a list")
        if self.arm not in problem.arms:
            raise ValueError(f"row {self.id!r}: unknown arm {self.arm!r}; the arms are {', '.join(problem.arms[:8])}")
        source, number = parts_of(self.id)
        return Decision(
            round=number,
            context=problem.context_index(self.context),
            context_name=self.context,
            arm=problem.arms.index(self.arm),
            arm_name=self.arm,
            propensity=self.propensity,
            direction=np.array(self.direction, dtype=np.float64),
            baseline=None if self.baseline is None else np.array(self.baseline, dtype=np.float64),
            policy=self.policy,
            source=source,
            version=self.version,
            holdout=self.holdout,
            footing=self.footing or "",
        )


class RewardError(ValueError):
    """A reward that cannot be that of any decision; readers that are not strict pass over it."""


@dataclass(frozen=True, kw_only=True)
class Reward:
    """The reward of a decision, by its id. The first one in a log counts; later ones are corrections for analysis.

    >>> Reward(id="visit 9", time=0, reward=True)
    Reward(id='visit 9', time=0.0, reward=1.0)
    """

    id: str
    time: float
    reward: float

    def __post_init__(self) -> None:
        id: Any = self.id
        if not isinstance(id, str) or not id:
            raise RewardError(f"the id of a reward is a text with at least one character; got {self.id!r:.80}")
        for name in ("time", "reward"):
            value = getattr(self, name)
            if type(value) is not float:
                object.__setattr__(self, name, _plain(value, f"the {name} of {self.id!r}"))
        if not math.isfinite(self.time):
            raise RewardError(f"the time of {self.id!r} must be a finite number; got {self.time!r}")


def _plain(value: Any, what: str) -> float:
    """Return a number of any kind, or a truth value, as a float; refuse what is none."""
    if not is_number(value) and not isinstance(value, bool | np.bool_):
        raise ValueError(f"{what} must be a number; got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The end of a batch: a learner has learnt from all rewards in the log before byte ``through``, and has come to a
    plan of that version and digest. Whoever learns from the same rows with the same ends gets the same bits.
    ``policy`` is the name of the policy that has learnt, here and in `Law` and `Change`; logs of before have none.
    """  # noqa: D205

    version: int
    digest: str
    through: int
    time: float
    policy: str | None = None


@dataclass(frozen=True, kw_only=True)
class Law:
    """The policy goes on under another law of contexts, with a plan of that version and digest."""

    version: int
    digest: str
    probabilities: tuple[float, ...]
    time: float
    policy: str | None = None

    def repeat(self, policy: Policy) -> None:
        """Give a policy this law again, where you go through a log yourself; a `Learner` does it for you."""
        policy.change_probabilities(self.probabilities)


@dataclass(frozen=True, kw_only=True)
class Change:
    """The policy goes on with another problem, with a plan of that version and digest.

    ``problem`` has all of it as plain values (`bothworlds.Problem.to_dict`); ``trust`` and ``fresh`` are what
    `bothworlds.Policy.change` was told. So whoever has the policy of before can repeat it.
    """

    version: int
    digest: str
    problem: Mapping[str, Any]
    trust: float = 1.0
    fresh: float | None = None
    time: float
    policy: str | None = None

    def repeat(self, policy: Policy) -> None:
        """Give a policy this problem again, where you go through a log yourself; a `Learner` does it for you."""
        policy.change(Problem.from_dict(self.problem), trust=self.trust, fresh=self.fresh)


Record: TypeAlias = Row | Reward | Batch | Law | Change
Kind: TypeAlias = type[Row] | type[Reward] | type[Batch] | type[Law] | type[Change]
KINDS: dict[str, Kind] = {"decision": Row, "reward": Reward, "batch": Batch, "law": Law, "change": Change}
WORDS = {kind: word for word, kind in KINDS.items()}
NAMES = {kind: tuple(part.name for part in fields(kind)) for kind in WORDS}
KNOWN = {kind: frozenset(names) for kind, names in NAMES.items()}
BEGINNING = f'{{"schema": "{SCHEMA}"'.encode()  # of every line, and of nothing inside one: quotes would be escaped


def row_of(decision: Decision, plan: Plan, *, time: float | None = None, holdout: bool = False) -> Row:
    """Return the row of a decision that a plan has taken, with the whole row of probabilities.

    That of a held-out decision is uniform among the arms offered. ``holdout`` marks a decision that you hold out
    yourself.

    >>> from bothworlds import FixedPolicy
    >>> plan = FixedPolicy().start(Problem(features=[[[1, 0], [0, 1]]], probabilities=[1]), rng=7).plan()
    >>> row = row_of(plan.act(0, id="visit 9"), plan, time=0.0)
    >>> row.id, row.context, row.offered, row.probabilities, row.propensity
    ('visit 9', '0', ('0', '1'), (0.5, 0.5), 0.5)
    """
    if (decision.version, decision.policy) != (plan.version, plan.policy):
        raise ValueError(
            f"the decision is of version {decision.version} of policy {decision.policy!r}, not of {plan!r}: its "
            "probabilities are not known any more"
        )
    offered = np.flatnonzero(plan.problem.available[decision.context])
    played = plan.probabilities(decision.context)[offered].tolist()
    return Row(
        id=decision.id,
        time=clock.time() if time is None else time,
        context=decision.context_name,
        offered=tuple(plan.problem.arms[a] for a in offered),
        probabilities=(decision.propensity,) * len(offered) if decision.holdout else tuple(played),
        arm=decision.arm_name,
        propensity=decision.propensity,
        policy=decision.policy,
        version=decision.version,
        digest=plan.digest,
        holdout=holdout or decision.holdout,
        footing=decision.footing or None,
        direction=tuple(decision.direction.tolist()),
        baseline=None if decision.baseline is None else tuple(decision.baseline.tolist()),
    )


def line_of(record: Record) -> bytes:
    """Return a record as a line of JSON, with its line feed; nothing that is None or empty is written.

    >>> line_of(Reward(id="visit 9", time=5.0, reward=1.0)).decode().strip()
    '{"schema": "bothworlds-log-1", "kind": "reward", "id": "visit 9", "time": 5.0, "reward": 1.0}'
    """
    if type(record) not in NAMES:
        advice = "; bothworlds.logs.row_of(decision, plan) makes a row of a decision" * isinstance(record, Decision)
        raise ValueError(f"a log has rows, rewards, batches, laws and changes; got {type(record).__name__}{advice}")
    values = {name: getattr(record, name) for name in NAMES[type(record)]}
    kept = {name: value for name, value in values.items() if value is not None and not _is_nothing(value)}
    try:
        text = json.dumps({"schema": SCHEMA, "kind": WORDS[type(record)], **kept}, allow_nan=False)
    except ValueError:
        raise ValueError(f"a log has finite numbers only; got {record!r:.300}") from None
    return text.encode() + b"\n"


def _is_nothing(value: Any) -> bool:
    return isinstance(value, tuple) and not value


def record_of(line: bytes | str) -> Record:
    """Return the record in a line; refuse another schema, or a record that is not whole, in a sentence."""
    values = json.loads(line)
    kind = values.get("kind") if isinstance(values, dict) and values.get("schema") == SCHEMA else None
    if not isinstance(kind, str) or kind not in KINDS:
        advice = migration(values.get("schema") if isinstance(values, dict) else None, SCHEMA)
        raise ValueError(f"not a line of a log with schema {SCHEMA}: {line[:80]!r}{advice}")
    return record_from(KINDS[kind], values)


def record_from(kind: Kind, values: Mapping[str, Any]) -> Record:
    """Return a record of a kind from its values; lists become tuples."""
    known = KNOWN[kind]
    given: dict[str, Any] = {
        name: _frozen(value) if type(value) is list else value for name, value in values.items() if name in known
    }
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"not a whole {WORDS[kind]}: {error}") from None


def _frozen(values: list[Any]) -> tuple[Any, ...]:
    return tuple([_frozen(part) if type(part) is list else part for part in values])


def joined(records: Iterable[Record], *, reward_range: tuple[float, float] | None = None) -> Iterator[Row]:
    """Yield every decision once, with its reward where one came: the first of each id counts, in the order decided.

    A reward may stand before its decision: another process was faster. With a ``reward_range`` those outside it count
    as little as for a `Learner`, which passes over them.

    >>> made = Row(id="a", arm="red", propensity=0.5)
    >>> wrong, right = (Reward(id="a", time=1.0, reward=reward) for reward in (5, 1))
    >>> [row.reward for row in joined([made, wrong, right], reward_range=(0, 1))]
    [1.0]
    """
    lowest, highest = (-math.inf, math.inf) if reward_range is None else reward_range
    rows: dict[str, Row] = {}
    rewards: dict[str, Reward] = {}
    for record in records:
        if isinstance(record, Row):
            rows.setdefault(record.id, record)
        elif isinstance(record, Reward) and lowest <= record.reward <= highest:
            rewards.setdefault(record.id, record)
    for row in rows.values():
        if row.reward is not None and not (reward_range is None or lowest <= row.reward <= highest):
            row = replace(row, reward=None, reward_time=None)
        came = rewards.get(row.id) if row.reward is None else None
        yield row if came is None else replace(row, reward=came.reward, reward_time=came.time)


def is_before(row: Row, began: Mapping[str | None, int]) -> bool:
    """Tell whether a row was decided before its policy's present law, or problem, began.

    ``began`` has the version with which it did, by the name of the policy; under None that of a log without names.

    >>> row = Row(id="a", arm="red", propensity=0.5, policy="p", version=3)
    >>> is_before(row, {"p": 4}), is_before(row, {"p": 3, None: 4}), is_before(row, {None: 4}), is_before(row, {})
    (True, False, True, False)
    """
    return row.version < began.get(row.policy, began.get(None, 0))
