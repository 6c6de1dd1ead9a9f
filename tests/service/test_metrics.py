"""What Prometheus reads: histograms, bounded numbers of series, the oldest outstanding reward, and the store."""

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bothworlds.service.app import App
from bothworlds.service.messages import Activate, Decide, Decided, Reward
from bothworlds.service.metrics import MOST_ARMS, OTHER_ARMS, bounded, metrics_text
from bothworlds.service.outstanding import OldestOutstanding
from bothworlds.service.request_stats import BOUNDS, Latencies, RequestStats, Sample, since
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings
from support.service_http import served
from support.services import QUICK, close_windows, settings

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
UNIFORM = """
durability = "process"
[experiments.ads]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = { kind = "uniform" }
"""


def series_of(text: str) -> Series:
    """Return all samples of a scrape; no sample may come twice."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(one.name, frozenset(one.labels.items())): one.value for one in samples}
    assert len(found) == len(samples)
    return found


def value(series: Series, name: str, **labels: str) -> float:
    """Return one sample."""
    return series[name, frozenset(labels.items())]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(settings(tmp_path))
    yield made
    made.close()


def test_responses_and_latencies_are_counted_by_route(tmp_path: Path) -> None:
    with served(tmp_path, UNIFORM) as web:
        for number in range(7):
            web.post("/v1/decide", {"context": "mobile", "id": f"{number}"})
        web.post("/v1/decide", {"context": "elsewhere"})
        for path in ("/wp-login.php", "/v1/decisions/1", "/v1/decisions/absent", "/nothing/at/all"):
            web.ask("GET", path)
        series = series_of(web.ask("GET", "/metrics").body.decode())
    assert value(series, "bothworlds_responses_total", route="/v1/decide", status="200") == 7.0
    assert value(series, "bothworlds_responses_total", route="/v1/decide", status="422") == 1.0
    assert value(series, "bothworlds_responses_total", route="other", status="404") == 2.0
    assert value(series, "bothworlds_responses_total", route="/v1/decisions/{id}", status="200") == 1.0
    assert value(series, "bothworlds_request_seconds_count", route="/v1/decide") == 8.0
    assert value(series, "bothworlds_request_seconds_bucket", route="/v1/decide", le="+Inf") == 8.0
    assert 0.0 < value(series, "bothworlds_request_seconds_sum", route="/v1/decide") < 80.0
    assert value(series, "bothworlds_ready") == value(series, "bothworlds_live") == 1.0
    assert value(series, "bothworlds_store_bytes", part="store") > 0.0
    assert value(series, "bothworlds_store_free_bytes") > 0.0
    assert value(series, "process_resident_memory_bytes") > 1e6
    (build,) = [labels for name, labels in series if name == "bothworlds_build_info"]
    assert re.fullmatch(r"[\d.]+.*", dict(build)["version"])


def test_a_histogram_puts_each_latency_below_its_bound() -> None:
    stats = RequestStats()
    for seconds in (0.0, 0.0005, 0.00051, 10.0, 10.01):
        stats.observe("/", 200, seconds)
    (latencies,) = stats.cells().values()
    assert (latencies.counts[0], latencies.counts[1], latencies.counts[-2], latencies.counts[-1]) == (2, 1, 1, 1)
    assert [latencies.quantile(share) for share in (0.4, 0.6, 0.8, 1.0)] == [0.0005, 0.001, 10.0, math.inf]
    assert math.isnan(Latencies((0,) * (len(BOUNDS) + 1), 0.0).quantile(0.5))


def test_samples_are_ten_seconds_apart_and_tell_what_came_between() -> None:
    stats = RequestStats()
    stats.observe("/", 200, 0.1)
    for now in (100.0, 105.0, 110.0):
        stats.sample(now)
    stats.observe("/", 200, 0.1)
    stats.observe("/", 404, 0.2)
    stats.sample(50.0)  # a clock that was set back
    *kept, _ = stats.recent()
    assert [sample.time for sample in kept] == [100.0, 110.0, 50.0]
    between = since(kept[2], kept[1])
    assert {key: one.total for key, one in between.items()} == {("/", 200): 1, ("/", 404): 1}
    assert since(kept[1], Sample(0.0, {}))["/", 200].total == 1


def test_rewards_by_arm_are_bounded_in_number(tmp_path: Path) -> None:
    arms = [f"arm {number}" for number in range(40)]
    many = ExperimentSettings(arms=arms, contexts=["x"], algorithm={"kind": "uniform"})
    service = Service(settings(tmp_path, experiments={"ads": many}))
    try:
        answers = service.ask_all([Decide(context="x", id=f"{i}") for i in range(400)])
        made = [answer for _, answer in answers if isinstance(answer, Decided)]
        service.ask_all([Reward(one.id, 1.0) for one in made[:100]])
        assert close_windows(service, [one.id for one in made])
        service.experiment(None).expired_through = service.store.last()
        series = series_of(metrics_text(App(service)).decode())
    finally:
        service.close()
    for name, sum_ in (("bothworlds_arm_closed_decisions", 400.0), ("bothworlds_arm_closed_rewards", 100.0)):
        found = {dict(labels)["arm"]: count for (one, labels), count in series.items() if one == name}
        assert len(found) == MOST_ARMS + 1
        assert OTHER_ARMS in found
        assert sum(found.values()) == sum_


def test_an_arm_with_the_name_of_the_rest_does_not_make_a_series_twice() -> None:
    rows = bounded([(OTHER_ARMS, 90.0, 9.0), *((f"{i}", float(i), 0.0) for i in range(5))], 3)
    assert [row[0] for row in rows] == ["4", "3", "2", OTHER_ARMS]
    assert rows[-1] == (OTHER_ARMS, 91.0, 9.0)


def test_the_oldest_outstanding_reward_is_followed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    experiment = service.experiment(None)
    oldest = OldestOutstanding(experiment, service.store)

    def age() -> float | None:
        return oldest.age(now=now[0], seconds=10.0)

    assert age() == 0.0
    service.ask(Decide(context="mobile", id="inactive", active=False))
    assert age() == 0.0
    for number in range(3):
        service.ask(Decide(context="mobile", id=f"{number}"))
        now[0] += 10.0
    assert age() == 30.0
    service.ask(Reward("1", 1.0))
    assert age() == 30.0
    service.ask(Reward("0", 1.0))
    assert age() == 10.0
    service.ask(Activate("inactive"))
    now[0] += 5.0
    service.ask(Reward("2", 0.0))
    assert age() == 5.0
    assert close_windows(service, ["inactive"])
    assert age() == 0.0
    again = OldestOutstanding(experiment, service.store)  # as after a restart
    assert again.age(now=now[0], seconds=10.0) == 0.0


def test_the_cursor_passes_each_answered_decision_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service.ask_all([Decide(context="mobile", id=f"{i}") for i in range(1000)])
    service.ask_all([Reward(f"{i}", 1.0) for i in range(999)])
    oldest = OldestOutstanding(service.experiment(None), service.store)
    assert oldest.age(now=time.time(), seconds=0.0) is None  # no time: it stops after one step
    while (age := oldest.age(now=time.time(), seconds=0.0)) is None:
        pass
    assert age > 0.0
    asked: list[int] = []
    overdue = service.store.overdue

    def counted(*values: Any, **more: Any) -> Any:
        asked.append(more["after"])
        return overdue(*values, **more)

    monkeypatch.setattr(service.store, "overdue", counted)
    assert oldest.age(now=time.time(), seconds=0.0) is not None
    assert asked == [999]


def test_metrics_say_which_readings_ask_for_attention(tmp_path: Path) -> None:
    overrides = {"algorithm": QUICK, "default_reward": "none"}
    service = Service(settings(tmp_path, overrides=overrides))
    try:
        series = series_of(metrics_text(App(service)).decode())
        assert value(series, "bothworlds_attention", experiment="ads", reading="traffic") == 0.0
        assert ("bothworlds_attention", frozenset({("experiment", "ads"), ("reading", "gain")})) not in series
        service.ask_all([Decide(context="mobile", id=f"{i}") for i in range(400)])  # never "desktop"
        series = series_of(metrics_text(App(service)).decode())
        assert value(series, "bothworlds_attention", experiment="ads", reading="traffic") == 1.0
    finally:
        service.close()
