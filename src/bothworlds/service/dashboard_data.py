"""Data of the dashboard: counts, rates, health and the newest decisions of an experiment, with bounded work."""

import threading
import time
from typing import NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.policy.health import Health, Totals
from bothworlds.policy.ids import KeyedRandom
from bothworlds.service.experiment import Experiment
from bothworlds.service.outcome_counts import OutcomeCounts
from bothworlds.service.records import DecisionBody, Kind, unpacked
from bothworlds.service.reward_series import RewardSeries
from bothworlds.service.rules import DecisionState
from bothworlds.service.service import Service
from bothworlds.service.writer import COUNTERS, counter_of

SHOWN = 12  # newest decisions
RATE_SAMPLE = 200  # newest decisions that the rate is computed from
MINUTE = 60.0
HEALTH_AGE = 2.0  # seconds that a health reading is reused for
READING = 1.0  # seconds of reading in the log, at most, for one overview


class Newest(NamedTuple):
    """One of the newest decisions, and its state."""

    id: str
    time: float
    body: DecisionBody
    state: DecisionState


class Overview(NamedTuple):
    """Dashboard data of an experiment.

    ``now`` is in seconds since 1970. ``counts`` cover the whole log; ``rate`` is in decisions per second over the last
    minute, or over the newest 200 decisions if these took less. ``health`` and ``reward_series`` are of decisions whose
    reward window has closed; ``in_window`` is the number of the others. They are those of an earlier time while
    ``read``, the share of the log that is read, is below 1.
    """

    experiment: Experiment
    now: float
    counts: dict[str, int]
    rate: float
    health: Health
    reward_series: RewardSeries
    newest: list[Newest]
    in_window: int
    read: float


class OverviewCache:
    """Computes overviews; expensive values are cached. Thread-safe."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._lock = threading.Lock()
        self._counts_at_start: dict[str, dict[str, int]] = {}
        self._outcomes: dict[str, OutcomeCounts] = {}
        self._healths: dict[str, tuple[float, Health]] = {}

    def overview(self, experiment: Experiment) -> Overview:
        """Return the overview of an experiment."""
        with self._lock:  # one at a time, so that many browsers do not slow the service down
            at_start = self._counts_at_start.get(experiment.name) or self._count_at_start(experiment)
            outcomes, read = self._advance(experiment)
            health, in_window = self._health(experiment, outcomes), outcomes.in_window
        since = self.service.writer.counts.get(experiment.number, {})
        counts = {counter: at_start[counter] + since.get(counter, 0) for counter in COUNTERS}
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
        return Overview(experiment, now, counts, rate, health, outcomes.reward_series, newest, in_window, read)

    def outcomes(self, experiment: Experiment) -> tuple[int, tuple[Totals, Totals]]:
        """Return the number of decisions in their window, and the totals of the others: policy and holdout."""
        with self._lock:
            outcomes = self._advance(experiment)[0]
            return outcomes.in_window, outcomes.closed

    def _advance(self, experiment: Experiment) -> tuple[OutcomeCounts, float]:
        """Return the counts of outcomes after reading on in the log, and the share of the log that is read."""
        if (outcomes := self._outcomes.get(experiment.name)) is None:
            outcomes = self._outcomes[experiment.name] = OutcomeCounts(experiment, self.service.store)
        return outcomes, outcomes.advance(now=time.time(), seconds=READING)

    def _count_at_start(self, experiment: Experiment) -> dict[str, int]:
        """Count the records stored before the start of the service."""
        store, through = self.service.store, self.service.last_at_start
        counts = dict.fromkeys(COUNTERS, 0)
        for (kind, flag), count in store.counts(experiment.number, through=through).items():
            counts[counter_of(kind, flag=flag)] += count
        self._counts_at_start[experiment.name] = counts
        return counts

    def _health(self, experiment: Experiment, outcomes: OutcomeCounts) -> Health:
        """Return the health of the experiment, at most ``HEALTH_AGE`` seconds old."""
        measured, health = self._healths.get(experiment.name, (0.0, None))
        if health is None or time.monotonic() - measured > HEALTH_AGE:
            health = outcomes.health(experiment.plan)
            self._healths[experiment.name] = time.monotonic(), health
        return health


def uniform_of(identifier: str, secret: str, probabilities: Floats, arm: int) -> float | None:
    """Return the uniform number in [0, 1) that a decision was drawn with, or None if it does not lead to the arm.

    >>> import numpy as np
    >>> [uniform_of("visit 9", "00" * 32, np.array([0.5, 0.5]), arm) for arm in (0, 1)]
    [None, 0.5660368394352473]
    """
    uniform = two_uniforms(*KeyedRandom(secret).key_and_time(identifier), ARM, 0)[0]
    return float(uniform) if draw(probabilities, uniform) == arm else None
