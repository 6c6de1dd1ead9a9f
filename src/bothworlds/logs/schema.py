"""The records of a log: decisions, rewards, ends of learning batches, and changes of the problem."""

import json
import math
import time as clock
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from bothworlds.policy import Decision, Plan, Policy
from bothworlds.policy.ids import parts_of
from bothworlds.policy.problem_history import Epoch
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number
from bothworlds.problem.file_format import migration

SCHEMA = "bothworlds-log-1"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A decision in a log, with its reward if that is known.

    Attributes
    ----------
    id, time
        Unique id of the decision, and when it was taken, in seconds since 1970; None if that is not known.
    context, features
        Name of the context; if contexts are not listed, the features instead, of shape (arms, dimension) in the order
        of ``offered``, or (1, dimension) if the arms share them.
    offered, probabilities
        All arms that could be chosen, and their probabilities in the same order. Empty if a log of another library
        does not have them.
    arm, propensity
        The chosen arm, and its probability.
    policy, version, digest
        The policy that decided, the version of its plan (`bothworlds.Policy.version`), and a hash of its learner state.
    holdout
        Whether the decision was held out: taken independently of the policy, usually uniformly, for comparison.
    fingerprint
        Fingerprint of the policy's spec: problem, context distribution and algorithm.
    direction, baseline
        Further values that learning from the decision needs.
    reward, reward_time
        The reward in the units of the problem, and when it came; None until then.

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
    fingerprint: str | None = None
    direction: tuple[float, ...] = ()
    baseline: tuple[float, ...] | None = None
    reward: float | None = None
    reward_time: float | None = None

    def decision(self, problem: Problem | Epoch) -> Decision:
        """Return the decision for ``policy.update``, if contexts are listed.

        If the policy's problem has changed, ``problem`` is ``policy.listing(row)``.
        """
        if self.context is None:
            raise ValueError(f"row {self.id!r} has features and no context; its context cannot be looked up")
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
            fingerprint=self.fingerprint or "",
        )


class RewardError(ValueError):
    """A reward that cannot belong to any decision; readers with strict=False ignore it."""


@dataclass(frozen=True, kw_only=True)
class Reward:
    """The reward of a decision, by its id. The first one in a log is learned; later ones are corrections for analysis.

    >>> Reward(id="visit 9", time=0, reward=True)
    Reward(id='visit 9', time=0.0, reward=1.0)
    """

    id: str
    time: float
    reward: float

    def __post_init__(self) -> None:
        id: Any = self.id
        if not isinstance(id, str) or not id:
            raise RewardError(f"the id of a reward must be a text with at least one character; got {self.id!r:.80}")
        for name in ("time", "reward"):
            value = getattr(self, name)
            if type(value) is not float:
                object.__setattr__(self, name, _float(value, f"the {name} of {self.id!r}"))
        if not math.isfinite(self.time):
            raise RewardError(f"the time of {self.id!r} must be a finite number; got {self.time!r}")


