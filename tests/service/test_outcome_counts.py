"""What the service says while rewards are outstanding: it counts decisions whose window has closed, and holds then."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from bothworlds.arrays import Floats
from bothworlds.policy.health_report import Health, Rate
from bothworlds.policy.paired_gain import GainSums
from bothworlds.service.app import App
from bothworlds.service.dashboard import panels, plan_panel
from bothworlds.service.dashboard_data import Overview, OverviewCache
from bothworlds.service.maintenance import erase_decisions
from bothworlds.service.messages import Activate, Arm, Change, Decide, Decided, Reward
from bothworlds.service.metrics import metrics_text
from bothworlds.service.records import DecisionBody, Kind, unpacked
from bothworlds.service.service import Service
from bothworlds.service.sqlite import SQLiteStore
from support.services import (
    ARMS,
    CONTEXTS,
    Clock,
    assert_verified,
    close_overdue_windows,
    set_clock,
    settings,
    wait_until_learned,
)
from support.soak import size

HOUR = 3600.0
TRUTH = np.array([[0.02, 0.04, 0.11], [0.03, 0.10, 0.14]])  # of clicks, by context and arm
MOMENTS = 10  # of the first two windows
VISITS, GROUPS = 120, 6  # between two moments: visitors, and the groups in which they come


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return set_clock(monkeypatch)


def overview_at(service: Service, clock: Clock, moment: float) -> Overview:
    """Return the overview at a time."""
    clock.now = moment
    close_overdue_windows(service)
    return OverviewCache(service).overview(service.experiment(None))


class Visitors:
    """Simulated visitors: those who click do so within ten minutes, the others send nothing."""

    def __init__(self, service: Service, clock: Clock, seed: int, shares: Floats) -> None:
        self.service, self.clock, self.shares = service, clock, shares
        self.random = np.random.default_rng(seed)
        self.clicks: list[tuple[float, str]] = []
        self.decided: list[tuple[float, bool, int, int]] = []  # when, whether held out, context and arm

    def come(self, until: float) -> None:
        """Let visitors come from now on until a time, and click."""
        start = self.clock.now
        for group in range(GROUPS):
            self.clock.now = start + (until - start) * (group + 1) / (GROUPS + 1)
            self._click()
            contexts, seen = self.random.choice(2, p=self.shares, size=VISITS // GROUPS).tolist(), len(self.decided)
            requests = [Decide(context=CONTEXTS[x], id=f"visit {seen + i}") for i, x in enumerate(contexts)]
            for x, (status, made) in zip(contexts, self.service.ask_all(requests), strict=True):
                assert status == 200
                assert isinstance(made, Decided)
                arm = ARMS.index(made.arm)
                self.decided.append((self.clock.now, made.holdout, x, arm))
                if self.random.random() < TRUTH[x, arm]:
                    self.clicks.append((self.clock.now + float(self.random.uniform(1.0, 600.0)), made.id))
        self.clock.now = until
        self._click()

    def _click(self) -> None:
        due = sorted(click for click in self.clicks if click[0] <= self.clock.now)
        self.clicks = [click for click in self.clicks if click[0] > self.clock.now]
        assert all(status == 200 for status, _ in self.service.ask_all([Reward(id, 1.0) for _, id in due]))

    def closed(self, *, holdout: bool) -> list[tuple[int, int]]:
        """Return context and arm of the decisions whose window has closed."""
        return [(x, a) for when, held, x, a in self.decided if when <= self.clock.now - HOUR and held == holdout]


def fault_of(rate: Rate, pairs: list[tuple[int, int]]) -> list[str]:
    """Return a sentence if the expected reward of decisions is not within its interval."""
    assert rate.decisions == rate.answers == len(pairs)
    truth = float(np.mean([TRUTH[pair] for pair in pairs])) if pairs else rate.low
    return [] if rate.low <= truth <= rate.high else [f"{rate.name}: {truth} is not between {rate.low} and {rate.high}"]


def faults_of(health: Health, visitors: Visitors) -> list[str]:
    """Return what is said and not true."""
    faults = [f"alarm: {alarm.sentence}" for alarm in panels.alarms(health)]
    own = visitors.closed(holdout=False)
    for rate, pairs in zip(health.who, (own, visitors.closed(holdout=True)), strict=True):
        faults += fault_of(rate, pairs)
    for x, rate in enumerate(health.contexts):
        faults += fault_of(rate, [pair for pair in own if pair[0] == x])
    for a, rate in enumerate(health.arms):
        faults += fault_of(rate, [pair for pair in own if pair[1] == a])
    return faults


def run(folder: Path, clock: Clock, seed: int) -> set[str]:
    """Return what an experiment without drift says wrongly at ten moments of its first two windows."""
    overrides = {"contexts": {"mobile": 0.5, "desktop": 0.5}, "holdout": 0.2}
    folder.mkdir()
    service = Service(settings(folder, overrides=overrides))
    try:
        start, faults = clock.now, set[str]()
        visitors = Visitors(service, clock, seed, np.array([0.5, 0.5]))
        for moment in range(1, MOMENTS + 1):
            visitors.come(start + 2.0 * HOUR * moment / MOMENTS)
            overview = overview_at(service, clock, clock.now)
            open_ = [when for when, *_ in visitors.decided if when > clock.now - HOUR]
            assert overview.in_window == len(open_)
            assert overview.read == 1.0
            faults |= set(faults_of(overview.health, visitors))
        return faults
    finally:
        service.close()


@pytest.mark.parametrize("runs", [3, pytest.param(size(6, 300), marks=pytest.mark.soak)], ids=["few", "many"])
def test_what_is_said_in_the_first_windows_is_true(tmp_path: Path, clock: Clock, runs: int) -> None:
    wrong = [faults for seed in range(runs) if (faults := run(tmp_path / str(seed), clock, seed))]
    assert len(wrong) <= 0.05 * runs, wrong


def test_contexts_count_when_decided_on(tmp_path: Path, clock: Clock) -> None:
    service = Service(settings(tmp_path))
    try:
        start = clock.now
        visitors = Visitors(service, clock, 1, np.array([0.9, 0.1]))
        visitors.come(start + 60.0)
        health = overview_at(service, clock, start + 60.0).health
        assert "'desktop' comes" in health.traffic.sentence
        assert health.traffic.alarm
        assert sum(rate.decisions for rate in health.contexts) == 0
        assert service.change(Change(probabilities=[0.9, 0.1]))[0] == 200
        health = overview_at(service, clock, start + 61.0).health
        assert "after 0 contexts" in health.traffic.sentence
        assert not health.traffic.alarm
    finally:
        service.close()


def test_a_click_counts_with_the_others_once_the_window_has_closed(tmp_path: Path, clock: Clock) -> None:
    service = Service(settings(tmp_path))
    try:
        start = clock.now
        for i in range(10):
            service.ask(Decide(context="mobile", id=f"{i}", active=i < 9))
        service.ask(Reward("0", 1.0))
        clock.now = start + HOUR / 2
        service.ask(Activate("9"))
        early = overview_at(service, clock, start + HOUR - 1.0)
        assert early.in_window == 10
        assert [rate.answers for rate in early.health.arms] == [0, 0, 0]
        assert not early.reward_series.buckets(holdout=False)
        service.ask(Reward("1", 0.0))  # no click, told at once: it waits like the others
        later = overview_at(service, clock, start + HOUR + 1.0)
        assert later.in_window == 1  # activated later
        assert sum(rate.answers for rate in later.health.arms) == 9
        service.ask(Reward("2", 1.0))  # late: the default has been learned
        last = overview_at(service, clock, start + 2 * HOUR)
        assert last.in_window == 0
        assert last.health.contexts[0].mean == pytest.approx(0.1)
        (bucket,) = last.reward_series.buckets(holdout=False)
        assert (bucket.start, bucket.rewards, bucket.total) == (start, 10, 1.0)  # by the time of the decision
    finally:
        service.close()


def test_without_a_default_the_reward_at_the_end_of_the_window_counts(tmp_path: Path, clock: Clock) -> None:
    service = Service(settings(tmp_path, overrides={"default_reward": None}))
    try:
        start = clock.now
        for i in range(4):
            service.ask(Decide(context="mobile", id=f"{i}"))
        service.ask(Reward("0", 1.0))
        assert overview_at(service, clock, start + HOUR - 1.0).in_window == 4
        after = overview_at(service, clock, start + HOUR + 1.0)
        assert after.in_window == 0
        assert after.health.contexts[0].answers == 1
        assert after.health.unanswered.alarm
        service.ask(Reward("1", 1.0))  # learned, but too late to count: whether it counts must not depend on it
        assert overview_at(service, clock, start + HOUR + 2.0).health.contexts[0].answers == 1
    finally:
        service.close()


def test_counts_are_the_same_after_a_restart_and_a_change_of_arms(tmp_path: Path, clock: Clock) -> None:
    overrides = {"holdout": 0.5}
    service, start = Service(settings(tmp_path, overrides=overrides)), clock.now
    for i in range(300):
        clock.now += 1.0
        service.ask(Decide(context=CONTEXTS[i % 2], id=f"{i}"))
        if i % 3 == 0:
            service.ask(Reward(f"{i}", 1.0))
    before = overview_at(service, clock, start + HOUR + 150.0)
    service.change(Change(retire=["red"], add=[Arm("gold")]))
    changed = overview_at(service, clock, clock.now).health
    service.close()
    service = Service(settings(tmp_path, overrides=overrides))
    try:
        after = overview_at(service, clock, clock.now)
        assert repr(after.health) == repr(changed)
        assert after.in_window == before.in_window == 150
        assert changed.who == before.health.who  # what was earned stays earned
        assert [rate.name for rate in changed.arms] == ["blue", "green", "gold"]
        both = [before.reward_series.buckets(holdout=held) for held in (False, True)]
        assert both == [after.reward_series.buckets(holdout=held) for held in (False, True)]
        assert sum(bucket.rewards for some in both for bucket in some) == 150
    finally:
        service.close()


def test_what_an_erasure_left_of_a_window_does_not_count(tmp_path: Path, clock: Clock) -> None:
    for part in ("early", "late"):
        service = Service(settings(tmp_path, overrides={"learn": "at once"}))
        for i in range(20):
            service.ask(Decide(context="mobile", id=f"{part} {i}"))
            if i % 2:
                service.ask(Reward(f"{part} {i}", 1.0))
        if part == "early":
            service.close()
            erase_decisions(tmp_path / "bothworlds.sqlite")  # the clicks only: the others wait
    try:
        later = overview_at(service, clock, clock.now + HOUR + 1.0)
        assert (later.health.contexts[0].answers, later.health.contexts[0].mean) == (20, 0.5)
        assert later.in_window == 0
    finally:
        service.close()


def test_a_long_log_is_read_in_parts_and_says_so(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    service, start = Service(settings(tmp_path)), clock.now
    try:
        for i in range(40):
            service.ask(Decide(context="mobile", id=f"{i}"))
        clock.now = start + HOUR + 1.0
        close_overdue_windows(service)
        monkeypatch.setattr("bothworlds.service.outcome_counts.CHUNK", 10)
        monkeypatch.setattr("bothworlds.service.dashboard_data.READING", 0.0)
        cache = OverviewCache(service)
        seen = [cache.overview(service.experiment(None)) for _ in range(9)]
        assert 0.0 < seen[0].read < 1.0
        assert "The log is being read" in panels.value(seen[0])
        assert "The log is being read" not in panels.value(seen[-1])
        assert seen[-1].read == 1.0
        assert sum(bucket.rewards for bucket in seen[-1].reward_series.buckets(holdout=False)) == 40
    finally:
        service.close()


def test_metrics_are_of_closed_windows(tmp_path: Path, clock: Clock) -> None:
    service, start = Service(settings(tmp_path, overrides={"holdout": 0.5})), clock.now
    app = App(service)
    try:
        for i in range(50):
            service.ask(Decide(context="mobile", id=f"{i}"))
            service.ask(Reward(f"{i}", 1.0))
        clock.now = start + HOUR / 2
        service.ask(Decide(context="mobile", id="later"))
        assert 'bothworlds_in_window{experiment="ads"} 51.0' in metrics_text(app).decode()
        clock.now = start + HOUR + 1.0
        close_overdue_windows(service)
        text = metrics_text(app).decode()
        assert 'bothworlds_in_window{experiment="ads"} 1.0' in text
        totals = [
            float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if line.startswith(("bothworlds_closed_decisions{", "bothworlds_closed_rewards{"))
        ]
        assert sum(totals) == 100.0
    finally:
        service.close()


def test_the_gain_is_estimated_from_all_decisions(tmp_path: Path, clock: Clock) -> None:
    service, start = Service(settings(tmp_path, overrides={"holdout": 0.2})), clock.now
    visitors = Visitors(service, clock, 5, np.array([0.5, 0.5]))
    for hour in range(1, 7):
        visitors.come(start + HOUR * hour)
        overview_at(service, clock, clock.now)
        wait_until_learned(service)
    health = overview_at(service, clock, clock.now + HOUR + 1.0).health
    known = [service.decision(f"visit {i}", None) for i in range(len(visitors.decided))]
    service.close()
    assert health.paired is not None
    sums = GainSums(0.2)
    with closing(SQLiteStore(tmp_path / "bothworlds.sqlite", writes=False)) as store:
        for i, told in enumerate(known):
            assert told is not None
            assert told.reward is not None
            (record,) = [one for one in store.find(1, [f"visit {i}"]) if one.kind == Kind.DECISION]
            body = unpacked(DecisionBody, record.body)
            assert body.other_propensity is not None
            plan, uniform = body.propensity, body.other_propensity
            plan, uniform = (uniform, plan) if told.holdout else (plan, uniform)
            assert uniform == pytest.approx(1 / 3)
            sums.add(told.reward, plan=plan, uniform=uniform)
    assert health.paired.value == pytest.approx(sums.total / sums.count)
    assert health.gain is not None
    assert health.gain.value == health.paired.value
    assert_verified(tmp_path)
    assert sum(told.holdout for told in known if told is not None) > 20


def test_a_healthy_experiment_has_no_warning(tmp_path: Path, clock: Clock) -> None:
    service, start = Service(settings(tmp_path)), clock.now  # LinUCB never plays most arms
    try:
        visitors = Visitors(service, clock, 3, np.array([0.5, 0.5]))
        visitors.come(start + HOUR)
        overview = overview_at(service, clock, start + 3 * HOUR)
        assert overview.health.smallest_propensity.alarm
        assert panels.alarms(overview.health) == []
        assert "smallest propensity" in plan_panel.rates(overview.health)
    finally:
        service.close()
