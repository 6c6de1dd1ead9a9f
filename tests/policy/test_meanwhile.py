"""What another thread does meanwhile, at the worst moment: nothing is decided for another context, undone or lost."""

from collections.abc import Callable
from typing import Any

import pytest

import bothworlds as bw
from support.problems import play

DAY, NIGHT = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]


def problem(*contexts: str) -> bw.Problem:
    """Contexts by day and by night, in an order."""
    features = [DAY if name == "day" else NIGHT for name in contexts]
    return bw.Problem(features=features, probabilities=[0.5, 0.5], contexts=contexts, arms=["a", "b"])


def start() -> bw.Policy:
    made: bw.Policy = bw.LCTsallisINF(tuning="certified").start(problem("day", "night"), rng=1, interpreted=True)
    return made


class Interrupted:
    """A policy's lock; something else is done once, before it is taken or after it is given back."""

    def __init__(self, policy: bw.Policy, *, before: Callable[[], Any] | None, after: Callable[[], Any] | None) -> None:
        self.policy, self.lock, self.before, self.after = policy, policy._lock, before, after
        policy._lock = self  # type: ignore[assignment]

    def __enter__(self) -> None:
        if self.before is not None:
            self.policy._lock = self.lock
            self.before()
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.policy._lock = self.lock
        self.lock.release()
        if self.after is not None:
            self.after()


def test_a_given_id_is_decided_for_the_context_that_was_asked() -> None:
    policy = start()
    Interrupted(policy, before=lambda: policy.change(problem("night", "day")), after=None)
    made = policy.act("day", id="visit")
    assert (made.context_name, made.context, policy.problem.contexts) == ("day", 1, ("night", "day"))


def test_probabilities_are_of_the_context_that_was_asked() -> None:
    policy = start()
    play(policy, 20)
    expected = policy.probabilities("day").tolist()
    assert expected != policy.probabilities("night").tolist()
    Interrupted(policy, before=None, after=lambda: policy.change(problem("night", "day")))
    assert policy.probabilities("day").tolist() == expected
    assert policy.problem.contexts == ("night", "day")


def meanwhile(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    """Have something else done once, right after a problem with another law was made."""
    made = bw.Problem.with_probabilities

    def with_probabilities(self: bw.Problem, probabilities: Any) -> bw.Problem:
        monkeypatch.setattr(bw.Problem, "with_probabilities", made)
        changed = self.with_probabilities(probabilities)
        work()
        return changed

    monkeypatch.setattr(bw.Problem, "with_probabilities", with_probabilities)


@pytest.mark.parametrize("follows", [False, True])
def test_a_law_does_not_undo_a_change(monkeypatch: pytest.MonkeyPatch, follows: bool) -> None:
    policy, mix = start(), bw.TrafficMix.known([0.3, 0.7])
    more = policy.problem.with_arms({"c": [1.0, 1.0]})
    meanwhile(monkeypatch, lambda: policy.change(more))
    with pytest.raises(ValueError, match="another thread has changed the problem"):
        policy.follow(mix) if follows else policy.change_probabilities([0.3, 0.7])
    assert policy.problem == more


@pytest.mark.parametrize("law", ["estimated", "known"])
def test_a_mix_hears_of_every_visit_once(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    policy = start()
    mix = getattr(bw.TrafficMix, law)(policy.problem.probabilities)
    policy.act(["day"] * 10)
    meanwhile(monkeypatch, lambda: policy.act(["night"] * 50))
    mix = policy.follow(mix)
    assert mix.observed == 10
    mix = policy.follow(mix)
    assert mix.observed == 60
    assert policy.follow(mix).observed == 60
