"""The dashboard: its contents, escaped names, and a content security policy that allows no more than it needs."""

import base64
import hashlib
import html
import re
from collections.abc import Iterator
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.service import client_types, messages
from bothworlds.service.dashboard.decision import decision_html
from bothworlds.service.dashboard.page import headers, page
from bothworlds.service.dashboard.panels import over_time
from bothworlds.service.dashboard_data import OverviewCache, uniform_of
from bothworlds.service.reward_series import RewardSeries, merge_buckets
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings, Settings
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
    reader = read(page(watch, None, None))
    words = " ".join(reader.words)
    for part in ("Reward", "Current plan", "Newest decisions", "Rewards by arm and context", "uniform play"):
        assert part in words
    assert "/?experiment=banners&decision=visit+59" in reader.links
    assert 'http-equiv="refresh" content="5"' in page(watch, None, None)
    assert "inactive" in words
    assert "waiting" in words


@pytest.mark.parametrize("decision", [None, f"{HOSTILE}7"])
def test_names_are_escaped_everywhere(watch: OverviewCache, decision: str | None) -> None:
    text = page(watch, HOSTILE, decision)
    reader = read(text)  # fails on a tag that is not ours
    assert "<script" not in text
    assert HOSTILE in "".join(reader.words)


def test_the_policy_allows_one_style_sheet_and_nothing_else(watch: OverviewCache) -> None:
    sent = dict(headers())
    policy = sent["content-security-policy"]
    sheets = re.findall(r"<style>(.*?)</style>", page(watch, "banners", None), flags=re.DOTALL)
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
    text = html.unescape(page(watch, "banners", own.id))
    read(page(watch, "banners", own.id))
    assert "http-equiv" not in text
    number = re.search(r"of the id is (0\.\d+); the interval of (\w+) is (0\.\d+) to ([01]\.\d+)", text)
    assert number is not None
    assert number[2] == own.arm
    assert float(number[3]) <= float(number[1]) < float(number[4])
    assert "the holdout: drawn uniformly" in page(watch, "banners", held.id)


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
        page(watch, "other", None)
    with pytest.raises(KeyError, match="there is no decision"):
        page(watch, "banners", "visit 999")


def test_failures_are_shown_in_a_banner(watch: OverviewCache, monkeypatch: pytest.MonkeyPatch) -> None:
    lasting = property(lambda _: "the disk is <full>", lambda *_: None)  # whatever is committed meanwhile
    monkeypatch.setattr(WriterThread, "failure", lasting, raising=False)
    for decision in (None, "visit 5"):
        text = page(watch, "banners", decision)
        assert 'role="alert"' in text
        assert "the store: the disk is &lt;full&gt;" in text
    monkeypatch.undo()
    assert 'role="alert"' not in page(watch, "banners", None)


def test_a_page_before_the_first_visit(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    try:
        for name in service.experiments:
            reader = read(page(OverviewCache(service), name, None))
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
