"""Data of the dashboard and the metrics: counts, rates, health and history of an experiment, with bounded work."""

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from bothworlds.arrays import Floats
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.policy.health import Totals
from bothworlds.policy.health_report import Health, Reading
from bothworlds.policy.ids import KeyedRandom
from bothworlds.service.experiment import Experiment
from bothworlds.service.outcome_counts import OutcomeCounts, PairTotals
from bothworlds.service.outcome_history import Event, OutcomeHistory
from bothworlds.service.outstanding import OldestOutstanding
from bothworlds.service.records import DecisionBody, Kind, unpacked
from bothworlds.service.reward_series import RewardSeries
from bothworlds.service.rules import DecisionState
from bothworlds.service.service import Service
from bothworlds.service.starts import read_starts, restart_text
from bothworlds.service.writer import COUNTERS, counter_of

SHOWN = 12  # newest decisions
RATE_SAMPLE = 200  # newest decisions that the rate is computed from
MINUTE = 60.0
HEALTH_AGE = 2.0  # seconds that a health reading is reused for
READING = 1.0  # seconds of reading in the log, at most, for one overview


ArmTotals: TypeAlias = list[tuple[str, float, float]]  # arm, decisions, sum of rewards


class Outcomes(NamedTuple):
    """Data of the metrics of an experiment.

    ``closed`` has the totals of policy and holdout over decisions whose reward window has closed, ``arms`` those of the
    policy by arm; ``in_window`` is the number of the other decisions. ``oldest`` is the age of the oldest outstanding
    reward in seconds, None if it is not known yet. ``alarms`` says by reading whether it asks for attention.
    """

    in_window: int
    closed: tuple[Totals, Totals]
    arms: ArmTotals
    oldest: float | None
    alarms: Mapping[str, bool]


class Newest(NamedTuple):
    """One of the newest decisions, and its state."""

    id: str
    time: float
    body: DecisionBody
    state: DecisionState


class Overview(NamedTuple):
    """Dashboard data of an experiment.

    ``now`` is in seconds since 1970. ``counts`` cover the whole log; ``rate`` is in decisions per second over the last
    minute, or over the newest 200 decisions if these took less. ``health``, ``pairs`` (by context and arm, without the
    holdout) and the rewards in ``history`` are of decisions whose reward window has closed; ``in_window`` is the number
    of the others. They are those of an earlier time while ``read``, the share of the log that is read, is below 1.
    ``events`` are what happened, newest first.
    """

    experiment: Experiment
    now: float
    counts: dict[str, int]
    rate: float
    health: Health
    history: OutcomeHistory
    newest: list[Newest]
    in_window: int
    read: float
    pairs: PairTotals
    events: list[Event]

    @property
    def reward_series(self) -> RewardSeries:
        """Rewards over the whole time."""
        return self.history.rewards["all"]


