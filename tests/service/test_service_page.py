"""The dashboard: its contents, escaped names, and a content security policy that allows no more than it needs."""

import base64
import hashlib
import html
import re
from collections.abc import Iterator
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.service import client_types, messages
from bothworlds.service.dashboard.curves import over_time, plan_over_time
from bothworlds.service.dashboard.decision import decision_html
from bothworlds.service.dashboard.page import headers, page
from bothworlds.service.dashboard.view import VIEWS, View, view_of
from bothworlds.service.dashboard_data import OverviewCache, uniform_of
from bothworlds.service.plan_series import PlanSeries
from bothworlds.service.request_stats import RequestStats
from bothworlds.service.reward_series import RewardSeries, merge_buckets
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings, Settings, Token
from bothworlds.service.time_buckets import RANGES
from bothworlds.service.writer import WriterThread

HOSTILE = '<script>alert("1")</script>\'&amp;'
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "nav", "a", "h1", "h2", "p", "b", "small", "dl", "dt"),
    *("dd", "div", "figure", "figcaption", "svg", "desc", "clippath", "rect", "g", "path", "text", "circle", "table"),
    *("thead", "tbody", "tr", "th", "td", "form", "input", "label", "button", "ul", "li", "code", "span", "strong"),
}
VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Parses a page: tags must be known and closed, without anything that a strict policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        names = [name for name, _ in attrs]
        assert "style" not in names
        assert not [name for name in names if name.startswith("on")]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)


def read(text: str) -> Reader:
    """Parse a page; fail if it is not well-formed."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert all(link.startswith("/") for link in reader.links)
    return reader


def settings(folder: Path) -> Settings:
    uniform = {"kind": "uniform"}
    banners = ExperimentSettings(arms=["red", "blue"], contexts=["mobile", "desktop"], algorithm=uniform, holdout=0.5)
    hostile = ExperimentSettings(arms=[HOSTILE, "b"], contexts=[HOSTILE, "y"], algorithm=uniform)
    return Settings(experiments={"banners": banners, HOSTILE: hostile}, folder=str(folder))


def play(service: Service, visits: range) -> None:
    for visit in visits:
        service.ask(messages.Decide(context="mobile", id=f"visit {visit}", experiment="banners", active=visit % 10 > 0))
        if visit % 5:
            service.ask(messages.Reward(id=f"visit {visit}", reward=float(visit % 2), experiment="banners"))
        service.ask(messages.Decide(context=HOSTILE, id=f"{HOSTILE}{visit}", experiment=HOSTILE))
        service.ask(messages.Reward(id=f"{HOSTILE}{visit}", reward=0.5, experiment=HOSTILE))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that was restarted after some visits."""
    folder = tmp_path_factory.mktemp("page")
    first = Service(settings(folder))
    play(first, range(40))
    first.close()
    made = Service(settings(folder))
    play(made, range(40, 60))
    for experiment in made.experiments.values():
        experiment.expired_through = made.store.last()  # as if all windows had closed
    yield made
    made.close()


def page_of(watch: OverviewCache, experiment: str | None, decision: str | None, **view: Any) -> str:
    """Return a page."""
    stats = RequestStats()
    for now, status in ((10.0, 200), (20.0, 404), (30.0, 503)):
        stats.sample(now)
        stats.observe("/v1/decide", status, 0.004)
    return page(watch, stats, View(experiment, decision, **view))


@pytest.fixture(scope="module")
def watch(service: Service) -> OverviewCache:
    return OverviewCache(service)


def test_counts_include_records_from_before_the_start(watch: OverviewCache, service: Service) -> None:
    overview = watch.overview(service.experiments["banners"])
    assert {name: count for name, count in overview.counts.items() if count} == {"decisions": 60, "rewards": 48}
    assert watch.overview(service.experiments["banners"]).counts == overview.counts
    sums = [overview.reward_series.buckets(holdout=held) for held in (False, True)]
    assert sum(one.rewards for some in sums for one in some) == 48
    assert sum(one.total for some in sums for one in some) == sum(visit % 2 for visit in range(60) if visit % 5)
    assert [one.id for one in overview.newest] == [f"visit {visit}" for visit in range(59, 47, -1)]
    assert 0.9 < overview.rate <= 60.0  # all of the last minute


