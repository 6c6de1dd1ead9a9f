"""Regressions are moved block by block: with the same result as all at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.policy import transfer
from bothworlds.policy.blocks import blocks_of
from bothworlds.policy.feature_map import CoordinateChange


def change_in_blocks(rng: np.random.Generator, sizes: list[tuple[int, int, int]]) -> tuple[Floats, CoordinateChange]:
    """Return a Gram matrix and a change, in blocks of old, new and unknown directions, with coordinates shuffled."""
    before, after, open_ = (sum(column) for column in zip(*sizes, strict=True))
    gram, matrix, unknown = np.zeros((before, before)), np.zeros((before, after)), np.zeros((after, open_))
    i = j = k = 0
    for old, new, directions in sizes:
        root = rng.normal(size=(old, old + 2))
        gram[i : i + old, i : i + old] = root @ root.T + np.eye(old)
        matrix[i : i + old, j : j + new] = rng.normal(size=(old, new))
        unknown[j : j + new, k : k + directions] = rng.normal(size=(new, directions))
        i, j, k = i + old, j + new, k + directions
    first, second = rng.permutation(before), rng.permutation(after)
    matrix, unknown = matrix[np.ix_(first, second)], unknown[second]
    return gram[np.ix_(first, first)], CoordinateChange(matrix, unknown, unknown, np.zeros((1, 1), dtype=bool))


SIZES = st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 2)).map(lambda s: (s[0], s[1], min(s[1], s[2])))


@given(st.integers(0, 2**32 - 1), st.lists(SIZES, min_size=1, max_size=5))
def test_blocks_give_what_the_whole_gives(seed: int, sizes: list[tuple[int, int, int]]) -> None:
    rng = np.random.default_rng(seed)
    sizes = [(max(old, new), new, directions) for old, new, directions in sizes]  # the covariance has full rank
    gram, change = change_in_blocks(rng, sizes)
    moment = rng.normal(size=len(gram))
    whole = transfer._transform_block(gram, moment, change.matrix, change.unknown)
    parts = transfer.transform_regression(gram, moment, change)
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-6 * max(1.0, float(np.abs(one).max(initial=0.0))))
    blocks = blocks_of(gram, change.matrix, change.unknown)
    found = np.concatenate([np.zeros(0, dtype=int), *(block.new for block in blocks)])
    assert sorted(found.tolist()) == list(range(change.matrix.shape[1]))
    assert len(blocks) >= sum(new > 0 for _, new, _ in sizes)


def test_contexts_without_shared_features_are_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    inner = transfer._transform_block

    def counted(gram: Floats, moment: Floats, matrix: Floats, unknown: Floats) -> tuple[Floats, Floats]:
        seen.append(len(gram))
        return inner(gram, moment, matrix, unknown)

    monkeypatch.setattr(transfer, "_transform_block", counted)
    problem = bw.Problem.from_sample(["a", "b", "c"], arms=[f"{i}" for i in range(5)], reward_range=(0, 1))
    policy = bw.LCTsallisINF().start(problem, rng=1)
    for round_ in range(40):
        policy.update(policy.act(round_ % 3), reward=round_ % 2)
    policy.change(bw.Problem.from_sample(["a", "b", "c"], arms=[f"{i}" for i in range(8)], reward_range=(0, 1)))
    assert seen == [5, 5, 5]


def test_what_is_connected_is_one_block_with_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    gram, change = change_in_blocks(rng, [(6, 5, 2)])
    moment = rng.normal(size=6)
    whole = transfer._transform_block(gram, moment, change.matrix, change.unknown)
    for one, other in zip(whole, transfer.transform_regression(gram, moment, change), strict=True):
        assert np.array_equal(one, other)
