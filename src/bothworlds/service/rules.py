"""What may happen to a decision, and what is answered: pure functions of what is known of it.

A decision happens once, a reward counts once. Who asks the same again gets the same answer; who asks something else
under the same id is told so (409). A reward that comes after the window has closed, or after its arm was retired, is
kept for evaluation, and is not learnt.
"""

from typing import NamedTuple, TypeAlias

import msgspec

from bothworlds.policy.footing import Footing
from bothworlds.service.drawing import Draw
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
from bothworlds.service.records import (
    ACTIVATION,
    DECISION,
    LATE,
    REWARD,
    Drawn,
    Kind,
    Paid,
    Record,
    fingerprint,
    packed,
    unpacked,
)

OK, BAD, MISSING, CONFLICT = 200, 422, 404, 409
HELD_OUT = "the decision was held out, to compare the policy with"
CLOSED = "the window for rewards had closed and the default reward was learnt; this one is kept for evaluation"
GONE = "the arm, or the context, of the decision is played no more; this reward is kept for evaluation"
Outcome: TypeAlias = tuple[int, Answer, Record | None]  # a status, an answer, and what is stored before it is given


class State(msgspec.Struct, gc=False):
    """What is known of a decision: what was drawn, whether it is active, and its rewards."""

    drawn: Drawn | None = None
    active: bool = False
    reward: float | None = None
    given: bool = False
    late: float | None = None
    gone: bool = False

    def learn_of(self, record: Record) -> None:
        """Take note of a record about the decision."""
        match record.kind:
            case Kind.DECISION:
                self.drawn, self.active = unpacked(Drawn, record.body), self.active or bool(record.flag)
            case Kind.ACTIVATION:
                self.active = True
            case Kind.REWARD:
                paid = unpacked(Paid, record.body)
                self.reward, self.gone, self.given = paid.reward, paid.gone, bool(record.flag)
            case Kind.LATE:
                self.late = unpacked(Paid, record.body).reward


class Place(NamedTuple):
    """Where and when something happens: the experiment's number and name, the time, what is played, what is paid."""

    number: int
    name: str
    time: float
    footing: Footing
    mark: str
    limits: tuple[float, float] | None = None


def refused(status: int, sentence: str) -> Outcome:
    """Refuse in a sentence."""
    return status, Refusal(sentence), None


def decide(request: Decide, state: State, draw: Draw | None, place: Place) -> Outcome:
    """Give the answer that was given; a decision that is new is what was drawn for it."""
    known = state.drawn
    if known is not None and request.id is not None:
        if known.asked != fingerprint(request.context, request.active):
            return refused(CONFLICT, f"decision {request.id!r} was asked for before with another body")
        return OK, answered(request.id, known, place.name, active=request.active), None
    assert draw is not None
    if type(draw) is Refusal:
        return BAD, draw, None
    name, drawn = draw
    state.drawn, state.active = drawn, request.active
    record = Record(0, place.number, DECISION, name, place.time, request.active, packed(drawn))
    return OK, answered(name, drawn, place.name, active=request.active), record


def answered(name: str, drawn: Drawn, experiment: str, *, active: bool) -> Decided:
    """Return the answer that a decision has, always the same."""
    return Decided(name, experiment, drawn.context, drawn.arm, drawn.propensity, drawn.version, drawn.holdout, active)


def activate(request: Activate, state: State, place: Place) -> Outcome:
    """Activate a decision; one that is active stays so."""
    if state.drawn is None:
        return refused(MISSING, _unknown(request.id))
    record = None if state.active else Record(0, place.number, ACTIVATION, request.id, place.time, True, b"")
    state.active = True
    return OK, Activated(request.id, place.name), record


def reward(request: Reward, state: State, place: Place) -> Outcome:
    """Take a reward, the same again, or one that comes after the window; refuse all else."""
    drawn, known = state.drawn, state.reward
    if drawn is None:
        return refused(MISSING, _unknown(request.id))
    low, high = place.limits or (-1.0, 1.0)
    if not low <= request.reward <= high:  # nor is what is no number
        return refused(BAD, f"reward {request.reward!r} is outside [{low:g}, {high:g}]")
    if not state.active:
        return refused(CONFLICT, f"decision {request.id!r} is not active: activate it once it is shown, then reward it")
    late = known is not None and not state.given
    told = state.late if late else known
    if told is not None and told != request.reward:
        return refused(CONFLICT, f"decision {request.id!r} has reward {told!r} already")
    if known is None and drawn.footing != place.mark:
        state.gone = _is_gone(drawn, place.footing)
    reason = CLOSED if late else HELD_OUT if drawn.holdout else GONE if state.gone else None
    answer = Rewarded(request.id, place.name, request.reward, reason is None, reason)
    if told is not None:
        return OK, answer, None
    if late:
        state.late = request.reward
    else:
        state.reward, state.given = request.reward, True
    kind, body = LATE if late else REWARD, packed(Paid(request.reward, state.gone))
    return OK, answer, Record(0, place.number, kind, request.id, place.time, True, body)


def expire(name: str, state: State, place: Place, default: float) -> Record | None:
    """Give a decision the default reward, if it has none."""
    if state.drawn is None or state.reward is not None:
        return None
    state.reward, state.given = default, False
    return Record(0, place.number, REWARD, name, place.time, False, packed(Paid(default)))


def _is_gone(drawn: Drawn, footing: Footing) -> bool:
    """Tell whether the arm of a decision is not offered in its context any more, so that nothing is learnt of it."""
    contexts, arms = footing.numbered
    x, a = contexts.get(drawn.context), arms.get(drawn.arm)
    return x is None or a is None or not footing.problem.available[x, a]


def _unknown(name: str) -> str:
    return f"there is no decision {name!r}"
