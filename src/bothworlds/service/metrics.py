"""Counts for Prometheus: few, and none by context."""

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest


class _Counts:
    """Reads the counts of an app when it is asked for them."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def collect(self) -> Iterable[Metric]:
        """Yield all families."""
        service = self.app.service
        whole = {
            "bothworlds_requests": ("Requests answered", self.app.requests),
            "bothworlds_refusals": ("Requests refused", self.app.refusals),
            "bothworlds_commits": ("Commits to the store", service.clerk.commits),
        }
        for name, (text, value) in whole.items():
            yield CounterMetricFamily(name, text, value=value)
        yield GaugeMetricFamily("bothworlds_waiting", "Jobs that wait for a commit", value=service.clerk.waiting)
        yield GaugeMetricFamily("bothworlds_failing", "What does not work", value=len(service.failures))
        counted = CounterMetricFamily("bothworlds_records", "Records stored", labels=["experiment", "kind"])
        version = GaugeMetricFamily("bothworlds_version", "Version of the plan", labels=["experiment"])
        unlearnt = GaugeMetricFamily("bothworlds_unlearnt", "Rewards that wait to be learnt", labels=["experiment"])
        for name, experiment in service.experiments.items():
            for kind, count in service.clerk.counts.get(experiment.number, {}).items():
                counted.add_metric([name, kind], count)
            version.add_metric([name], experiment.plan.version)
            unlearnt.add_metric([name], len(experiment.waiting))
        yield from (counted, version, unlearnt)


def metrics_text(app: Any) -> bytes:
    """Return all counts in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Counts(app))
    return generate_latest(registry)
