"""Policies, plans and copies that decide, are answered late or twice, saved, killed and restarted: against a model."""

import json
import os
import tempfile
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

import bothworlds as bw
from bothworlds.policy.ids import KeyedRandom
from support.problems import random_problem
from support.soak import size

PROBLEM = random_problem(3)
ALGORITHM = bw.LCTsallisINF(tuning="matched")
WAYS = ["round", "round", "plan", "one", "two"]
LOSSES = st.sampled_from([-1.0, -0.5, 0.25, 1.0])
LAWS = st.sampled_from([(0.1, 0.5, 0.3, 0.1), (0.25, 0.25, 0.25, 0.25), (0.05, 0.05, 0.1, 0.8)])


@dataclass
class Model:
    """What one owner should know: which ids were answered or closed, and what was learnt in which order.

    ``learnt`` has decisions with their loss, and laws of contexts.
    """

    over: set[str] = field(default_factory=set)
    learnt: list[tuple[Any, ...]] = field(default_factory=list)
    answers: int = 0

    @property
    def taken(self) -> list[tuple[Any, ...]]:
        return [event for event in self.learnt if len(event) == 2]


@dataclass
class Owner:
    """A policy with its model, its last file and the model of that moment."""

    policy: bw.Policy
    path: Path
    model: Model = field(default_factory=Model)
    saved: Model | None = None
    own: list[Any] = field(default_factory=list)  # decisions that count rounds, of all lives

    def save(self) -> None:
        self.policy.save(self.path)
        self.saved = deepcopy(self.model)


class Owners(RuleBasedStateMachine):
    """Every id is issued once, taken once, and what is learnt is what was taken, bit for bit."""

    owners, decisions = Bundle("owners"), Bundle("decisions")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0
        self.all: list[Owner] = []
        self.ids: set[str] = set()
        self.draws: dict[tuple[int, int], str] = {}

    def owner(self, policy: bw.Policy, model: Model) -> Owner:
        self.count += 1
        made = Owner(policy, Path(self.folder.name) / f"{self.count}.npz", model)
        made.save()
        self.all.append(made)
        return made

    @initialize(target=owners)
    def begin(self) -> Owner:
        return self.owner(ALGORITHM.start(PROBLEM, rng=7, holdout=0.2), Model())

    @rule(owner=owners, ways=st.lists(st.sampled_from(WAYS), min_size=2, max_size=6), target=decisions)
    def decide(self, owner: Owner, ways: list[str]) -> Any:
        """In a round, by a plan, or under an id that is given, perhaps again."""
        return multiple(*((owner, self.decide_one(owner, i % 4, way)) for i, way in enumerate(ways)))

    def decide_one(self, owner: Owner, x: int, way: str) -> bw.Decision:
        policy = owner.policy
        if way in ("one", "two"):
            made = policy.act(x, id=way)
            assert made.to_dict() == policy.plan().act(x, id=way).to_dict()
            assert policy.plan().confirms(made)
            return made
        made = policy.act(x) if way == "round" else policy.plan().act(x)
        assert made.id not in self.ids
        self.ids.add(made.id)
        drawn = (policy._key, made.round) if way == "round" else KeyedRandom(policy._secret).key_and_time(made.id)
        learnt = {taken.id for taken, *_ in owner.model.taken}
        assert self.draws.get(drawn) not in learnt  # numbers are drawn again only if their outcome is not known
        if not made.holdout:
            self.draws[drawn] = made.id
        if way == "round":
            owner.own.append(made)
        return made

    @rule(pairs=st.lists(decisions, min_size=3, max_size=8), loss=LOSSES)
    def reward(self, pairs: list[Any], loss: float) -> None:
        """Soon, late, twice, after a restart, or of decisions that were lost."""
        for pair in pairs:
            self.reward_one(pair[0], pair[1], loss)

    def reward_one(self, owner: Owner, made: bw.Decision, loss: float) -> None:
        made = bw.Decision.from_dict(json.loads(json.dumps(made.to_dict())))
        new = made.id not in owner.model.over
        assert owner.policy.accepts(made) == new
        if new:
            owner.policy.update(made, loss=loss)
            owner.model.over.add(made.id)
            owner.model.answers += 1
            if not made.holdout:
                owner.model.learnt.append((made, loss))
        else:
            with pytest.raises(ValueError, match="each decision takes feedback once"):
                owner.policy.update(made, loss=loss)

    @rule(owner=owners, pair=decisions)
    def reward_elsewhere(self, owner: Owner, pair: Any) -> None:
        if pair[0] is not owner:
            assert not owner.policy.accepts(pair[1])
            with pytest.raises(ValueError, match="but this is policy"):
                owner.policy.update(pair[1], loss=0.0)

    @rule(owner=owners, law=LAWS)
    def another_law(self, owner: Owner, law: tuple[float, ...]) -> None:
        """Of what is decided after it the file must know the law: it is saved at once."""
        before = owner.policy.version
        owner.policy.change_probabilities(law)
        if owner.policy.version > before:
            owner.model.learnt.append((law,))
        owner.save()

    @rule(owner=owners)
    def save(self, owner: Owner) -> None:
        owner.save()

    @rule(owner=owners, stream=st.sampled_from(["same", "new"]))
    def kill_and_restart(self, owner: Owner, stream: Any) -> None:
        assert owner.saved is not None
        owner.policy = bw.load(owner.path, stream=stream)
        owner.model = deepcopy(owner.saved)
        assert stream == "same" or owner.policy._key not in {key for key, _ in self.draws}

    @rule(owner=owners)
    def expire(self, owner: Owner) -> None:
        owner.policy.expire(before=owner.policy.rounds + 1)
        owner.model.over |= {made.id for made in owner.own}
        assert owner.policy.open_rounds == 0

    @precondition(lambda self: len(self.all) < 3)
    @rule(owner=owners, target=owners)
    def copy(self, owner: Owner) -> Owner:
        return self.owner(owner.policy.copy(), Model(learnt=list(owner.model.learnt)))

    @invariant()
    def learnt_is_what_was_taken(self) -> None:
        for owner in self.all:
            policy, model = owner.policy, owner.model
            assert policy.updates == len(model.taken) <= policy.plan().version == policy.version
            tallies = policy._bookkeeping.counts.own, policy._bookkeeping.counts.held
            assert sum(tally.tables().answered.sum() for tally in tallies) == model.answers

    def teardown(self) -> None:
        self.folder.cleanup()
        for owner in self.all:
            again = ALGORITHM.start(PROBLEM, rng=1, holdout=0.2)
            for event in owner.model.learnt:
                if len(event) == 1:
                    again.change_probabilities(event[0])
                else:
                    again.learn([event[0]._replace(policy=again.name)], loss=[event[1]])
            assert learnt_by(again) == learnt_by(owner.policy)


def learnt_by(policy: bw.Policy) -> dict[str, bytes]:
    return {name: part.tobytes() for name, part in policy.learnt().items()}


TestOwners = Owners.TestCase
TestOwners.settings = settings(max_examples=size(40, 1000), stateful_step_count=30, deadline=None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_policy_is_another_owner() -> None:
    policy = ALGORITHM.start(PROBLEM, rng=7)
    policy.act(0)
    (reading, writing), key = os.pipe(), policy._key
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps([policy.act(0).id, policy._key]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    name, other = json.loads(os.read(reading, 1000))
    os.close(reading)
    os.close(writing)
    assert policy.act(0).id != name
    assert other != key == policy._key
