"""Open rounds against a plain set."""

from hypothesis import given
from hypothesis import strategies as st

from bothworlds.policy.feedback_registry import OpenRounds

actions = st.lists(st.tuples(st.sampled_from(["add", "close", "expire"]), st.integers(0, 60)), max_size=80)


@given(actions)
def test_intervals_behave_like_a_set(steps: list[tuple[str, int]]) -> None:
    rounds, model = OpenRounds(), set[int]()
    for action, number in steps:
        if action == "add":
            model.add(rounds.add())
        elif action == "close" and model:
            chosen = sorted(model)[number % len(model)]
            rounds.close(chosen)
            model.remove(chosen)
        elif action == "expire":
            gone = {r for r in model if r < number}
            assert rounds.expire(before=number) == len(gone)
            model -= gone
        assert len(rounds) == len(model)
        assert {r for r in range(rounds.last + 3) if rounds.has(r)} == model
        again = OpenRounds.restore(rounds.last, rounds.intervals)
        assert again.intervals.tolist() == rounds.intervals.tolist()
        gaps = rounds.intervals.reshape(-1)
        assert all(b - a >= 2 for a, b in zip(gaps[1:-1:2], gaps[2::2], strict=True))
