"""The first page: what it shows, that names are escaped, that its policy allows what it needs, and no more."""

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

from bothworlds.service import answers, messages
from bothworlds.service.clerk import Clerk
from bothworlds.service.explained import explained
from bothworlds.service.glance import Watch, lot_of
from bothworlds.service.page import headers, page
from bothworlds.service.panels import over_time
from bothworlds.service.pulse import Pulse, merged
from bothworlds.service.service import Service
from bothworlds.service.settings import Experiment, Settings

HOSTILE = '<script>alert("1")</script>\'&amp;'
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "nav", "a", "h1", "h2", "p", "b", "small", "dl", "dt"),
    *("dd", "div", "figure", "figcaption", "svg", "desc", "clippath", "rect", "g", "path", "text", "circle", "table"),
    *("thead", "tbody", "tr", "th", "td", "form", "input", "label", "button", "ul", "li", "code", "span", "strong"),
}
VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Reads a page as a browser does: tags that are known and closed, and nothing that a strict policy would stop."""

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
    """Read a page; refuse one that is not well made."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert all(link.startswith("/") for link in reader.links)
    return reader


def settings(folder: Path) -> Settings:
    uniform = {"kind": "uniform"}
    banners = Experiment(arms=["red", "blue"], contexts=["mobile", "desktop"], algorithm=uniform, holdout=0.5)
    hostile = Experiment(arms=[HOSTILE, "b"], contexts=[HOSTILE, "y"], algorithm=uniform)
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
    """A service that was started again after some visits."""
    folder = tmp_path_factory.mktemp("page")
    first = Service(settings(folder))
    play(first, range(40))
    first.close()
    made = Service(settings(folder))
    play(made, range(40, 60))
    yield made
    made.close()


@pytest.fixture(scope="module")
def watch(service: Service) -> Watch:
    return Watch(service)


def test_the_page_counts_what_was_before_the_start_and_since(watch: Watch, service: Service) -> None:
    glance = watch.glance(service.experiments["banners"])
    assert glance.counts == {"decisions": 60, "activations": 0, "rewards": 48, "defaults": 0, "late": 0}
    assert watch.glance(service.experiments["banners"]).counts == glance.counts
    sums = [glance.pulse.stretches(holdout=held) for held in (False, True)]
    assert sum(one.rewards for some in sums for one in some) == 48
    assert sum(one.total for some in sums for one in some) == sum(visit % 2 for visit in range(60) if visit % 5)
    assert [one.id for one in glance.newest] == [f"visit {visit}" for visit in range(59, 47, -1)]
    assert 0.9 < glance.rate <= 60.0  # all of the last minute


def test_all_parts_are_there(watch: Watch) -> None:
    reader = read(page(watch, None, None))
    words = " ".join(reader.words)
    for part in ("What it earns", "The plan of now", "Newest decisions", "Rewards by arm and context", "uniform play"):
        assert part in words
    assert "/?experiment=banners&decision=visit+59" in reader.links
    assert 'http-equiv="refresh" content="5"' in page(watch, None, None)
    assert "inactive" in words
    assert "waits" in words


@pytest.mark.parametrize("decision", [None, f"{HOSTILE}7"])
def test_names_are_escaped_wherever_they_stand(watch: Watch, decision: str | None) -> None:
    text = page(watch, HOSTILE, decision)
    reader = read(text)  # fails on a tag that is not ours
    assert "<script" not in text
    assert HOSTILE in "".join(reader.words)


