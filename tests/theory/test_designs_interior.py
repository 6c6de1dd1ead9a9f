"""Interior point methods for the joint G-optimal design, and the fallback where they are too expensive."""

from itertools import islice

import numpy as np
import pytest

from bothworlds.theory.designs import interior_point_pairs, joint_g, joint_g_optimal
from bothworlds.theory.designs.pairs import flatten
from support.design_problems import KINDS, instance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("S", "K", "d"), [(3, 3, 4), (5, 4, 6), (6, 6, 8), (8, 3, 12)])
def test_both_interior_point_methods_find_the_same_coverage(S: int, K: int, d: int, kind: str) -> None:
    z, g, offered = instance(S, K, d, 5, kind)
    pairs = flatten(z, g, offered)
    designs = []
    for method in (joint_g._by_pairs, joint_g._by_matrices):
        start = joint_g.JointGOptimal(pairs.uniform(), np.inf, float(z.shape[2]), 0)
        steps = islice(method(pairs, pairs.uniform(), np.full(len(pairs.mass), 1.0 / len(pairs.mass))), 60)
        designs.append(joint_g._best_of_steps(steps, start, 1e-5))
    assert max(best.gap for best in designs) <= 1e-5
    assert designs[0].value == pytest.approx(designs[1].value, rel=1e-5)


def test_complementary_slacks_of_the_method_on_pairs_vanish() -> None:
    z, g, offered = instance(8, 5, 12, 3, "heavy")
    pairs = flatten(z, g, offered)
    point = interior_point_pairs.first_point(pairs, pairs.uniform(), np.full(40, 1.0 / 40.0))
    for _ in range(14):
        point, _ = interior_point_pairs.advance(point)
    assert min(point.p.min(), point.w.min(), point.s.min(), point.r.min()) > 0.0
    assert point.p @ point.s + point.w @ point.r <= 1e-9 * point.tau
    np.testing.assert_allclose(pairs.sums(point.p), g, rtol=1e-9)
    # Scores by finite differences of tr Σ(p)⁻¹ M(w).
    moment, weighted = pairs.moment(point.p), pairs.moment(point.w)
    for i in (0, 7, 23):
        more = moment + 1e-6 * np.outer(pairs.z[i], pairs.z[i]) / point.lev[i]
        saved = np.trace(np.linalg.solve(moment, weighted)) - np.trace(np.linalg.solve(more, weighted))
        assert saved == pytest.approx(1e-6 * point.score[i] / point.lev[i], rel=1e-3, abs=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="slacks are down to rounding"):
        interior_point_pairs.advance(point._replace(tau=float(point.lev.max())))


@pytest.mark.parametrize(("S", "K", "d"), [(30, 6, 48), (50, 10, 50)])
def test_many_dimensions_take_a_few_steps(S: int, K: int, d: int) -> None:
    z, g, offered = instance(S, K, d, 1)
    best = joint_g_optimal(z, g, offered, tolerance=0.001)
    assert best.gap <= 0.001
    assert best.iterations <= len(joint_g.WARM_UP) + 10


def test_problems_too_large_for_newton_take_multiplicative_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_g, "MOST_PAIRS", 0)
    z, g, offered = instance(30, 4, 70, 4, "heavy")
    best = joint_g_optimal(z, g, offered, max_iterations=10)
    assert z.shape[2] <= best.lower_bound <= best.value
    assert best.gap <= 0.1
