"""Metrics for Prometheus. The number of series is bounded: none has a label per context, id or unknown path."""

import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest

from bothworlds.service.dashboard_data import ArmTotals
from bothworlds.service.experiment import Experiment
from bothworlds.service.request_stats import BOUNDS

MOST_ARMS = 30  # series of arms per experiment
OTHER_ARMS = "(other arms)"
CLOSED = "of decisions whose reward window has closed"


class _Collector:
    """Collects the metrics of an app when Prometheus asks."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def collect(self) -> Iterable[Metric]:
        """Yield all metric families."""
        yield from self._of_process()
        yield from self._of_requests()
        yield from self._of_experiments()

    def _of_process(self) -> Iterator[Metric]:
        """Yield what concerns the service as a whole."""
        service, log = self.app.service, self.app.log
        build = {"version": version("bothworlds"), "python": platform.python_version()}
        yield InfoMetricFamily("bothworlds_build", "Versions of the library and of Python", value=build)
        yield CounterMetricFamily("bothworlds_commits", "Commits to the store", value=service.writer.commits)
        yield CounterMetricFamily("bothworlds_log_lines_dropped", "Log lines lost", value=log.dropped)
        yield GaugeMetricFamily("bothworlds_waiting", "Jobs waiting for a commit", value=service.writer.waiting)
        yield GaugeMetricFamily("bothworlds_failing", "Number of failures", value=len(service.failures))
        ready, live = not service.reasons_not_ready, not service.reasons_to_restart
        yield GaugeMetricFamily("bothworlds_ready", "Whether decisions can be taken and stored", value=ready)
        yield GaugeMetricFamily("bothworlds_live", "Whether no thread is dead or stuck", value=live)
        space = service.store.space()
        used = GaugeMetricFamily("bothworlds_store_bytes", "Size of the store", labels=["part"])
        for part, size in space.used.items():
            used.add_metric([part], size)
        yield used
        if space.free is not None:
            yield GaugeMetricFamily("bothworlds_store_free_bytes", "Free space for the store", value=space.free)

    def _of_requests(self) -> Iterator[Metric]:
        """Yield responses by route and status, and latencies by route."""
        stats = self.app.stats
        responses = CounterMetricFamily("bothworlds_responses", "Responses", labels=["route", "status"])
        for (route, status), count in stats.statuses().items():
            responses.add_metric([route, str(status)], count)
        text = "Time from the head of a request to its response"
        latency = HistogramMetricFamily("bothworlds_request_seconds", text, labels=["route"])
        for route, latencies in stats.by_route().items():
            reached, buckets = 0, []
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), latencies.counts, strict=True):
                reached += count
                buckets.append((bound, reached))
            latency.add_metric([route], buckets, latencies.seconds)
        yield from (responses, latency)

    def _of_experiments(self) -> Iterator[Metric]:
        """Yield what concerns one experiment each."""
        families = _Families.empty()
        for experiment in self.app.service.experiments.values():
            self._add(experiment, families)
        yield from families

    def _add(self, experiment: Experiment, to: "_Families") -> None:
        """Add the metrics of one experiment."""
        name, overviews = experiment.name, self.app.overviews
        for kind, count in self.app.service.writer.counts.get(experiment.number, {}).items():
            to.records.add_metric([name, kind], count)
        to.version.add_metric([name], experiment.plan.version)
        to.unlearnt.add_metric([name], experiment.unlearned)
        to.window.add_metric([name], experiment.settings.seconds)
        outcomes = overviews.outcomes(experiment)
        to.in_window.add_metric([name], outcomes.in_window)
        if outcomes.oldest is not None:
            to.oldest.add_metric([name], outcomes.oldest)
        for who, totals in zip(("policy", "holdout"), outcomes.closed, strict=True):
            to.decisions.add_metric([name, who], totals.decided)
            to.rewards.add_metric([name, who], totals.total)
        for arm, decided, reward in bounded(outcomes.arms):
            to.arm_decisions.add_metric([name, arm], decided)
            to.arm_rewards.add_metric([name, arm], reward)
        for reading, alarm in outcomes.alarms.items():
            to.attention.add_metric([name, reading], alarm)


class _Families(NamedTuple):
    """The metric families with a label for the experiment."""

    records: CounterMetricFamily
    version: GaugeMetricFamily
    unlearnt: GaugeMetricFamily
    window: GaugeMetricFamily
    in_window: GaugeMetricFamily
    oldest: GaugeMetricFamily
    decisions: GaugeMetricFamily
    rewards: GaugeMetricFamily
    arm_decisions: GaugeMetricFamily
    arm_rewards: GaugeMetricFamily
    attention: GaugeMetricFamily

    @classmethod
    def empty(cls) -> "_Families":
        """Return families without series."""

        def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"bothworlds_{name}", text, labels=["experiment", *labels])

        return cls(
            CounterMetricFamily("bothworlds_records", "Records stored", labels=["experiment", "kind"]),
            gauge("version", "Version of the plan"),
            gauge("unlearnt", "Rewards waiting to be learned"),
            gauge("window_seconds", "Length of the reward window"),
            gauge("in_window", "Decisions whose reward window has not closed"),
            gauge("oldest_outstanding_seconds", "Age of the oldest decision that waits for its reward"),
            gauge("closed_decisions", f"Number {CLOSED}", "by"),
            gauge("closed_rewards", f"Sum of the rewards {CLOSED}", "by"),
            gauge("arm_closed_decisions", f"Number {CLOSED}, without the holdout, by arm", "arm"),
            gauge("arm_closed_rewards", f"Sum of the rewards {CLOSED}, without the holdout, by arm", "arm"),
            gauge("attention", "Whether a reading of the dashboard asks for attention", "reading"),
        )


def bounded(arms: ArmTotals, most: int = MOST_ARMS) -> ArmTotals:
    """Return the arms with the most decisions, and the sums of all others in one row.

    >>> bounded([("red", 5.0, 1.0), ("blue", 9.0, 2.0), ("green", 1.0, 0.5)], 1)
    [('blue', 9.0, 2.0), ('(other arms)', 6.0, 1.5)]
    """
    ranked = sorted(arms, key=lambda arm: (arm[0] == OTHER_ARMS, -arm[1]))
    rest = ranked[most:]
    if not rest:
        return ranked
    return [*ranked[:most], (OTHER_ARMS, sum(arm[1] for arm in rest), sum(arm[2] for arm in rest))]


def metrics_text(app: Any) -> bytes:
    """Return all metrics in the Prometheus text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(app))
    ProcessCollector(registry=registry)
    return generate_latest(registry)
