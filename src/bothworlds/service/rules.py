"""The rules for decisions and rewards: pure functions from request and decision state to response and record.

A decision is made once and rewarded once. Repeating a request gets the same answer; a different request under the same
id is a conflict (409). A reward that comes after the window has closed, or after its arm was retired, is stored for
evaluation and not learned.
"""

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from bothworlds.policy.spec import PolicySpec
from bothworlds.service.batch_decide import Draw
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
    UNANSWERED,
    DecisionBody,
    Kind,
    Record,
    RewardBody,
    hash_request,
    packed,
    unpacked,
)

OK, INVALID, MISSING, CONFLICT = 200, 422, 404, 409
HELD_OUT = "the decision belongs to the holdout, which is not learned from"
CLOSED = "the reward window had closed and the default reward was learned; this reward is stored for evaluation"
UNANSWERED_CLOSED = "the reward window had closed without a reward; this reward is stored for evaluation"
RETIRED = "the arm or context of the decision was retired; this reward is stored for evaluation"
REPLACED = "the algorithm has changed since the decision; this reward is stored for evaluation"
Outcome: TypeAlias = tuple[int, Answer, Record | None]  # status, response, and the record to store before responding


class DecisionState(msgspec.Struct, gc=False):
    """State of one decision, all defaults for an unknown id.

    With ``reward_sent``, a client sent the reward; otherwise it is the default reward, and ``late_reward`` may follow.
    With ``unanswered``, the window closed and there is no default reward; only ``late_reward`` may follow.
    With ``arm_retired``, the reward is not learned because the arm was retired before it came; likewise with
    ``algorithm_changed``.
    """

    decision: DecisionBody | None = None
    active: bool = False
    reward: float | None = None
    reward_sent: bool = False
    late_reward: float | None = None
    arm_retired: bool = False
    unanswered: bool = False
    algorithm_changed: bool = False

    def apply(self, record: Record) -> None:
        """Update the state by a record about the decision."""
        match record.kind:
            case Kind.DECISION:
                self.decision, self.active = unpacked(DecisionBody, record.body), self.active or bool(record.flag)
            case Kind.ACTIVATION:
                self.active = True
            case Kind.REWARD:
                body = unpacked(RewardBody, record.body)
                self.reward, self.arm_retired, self.reward_sent = body.reward, body.arm_retired, bool(record.flag)
                self.algorithm_changed = body.algorithm_changed
            case Kind.UNANSWERED:
                self.unanswered = True
            case Kind.LATE:
                self.late_reward = unpacked(RewardBody, record.body).reward


class DecisionContext(NamedTuple):
    """What the rules need of an experiment in one commit: number, name, time, current spec, and reward range."""

    number: int
    name: str
    time: float
    spec: PolicySpec
    short_fingerprint: str
    reward_range: tuple[float, float] | None = None
    closed_fingerprints: frozenset[str] = frozenset()


def refuse(status: int, sentence: str) -> Outcome:
    """Return a refusal."""
    return status, Refusal(sentence), None


def decide(request: Decide, state: DecisionState, draw: Draw | None, context: DecisionContext) -> Outcome:
    """Answer a request for a decision; ``draw`` is the decision to take if it is new."""
    known = state.decision
    if known is not None and request.id is not None:
        if known.request_hash != hash_request(request.context, request.active):
            return refuse(CONFLICT, other_body(request.id))
        return OK, decided(request.id, known, context.name, active=request.active), None
    assert draw is not None
    if type(draw) is Refusal:
        return INVALID, draw, None
    name, body = draw
    state.decision, state.active = body, request.active
    record = Record(0, context.number, DECISION, name, context.time, request.active, packed(body))
    return OK, decided(name, body, context.name, active=request.active), record


def decided(name: str, body: DecisionBody, experiment: str, *, active: bool) -> Decided:
    """Return the response of a decision; it is the same for every repetition of the request."""
    return Decided(name, experiment, body.context, body.arm, body.propensity, body.version, body.holdout, active)


def activate(request: Activate, state: DecisionState, context: DecisionContext) -> Outcome:
    """Activate a decision; an active one stays active."""
    if state.decision is None:
        return refuse(MISSING, _unknown(request.id))
    record = None if state.active else Record(0, context.number, ACTIVATION, request.id, context.time, True, b"")
    state.active = True
    return OK, Activated(request.id, context.name), record


def reward(request: Reward, state: DecisionState, context: DecisionContext) -> Outcome:
    """Accept the first reward of a decision, a repetition of it, or the first late one; refuse any other."""
    decision, known = state.decision, state.reward
    if decision is None:
        return refuse(MISSING, _unknown(request.id))
    low, high = context.reward_range or (-1.0, 1.0)
    if not low <= request.reward <= high:  # also refuses NaN
        return refuse(INVALID, f"reward {request.reward!r} is outside [{low:g}, {high:g}]")
    if not state.active:
        return refuse(CONFLICT, f"decision {request.id!r} is not active: activate it once it is shown, then reward it")
    is_late = state.unanswered or (known is not None and not state.reward_sent)
    previous = state.late_reward if is_late else known
    if previous is not None and previous != request.reward:
        return refuse(CONFLICT, f"decision {request.id!r} has reward {previous!r} already")
    if known is None and not is_late and decision.fingerprint != context.short_fingerprint:
        state.arm_retired = _is_retired(decision, context.spec)
        state.algorithm_changed = decision.fingerprint in context.closed_fingerprints
    closed = UNANSWERED_CLOSED if state.unanswered else CLOSED
    reason = closed if is_late else HELD_OUT if decision.holdout else RETIRED if state.arm_retired else None
    if reason is None and state.algorithm_changed:
        reason = REPLACED
    answer = Rewarded(request.id, context.name, request.reward, reason is None, reason)
    if previous is not None:
        return OK, answer, None
    if is_late:
        state.late_reward = request.reward
    else:
        state.reward, state.reward_sent = request.reward, True
    kind, body = (
        LATE if is_late else REWARD,
        packed(RewardBody(request.reward, state.arm_retired, state.algorithm_changed)),
    )
    return OK, answer, Record(0, context.number, kind, request.id, context.time, True, body)


def expire(
    name: str, state: DecisionState, context: DecisionContext, default: float | Literal["none"]
) -> Record | None:
    """Give a decision without a reward the default reward; without a default, record that it is unanswered."""
    if state.decision is None or state.reward is not None or state.unanswered:
        return None
    if default == "none":
        state.unanswered = True
        return Record(0, context.number, UNANSWERED, name, context.time, False, b"")
    state.reward, state.reward_sent = default, False
    return Record(0, context.number, REWARD, name, context.time, False, packed(RewardBody(default)))


def _is_retired(decision: DecisionBody, spec: PolicySpec) -> bool:
    """Return whether the decision's arm is no longer offered in its context, so that its reward cannot be learned."""
    contexts, arms = spec.numbered
    x, a = contexts.get(decision.context), arms.get(decision.arm)
    return x is None or a is None or not spec.problem.available[x, a]


def other_body(name: str | None) -> str:
    """Return why another request under the same id is refused."""
    return f"decision {name!r} was requested before with another body"


def _unknown(name: str) -> str:
    return f"there is no decision {name!r}"
