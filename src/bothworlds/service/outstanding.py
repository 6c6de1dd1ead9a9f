"""How long the oldest outstanding reward is awaited: a cursor in the log that only moves forward."""

import math
import time

from bothworlds.service.experiment import Experiment
from bothworlds.service.records import ACTIVATION, DECISION
from bothworlds.service.store import Store

STEP = 500  # records examined at a time


class OldestOutstanding:
    """Finds the oldest active decision of an experiment that has no reward and is not unanswered. Not thread-safe.

    A reward that has come stays, so that each record is passed once: a reading costs little however long the log is.
    """

    def __init__(self, experiment: Experiment, store: Store) -> None:
        self.experiment, self.store = experiment, store
        self.through = experiment.expired_through  # all decisions up to here are answered

    def age(self, *, now: float, seconds: float) -> float | None:
        """Return the age of the oldest outstanding reward in seconds; 0 if none is outstanding.

        Reads in the log for about ``seconds`` at most; None if it does not reach an outstanding reward in this time.
        """
        end, number = time.monotonic() + seconds, self.experiment.number
        self.through = max(self.through, self.experiment.expired_through)
        while True:
            ids, through = self.store.overdue(number, after=self.through, before=math.inf, most=STEP)
            if ids:
                return self._age(ids[0], now)
            if through == self.through:
                return 0.0
            self.through = through
            if time.monotonic() > end:
                return None

    def _age(self, name: str, now: float) -> float:
        """Return the age of a decision that waits for its reward, and move the cursor up to it."""
        records = self.store.find(self.experiment.number, [name])
        active = [
            record for record in records if record.kind == ACTIVATION or (record.kind == DECISION and record.flag)
        ]
        first = min(active, key=lambda record: record.seq)
        self.through = max(self.through, first.seq - 1)
        return max(0.0, now - first.time)
