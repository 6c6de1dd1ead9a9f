"""What may happen to a decision, and what is answered: pure functions of what is known of it.

A decision happens once, a reward counts once. Who asks the same again gets the same answer; who asks something else
under the same id is told so (409). A reward that comes after the window has closed is kept for evaluation, and is not
learnt.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from bothworlds.policy.plan import Plan
from bothworlds.service.messages import (
    Activate,
    Activated,
    Answer,
    Decide,
    Decided,
    Refusal,
    Reward,
    Rewarded,
)
from bothworlds.service.records import Drawn, Kind, Paid, Record, drawn_from, packed, unpacked

OK, BAD, MISSING, CONFLICT = 200, 422, 404, 409
HELD_OUT = "the decision was held out, to compare the policy with"
CLOSED = "the window for rewards had closed and the default reward was learnt; this one is kept for evaluation"
_canonical = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True)
class State:
    """What is known of a decision: what was drawn, whether it is active, and its rewards."""

    drawn: Drawn | None = None
    active: bool = False
    reward: float | None = None
    given: bool = False
    late: float | None = None

    def learn_of(self, record: Record) -> None:
        """Take note of a record about the decision."""
        match record.kind:
            case Kind.DECISION:
                self.drawn, self.active = unpacked(Drawn, record.body), self.active or bool(record.flag)
            case Kind.ACTIVATION:
                self.active = True
            case Kind.REWARD:
                self.reward, self.given = unpacked(Paid, record.body).reward, bool(record.flag)
            case Kind.LATE:
                self.late = unpacked(Paid, record.body).reward


class Outcome(NamedTuple):
    """A status, an answer, and a record to be stored before it is given."""

    status: int
    answer: Answer
    record: Record | None = None


class Place(NamedTuple):
    """Where and when something happens: the experiment's number and name, and the time."""

    number: int
    name: str
    time: float


def refused(status: int, sentence: str) -> Outcome:
    """Refuse in a sentence."""
    return Outcome(status, Refusal(sentence))


def fingerprint(request: Decide) -> bytes:
    """Return a hash of what was asked for, apart from the id.

    >>> fingerprint(Decide(context={"a": 1, "b": 2}, id="x")) == fingerprint(Decide(context={"b": 2, "a": 1}))
    True
    """
    return hashlib.blake2b(_canonical((request.context, request.active)), digest_size=16).digest()


def decide(request: Decide, state: State, plan: Plan, place: Place) -> tuple[Outcome, State | None]:
    """Decide, or give the answer that was given; with the state of a decision that is new."""
    asked = fingerprint(request)
    if state.drawn is not None and request.id is not None:
        if state.drawn.asked != asked:
            return refused(CONFLICT, f"decision {request.id!r} was asked for before with another body"), None
        return Outcome(OK, answered(request.id, state.drawn, place.name, active=request.active)), None
    try:
        made = plan.act(request.context, id=request.id)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        return refused(BAD, str(error)), None
    drawn = drawn_from(made, plan, asked)
    record = Record(0, place.number, Kind.DECISION, made.id, place.time, request.active, packed(drawn))
    answer = answered(made.id, drawn, place.name, active=request.active)
    return Outcome(OK, answer, record), State(drawn, request.active)


def answered(name: str, drawn: Drawn, experiment: str, *, active: bool) -> Decided:
    """Return the answer that a decision has, always the same."""
    return Decided(name, experiment, drawn.context, drawn.arm, drawn.propensity, drawn.version, drawn.holdout, active)


def activate(request: Activate, state: State, place: Place) -> Outcome:
    """Activate a decision; one that is active stays so."""
    if state.drawn is None:
        return refused(MISSING, _unknown(request.id))
    record = None if state.active else Record(0, place.number, Kind.ACTIVATION, request.id, place.time, True, b"")
    state.active = True
    return Outcome(OK, Activated(request.id, place.name), record)


def reward(request: Reward, state: State, place: Place, limits: tuple[float, float] | None) -> Outcome:
    """Take a reward, the same again, or one that comes after the window; refuse all else."""
    if state.drawn is None:
        return refused(MISSING, _unknown(request.id))
    low, high = (-1.0, 1.0) if limits is None else limits
    if not math.isfinite(request.reward) or not low <= request.reward <= high:
        return refused(BAD, f"reward {request.reward!r} is outside [{low:g}, {high:g}]")
    if not state.active:
        return refused(CONFLICT, f"decision {request.id!r} is not active: activate it once it is shown, then reward it")
    told = state.late if state.reward is not None and not state.given else state.reward
    if told is not None and told != request.reward:
        return refused(CONFLICT, f"decision {request.id!r} has reward {told!r} already")
    late = state.reward is not None and not state.given
    reason = CLOSED if late else HELD_OUT if state.drawn.holdout else None
    answer = Rewarded(request.id, place.name, request.reward, reason is None, reason)
    if told is not None:
        return Outcome(OK, answer)
    if late:
        state.late = request.reward
    else:
        state.reward, state.given = request.reward, True
    kind = Kind.LATE if late else Kind.REWARD
    return Outcome(
        OK, answer, Record(0, place.number, kind, request.id, place.time, True, packed(Paid(request.reward)))
    )


def expire(name: str, state: State, place: Place, default: float) -> Record | None:
    """Give a decision the default reward, if it has none."""
    if state.drawn is None or state.reward is not None:
        return None
    state.reward, state.given = default, False
    return Record(0, place.number, Kind.REWARD, name, place.time, False, packed(Paid(default)))


def _unknown(name: str) -> str:
    return f"there is no decision {name!r}"