class OverviewCache:
    """Computes overviews; expensive values are cached. Thread-safe."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._lock = threading.Lock()
        self._counted: dict[str, tuple[int, dict[str, int]]] = {}  # up to a sequence number, by experiment
        self._outcomes: dict[str, OutcomeCounts] = {}
        self._healths: dict[str, tuple[float, Health]] = {}
        self._oldest: dict[str, OldestOutstanding] = {}

    def overview(self, experiment: Experiment) -> Overview:
        """Return the overview of an experiment."""
        with self._lock:  # one at a time, so that many browsers do not slow the service down
            counts = self._count(experiment)
            outcomes, read = self._advance(experiment)
            health, in_window = self._health(experiment, outcomes), outcomes.in_window
            pairs, events = outcomes.pairs(), self._events(outcomes)
        now = time.time()
        records = self.service.store.newest(experiment.number, Kind.DECISION, most=RATE_SAMPLE)
        times = [record.time for record in records if record.time >= now - MINUTE]
        rate = len(times) / (MINUTE if len(times) < RATE_SAMPLE else max(now - times[-1], 1e-3))
        states = {record.id: DecisionState() for record in records[:SHOWN]}
        for record in self.service.store.find(experiment.number, [str(record.id) for record in records[:SHOWN]]):
            states[record.id].apply(record)
        newest = [
            Newest(str(record.id), record.time, unpacked(DecisionBody, record.body), states[record.id])
            for record in records[:SHOWN]
        ]
        return Overview(experiment, now, counts, rate, health, outcomes.history, newest, in_window, read, pairs, events)

    def outcomes(self, experiment: Experiment) -> Outcomes:
        """Return what the metrics say about outcomes."""
        with self._lock:
            counts = self._advance(experiment)[0]
            oldest = self._oldest.get(experiment.name)
            if oldest is None:
                oldest = self._oldest[experiment.name] = OldestOutstanding(experiment, self.service.store)
            age = oldest.age(now=time.time(), seconds=READING)
            watched = watched_readings(self._health(experiment, counts))
            alarms = {reading.name: reading.alarm for reading in watched}
            return Outcomes(counts.in_window, counts.closed, counts.arms(), age, alarms)

    def _events(self, outcomes: OutcomeCounts) -> list[Event]:
        """Return changes, rollbacks, starts and stops, newest first."""
        starts = read_starts(self.service.store)
        events = list(outcomes.history.events)
        for before, start in zip([None, *starts], starts, strict=False):
            if not self.service.shared:
                events.append(Event(start.time, *restart_text(before, start)))
                continue
            events.append(Event(start.time, "start", "of a host"))
            if start.stopped is not None:
                events.append(Event(start.stopped, "stop", "of a host"))
        return sorted(events, reverse=True)

    def _advance(self, experiment: Experiment) -> tuple[OutcomeCounts, float]:
        """Return the counts of outcomes after reading on in the log, and the share of the log that is read."""
        if (outcomes := self._outcomes.get(experiment.name)) is None:
            outcomes = self._outcomes[experiment.name] = OutcomeCounts(experiment, self.service.store)
        return outcomes, outcomes.advance(now=time.time(), seconds=READING)

    def _count(self, experiment: Experiment) -> dict[str, int]:
        """Return the numbers of records: those before the start from the log, the others from memory.

        If other hosts store records, too, all are from the log, which is read on.
        """
        service, number = self.service, experiment.number
        after, counts = self._counted.get(experiment.name, (0, dict.fromkeys(COUNTERS, 0)))
        through = service.store.last() if service.shared else service.last_at_start
        if through > after:
            for (kind, flag), count in service.store.counts(number, after=after, through=through).items():
                counts[counter_of(kind, flag=flag)] += count
            self._counted[experiment.name] = through, counts
        since = {} if service.shared else service.writer.counts.get(number, {})
        return {counter: counts[counter] + since.get(counter, 0) for counter in COUNTERS}

    def _health(self, experiment: Experiment, outcomes: OutcomeCounts) -> Health:
        """Return the health of the experiment, at most ``HEALTH_AGE`` seconds old."""
        measured, health = self._healths.get(experiment.name, (0.0, None))
        if health is None or time.monotonic() - measured > HEALTH_AGE:
            health = outcomes.health(experiment.plan)
            self._healths[experiment.name] = time.monotonic(), health
        return health


def watched_readings(health: Health) -> list[Reading]:
    """Return the readings that can ask for action: a policy that plays some arms seldom or never is as it should be."""
    return [reading for reading in health.readings if reading is not health.smallest_propensity]


def uniform_of(identifier: str, secret: str, probabilities: Floats, arm: int) -> float | None:
    """Return the uniform number in [0, 1) that a decision was drawn with, or None if it does not lead to the arm.

    >>> import numpy as np
    >>> [uniform_of("visit 9", "00" * 32, np.array([0.5, 0.5]), arm) for arm in (0, 1)]
    [None, 0.5660368394352473]
    """
    uniform = two_uniforms(*KeyedRandom(secret).key_and_time(identifier), ARM, 0)[0]
    return float(uniform) if draw(probabilities, uniform) == arm else None
