"""Seeds of replay and of algorithms that learn along a log."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.evaluation import learning, replay
from bothworlds.kernels.random import Seed, key_from
from support.evaluation_by_row import small_log, some_table


@pytest.mark.parametrize("seeded", [np.random.default_rng, np.random.SeedSequence], ids=["generator", "sequence"])
def test_replay_and_learning_take_seeds_of_every_kind(seeded: Callable[[int], Seed]) -> None:
    """Other seeds are equivalent to the integer of their key; the same seed gives the same bits."""
    log = small_log(2, 300)
    table, algorithm = some_table(log), bw.LCTsallisINF()
    assert replay(log, table, rng=seeded(7)) == replay(log, table, rng=key_from(seeded(7)))
    one, two, other = (learning(algorithm, log, rng=rng) for rng in (seeded(7), key_from(seeded(7)), seeded(8)))
    assert one.by_row is not None
    assert two.by_row is not None
    assert other.by_row is not None
    assert one.about == two.about
    assert np.array_equal(one.by_row, two.by_row)
    assert not np.array_equal(one.by_row, other.by_row)


def test_replay_and_learning_draw_a_seed_by_themselves_and_refuse_invalid_ones() -> None:
    log = small_log(2, 300)
    assert len({replay(log, "uniform", rng=None).value for _ in range(5)}) > 1
    calls: list[Callable[[Any], object]] = [
        lambda rng: replay(log, "uniform", rng=rng),
        lambda rng: learning(bw.LCTsallisINF(), log, rng=rng),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="rng must be an integer in"):
            call(-1)
        with pytest.raises(ValueError, match="rng must be an integer in"):
            call("7")
