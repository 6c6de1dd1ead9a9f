"""Metrics for Prometheus; none has a label per context."""

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest


class _Counts:
    """Collects the metrics of an app when Prometheus asks."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def collect(self) -> Iterable[Metric]:
        """Yield all metric families."""
        service = self.app.service
        totals = {
            "bothworlds_requests": ("Requests answered", self.app.requests),
            "bothworlds_refusals": ("Requests refused", self.app.refusals),
            "bothworlds_commits": ("Commits to the store", service.writer.commits),
        }
        for name, (text, value) in totals.items():
            yield CounterMetricFamily(name, text, value=value)
        yield GaugeMetricFamily("bothworlds_waiting", "Jobs waiting for a commit", value=service.writer.waiting)
        yield GaugeMetricFamily("bothworlds_failing", "Number of failures", value=len(service.failures))
        counted = CounterMetricFamily("bothworlds_records", "Records stored", labels=["experiment", "kind"])
        version = GaugeMetricFamily("bothworlds_version", "Version of the plan", labels=["experiment"])
        unlearnt = GaugeMetricFamily("bothworlds_unlearnt", "Rewards waiting to be learned", labels=["experiment"])
        waiting = GaugeMetricFamily(
            "bothworlds_in_window", "Decisions whose reward window has not closed", labels=["experiment"]
        )
        of_closed = "whose reward window has closed: divide rewards by decisions for the mean reward"
        decided = GaugeMetricFamily(
            "bothworlds_closed_decisions", f"Decisions {of_closed}", labels=["experiment", "by"]
        )
        rewards = GaugeMetricFamily(
            "bothworlds_closed_rewards", f"Sum of the rewards of decisions {of_closed}", labels=["experiment", "by"]
        )
        for name, experiment in service.experiments.items():
            for kind, count in service.writer.counts.get(experiment.number, {}).items():
                counted.add_metric([name, kind], count)
            version.add_metric([name], experiment.plan.version)
            unlearnt.add_metric([name], len(experiment.waiting))
            in_window, closed = self.app.overviews.outcomes(experiment)
            waiting.add_metric([name], in_window)
            for who, totals in zip(("policy", "holdout"), closed, strict=True):
                decided.add_metric([name, who], totals.decided)
                rewards.add_metric([name, who], totals.total)
        yield from (counted, version, unlearnt, waiting, decided, rewards)


def metrics_text(app: Any) -> bytes:
    """Return all metrics in the Prometheus text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Counts(app))
    return generate_latest(registry)
