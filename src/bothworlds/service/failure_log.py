"""Log lines for failures, one when it begins and one when it ends, and for worlds that have changed."""

from bothworlds.service.experiment import restarts_of
from bothworlds.service.service import Service
from bothworlds.service.service_log import ServiceLog


class FailureLog:
    """Compares a service with what it was at the last check. Not thread-safe."""

    def __init__(self, service: Service, log: ServiceLog) -> None:
        self._service, self._log = service, log
        self._known: set[str] = set()
        self._dead: set[str] = set()
        self._restarts = {name: restarts_of(one.plan) for name, one in service.experiments.items()}

    def check(self) -> None:
        """Log what has begun, ended or changed since the last check."""
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
        for name, experiment in self._service.experiments.items():
            restarts = restarts_of(experiment.plan)
            if restarts > self._restarts.get(name, 0):
                message = f"{name}: what was learned stopped predicting rewards; it is forgotten"
                self._log.add("info", "new world", message, version=experiment.plan.version)
            self._restarts[name] = restarts
