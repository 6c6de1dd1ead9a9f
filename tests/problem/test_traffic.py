"""The traffic mix: updates do not depend on the order of observations, and bad values are refused."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw

PRIOR = [0.2, 0.3, 0.5]
SAVED = bw.TrafficMix.drifting(PRIOR, window=50).to_dict()
VALUE: Any = "10"
COUNTS = st.lists(st.integers(0, 40), min_size=3, max_size=3)


def test_known_stays() -> None:
    mix = bw.TrafficMix.known(PRIOR).observe([100, 0, 0])
    assert mix.probabilities.tolist() == PRIOR
    assert repr(mix) == "TrafficMix(known, 3 contexts, 100 observed)"


@given(COUNTS, COUNTS, st.floats(0.1, 100.0))
def test_estimated_is_the_posterior_mean_however_split(one: list[int], two: list[int], strength: float) -> None:
    mix = bw.TrafficMix.estimated(PRIOR, strength=strength)
    together = mix.observe(np.add(one, two))
    expected = (strength * np.array(PRIOR) + one + two) / (strength + sum(one) + sum(two))
    assert together.probabilities == pytest.approx(expected)
    assert mix.observe(one).observe(two).probabilities == pytest.approx(expected)
    assert mix.probabilities == pytest.approx(PRIOR)
    assert mix.observed == 0


def test_drifting_counts_a_batch_as_the_mean_over_its_orders() -> None:
    mix = bw.TrafficMix.drifting(PRIOR, window=5.0).observe([3, 1, 0])
    batch = [0, 0, 1, 2]
    counts = []
    for order in itertools.permutations(batch):
        updated = mix
        for x in order:
            updated = updated.observe(np.eye(3)[x])
        counts.append(updated.counts)
    assert mix.observe([2, 1, 1]).counts == pytest.approx(np.mean(counts, axis=0))


@given(st.lists(COUNTS, min_size=1, max_size=6), st.floats(1.5, 1e4))
def test_drifting_remembers_about_a_window_and_stays_positive(batches: list[list[int]], window: float) -> None:
    mix = bw.TrafficMix.drifting(PRIOR, window=window, strength=2.0)
    for batch in batches:
        mix = mix.observe(batch)
    g = mix.probabilities
    total = sum(map(sum, batches))
    assert mix.counts.sum() == pytest.approx(window * -math.expm1(total * math.log1p(-1.0 / window)))
    assert g.sum() == pytest.approx(1.0)
    assert (g >= 2.0 * np.array(PRIOR) / (2.0 + window) * (1.0 - 1e-9)).all()
    assert mix.observed == total
    bw.Problem(features=np.eye(2)[None].repeat(3, 0), probabilities=g)  # valid for a problem


@given(st.floats(0.5, 16), st.lists(st.integers(0, 30), min_size=3, max_size=3).filter(any))
def test_a_batch_fades_as_its_observations_do_one_by_one_whatever_the_window(digits: float, counts: list[int]) -> None:
    window, total = 1.0 + 10.0**digits, sum(counts)
    mix = bw.TrafficMix.drifting(PRIOR, window=window).observe([5, 0, 2]).observe(counts)
    decay = 1 - 1 / Fraction(window)
    previous = sum(decay**n for n in range(7)) / 7 * decay**total
    weight = sum(decay**n for n in range(total)) / total
    expected = [float(previous * old + weight * new) for old, new in zip((5, 0, 2), counts, strict=True)]
    assert mix.counts.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_a_drifting_mix_tracks_a_change() -> None:
    rng = np.random.default_rng(0)
    old, new = np.array(PRIOR), np.array([0.6, 0.3, 0.1])
    mixes = [bw.TrafficMix.estimated(PRIOR), bw.TrafficMix.drifting(PRIOR, window=500)]
    for g, batches in ((old, 50), (new, 30)):
        for _ in range(batches):
            counts = rng.multinomial(100, g)
            mixes = [mix.observe(counts) for mix in mixes]
    slow, fast = (np.abs(mix.probabilities - new).max() for mix in mixes)
    assert fast < 0.05 < 0.2 < slow


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bw.TrafficMix.known([0.5, 0.6]), "sum to"),
        (lambda: bw.TrafficMix.estimated([1.0, 0.0]), "positive probability"),
        (lambda: bw.TrafficMix.estimated(PRIOR, strength=0), "strength must be a positive number"),
        (lambda: bw.TrafficMix.drifting(PRIOR, window=1), "window must be a number above 1"),
        (lambda: bw.TrafficMix.estimated(PRIOR, strength=VALUE), "strength must be a positive number"),
        (lambda: bw.TrafficMix.drifting(PRIOR, window=VALUE), "window must be a number above 1"),
        (lambda: bw.TrafficMix.from_dict({**SAVED, "kind": "seasonal"}), "one of known, estimated, drifting"),
        (lambda: bw.TrafficMix.from_dict({**SAVED, "window": None}), "window must be a number above 1"),
        (lambda: bw.TrafficMix.from_dict({**SAVED, "counts": [1, 2]}), "3 numbers"),
        (lambda: bw.TrafficMix.from_dict({**SAVED, "counts": [-1, 2, 3]}), "none negative"),
        (lambda: bw.TrafficMix.from_dict({**SAVED, "observed": -5}), "observed must be a whole number"),
        (lambda: bw.TrafficMix.known(PRIOR).observe([1, 2]), "3 numbers"),
        (lambda: bw.TrafficMix.known(PRIOR).observe([1, 2, -1]), "none negative"),
    ],
)
def test_mistakes_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "mix",
    [
        bw.TrafficMix.known(PRIOR),
        bw.TrafficMix.estimated(PRIOR, strength=7.5).observe([1, 2, 3]),
        bw.TrafficMix.drifting(PRIOR, window=50).observe([30, 2, 3]),
    ],
)
def test_files_bring_back_the_same_mix(mix: bw.TrafficMix) -> None:
    again = bw.TrafficMix.from_dict(json.loads(json.dumps(mix.to_dict())))
    assert again.to_dict() == mix.to_dict()
    assert again.observe([5, 5, 0]).probabilities.tolist() == mix.observe([5, 5, 0]).probabilities.tolist()
    with pytest.raises(ValueError, match="not a complete traffic mix"):
        bw.TrafficMix.from_dict({"kind": "known"})


def test_a_mix_cannot_be_changed() -> None:
    mix = bw.TrafficMix.estimated(PRIOR).observe([1, 2, 3])
    for array in (mix.prior, mix.counts, mix.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
