"""Ledgers: every id once, whoever issued it, over lives, files, losses and expiry."""

import numpy as np

from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback_registry import FeedbackRegistry


def made(source: str, number: int) -> Decision:
    return Decision(number, 0, "x", 0, "a", 1.0, np.zeros(1), None, "p", source, 0)


def again(registry: FeedbackRegistry) -> FeedbackRegistry:
    """The same, by way of a file."""
    return FeedbackRegistry.restore({"name": "p", **registry.header()}, registry.arrays())


def answered(registry: FeedbackRegistry, decision: Decision) -> str:
    said = registry.refusal(decision)
    if not said:
        registry.close(decision)
    return said


def decided(registry: FeedbackRegistry, count: int) -> list[Decision]:
    return [made(registry.session, registry.rounds.add()) for _ in range(count)]


def test_after_a_file_lost_decisions_are_taken_once_and_not_drawn_again() -> None:
    registry = FeedbackRegistry.begin(7)
    kept = decided(registry, 5)
    file = again(registry)
    lost = decided(registry, 5)  # 6 to 10, and nobody saves them
    loaded = file.next_session(7)
    assert (loaded.rounds.last, len(loaded)) == (5, 5)
    first = decided(loaded, 1)[0]
    assert (first.round, lost[0].round) == (6, 6)
    assert first.id != lost[0].id
    assert answered(loaded, lost[3]) == ""  # round 9
    assert decided(loaded, 1)[0].round == 10  # 7 to 9 are over
    for decision in (*kept, *lost[:3], lost[4], first):
        assert answered(again(loaded), decision) == answered(loaded, decision) == ""
    for decision in (*kept, *lost, first):
        assert answered(again(loaded), decision) == "was answered or has expired"


def test_a_new_stream_need_not_jump() -> None:
    registry = FeedbackRegistry.begin(7)
    file = again(registry)
    lost = decided(registry, 9)
    loaded = file.next_session(8, same_stream=False)
    assert answered(loaded, lost[8]) == ""
    assert decided(loaded, 1)[0].round == 1


def test_a_life_that_the_file_never_knew() -> None:
    file = again(FeedbackRegistry.begin(7))
    lost = decided(file.next_session(7), 3)  # began and ended after the file was saved
    loaded = again(file.next_session(7))
    assert answered(loaded, lost[1]) == ""
    assert decided(loaded, 1)[0].round == 3  # 1 and 2 were drawn from the same stream
    assert len(loaded) == 2
    assert loaded.refusal(lost[1]._replace(round=0)) == "was answered or has expired"
    assert loaded.expire(before=loaded.rounds.last + 1) == 2
    more = decided(file.next_session(7), 2)
    assert [loaded.refusal(d) for d in (*lost, *more)] == ["was answered or has expired"] * 5
    assert loaded.next_session(7).refusal(more[0]) == "was answered or has expired"
    assert loaded.next_session(7).refusal(decided(loaded.next_session(7), 1)[0]) == ""
    assert file.next_session(7).refusal(made(loaded.session, 0)) == "was never decided"


def test_expiry_goes_by_age_over_lives() -> None:
    registry = FeedbackRegistry.begin(7)
    kept = decided(registry, 5)
    file = again(registry)
    lost = decided(registry, 5)
    loaded = file.next_session(7)
    assert loaded.expire(before=3) == 2
    assert [loaded.refusal(d) == "" for d in (*kept, *lost)] == [False] * 2 + [True] * 8
    assert again(loaded).expire(before=6) == loaded.expire(before=6) == 3
    assert all(loaded.refusal(d) for d in (*kept, *lost))
    assert len(loaded) == 0


def test_what_was_forked_off_is_no_earlier_life() -> None:
    registry = FeedbackRegistry.begin(7)
    decided(registry, 10)
    forked = decided(again(registry).next_session(8, same_stream=False), 3)
    assert [made.round for made in forked] == [11, 12, 13]
    assert answered(registry, forked[2]) == ""
    assert len(registry) == 10
    assert registry.expire(before=3) == 2
    for known in (registry, again(registry)):
        assert [known.refusal(made) == "" for made in forked] == [True, True, False]
    assert registry.expire(before=20) == 8
    assert answered(registry, forked[0]) == ""
    assert decided(registry, 1)[0].round == 11  # drawn from a stream of its own, no round is over


def test_plans_and_given_ids() -> None:
    registry = FeedbackRegistry.begin(7)
    for decision in (made("@server", 1000), made("@server", 3), made("visit", 0)):
        assert answered(registry, decision) == ""
        assert answered(again(registry), decision).startswith("was answered")
    assert registry.refusal(made("@server", 4)) == registry.refusal(made("other", 0)) == ""
    assert registry.refusal(made("@another", 0)) == registry.refusal(made(registry.session, 1)) == "was never decided"
    assert len(registry) == 0
    assert registry.expire(before=10**6) == 0


def test_what_it_takes() -> None:
    """Ids of a server lie in intervals: a million answered ones take no more than one."""
    registry = FeedbackRegistry.begin(7)
    for number in range(1, 10_001):
        registry.close(made("@server", number))
    assert registry.arrays()["open_elsewhere"].shape == (0, 3)
    assert registry.arrays()["answered"].shape == (0, 16)