def test_the_policy_allows_one_style_sheet_and_nothing_else(watch: Watch) -> None:
    told = dict(headers())
    policy = told["content-security-policy"]
    sheets = re.findall(r"<style>(.*?)</style>", page(watch, "banners", None), flags=re.DOTALL)
    assert len(sheets) == 1
    hashed = base64.b64encode(hashlib.sha256(sheets[0].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{hashed}'" in policy
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert (told["x-content-type-options"], told["cache-control"]) == ("nosniff", "no-store")


def test_a_decision_is_explained_by_the_number_that_was_drawn(watch: Watch, service: Service) -> None:
    found = [service.known(f"visit {visit}", "banners") for visit in range(60)]
    own = next(one for one in found if one is not None and not one.holdout and one.reward is not None)
    held = next(one for one in found if one is not None and one.holdout)
    text = html.unescape(page(watch, "banners", own.id))
    read(page(watch, "banners", own.id))
    assert "http-equiv" not in text
    number = re.search(r"is the number (0\.\d+), and (\w+) has (0\.\d+) to ([01]\.\d+)", text)
    assert number is not None
    assert number[2] == own.arm
    assert float(number[3]) <= float(number[1]) < float(number[4])
    assert "was held out" in page(watch, "banners", held.id)


def test_what_was_not_drawn_so_is_not_said_to_be(service: Service) -> None:
    plan, chances = service.experiments["banners"].plan, np.array([0.5, 0.5])
    lots = [[lot_of(f"v{i}", plan.secret, chances, arm) for arm in (0, 1)] for i in range(50)]
    assert all((one is None) != (other is None) for one, other in lots)
    assert {one is None for one, _ in lots} == {True, False}


def test_a_plan_that_contradicts_a_decision_is_said(service: Service) -> None:
    known = service.known("visit 59", "banners")
    assert known is not None
    for confirmed, words in ((True, "bit for bit"), (False, "decides otherwise"), (None, "does not decide any more")):
        told = {field.name: getattr(known, field.name) for field in fields(answers.Known)}
        changed = messages.Known(**{**told, "confirmed": confirmed})
        assert words in explained(changed, service.experiments["banners"])


def test_what_is_not_there_is_said(watch: Watch) -> None:
    with pytest.raises(KeyError, match="there is no experiment"):
        page(watch, "other", None)
    with pytest.raises(KeyError, match="there is no decision"):
        page(watch, "banners", "visit 999")


def test_failures_stand_in_a_banner(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    lasting = property(lambda _: "the disk is <full>", lambda *_: None)  # whatever is committed meanwhile
    monkeypatch.setattr(Clerk, "failure", lasting, raising=False)
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
            reader = read(page(Watch(service), name, None))
            assert "No decision yet." in reader.words
            assert "nan" not in " ".join(reader.words)
    finally:
        service.close()


noted = st.tuples(st.floats(0.0, 1e6), st.integers(0, 1), st.booleans())


@given(st.lists(noted, min_size=1, max_size=60), st.integers(1, 8))
def test_a_pulse_loses_nothing_and_stays_small(rewards: list[tuple[float, int, bool]], most: int) -> None:
    pulse = Pulse(most=most)
    for time, reward, holdout in rewards:
        pulse.note(time, reward, holdout=holdout)
    for holdout in (False, True):
        own = [(time, reward) for time, reward, held in rewards if held == holdout]
        found = pulse.stretches(holdout=holdout)
        assert len(found) <= most
        assert sum(one.rewards for one in found) == len(own)
        for one in found:
            inside = [reward for time, reward in own if one.began <= time < one.began + pulse.width]
            assert (one.rewards, one.total) == (len(inside), sum(inside))
        together = merged(found, 5)
        assert sum(one.rewards for one in together) == len(own)
        assert len(together) <= 1 or min(one.rewards for one in together) >= 5


def test_the_curve_is_the_mean_of_rewards_in_time() -> None:
    pulse = Pulse()
    for second in range(400):
        pulse.note(1000.0 + second, float(second >= 200), holdout=False)
    chart = over_time(pulse)
    assert chart is not None
    (line,) = chart.lines
    assert line.y[0] == 0.0
    assert line.y[-1] == 1.0
    assert np.all(np.diff(line.x) > 0.0)
    assert chart.x_label == "minutes since 1970-01-01 00:16:40 UTC"
    assert over_time(Pulse()) is None
