"""The study of a far better arm that comes late."""

import numpy as np
import pytest

import better_arm


@pytest.mark.parametrize(
    ("lengths", "found"),
    [([5, 50, 5, 300], 60), ([0, 101], 0), ([3, 100], 3), ([3, 99], 102), ([400], 400)],
)
def test_an_arm_is_found_where_it_stays(lengths: list[int], found: int) -> None:
    shares = np.repeat(np.resize([0.1, 0.9], len(lengths)), lengths)
    assert better_arm.found_after(shares) == found


def test_beside_the_best_it_is_found_sooner_than_at_the_mean() -> None:
    beside, mean = (better_arm.result_of("certified", fresh, 2000, seed=0) for fresh in (0.0, 1.0))
    assert beside[0] < 400 < mean[0]  # 36 and 693
    assert beside[1] < 0.5 * mean[1]  # 83 of 279