def _float(value: Any, what: str) -> float:
    """Return a number of any type, or a boolean, as a float; raise a ValueError for other values."""
    if not is_number(value) and not isinstance(value, bool | np.bool_):
        raise ValueError(f"{what} must be a number; got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The end of a batch: all rewards before byte ``through`` of the log are learned.

    ``version`` and ``digest`` are those of the plan after it; learning the same rows in the same batches gives the same
    bits. ``policy`` is the name of the policy that learned, here and in `ContextDistribution` and `Change`.
    """

    version: int
    digest: str
    through: int
    time: float
    policy: str


@dataclass(frozen=True, kw_only=True)
class ContextDistribution:
    """A change of the context distribution; ``version`` and ``digest`` are those of the plan after it."""

    version: int
    digest: str
    probabilities: tuple[float, ...]
    time: float
    policy: str

    def repeat(self, policy: Policy) -> None:
        """Apply the change to a policy, if you replay a log yourself; a `LogLearner` does so."""
        policy.change_probabilities(self.probabilities)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of the problem; ``version`` and ``digest`` are those of the plan after it.

    ``problem`` is the whole problem as plain values (`bothworlds.Problem.to_dict`); ``trust`` and ``fresh`` are the
    arguments of `bothworlds.Policy.change`, so that the change can be repeated on the earlier policy.
    """

    version: int
    digest: str
    problem: Mapping[str, Any]
    trust: float = 1.0
    fresh: float | None = None
    time: float
    policy: str

    def repeat(self, policy: Policy) -> None:
        """Apply the change to a policy, if you replay a log yourself; a `LogLearner` does so."""
        policy.change(Problem.from_dict(self.problem), trust=self.trust, fresh=self.fresh)


Record: TypeAlias = Row | Reward | Batch | ContextDistribution | Change
Kind: TypeAlias = type[Row] | type[Reward] | type[Batch] | type[ContextDistribution] | type[Change]
KINDS: dict[str, Kind] = {
    "decision": Row,
    "reward": Reward,
    "batch": Batch,
    "context_distribution": ContextDistribution,
    "change": Change,
}
KIND_NAMES = {kind: name for name, kind in KINDS.items()}
FIELDS = {kind: tuple(part.name for part in fields(kind)) for kind in KIND_NAMES}
KNOWN = {kind: frozenset(names) for kind, names in FIELDS.items()}
BEGINNING = f'{{"schema": "{SCHEMA}"'.encode()  # of every line; cannot occur inside one, where quotes are escaped


def row_of(decision: Decision, plan: Plan, *, time: float | None = None, holdout: bool = False) -> Row:
    """Return the row of a decision taken by a plan, with the probabilities of all offered arms.

    Those of a held-out decision are uniform. ``holdout`` marks a decision that you hold out yourself.

    >>> from bothworlds import FixedPolicy
    >>> plan = FixedPolicy().start(Problem(features=[[[1, 0], [0, 1]]], probabilities=[1]), rng=7).plan()
    >>> row = row_of(plan.act(0, id="visit 9"), plan, time=0.0)
    >>> row.id, row.context, row.offered, row.probabilities, row.propensity
    ('visit 9', '0', ('0', '1'), (0.5, 0.5), 0.5)
    """
    if (decision.version, decision.policy) != (plan.version, plan.policy):
        raise ValueError(
            f"the decision is of version {decision.version} of policy {decision.policy!r}, not of {plan!r}: its "
            "probabilities are not known"
        )
    offered = np.flatnonzero(plan.problem.available[decision.context])
    probabilities = plan.probabilities(decision.context)[offered].tolist()
    return Row(
        id=decision.id,
        time=clock.time() if time is None else time,
        context=decision.context_name,
        offered=tuple(plan.problem.arms[a] for a in offered),
        probabilities=(decision.propensity,) * len(offered) if decision.holdout else tuple(probabilities),
        arm=decision.arm_name,
        propensity=decision.propensity,
        policy=decision.policy,
        version=decision.version,
        digest=plan.digest,
        holdout=holdout or decision.holdout,
        fingerprint=decision.fingerprint or None,
        direction=tuple(decision.direction.tolist()),
        baseline=None if decision.baseline is None else tuple(decision.baseline.tolist()),
    )


def line_of(record: Record) -> bytes:
    """Return a record as a line of JSON, with its line feed; fields that are None or empty are left out.

    >>> line_of(Reward(id="visit 9", time=5.0, reward=1.0)).decode().strip()
    '{"schema": "bothworlds-log-1", "kind": "reward", "id": "visit 9", "time": 5.0, "reward": 1.0}'
    """
    if type(record) not in FIELDS:
        advice = "; bothworlds.logs.row_of(decision, plan) makes a row of a decision" * isinstance(record, Decision)
        raise ValueError(
            f"a record must be one of {', '.join(cls.__name__ for cls in FIELDS)}; got {type(record).__name__}{advice}"
        )
    values = {name: getattr(record, name) for name in FIELDS[type(record)]}
    fields_set = {name: value for name, value in values.items() if value is not None and not _is_empty(value)}
    try:
        text = json.dumps({"schema": SCHEMA, "kind": KIND_NAMES[type(record)], **fields_set}, allow_nan=False)
    except ValueError:
        raise ValueError(f"all numbers in a log must be finite; got {record!r:.300}") from None
    return text.encode() + b"\n"


def _is_empty(value: Any) -> bool:
    return isinstance(value, tuple) and not value


def record_of(line: bytes | str) -> Record:
    """Return the record in a line; raise a ValueError for another schema or missing fields."""
    values = json.loads(line)
    kind = values.get("kind") if isinstance(values, dict) and values.get("schema") == SCHEMA else None
    if not isinstance(kind, str) or kind not in KINDS:
        advice = migration(values.get("schema") if isinstance(values, dict) else None, SCHEMA)
        raise ValueError(f"not a line of a log with schema {SCHEMA}: {line[:80]!r}{advice}")
    return record_from(KINDS[kind], values)


def record_from(kind: Kind, values: Mapping[str, Any]) -> Record:
    """Return a record from its fields; lists become tuples."""
    known = KNOWN[kind]
    given: dict[str, Any] = {
        name: _frozen(value) if type(value) is list else value for name, value in values.items() if name in known
    }
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"incomplete {KIND_NAMES[kind]} record: {error}") from None


def _frozen(values: list[Any]) -> tuple[Any, ...]:
    return tuple([_frozen(part) if type(part) is list else part for part in values])


def joined(records: Iterable[Record], *, reward_range: tuple[float, float] | None = None) -> Iterator[Row]:
    """Yield every decision once in order, with its reward if there is one; the first reward of an id counts.

    A reward may precede its decision, if another process was faster. With a ``reward_range``, rewards outside it are
    ignored, as by a `LogLearner`.

    >>> decision = Row(id="a", arm="red", propensity=0.5)
    >>> invalid, valid = (Reward(id="a", time=1.0, reward=reward) for reward in (5, 1))
    >>> [row.reward for row in joined([decision, invalid, valid], reward_range=(0, 1))]
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
        reward = rewards.get(row.id) if row.reward is None else None
        yield row if reward is None else replace(row, reward=reward.reward, reward_time=reward.time)


def is_before(row: Row, versions: Mapping[str, int]) -> bool:
    """Return whether a row was decided before its policy's last change.

    ``versions`` has the version after that change, by the name of the policy.

    >>> row = Row(id="a", arm="red", propensity=0.5, policy="p", version=3)
    >>> is_before(row, {"p": 4}), is_before(row, {"p": 3}), is_before(row, {"q": 4})
    (True, False, False)
    """
    return row.version < versions.get(row.policy, 0)
