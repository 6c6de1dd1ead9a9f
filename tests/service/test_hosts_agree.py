"""What several hosts on one store agree about: the order of learning, settings, erasures, and what the pages say."""

from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bothworlds.service import trainer
from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.messages import Decide, Reward
from bothworlds.service.postgres.postgres_store import PostgresStore
from bothworlds.service.records import Kind, RewardBody, unpacked
from bothworlds.service.service import Service
from bothworlds.service.store import TermOverError
from support.hosts import Host, open_hosts, verified, versions_in, visit, wait_for_version
from support.postgres import needs_postgres, schema_for
from support.services import wait_until
from support.stores import about, decision, mark, snapshot

pytestmark = needs_postgres
OTHER = {"kind": "LinTS"}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with open_hosts(tmp_path) as start:
        yield start


def learn_what_is_there(learner: Service) -> None:
    """Let the trainer thread learn what can be learned now."""
    experiment, done = learner.experiment(None), Future[Any]()
    learner.trainer.run_between_batches(partial(learner.trainer.step, experiment), done.set_result)
    assert done.result() is None


def test_rewards_of_all_hosts_are_learned_in_the_order_of_their_decisions(host: Host, tmp_path: Path) -> None:
    first, second, learner = host("decide"), host("decide"), host("learn")
    wait_until(lambda: learner.learns)
    for number in range(6):
        assert (first, second)[number % 2].ask(Decide("mobile", str(number)))[0] == 200
    for number in (5, 1, 3):
        assert first.ask(Reward(str(number), 1.0))[0] == 200
    learn_what_is_there(learner)
    assert learner.plan(None).version == 0, "decision 0 waits for its reward"
    assert second.ask(Reward("0", 0.0))[0] == 200
    wait_for_version(first, 2)
    assert second.ask(Reward("2", 0.0))[0] == 200
    wait_for_version(first, 4)
    learned = [second.decision(str(number), None) for number in range(6)]
    assert [known is not None and known.learned_in is not None for known in learned] == [True] * 4 + [False] * 2
    learner.close()
    standby = host("both")
    assert second.ask(Reward("4", 0.0))[0] == 200
    for service in (first, standby):
        wait_for_version(service, 6)
    assert versions_in(first) == sorted(set(versions_in(first)))
    assert verified(tmp_path) == 6


def test_settings_change_only_while_no_other_host_learns(host: Host, tmp_path: Path) -> None:
    learner, decider = host("both"), host("decide")
    visit(decider, decider, range(20))
    wait_for_version(decider, 20)
    for changed in ({"holdout": 0.5}, {"algorithm": OTHER}):
        with pytest.raises(ValueError, match="is in use: a service learns from it; stop all hosts that learn"):
            host("both", **changed)
        with pytest.raises(ValueError, match="first start a host that learns with these settings"):
            host("decide", **changed)
    assert versions_in(decider)[-1] == 20
    learner.close()
    learner = host("both", holdout=0.5)
    wait_for_version(decider, 21)
    visit(decider, decider, range(20, 60))
    held_out = [known for known in (decider.decision(str(n), None) for n in range(20, 60)) if known and known.holdout]
    assert 8 < len(held_out) < 32
    wait_for_version(decider, 61 - len(held_out))
    with pytest.raises(ValueError, match="stop all hosts that learn"):
        host("both")  # with the settings of before
    assert verified(tmp_path) == 60


def test_hosts_that_decide_follow_another_algorithm(host: Host, tmp_path: Path) -> None:
    learner, decider, unaware = host("both"), host("decide"), host("decide")
    assert unaware.hosting is not None
    unaware.hosting.follower.look = lambda: None  # type: ignore[method-assign]  # it has no newer plan
    visit(decider, decider, range(20))
    wait_for_version(decider, 20)
    for name in ("open", "unaware"):
        assert decider.ask(Decide("mobile", name))[0] == 200
    learner.close()
    learner = host("both", algorithm=OTHER)
    wait_for_version(decider, 21)
    assert repr(decider.experiment(None).plan.spec.algorithm) == repr(learner.experiment(None).policy.algorithm)
    status, answer = decider.ask(Reward("open", 1.0))
    assert (status, answer.learned) == (200, False)  # type: ignore[union-attr]
    status, answer = unaware.ask(Reward("unaware", 1.0))
    assert (status, answer.learned) == (200, True), "it does not know of the change"  # type: ignore[union-attr]
    visit(decider, unaware, range(20, 30))
    visit(unaware, decider, range(30, 35))
    wait_until(lambda: learner.experiment(None).ordered_through > decider.store.last() - 20, seconds=60)
    visit(decider, decider, range(35, 40))
    wait_until(lambda: (known := decider.decision("39", None)) is not None and known.learned_in is not None, seconds=60)
    assert learner.failures == decider.failures == []
    bodies = [unpacked(RewardBody, paid.body) for paid, _ in decider.store.rewards(1, after=0)]
    assert sum(body.algorithm_changed for body in bodies) >= 1
    assert verified(tmp_path) == 42


def test_a_learner_erases_nothing_in_the_term_of_another(tmp_path: Path) -> None:
    now, before = (PostgresStore(schema_for(tmp_path)) for _ in range(2))
    now.append([decision("a"), about(Kind.REWARD, "a"), mark()])
    learned = snapshot(1, ordered_through=1)
    with now.alone():
        assert now.term is not None
        before.term = now.term - 1
        with pytest.raises(TermOverError):
            before.erase_part(learned, after=0, through=1)
        assert now.erase_part(learned, after=0, through=1) == 2
    now.close()
    before.close()


def test_pages_of_all_hosts_say_the_same(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "SNAPSHOT_AFTER", 0.0)
    hosts = [host("decide", window="0.2 seconds"), host("both", window="0.2 seconds")]
    for service in hosts:
        assert service.ask(Decide("mobile", f"first of {service.role}"))[0] == 200
    pages = [OverviewCache(service) for service in hosts]
    names = [f"{number}" for number in range(20)]
    for number, name in enumerate(names):
        assert hosts[number % 2].ask(Decide("mobile", name))[0] == 200

    def closed() -> list[float]:
        found = [page.overview(service.experiment(None)) for page, service in zip(pages, hosts, strict=True)]
        return [sum(rate.decisions for rate in one.health.arms) for one in found]

    wait_until(lambda: closed() == [22, 22], seconds=60)
    told = [page.overview(service.experiment(None)) for page, service in zip(pages, hosts, strict=True)]
    assert [one.counts["decisions"] for one in told] == [22, 22]
    assert [one.counts["defaults"] for one in told] == [22, 22]
    assert [event.word for event in told[0].events] == ["start", "start"]
    hosts[1].close()
    wait_until(lambda: len(pages[0].overview(hosts[0].experiment(None)).events) == 3)
    events = pages[0].overview(hosts[0].experiment(None)).events
    assert sorted((event.word, event.sentence) for event in events) == [
        ("start", "of a host"),
        ("start", "of a host"),
        ("stop", "of a host"),
    ]
