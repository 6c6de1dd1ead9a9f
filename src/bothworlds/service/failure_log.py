"""Log lines for failures: one when a failure begins and one when it ends, however many requests it meets."""

from bothworlds.service.service import Service
from bothworlds.service.service_log import ServiceLog


class FailureLog:
    """Compares the failures of a service with those at the last check. Not thread-safe."""

    def __init__(self, service: Service, log: ServiceLog) -> None:
        self._service, self._log = service, log
        self._known: set[str] = set()
        self._dead: set[str] = set()

    def check(self) -> None:
        """Log the failures that have begun or ended since the last check."""
        failures = set(self._service.failures)
        for failure in sorted(failures - self._known):
            self._log.add("error", "failing", failure)
        for failure in sorted(self._known - failures):
            self._log.add("info", "recovered", f"no longer: {failure}")
        self._known = failures
        for thread in self._service.supervisor.threads:
            if thread.error is not None and thread.name not in self._dead:
                self._dead.add(thread.name)
                self._log.add_error("thread died", f"the {thread.name} thread died", thread.error)
