"""The rules for decisions and rewards, as a table of requests and answers."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bothworlds.service import rules
from bothworlds.service.dashboard.page import page
from bothworlds.service.dashboard.view import View
from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.messages import Activate, Arm, Change, Decide, Decides, Reward
from bothworlds.service.records import DecisionBody, DecisionDraw, DecisionHead, Kind, RewardBody, unpacked
from bothworlds.service.request_stats import RequestStats
from bothworlds.service.service import Service
from support.services import assert_verified, close_windows, rows_of, settings, wait_until, wait_until_learned

CLOSE = "close the window"
D, R, A = Decide, Reward, Activate
late = {"learned": False, "reason": rules.CLOSED}

# Requests in order, each with the status and some fields of the answer.
TABLE: dict[str, list[tuple[Any, int, dict[str, Any]]]] = {
    "a decision and its reward": [
        (D("mobile", "a"), 200, {"id": "a", "context": "mobile", "experiment": "ads"}),
        (R("a", 0.25), 200, {"id": "a", "reward": 0.25, "learned": True, "experiment": "ads"}),
    ],
    "another context under the same id": [
        (D("mobile", "a"), 200, {}),
        (D("desktop", "a"), 409, {"error": "decision 'a' was requested before with another body"}),
        (D("mobile", "a"), 200, {"context": "mobile"}),
    ],
    "the same context by its index is another body": [(D("mobile", "a"), 200, {}), (D(0, "a"), 409, {})],
    "inactive under the id of an active one": [(D("mobile", "a"), 200, {}), (D("mobile", "a", active=False), 409, {})],
    "the name of the only experiment changes nothing": [
        (D("mobile", "a"), 200, {}),
        (D("mobile", "a", experiment="ads"), 200, {}),
        (R("a", 1.0), 200, {}),
        (R("a", 1.0, "ads"), 200, {"learned": True}),
    ],
    "a reward again": [
        (D("mobile", "a"), 200, {}),
        (R("a", 1.0), 200, {"learned": True}),
        (R("a", 1.0), 200, {"learned": True, "reward": 1.0}),
        (R("a", 0.5), 409, {"error": "decision 'a' has reward 1.0 already"}),
        (R("a", 1.0), 200, {"learned": True}),
    ],
    "no such decision": [
        (R("a", 1.0), 404, {"error": "there is no decision 'a'"}),
        (A("a"), 404, {"error": "there is no decision 'a'"}),
        (D("mobile", "a"), 200, {}),
        (R("a", 1.0), 200, {"learned": True}),
        (R("", 1.0), 404, {}),
    ],
    "rewards outside the range": [
        (D("mobile", "a"), 200, {}),
        (R("a", 1.5), 422, {"error": "reward 1.5 is outside [0, 1]"}),
        (R("a", -0.1), 422, {}),
        (R("a", float("nan")), 422, {}),
        (R("a", float("inf")), 422, {}),
        (R("a", 0.0), 200, {"learned": True}),
    ],
    "a refused reward under an unknown id is unknown": [(R("a", 7.0), 404, {})],
    "contexts that there are not": [
        (D("tablet", "a"), 422, {}),
        (D(2, "a"), 422, {}),
        (D(-1, "a"), 422, {}),
        (D(10**40, "a"), 422, {}),
        (D("", "a"), 422, {}),
        (D({"device": "mobile"}, "a"), 422, {}),
        (D(1, "a"), 200, {"context": "desktop"}),
    ],
    "ids reserved for the library": [(D("mobile", "@mine"), 422, {}), (R("@mine", 1.0), 404, {})],
    "a window closes": [
        (D("mobile", "a"), 200, {}),
        (CLOSE, 200, {}),
        (R("a", 1.0), 200, {"reward": 1.0, **late}),
        (R("a", 1.0), 200, {"reward": 1.0, **late}),
        (R("a", 0.0), 409, {"error": "decision 'a' has reward 1.0 already"}),
        (D("mobile", "a"), 200, {}),
    ],
    "a late reward like the default is late": [(D("mobile", "a"), 200, {}), (CLOSE, 200, {}), (R("a", 0.0), 200, late)],
    "a window that closes after the reward changes nothing": [
        (D("mobile", "a"), 200, {}),
        (R("a", 1.0), 200, {"learned": True}),
        (CLOSE, 200, {}),
        (R("a", 1.0), 200, {"learned": True}),
        (R("a", 0.5), 409, {}),
    ],
    "a window that closes twice": [
        (D("mobile", "a"), 200, {}),
        (CLOSE, 200, {}),
        (CLOSE, 200, {}),
        (R("a", 1.0), 200, late),
        (CLOSE, 200, {}),
        (R("a", 1.0), 200, late),
    ],
    "inactive decisions": [
        (D("mobile", "a", active=False), 200, {"active": False}),
        (
            R("a", 1.0),
            409,
            {"error": "decision 'a' is not active: activate it once it is shown, then reward it"},
        ),
        (A("a"), 200, {"id": "a", "active": True}),
        (A("a"), 200, {"id": "a", "active": True}),
        (R("a", 1.0), 200, {"learned": True}),
        (D("mobile", "a", active=False), 200, {"active": False}),
        (A("a"), 200, {}),
    ],
    "activating an active decision": [(D("mobile", "a"), 200, {}), (A("a"), 200, {}), (R("a", 1.0), 200, {})],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(settings(tmp_path_factory.mktemp("rules")))
    yield service
    service.close()


def fields(answer: Any) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in answer.__struct_fields__}


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "looked up"])
@pytest.mark.parametrize("name", TABLE)
def test_every_rule(served: Service, name: str, remembered: bool) -> None:
    def own(word: str) -> str:
        return word if word[:1] == "@" or not word else f"{name} {remembered} {word}"

    for step, (request, status, expected_fields) in enumerate(TABLE[name]):
        if not remembered:
            served.writer.cache.clear()
        if request == CLOSE:
            assert close_windows(served, [own("a")]) == (status == 200)
            continue
        got, answer = served.ask(msgspec.structs.replace(request, id=own(request.id)))
        expected = {
            key: own(value) if key == "id" else value.replace("'a'", repr(own("a"))) if key == "error" else value
            for key, value in expected_fields.items()
        }
        said = fields(answer)
        assert (got, {key: said[key] for key in expected}) == (status, expected), f"step {step}"


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "looked up"])
def test_a_repeated_request_has_the_same_answer_byte_for_byte(served: Service, remembered: bool) -> None:
    for asked in [Decide("mobile", f"bytes {remembered}"), Decide(1, f"bytes {remembered} 2", active=False)]:
        first = msgspec.json.encode(served.ask(asked)[1])
        served.ask(Reward(str(asked.id), 1.0))
        wait_until_learned(served)
        if not remembered:
            served.writer.cache.clear()
        assert msgspec.json.encode(served.ask(asked)[1]) == first
        again = served.ask_all([asked, asked])
        assert [msgspec.json.encode(answer) for _, answer in again] == [first, first]


def test_a_batch_may_decide_and_reward_the_same_decision(served: Service) -> None:
    asked: list[Any] = [Decide("mobile", "batch"), Decide("mobile", "batch"), Decide("desktop", "batch")]
    asked += [Reward("batch", 0.5), Reward("batch", 0.5), Reward("batch", 0.75), Reward("nobody", 1.0)]
    assert [status for status, _ in served.ask_all(asked)] == [200, 200, 409, 200, 200, 409, 404]
    kinds = [record.kind for record in served.store.find(1, ["batch"])]
    assert kinds == [Kind.DECISION, Kind.REWARD]


def test_unknown_ids_are_not_cached(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    states = service.writer.cache._states[1]
    asked: list[Any] = [Reward("a", 1.0), Activate("b"), Decide("tablet", "c"), Decide("tablet"), Decide("mobile", "d")]
    assert [status for status, _ in service.ask_all(asked)] == [404, 404, 422, 422, 200]
    assert list(states) == ["d"]
    asked = [Reward("e", 1.0), Decide("mobile", "e"), Reward("e", 1.0), Reward("e", 0.5)]
    assert [status for status, _ in service.ask_all(asked)] == [404, 200, 200, 409]
    assert [status for status, _ in service.ask_all(asked)] == [200, 200, 200, 409]
    assert {name: state.reward for name, state in states.items()} == {"d": None, "e": 1.0}
    service.close()


def test_decisions_without_an_id_get_one(served: Service) -> None:
    answers: list[Any] = [served.ask(Decide("mobile"))[1] for _ in range(3)]
    assert len({answer.id for answer in answers}) == 3
    assert {answer.id[0] for answer in answers} == {"@"}
    assert served.ask(Reward(answers[0].id, 1.0))[0] == 200
    known = served.decision(answers[0].id, None)
    assert known is not None
    assert known.reward == 1.0


def test_experiments_do_not_share_ids(tmp_path: Path) -> None:
    one = settings(tmp_path).experiments["ads"]
    service = Service(settings(tmp_path, experiments={"first": one, "second": one}))
    with pytest.raises(KeyError, match="which experiment"):
        service.ask(Decide("mobile", "a"))
    with pytest.raises(KeyError, match="no experiment 'third'; there are first, second"):
        service.ask(Decide("mobile", "a", "third"))
    first, second = (service.ask(Decide("mobile", "a", name)) for name in ("first", "second"))
    assert (first[0], second[0]) == (200, 200)
    assert service.ask(Decide("mobile", "b", "first"))[0] == 200
    assert service.ask(Reward("b", 1.0, "second"))[0] == 404
    assert [service.ask(Reward(name, 1.0, "first"))[0] for name in ("a", "b")] == [200, 200]
    wait_until_learned(service)
    versions = [service.plan(name).version for name in ("first", "second")]
    service.close()
    again = Service(settings(tmp_path, experiments={"first": one, "second": one}))
    assert [again.plan(name).version for name in ("first", "second")] == versions == [2, 0]
    assert (again.ask(Decide("mobile", "a", "first")), again.ask(Decide("mobile", "a", "second"))) == (first, second)
    again.close()


def test_rewards_of_the_holdout_are_stored_and_not_learned(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, overrides={"holdout": 0.5}))
    made: list[Any] = [service.ask(Decide("mobile", f"{place}"))[1] for place in range(60)]
    held = [answer for answer in made if answer.holdout]
    assert 10 < len(held) < 50
    assert {answer.propensity for answer in held} == {1 / 3}
    for answer in made:
        status, rewarded = service.ask(Reward(answer.id, 1.0))
        assert (status, fields(rewarded)["learned"]) == (200, not answer.holdout)
        assert fields(rewarded)["reason"] == (rules.HELD_OUT if answer.holdout else None)
    wait_until_learned(service)
    assert service.plan(None).version == 60 - len(held), "a version counts what was learned"
    before = service.plan(None)
    service.close()
    again = Service(settings(tmp_path, overrides={"holdout": 0.5}))
    assert again.plan(None) == before
    again.close()


def test_rewards_of_retired_arms_are_stored_and_not_learned(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, overrides={"learn": "at once"}))
    made: list[Any] = [service.ask(Decide("mobile", f"{place}"))[1] for place in range(30)]
    early, retired, *_ = [answer.id for answer in made if answer.arm == made[0].arm]
    other = next(answer.id for answer in made if answer.arm != made[0].arm)
    assert fields(service.ask(Reward(early, 1.0))[1])["learned"]
    wait_until_learned(service)
    assert service.change(Change(retire=[made[0].arm]))[0] == 200
    expected = [(early, None), (retired, rules.RETIRED), (other, None)]
    for again in range(3):
        for name, reason in expected:
            said = fields(service.ask(Reward(name, 1.0))[1])
            assert (said["learned"], said["reason"]) == (reason is None, reason), (name, again)
        wait_until_learned(service)
        assert service.plan(None).version == 3, "two rewards were learned, and the arms changed"
        service.writer.cache.clear()
    assert service.change(Change(add=[Arm("violet")], retire=[]))[0] == 200
    assert fields(service.ask(Reward(retired, 1.0))[1])["reason"] == rules.RETIRED
    service.close()


def test_windows_close_on_time_with_a_record(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, overrides={"window": "0.3 seconds", "default_reward": 0.25}))
    service.ask_all([Decide("mobile", "open"), Decide("mobile", "hidden", active=False), Decide("mobile", "paid")])
    service.ask(Reward("paid", 1.0))
    wait_until(lambda: len(service.store.find(1, ["open"])) == 2)
    row = service.store.find(1, ["open"])[1]
    assert (row.kind, bool(row.flag), unpacked(RewardBody, row.body).reward) == (Kind.REWARD, False, 0.25)
    wait_until_learned(service)
    assert service.plan(None).version == 2, "the default is learned like any reward"
    assert [record.kind for record in service.store.find(1, ["hidden"])] == [Kind.DECISION]
    began = time.time()
    service.ask(Activate("hidden"))
    wait_until(lambda: len(service.store.find(1, ["hidden"])) == 3)
    assert service.store.find(1, ["hidden"])[2].time >= began + 0.3, "its window began when it was activated"
    assert fields(service.ask(Reward("hidden", 1.0))[1])["reason"] == rules.CLOSED
    known = service.decision("hidden", None)
    assert known is not None
    assert (known.reward, known.by_default, known.late_reward) == (0.25, True, 1.0)
    wait_until_learned(service)
    version = service.plan(None).version
    assert version == 3, "the late reward is not learned"
    decisions = [service.decision(name, None) for name in ("paid", "open", "hidden")]
    assert [one and one.learned_in for one in decisions] == [2, 2, 3], "rewards are learned in order"
    service.close()


def test_unanswered_decisions_are_counted_and_not_learned_from(tmp_path: Path) -> None:
    overrides = {"window": "0.05 seconds", "default_reward": "none"}
    service = Service(settings(tmp_path, overrides=overrides))
    service.ask_all([Decide("mobile", "a"), Decide("mobile", "hidden", active=False)])
    wait_until(lambda: len(service.store.find(1, ["a"])) == 2)
    service.close()
    service = Service(settings(tmp_path, overrides=overrides))
    assert service.store.find(1, ["a"])[1].kind == Kind.UNANSWERED
    assert OverviewCache(service).overview(service.experiment(None)).counts["unanswered"] == 1
    assert close_windows(service, ["a"]), "a second time changes nothing"
    for _ in range(2):
        answer = fields(service.ask(Reward("a", 1.0))[1])
        assert (answer["learned"], answer["reason"]) == (False, rules.UNANSWERED_CLOSED)
        service.writer.cache.clear()
    assert service.ask(Reward("a", 0.0))[0] == 409
    known = service.decision("a", None)
    assert known is not None
    assert (known.reward, known.by_default, known.late_reward, known.unanswered) == (None, False, 1.0, True)
    shown = page(OverviewCache(service), RequestStats(), View(decision="a"))
    assert "none came within the window; nothing is learned; 1 came late" in shown
    assert "it has closed; 1 unanswered" in page(OverviewCache(service), RequestStats(), View())
    service.ask(Activate("hidden"))
    assert fields(service.ask(Reward("hidden", 1.0))[1])["learned"]
    wait_until_learned(service)
    assert service.plan(None).version == 1, "only the answered decision is learned from"
    service.ask(Decide("mobile", "later"))
    wait_until(lambda: len(service.store.find(1, ["later"])) == 2)
    assert service.writer.counts[1]["unanswered"] == 1
    service.close()
    assert rows_of(tmp_path / "bothworlds.sqlite")["a"].reward == 1.0, "evaluation uses the late reward"
    assert rows_of(tmp_path / "bothworlds.sqlite")["later"].reward is None
    assert_verified(tmp_path)


def test_without_a_default_reward_windows_never_close(tmp_path: Path) -> None:
    overrides = {"window": "0.01 seconds", "default_reward": None}
    service = Service(settings(tmp_path, overrides=overrides))
    service.ask(Decide("mobile", "a"))
    time.sleep(0.3)
    assert [record.kind for record in service.store.find(1, ["a"])] == [Kind.DECISION]
    assert fields(service.ask(Reward("a", 1.0))[1])["learned"]
    service.close()


def test_a_decision_stores_all_probabilities_and_is_confirmed(served: Service) -> None:
    served.ask(Decide("desktop", "whole"))
    record = served.store.find(1, ["whole"])[0]
    drawn = unpacked(DecisionBody, record.body)
    known = served.decision("whole", None)
    assert known is not None
    assert known.probabilities[known.arm] == known.propensity == drawn.propensity
    assert sum(known.probabilities.values()) == pytest.approx(1.0)
    assert known.confirmed is True


def test_invalid_bodies_are_refused() -> None:
    for text in [b'{"context": true}', b'{"context": "a", "more": 1}', b'{"context": "a", "id": ""}', b"{}", b"[]"]:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=Decide)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"decisions": []}', type=Decides)


def test_heads_are_the_first_fields_of_a_body() -> None:
    heads: tuple[type[msgspec.Struct], ...] = DecisionDraw, DecisionHead
    for head in heads:
        names = head.__struct_fields__
        assert DecisionBody.__struct_fields__[: len(names)] == names
