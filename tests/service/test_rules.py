"""What may happen to a decision: every rule, by a table of what is asked and what is answered."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bothworlds.service import rules
from bothworlds.service.messages import Activate, Arm, Change, Decide, Decides, Reward
from bothworlds.service.records import Drawn, Kind, Paid, unpacked
from bothworlds.service.service import Service
from services import close_windows, learnt, settings, until

CLOSE = "close the window"
D, R, A = Decide, Reward, Activate
late = {"learned": False, "reason": rules.CLOSED}

# What is asked in turn, the status, and what the answer says among other things.
TABLE: dict[str, list[tuple[Any, int, dict[str, Any]]]] = {
    "a decision and its reward": [
        (D("mobile", "a"), 200, {"id": "a", "context": "mobile", "experiment": "ads"}),
        (R("a", 0.25), 200, {"id": "a", "reward": 0.25, "learned": True, "experiment": "ads"}),
    ],
    "another context under the same id": [
        (D("mobile", "a"), 200, {}),
        (D("desktop", "a"), 409, {"error": "decision 'a' was asked for before with another body"}),
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
    "ids that are kept for the library": [(D("mobile", "@mine"), 422, {}), (R("@mine", 1.0), 404, {})],
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

    for step, (asked, status, told) in enumerate(TABLE[name]):
        if not remembered:
            served.clerk.memory.clear()
        if asked == CLOSE:
            assert close_windows(served, [own("a")]) == (status == 200)
            continue
        got, answer = served.ask(msgspec.structs.replace(asked, id=own(asked.id)))
        expected = {
            key: own(value) if key == "id" else value.replace("'a'", repr(own("a"))) if key == "error" else value
            for key, value in told.items()
        }
        said = fields(answer)
        assert (got, {key: said[key] for key in expected}) == (status, expected), f"step {step}"


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "looked up"])
def test_the_same_question_has_the_same_answer_byte_for_byte(served: Service, remembered: bool) -> None:
    for asked in [Decide("mobile", f"bytes {remembered}"), Decide(1, f"bytes {remembered} 2", active=False)]:
        first = msgspec.json.encode(served.ask(asked)[1])
        served.ask(Reward(str(asked.id), 1.0))
        learnt(served)
        if not remembered:
            served.clerk.memory.clear()
        assert msgspec.json.encode(served.ask(asked)[1]) == first
        again = served.ask_all([asked, asked])
        assert [msgspec.json.encode(answer) for _, answer in again] == [first, first]


def test_a_batch_may_say_everything_of_a_decision_at_once(served: Service) -> None:
    asked: list[Any] = [Decide("mobile", "batch"), Decide("mobile", "batch"), Decide("desktop", "batch")]
    asked += [Reward("batch", 0.5), Reward("batch", 0.5), Reward("batch", 0.75), Reward("nobody", 1.0)]
    assert [status for status, _ in served.ask_all(asked)] == [200, 200, 409, 200, 200, 409, 404]
    kinds = [record.kind for record in served.store.find(1, ["batch"])]
    assert kinds == [Kind.DECISION, Kind.REWARD]


def test_ids_that_nothing_is_stored_about_are_not_remembered(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    states = service.clerk.memory._states[1]
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
    known = served.known(answers[0].id, None)
    assert known is not None
    assert known.reward == 1.0


def test_a_reward_in_another_experiment_is_none(tmp_path: Path) -> None:
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
    assert service.ask(Reward("b", 1.0, "first"))[0] == 200
    learnt(service)
    versions = [service.plan(name).version for name in ("first", "second")]
    service.close()
    again = Service(settings(tmp_path, experiments={"first": one, "second": one}))
    assert [again.plan(name).version for name in ("first", "second")] == versions == [1, 0]
    assert (again.ask(Decide("mobile", "a", "first")), again.ask(Decide("mobile", "a", "second"))) == (first, second)
    again.close()


def test_rewards_of_held_out_decisions_are_kept_and_not_learnt(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, told={"holdout": 0.5}))
    made: list[Any] = [service.ask(Decide("mobile", f"{place}"))[1] for place in range(60)]
    held = [answer for answer in made if answer.holdout]
    assert 10 < len(held) < 50
    assert {answer.propensity for answer in held} == {1 / 3}
    for answer in made:
        status, told = service.ask(Reward(answer.id, 1.0))
        assert (status, fields(told)["learned"]) == (200, not answer.holdout)
        assert fields(told)["reason"] == (rules.HELD_OUT if answer.holdout else None)
    learnt(service)
    assert service.plan(None).version == 60 - len(held), "a version counts what was learnt"
    before = service.plan(None)
    service.close()
    again = Service(settings(tmp_path, told={"holdout": 0.5}))
    assert again.plan(None) == before
    again.close()


def test_rewards_of_retired_arms_are_kept_and_not_learnt_and_the_answer_stays(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    made: list[Any] = [service.ask(Decide("mobile", f"{place}"))[1] for place in range(30)]
    early, gone, *_ = [answer.id for answer in made if answer.arm == made[0].arm]
    kept = next(answer.id for answer in made if answer.arm != made[0].arm)
    assert fields(service.ask(Reward(early, 1.0))[1])["learned"]
    learnt(service)
    assert service.change(Change(retire=[made[0].arm]))[0] == 200
    told = [(early, None), (gone, rules.GONE), (kept, None)]
    for again in range(3):
        for name, reason in told:
            said = fields(service.ask(Reward(name, 1.0))[1])
            assert (said["learned"], said["reason"]) == (reason is None, reason), (name, again)
        learnt(service)
        assert service.plan(None).version == 3, "two rewards were learnt, and the arms changed"
        service.clerk.memory.clear()
    assert service.change(Change(add=[Arm("violet")], retire=[]))[0] == 200
    assert fields(service.ask(Reward(gone, 1.0))[1])["reason"] == rules.GONE
    service.close()


def test_windows_close_by_themselves_with_a_row_of_their_own(tmp_path: Path) -> None:
    service = Service(settings(tmp_path, told={"window": "0.3 seconds", "default_reward": 0.25}))
    service.ask_all([Decide("mobile", "open"), Decide("mobile", "hidden", active=False), Decide("mobile", "paid")])
    service.ask(Reward("paid", 1.0))
    until(lambda: len(service.store.find(1, ["open"])) == 2)
    row = service.store.find(1, ["open"])[1]
    assert (row.kind, bool(row.flag), unpacked(Paid, row.body).reward) == (Kind.REWARD, False, 0.25)
    learnt(service)
    assert service.plan(None).version == 2, "the default is learnt like any reward"
    assert [record.kind for record in service.store.find(1, ["hidden"])] == [Kind.DECISION]
    began = time.time()
    service.ask(Activate("hidden"))
    until(lambda: len(service.store.find(1, ["hidden"])) == 3)
    assert service.store.find(1, ["hidden"])[2].time >= began + 0.3, "its window began when it was activated"
    assert fields(service.ask(Reward("hidden", 1.0))[1])["reason"] == rules.CLOSED
    known = service.known("hidden", None)
    assert known is not None
    assert (known.reward, known.by_default, known.late_reward) == (0.25, True, 1.0)
    learnt(service)
    version = service.plan(None).version
    assert version == 3, "the late reward is not learnt"
    told = [service.known(name, None) for name in ("paid", "open", "hidden")]
    assert [one and one.learned_in for one in told] == [1, 2, 3]
    service.close()


def test_without_a_default_reward_decisions_wait_for_ever(tmp_path: Path) -> None:
    told = {"window": "0.01 seconds", "default_reward": None}
    service = Service(settings(tmp_path, told=told))
    service.ask(Decide("mobile", "a"))
    time.sleep(0.3)
    assert [record.kind for record in service.store.find(1, ["a"])] == [Kind.DECISION]
    assert fields(service.ask(Reward("a", 1.0))[1])["learned"]
    service.close()


def test_a_decision_keeps_all_its_probabilities_and_is_confirmed(served: Service) -> None:
    served.ask(Decide("desktop", "whole"))
    record = served.store.find(1, ["whole"])[0]
    drawn = unpacked(Drawn, record.body)
    known = served.known("whole", None)
    assert known is not None
    assert known.probabilities[known.arm] == known.propensity == drawn.propensity
    assert sum(known.probabilities.values()) == pytest.approx(1.0)
    assert known.confirmed is True


def test_bodies_that_cannot_be_meant_are_refused_before_anything_happens() -> None:
    for text in [b'{"context": true}', b'{"context": "a", "more": 1}', b'{"context": "a", "id": ""}', b"{}", b"[]"]:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=Decide)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"decisions": []}', type=Decides)