def test_the_page_has_all_panels(watch: OverviewCache) -> None:
    reader = read(page_of(watch, None, None))
    words = " ".join(reader.words)
    for part in ("Reward", "Plan", "Newest decisions", "uniform play"):
        assert part in words
    assert "/?experiment=banners&decision=visit+59" in reader.links
    assert 'http-equiv="refresh" content="5"' in page_of(watch, None, None)
    assert "inactive" in words
    assert "waiting" in words


SHOWN: list[dict[str, Any]] = [*({"name": name} for name in VIEWS), {"name": "arms", "context": HOSTILE}]


@pytest.mark.parametrize("view", [*SHOWN, {"context": HOSTILE, "range": "1 h"}, {"decision": f"{HOSTILE}7"}], ids=str)
def test_names_are_escaped_everywhere(watch: OverviewCache, view: dict[str, Any]) -> None:
    text = page_of(watch, HOSTILE, view.get("decision"), **{key: view[key] for key in view if key != "decision"})
    reader = read(text)  # fails on a tag that is not ours
    assert "<script" not in text
    assert HOSTILE in "".join(reader.words)


def test_the_policy_allows_one_style_sheet_and_nothing_else(watch: OverviewCache) -> None:
    sent = dict(headers())
    policy = sent["content-security-policy"]
    sheets = re.findall(r"<style>(.*?)</style>", page_of(watch, "banners", None), flags=re.DOTALL)
    assert len(sheets) == 1
    hashed = base64.b64encode(hashlib.sha256(sheets[0].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{hashed}'" in policy
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert (sent["x-content-type-options"], sent["cache-control"]) == ("nosniff", "no-store")


def test_the_page_of_a_decision_shows_the_number_drawn(watch: OverviewCache, service: Service) -> None:
    found = [service.decision(f"visit {visit}", "banners") for visit in range(60)]
    own = next(one for one in found if one is not None and not one.holdout and one.reward is not None)
    held = next(one for one in found if one is not None and one.holdout)
    text = html.unescape(page_of(watch, "banners", own.id))
    read(page_of(watch, "banners", own.id))
    assert "http-equiv" not in text
    number = re.search(r"of the id is (0\.\d+); the interval of (\w+) is (0\.\d+) to ([01]\.\d+)", text)
    assert number is not None
    assert number[2] == own.arm
    assert float(number[3]) <= float(number[1]) < float(number[4])
    assert "the holdout: drawn uniformly" in page_of(watch, "banners", held.id)


def test_a_number_that_leads_to_another_arm_is_not_shown(service: Service) -> None:
    plan, chances = service.experiments["banners"].plan, np.array([0.5, 0.5])
    random = [[uniform_of(f"v{i}", plan.secret, chances, arm) for arm in (0, 1)] for i in range(50)]
    assert all((one is None) != (other is None) for one, other in random)
    assert {one is None for one, _ in random} == {True, False}


def test_the_page_says_whether_the_plan_confirms_the_decision(service: Service) -> None:
    known = service.decision("visit 59", "banners")
    assert known is not None
    for confirmed, words in (
        (True, "bit for bit"),
        (False, "makes a different decision"),
        (None, "is not the current plan"),
    ):
        values = {field.name: getattr(known, field.name) for field in fields(client_types.Known)}
        changed = messages.Known(**{**values, "confirmed": confirmed})
        assert words in decision_html(changed, service.experiments["banners"])


def test_unknown_experiments_and_decisions_are_refused(watch: OverviewCache) -> None:
    with pytest.raises(KeyError, match="there is no experiment"):
        page_of(watch, "other", None)
    with pytest.raises(KeyError, match="there is no decision"):
        page_of(watch, "banners", "visit 999")


def test_failures_are_shown_in_a_banner(watch: OverviewCache, monkeypatch: pytest.MonkeyPatch) -> None:
    lasting = property(lambda _: "the disk is <full>", lambda *_: None)  # whatever is committed meanwhile
    monkeypatch.setattr(WriterThread, "failure", lasting, raising=False)
    for decision in (None, "visit 5"):
        text = page_of(watch, "banners", decision)
        assert 'role="alert"' in text
        assert "the store: the disk is &lt;full&gt;" in text
    monkeypatch.undo()
    assert 'role="alert"' not in page_of(watch, "banners", None)


def test_a_page_before_the_first_visit(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    try:
        for name in service.experiments:
            reader = read(page_of(OverviewCache(service), name, None))
            assert "No decision yet." in reader.words
            assert "nan" not in " ".join(reader.words)
    finally:
        service.close()


noted = st.tuples(st.floats(0.0, 1e6), st.integers(0, 1), st.booleans())


@given(st.lists(noted, min_size=1, max_size=60), st.integers(1, 8))
def test_a_reward_series_is_exact_and_bounded(rewards: list[tuple[float, int, bool]], most: int) -> None:
    reward_series = RewardSeries(max_buckets=most)
    for time, reward, holdout in rewards:
        reward_series.add(time, reward, holdout=holdout)
    for holdout in (False, True):
        own = [(time, reward) for time, reward, held in rewards if held == holdout]
        found = reward_series.buckets(holdout=holdout)
        assert len(found) <= most
        assert sum(one.rewards for one in found) == len(own)
        for one in found:
            inside = [reward for time, reward in own if one.start <= time < one.start + reward_series.width]
            assert (one.rewards, one.total) == (len(inside), sum(inside))
        together = merge_buckets(found, 5)
        assert sum(one.rewards for one in together) == len(own)
        assert len(together) <= 1 or min(one.rewards for one in together) >= 5


def test_the_curve_is_the_mean_reward_over_time() -> None:
    reward_series = RewardSeries()
    for second in range(400):
        reward_series.add(1000.0 + second, float(second >= 200), holdout=False)
    chart = over_time(reward_series, (0.0, 1.0))
    assert chart is not None
    (line,) = chart.lines
    assert line.y[0] == 0.0
    assert line.y[-1] == 1.0
    assert line.low is not None
    assert line.high is not None
    assert np.all((line.low <= line.y) & (line.y <= line.high) & (line.low < line.high))
    assert np.all(np.diff(line.x) > 0.0)
    assert chart.x_label == "minutes since 1970-01-01 00:16:40 UTC"
    assert over_time(RewardSeries(), (0.0, 1.0)) is None


def test_a_series_of_a_span_forgets_what_is_older() -> None:
    series = RewardSeries(span=10.0, max_buckets=5)
    for second in (100, 101, 95, 115, 103, 107):
        series.add(float(second), 1.0, holdout=False)
    assert [(bucket.start, bucket.rewards) for bucket in series.buckets(holdout=False)] == [(106.0, 1), (114.0, 1)]


def test_every_range_shows_its_part_of_the_curve(watch: OverviewCache, service: Service) -> None:
    now = 1_000_000.0
    history = watch.overview(service.experiments["banners"]).history
    for name, span in RANGES.items():
        series = RewardSeries(span=span)
        for days in range(100):
            series.add(now - 86_400.0 * days, 1.0, holdout=False)
        expected = 100 if span is None else max(1, round(span / 86_400.0))
        assert sum(bucket.rewards for bucket in series.buckets(holdout=False)) == pytest.approx(expected, abs=1)
        assert sum(bucket.rewards for held in (False, True) for bucket in history.rewards[name].buckets(holdout=held))
        text = page_of(watch, "banners", None, range=name)
        current = re.findall(r'href="([^"]*)" aria-current=page>([^<]*)</a>', text)
        assert name in [html.unescape(word) for _, word in current]


def test_the_plan_over_time_is_the_mean_of_what_decided() -> None:
    series = PlanSeries()
    for second in range(300):
        share = second / 300.0
        series.add(np.array([1000.0 + second]), np.array([1, 0]), np.array([[share, 1.0 - share]]))
    chart = plan_over_time(series, ["red", "blue"], "mobile", [])
    assert chart is not None
    blue, red = chart.lines  # the likeliest at the end first
    assert (blue.label, red.label) == ("blue", "red")
    np.testing.assert_allclose(blue.y + red.y, 100.0)
    assert np.all(np.diff(blue.y) > 0.0)
    assert plan_over_time(PlanSeries(), ["red", "blue"], "mobile", []) is None


def test_the_plan_over_time_follows_the_log(watch: OverviewCache, service: Service) -> None:
    experiment = service.experiments["banners"]
    history = watch.overview(experiment).history
    drawn = [service.decision(f"visit {visit}", "banners") for visit in range(60)]
    own = [one for one in drawn if one is not None and not one.holdout]
    (counted, sums) = history.plans["mobile"]["all"]._buckets.items()[0][1]
    total = sum(count for _, (count, _) in history.plans["mobile"]["all"]._buckets.items())
    assert total == len(own)
    assert sums.sum() == pytest.approx(counted)
    assert "desktop" not in history.plans  # nobody came


def test_of_many_arms_the_likeliest_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arms, contexts = [f"arm {number}" for number in range(50)], [f"context {number}" for number in range(20)]
    shares = {name: 1.0 + number for number, name in enumerate(contexts)}
    many = ExperimentSettings(arms=arms, contexts=shares, algorithm={"kind": "uniform"})
    service = Service(Settings(experiments={"ads": many}, folder=str(tmp_path)))
    try:
        plan = service.experiments["ads"].plan
        table = np.full((20, 50), 0.5 / 49)
        table[19, 33], table[18, 7] = 0.5, 0.5
        service.ask_all([messages.Decide(context="context 19", id=f"{i}") for i in range(200)])
        monkeypatch.setattr(type(plan), "probabilities", lambda *_: table)
        watch = OverviewCache(service)
        service.experiments["ads"].expired_through = service.store.last()
        rows = re.findall(r"<tr>(.*?)</tr>", page_of(watch, None, None), flags=re.DOTALL)
        (row,) = [row for row in rows if "context 19</a>" in row]
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert cells[0] == "arm 33 <b>50</b>"
        assert len(cells) == 7
        assert cells[-1] == "45"
        whole = read(page_of(watch, None, None, name="arms", context="context 19"))
        listed = [word for word in whole.words if word.startswith("arm ")]
        assert listed[0] == "arm 33"
        assert len(listed) == 50
        with pytest.raises(KeyError, match="there is no context"):
            page_of(watch, None, None, name="arms", context="absent")
    finally:
        service.close()


def test_the_service_view_tells_latency_errors_and_settings(watch: OverviewCache) -> None:
    reader = read(page_of(watch, "banners", None, name="service"))
    words = " ".join(reader.words)
    for part in ("Latency and errors", "≤ 5 ms", "writer thread", "restart", "free on its disk", "durability", "50 %"):
        assert part in words
    row = reader.words[reader.words.index("/v1/decide") :]
    assert row[4:6] == ["1", "1"]  # one 4xx and one 5xx


def test_secrets_are_on_no_page(tmp_path: Path) -> None:
    token = Token(name="shop", sha256="ab" * 32, scopes=["decide"], rate=5.0)
    service = Service(msgspec.structs.replace(settings(tmp_path), tokens=[token]))
    try:
        text = page_of(OverviewCache(service), "banners", None, name="service")
        assert "shop (decide, 5 a second)" in text
        assert "abab" not in text
        assert service.experiments["banners"].plan.secret not in text
    finally:
        service.close()


def test_a_page_that_is_typed_into_does_not_reload(watch: OverviewCache) -> None:
    for name in VIEWS:
        text = page_of(watch, "banners", None, name=name)
        assert ("<input id=" in text) != ('http-equiv="refresh"' in text)


@given(st.dictionaries(st.sampled_from(["experiment", "decision", "view", "range", "context"]), st.text(min_size=1)))
def test_an_address_leads_back_to_its_view(query: dict[str, str]) -> None:
    view = view_of({name: [value] for name, value in query.items()})
    assert view.name in VIEWS
    assert view.range in RANGES
    address = html.unescape(view.href)
    assert view_of(parse_qs(urlsplit(address).query, keep_blank_values=True, strict_parsing=False)) == view
