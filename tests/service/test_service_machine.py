"""Random sequences of operations: the service answers as a small model does, also after restarts."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bothworlds.service import rules
from bothworlds.service.messages import Activate, Arm, Change, Decide, Reward, Rollback
from bothworlds.service.records import Kind
from bothworlds.service.service import Service
from bothworlds.service.store import StoreError
from bothworlds.service.verification import verify
from support.postgres import needs_postgres, schema_for
from support.services import ARMS, CONTEXTS, QUICK, close_windows, settings, wait_until, wait_until_learned
from support.soak import size

IDS = st.sampled_from(["a", "b", "c", "ä\0", "E" * 200, "6"])
CONTEXT = st.sampled_from([*CONTEXTS, 0, 1])
REWARDS = st.sampled_from([0.0, 0.25, 1.0])


@dataclass
class ModelDecision:
    """What the model knows about a decision."""

    body: tuple[Any, bool]
    answer: bytes
    arm: str
    holdout: bool
    active: bool
    reward: float | None = None
    arm_retired: bool = False
    by_default: bool = False
    late: float | None = None

    @property
    def kinds(self) -> set[Kind]:
        """The kinds of records that must be in the store."""
        first = self.body[1]
        return (
            {Kind.DECISION}
            | ({Kind.ACTIVATION} if self.active and not first else set())
            | ({Kind.REWARD} if self.reward is not None else set())
            | ({Kind.LATE} if self.late is not None else set())
        )


class Machine(RuleBasedStateMachine):
    """A service, and the model of its answers."""

    algorithm: Any = QUICK
    safe: str | None = None

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[str, ModelDecision] = {}
        self.safe_answers: dict[str, tuple[Any, bool]] = {}
        self.arms, self.added = list(ARMS), 0
        self.failing = False
        self.service = self.opened(self.folder)
        self.versions = {0: self.plan()}

    def location(self) -> Path | str:
        """Where the store is."""
        return self.folder / "bothworlds.sqlite"

    def opened(self, folder: Path) -> Service:
        overrides = {"algorithm": self.algorithm, "holdout": 0.2, "safe_arm": self.safe}
        service = Service(settings(folder, overrides=overrides, store=str(self.location())))
        wait_until(lambda: service.learns)
        self.safe_answers.clear()
        append = service.store.append

        def sometimes(*records: Any, **more: Any) -> int:
            if self.failing:
                self.failing = False
                raise StoreError("the disk is full")
            return append(*records, **more)

        service.store.append = sometimes  # type: ignore[method-assign]
        return service

    def plan(self) -> tuple[str, list[list[float]]]:
        made = self.service.plan(None)
        return made.digest, made.probabilities

    def rest(self) -> None:
        """Wait until all rewards are learned, and note the version."""
        wait_until_learned(self.service)
        self.versions[self.service.plan(None).version] = self.plan()

    @rule(name=IDS, context=CONTEXT, active=st.booleans())
    def decide(self, name: str, context: str | int, active: bool) -> None:
        status, answer = self.service.ask(Decide(context, name, active=active))
        known = self.model.get(name)
        if name in self.safe_answers:
            assert status == (200 if self.safe_answers[name] == (context, active) else 409)
            assert status == 409 or not answer.stored  # type: ignore[union-attr]
        elif known is None:
            assert status == 200
            made: Any = answer
            assert made.arm in self.arms
            assert made.context == (context if isinstance(context, str) else CONTEXTS[context])
            self.model[name] = ModelDecision(
                (context, active), msgspec.json.encode(answer), made.arm, made.holdout, active
            )
        elif known.body == (context, active):
            assert (status, msgspec.json.encode(answer)) == (200, known.answer)
        else:
            assert status == 409

    @precondition(lambda self: self.model)
    @rule(place=st.integers(0, 9))
    def repeat(self, place: int) -> None:
        name = sorted(self.model)[place % len(self.model)]
        self.decide(name, *self.model[name].body)

    @rule(name=IDS, reward=REWARDS)
    def reward(self, name: str, reward: float) -> None:
        status, answer = self.service.ask(Reward(name, reward))
        known = self.model.get(name)
        if known is None:
            assert status == 404
            return
        previous = known.late if known.by_default else known.reward
        if not known.active or previous not in (None, reward):
            assert status == 409
            return
        if previous is None:
            known.arm_retired = known.arm not in self.arms
        reasons = {rules.CLOSED: known.by_default, rules.HELD_OUT: known.holdout, rules.RETIRED: known.arm_retired}
        reason = next((one for one, holds in reasons.items() if holds), None)
        assert status == 200
        assert msgspec.to_builtins(answer) == {
            "id": name,
            "experiment": "ads",
            "reward": reward,
            "learned": reason is None,
            **({} if reason is None else {"reason": reason}),
        }
        if known.by_default:
            known.late = reward
        else:
            known.reward = reward

    @rule(name=IDS, reward=st.sampled_from([-0.5, 1.5, float("nan"), float("inf")]))
    def reward_outside(self, name: str, reward: float) -> None:
        assert self.service.ask(Reward(name, reward))[0] == (422 if name in self.model else 404)

    @rule(name=IDS)
    def activate(self, name: str) -> None:
        assert self.service.ask(Activate(name))[0] == (200 if name in self.model else 404)
        if name in self.model:
            self.model[name].active = True

    @rule()
    def close_windows(self) -> None:
        ids = [name for name, known in self.model.items() if known.active]
        assert close_windows(self.service, ids)
        for name in ids:
            known = self.model[name]
            if known.reward is None:
                known.reward, known.by_default = 0.0, True

    @rule(batch=st.lists(st.tuples(IDS, REWARDS), min_size=2, max_size=5))
    def forget_states(self, batch: list[tuple[str, float]]) -> None:
        """States that are not cached are read from the store."""
        self.rest()
        self.service.writer.cache.clear()
        for name, reward in batch:
            self.reward(name, reward)

    @rule(name=IDS, context=CONTEXT, reward=REWARDS)
    def fail(self, name: str, context: str | int, reward: float) -> None:
        """A failed commit is not acknowledged and has no effect."""
        self.rest()
        before = self.service.store.last()
        new, known = name not in {**self.model, **self.safe_answers}, self.model.get(name)
        self.failing = True
        if new:
            status, answer = self.service.ask(Decide(context, name))
            made: Any = answer
            safe = self.safe if self.safe in self.arms else None
            assert status == (503 if safe is None else 200)
            assert safe is None or (made.arm, made.propensity, made.stored) == (safe, None, False)
            if safe is not None:
                self.safe_answers[name] = context, True
            assert self.service.failures
        elif known is not None and known.active and known.reward is None:
            assert self.service.ask(Reward(name, reward))[0] == 503
            assert self.service.failures
        self.failing = False
        assert self.service.store.last() == before
        self.repeat_all()
        if new:
            self.decide(name, context, True)
        wait_until(lambda: not self.service.failures)

    def repeat_all(self) -> None:
        for name, known in self.model.items():
            self.decide(name, *known.body)

    @precondition(lambda self: self.added < 3)
    @rule(retire=st.booleans())
    def change_arms(self, retire: bool) -> None:
        self.rest()
        before = self.service.plan(None).version
        retired = [self.arms[0]] if retire and len(self.arms) > 2 else []
        self.added += 1
        name = f"new {self.added}"
        status, answer = self.service.change(Change(add=[Arm(name)], retire=retired))
        made: Any = answer
        assert (status, made.version) == (200, before + 1)
        self.arms = [arm for arm in self.arms if arm not in retired] + [name]
        assert self.service.plan(None).arms == self.arms
        self.versions = {made.version: self.plan()}

    @rule()
    def change_nothing(self) -> None:
        self.rest()
        before = self.plan()
        assert self.service.change(Change(retire=["no such arm"]))[0] == 422
        assert self.service.change(Change(probabilities=[0.5, 0.5]))[0] == 200
        assert self.plan() == before

    @rule(place=st.integers(0, 9))  # not one of the versions: they depend on how fast the service learns
    def roll_back(self, place: int) -> None:
        self.rest()
        now = self.service.plan(None).version
        earlier = sorted(version for version in self.versions if version < now)
        if not earlier:
            return
        version = earlier[place % len(earlier)]
        status, answer = self.service.change(Rollback(version))
        made: Any = answer
        assert (status, made.version) == (200, now + 1)
        assert self.plan() == self.versions[version]
        self.versions[made.version] = self.plan()

    @rule(ahead=st.integers(0, 3))
    def roll_forward(self, ahead: int) -> None:
        self.rest()
        before = self.plan()
        assert self.service.change(Rollback(self.service.plan(None).version + ahead))[0] == 422
        assert self.plan() == before

    @rule()
    def restart(self) -> None:
        self.rest()
        before = self.service.plan(None)
        self.service.close()
        self.service = self.opened(self.folder)
        assert self.service.plan(None) == before
        self.repeat_all()

    @rule(rested=st.booleans())
    def crash(self, rested: bool) -> None:
        """Restart from a copy of the files, as after a crash of the machine."""
        if rested:
            self.rest()
        before = self.service.plan(None)
        self.folder = self.crashed()
        self.service = self.opened(self.folder)
        if rested:
            assert self.service.plan(None) == before
        self.repeat_all()

    def crashed(self) -> Path:
        """Close the service; return a folder with the files as they were before."""
        copy = Path(tempfile.mkdtemp())
        for ending in ("", "-wal"):
            shutil.copy(self.folder / f"bothworlds.sqlite{ending}", copy)
        self.service.close()
        shutil.rmtree(self.folder)
        return copy

    @invariant()
    def matches_the_store(self) -> None:
        """No record is missing or doubled."""
        if not hasattr(self, "service"):
            return
        for name, known in self.model.items():
            records = self.service.store.find(1, [name])
            assert sorted(record.kind for record in records) == sorted(known.kinds)
            stored = self.service.decision(name, None)
            assert stored is not None
            assert (stored.reward, stored.by_default, stored.late_reward) == (
                known.reward,
                known.by_default,
                known.late,
            )
            assert stored.active == known.active
            assert stored.learned_in is None or (known.reward is not None and not known.holdout)
        assert not self.service.failures

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.rest()
            self.service.close()
            found = verify(self.location(), processes=1)
            assert found.faults == []
            assert found.decisions == len(self.model)
            shutil.rmtree(self.folder)


class OrderedMachine(Machine):
    """The same with a tuning whose bits depend on the order of rewards and on the batches."""

    algorithm, safe = "matched", "blue"


class PostgresMachine(Machine):
    """The same with a store in PostgreSQL."""

    def location(self) -> str:
        return schema_for(self.folder)

    def crashed(self) -> Path:
        self.service.close()
        return self.folder


ON_POSTGRES = pytest.param(PostgresMachine, 2, id="postgres", marks=needs_postgres)


@pytest.mark.parametrize(("machine", "few"), [(Machine, 6), (OrderedMachine, 3), ON_POSTGRES])
def test_a_service_answers_as_the_model(machine: type[Machine], few: int) -> None:
    chosen = hypothesis_settings(max_examples=few, stateful_step_count=25)
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.soak
@pytest.mark.parametrize("machine", [Machine, OrderedMachine, pytest.param(PostgresMachine, marks=needs_postgres)])
def test_a_service_answers_as_the_model_for_long(machine: type[Machine]) -> None:
    chosen = hypothesis_settings(max_examples=size(3, 150), stateful_step_count=60, derandomize=False)
    run_state_machine_as_test(machine, settings=chosen)
