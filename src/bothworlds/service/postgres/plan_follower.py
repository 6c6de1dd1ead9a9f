"""Follows the plans that the learner publishes: a notification, or a look every second, brings the newest one."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from bothworlds.policy.plan import Plan
from bothworlds.service.experiment import Experiment, restore, warm_plan
from bothworlds.service.postgres.connections import KeptConnection
from bothworlds.service.postgres.postgres_store import PostgresStore
from bothworlds.service.setting_changes import follow_settings
from bothworlds.service.store import StoreError
from bothworlds.service.supervision import SupervisedThread

LOOK_EVERY = 1.0  # seconds without a notification
CHECK_EVERY = 0.1  # seconds between two checks whether to stop
PAUSE = 0.25  # seconds after a failure


class PlanFollower:
    """Replaces the plans of experiments by newer ones in its own thread; ``failure`` describes what fails."""

    def __init__(self, store: PostgresStore, experiments: Iterable[Experiment]) -> None:
        self.store, self.experiments = store, {experiment.number: experiment for experiment in experiments}
        self.failure: str | None = None
        self._connection = KeptConnection(store.dsn)
        self._listening: object = None
        self._settings_read = 0.0
        self._stopping = threading.Event()
        self.thread = SupervisedThread("plans", self._work)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def stop(self) -> bool:
        """Stop the thread; return False if it is stuck."""
        self._stopping.set()
        return self.thread.join()

    def _work(self) -> None:
        with contextlib.closing(self._connection):
            while not self._stopping.is_set():
                try:
                    self._wait()
                    self.look()
                    self.failure = None
                except (StoreError, ValueError) as error:
                    self.failure = f"plans cannot be followed: {error}"
                    self._stopping.wait(PAUSE)

    def _wait(self) -> None:
        """Wait for a notification; not after the connection was opened, as one may have been missed."""
        with self._connection.use() as connection:
            if self._listening is not connection:
                (channel,) = connection.execute("SELECT plan_channel()").fetchone() or ("",)
                connection.execute(f"LISTEN {channel}".encode())
                self._listening = connection
                return
            end = time.monotonic() + LOOK_EVERY
            while time.monotonic() < end and not self._stopping.is_set():
                if list(connection.notifies(timeout=CHECK_EVERY, stop_after=1)):
                    return

    def look(self) -> None:
        """Read the plans that are newer than those of the experiments."""
        numbers, versions = list(self.experiments), [one.plan.version for one in self.experiments.values()]
        for number, fingerprint, content in self.store.newer_plans(numbers, versions):
            experiment = self.experiments[number]
            experiment.advance(self._plan(experiment, fingerprint, content))
        if time.monotonic() > self._settings_read + LOOK_EVERY:
            self._settings_read = time.monotonic()
            for experiment in self.experiments.values():
                if not experiment.trained:  # otherwise the trainer thread does
                    follow_settings(experiment, self.store, experiment.plan.spec)

    def _plan(self, experiment: Experiment, fingerprint: str, content: bytes) -> Plan:
        """Return a published plan; after a change of the problem, that of the policy in the store."""
        current = experiment.plan
        if fingerprint != current.spec.fingerprint:
            policy = restore(self.store, experiment.number).policy
            experiment.closed_fingerprints = policy.closed_fingerprints
            experiment.show(policy)
            return warm_plan(policy)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.npz"
            path.write_bytes(content)
            plan = current.renewed(path)
        plan.probability_bytes(0)
        return plan
