"""What the first page shows of an experiment, gathered with bounded work: counts, rates, health, newest decisions."""

import threading
import time
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.policy.health import Health
from bothworlds.policy.identity import Lots
from bothworlds.service.clerk import COUNTED, word_of
from bothworlds.service.experiment import Experiment
from bothworlds.service.pulse import Pulse
from bothworlds.service.records import Drawn, Kind, Paid, unpacked
from bothworlds.service.rules import State
from bothworlds.service.service import Service

SHOWN = 12  # newest decisions
TIMED = 200  # newest decisions whose times tell the rate
MINUTE = 60.0
FRESH = 2.0  # seconds that a reading of the health is good for
REMEMBERED = 20_000  # records before the start that the chart looks at


class Newest(NamedTuple):
    """A decision of late, and what is known of it."""

    id: str
    time: float
    drawn: Drawn
    state: State


class Glance(NamedTuple):
    """An experiment at a glance; ``counts`` are of the whole log, ``rate`` is in decisions a second, of late."""

    experiment: Experiment
    now: float
    counts: dict[str, int]
    rate: float
    health: Health
    pulse: Pulse
    newest: list[Newest]


class Watch:
    """Looks at a service for its pages; what is dear is computed once, or seldom. Safe in threads."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._lock = threading.Lock()
        self._before: dict[str, dict[str, int]] = {}
        self._healths: dict[str, tuple[float, Health]] = {}

    def glance(self, experiment: Experiment) -> Glance:
        """Look at an experiment."""
        with self._lock:  # one look at a time: several browsers do not slow a service down
            before = self._before.get(experiment.name) or self._look_back(experiment)
            health = self._health(experiment)
        since = self.service.clerk.counts.get(experiment.number, {})
        counts = {word: before[word] + since.get(word, 0) for word in COUNTED}
        now = time.time()
        found = self.service.store.newest(experiment.number, Kind.DECISION, most=TIMED)
        times = [record.time for record in found if record.time >= now - MINUTE]
        rate = len(times) / (MINUTE if len(times) < TIMED else max(now - times[-1], 1e-3))
        states = {record.id: State() for record in found[:SHOWN]}
        for record in self.service.store.find(experiment.number, [str(record.id) for record in found[:SHOWN]]):
            states[record.id].learn_of(record)
        newest = [Newest(str(one.id), one.time, unpacked(Drawn, one.body), states[one.id]) for one in found[:SHOWN]]
        return Glance(experiment, now, counts, rate, health, experiment.pulse, newest)

    def _look_back(self, experiment: Experiment) -> dict[str, int]:
        """Count what the store had when the service began, once; the chart is told of the last of it."""
        store, through = self.service.store, self.service.start
        counts = dict.fromkeys(COUNTED, 0)
        for (kind, flag), count in store.counts(experiment.number, through=through).items():
            counts[word_of(kind, flag=flag)] += count
        for paid, made in store.lessons(experiment.number, after=max(0, through - REMEMBERED), through=through):
            reward, drawn = unpacked(Paid, paid.body).reward, unpacked(Drawn, made.body)
            experiment.pulse.note(paid.time, reward, holdout=drawn.holdout)
        self._before[experiment.name] = counts
        return counts

    def _health(self, experiment: Experiment) -> Health:
        """Return how the policy is doing; a reading may be a little old."""
        read, health = self._healths.get(experiment.name, (0.0, None))
        if health is None or time.monotonic() - read > FRESH:
            health = experiment.policy.health()
            self._healths[experiment.name] = time.monotonic(), health
        return health


def lot_of(identifier: str, secret: str, probabilities: Floats, arm: int) -> float | None:
    """Return the number in [0, 1) that a decision was drawn with, where it is that which leads to the arm.

    >>> import numpy as np
    >>> lot_of("visit 9", "00" * 32, np.array([0.5, 0.5]), 0), lot_of("visit 9", "00" * 32, np.array([0.5, 0.5]), 1)
    (None, 0.5660368394352473)
    """
    lot = two_uniforms(*Lots(secret).drawn(identifier), ARM, 0)[0]
    return float(lot) if draw(probabilities, lot) == arm else None
