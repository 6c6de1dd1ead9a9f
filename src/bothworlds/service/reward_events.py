"""Rewards in the order in which they are learned: that of the log, or that of their decisions.

A click is heard at once, and that there was none only when the window closes. Among the rewards that have come, the
successes are therefore too many. "In order", the reward of a decision is learned once all earlier decisions are
answered or closed. What is learned is then always a prefix of the decisions, with all of their outcomes. Where it ends
depends on the outcome of the one next decision alone: an estimate from it is off by at most one decision. If all
outcomes are reported as they happen, rewards wait only for the slowest report.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple, Protocol

import msgspec

from bothworlds.service.records import DecisionBody, RewardBody, unpacked
from bothworlds.service.store import Store

SPAN = 20_000  # records of the log that are read at a time, at most


class RewardEvent(msgspec.Struct, frozen=True, gc=False):
    """A reward to learn: its sequence number in the log, the id and body of its decision, and its value."""

    seq: int
    id: str
    decision: DecisionBody
    reward: float


class Learned(Protocol):
    """Says what is learned, as `Versioned` does."""

    @property
    def through(self) -> int:
        """Rewards up to this sequence number are learned."""

    @property
    def ordered_through(self) -> int:
        """Rewards of decisions that became active up to this sequence number are learned."""


class OrderedEvents(NamedTuple):
    """The next rewards in the order of their decisions.

    ``through`` is the sequence number up to which all decisions are answered or closed. There may be more to learn if
    ``more``.
    """

    events: list[RewardEvent]
    through: int
    more: bool


def read_reward_events(
    store: Store, experiment: int, *, after: int, through: int | None = None, active_after: int = 0
) -> Iterator[RewardEvent]:
    """Yield the rewards in a range of the log, in log order.

    Decisions that became active up to sequence number ``active_after`` are left out.
    """
    for record, decision in store.rewards(experiment, after=after, through=through, active_after=active_after):
        body = unpacked(DecisionBody, decision.body)
        yield RewardEvent(record.seq, str(decision.id), body, unpacked(RewardBody, record.body).reward)


def read_ordered_events(store: Store, experiment: int, learned: Learned, *, most: int) -> OrderedEvents:
    """Return the next rewards in the order of their decisions, up to the first decision that waits for its reward."""
    events, last = list[RewardEvent](), store.last()
    after, end = learned.ordered_through, min(learned.ordered_through + SPAN, last)
    with closing(store.turns(experiment, after=after, through=end)) as turns:
        for active, name, body, seq, reward, is_unanswered in turns:
            if len(events) == most:
                return OrderedEvents(events, active - 1, more=True)
            if seq is None or reward is None:
                if not is_unanswered:
                    return OrderedEvents(events, active - 1, more=False)
            elif seq > learned.through:
                value = unpacked(RewardBody, reward).reward
                events.append(RewardEvent(seq, name, unpacked(DecisionBody, body), value))
    return OrderedEvents(events, max(after, end), more=end < last)


def events_between(store: Store, experiment: int, start: Learned, end: Learned) -> list[RewardEvent]:
    """Return the rewards that are learned at ``end`` and not at ``start``, in the order in which they were learned.

    Between two versions either ``through`` or ``ordered_through`` rises.
    """
    events = list(
        read_reward_events(
            store, experiment, after=start.through, through=end.through, active_after=start.ordered_through
        )
    )
    for _, name, body, seq, reward, _ in store.turns(
        experiment, after=start.ordered_through, through=end.ordered_through
    ):
        if seq is not None and reward is not None and seq > end.through:
            value = unpacked(RewardBody, reward).reward
            events.append(RewardEvent(seq, name, unpacked(DecisionBody, body), value))
    return events
