"""Integrals over the simplex against 50 digits, closed forms and Monte Carlo; draws against their distribution."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import kstest

from bothworlds.algorithms.mwu_lc.simplex_integrals import (
    FAR,
    LARGEST_SPREAD,
    MOST_ARMS,
    Workspace,
    simplex_moments,
    sort_nodes,
    unit_of,
)
from bothworlds.algorithms.mwu_lc.simplex_sampling import draw_point, share_of_last, share_of_two
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw
from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.random import SIMPLEX, two_uniforms
from support.divided_differences import divided, moments, survival

PRECISION = 1e-12  # the worst of 2,000 random cases of up to 32 arms was 1.6e-14


def parts(K: int) -> tuple[Floats, ...]:
    """The arrays of a Workspace."""
    return *np.zeros((6, K)), *np.zeros((2, K, K))


def computed(c: Sequence[float], eta: float = 1.0) -> tuple[Floats, Floats]:
    """Means and squares by the kernel, interpreted."""
    means, squares = np.empty((2, len(c)))
    assert simplex_moments(np.array(c, dtype=float), eta, Workspace(*parts(len(c))), means, squares)
    return means, squares


def error(found: Floats, exact: list[Any]) -> float:
    """The largest relative error."""
    return max(float(abs(mpmath.mpf(float(a)) / b - 1)) for a, b in zip(found, exact, strict=True))


scales = st.sampled_from([0.0, 1e-9, 1e-3, 1.0, 10.0, FAR, 500.0, 2000.0, 1e6, 1e12])
unit = st.integers(0, 1000).map(lambda i: i / 1000)  # gaps of 1e-300 would need an oracle of thousands of digits
node = st.tuples(scales, st.sampled_from([0.0, 1e-12, 1e-8]), unit)


@given(st.lists(node, min_size=1, max_size=8))
@example([(1.0, 0.0, 1.0), (1.0, 1e-12, 1.0), (FAR, 0.0, 1.0), (1e12, 0.0, 1.0)])
def test_moments_have_twelve_digits_whatever_the_nodes(pieces: list[tuple[float, float, float]]) -> None:
    """Equal, nearly equal and far apart, by 50 digits and more of mpmath."""
    c = [scale * (round(u, 1) + near * u) for scale, near, u in pieces]  # rounding makes equal and nearly equal nodes
    means, squares = computed(c)
    exact_means, exact_squares = moments(c)
    assert error(means, exact_means) < PRECISION
    assert error(squares, exact_squares) < PRECISION
    assert means.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("spread", [1e-6, 3.0, 40.0, 100.0, 5000.0, 1e9])
@pytest.mark.parametrize("K", [12, MOST_ARMS])
def test_many_arms_have_twelve_digits_too(K: int, spread: float) -> None:
    c = spread * np.random.default_rng(K).random(K) ** 2
    c[K // 2 :: 3] = c[0]
    means, squares = computed(c.tolist())
    exact_means, exact_squares = moments(c)
    assert error(means, exact_means) < PRECISION
    assert error(squares, exact_squares) < PRECISION


@pytest.mark.parametrize("K", [1, 2, 5, MOST_ARMS])
def test_equal_losses_are_dirichlet(K: int) -> None:
    means, squares = computed([7.25] * K, eta=0.3)
    assert means == pytest.approx(np.full(K, 1 / K), rel=1e-15)
    assert squares == pytest.approx(np.full(K, 2 / (K * (K + 1))), rel=1e-15)


@pytest.mark.parametrize("c", [1e-12, 1e-4, 0.5, 5.0, 63.9, 64.1, 800.0, 1e9])
def test_two_arms_have_a_closed_form(c: float) -> None:
    """The share of the arm with the larger loss is exponential of rate c on [0, 1]."""
    means, squares = computed([0.0, c])
    with mpmath.workdps(80):
        node = mpmath.mpf(c)
        tail = 1 / mpmath.expm1(node)
        mean = 1 / node - tail
        square = 2 / node**2 - tail * (1 + 2 / node)
        other = 1 - 2 * mean + square
        assert error(means, [1 - mean, mean]) < PRECISION
        assert error(squares, [other, square]) < PRECISION


def test_monte_carlo_agrees() -> None:
    """Uniform points, weighted: within 4 standard errors, by an estimate that knows nothing of divided differences."""
    c = np.array([0.3, 2.0, 2.0, 5.5])
    points = np.random.default_rng(5).dirichlet(np.ones(4), size=400_000)
    weights = np.exp(-points @ c)
    for power, found in zip((1, 2), computed(c.tolist()), strict=True):
        ratio = points**power - found
        mean, spread = (weights[:, None] * ratio).mean(axis=0), (weights[:, None] * ratio).std(axis=0)
        assert np.abs(mean / spread * math.sqrt(len(points))).max() < 4.0  # 1.2 with this seed


def test_arms_of_infinite_loss_are_no_part_of_the_simplex() -> None:
    means, squares = computed([1.0, math.inf, 0.25, math.inf, 3.0], eta=2.0)
    rest = computed([1.0, 0.25, 3.0], eta=2.0)
    assert means[[0, 2, 4]].tolist() == rest[0].tolist()
    assert squares[[0, 2, 4]].tolist() == rest[1].tolist()
    assert not means[[1, 3]].any()


@pytest.mark.parametrize("losses", [[0.0, 2.0 * LARGEST_SPREAD], [math.inf, math.inf], [0.0, math.nan, math.inf]])
def test_what_cannot_be_integrated_is_told(losses: list[float]) -> None:
    out = np.empty(len(losses))
    possible = simplex_moments(np.array(losses), 1.0, Workspace(*parts(len(losses))), out, out.copy())
    assert possible == (losses[-1] == math.inf and losses[0] == 0.0)  # an arm without a loss is left out


def moments_of(c: Floats, eta: float, workspace: tuple[Floats, ...], means: Floats, squares: Floats) -> bool:
    nodes, arms, mass, powers, ones, twos, once, twice = workspace
    return simplex_moments(c, eta, Workspace(nodes, arms, mass, powers, ones, twos, once, twice), means, squares)


def points_of(c: Floats, workspace: tuple[Floats, ...], key: int, points: Floats) -> None:
    nodes, arms, mass, powers, ones, twos, once, twice = workspace
    named = Workspace(nodes, arms, mass, powers, ones, twos, once, twice)
    n = sort_nodes(c, 1.0, named)
    for time in range(points.shape[0]):
        draw_point(named, n, unit_of(nodes, n), Draw((0.0, 0.0), key, time), 0, points[time])


compiled_moments, compiled_points = compiled(moments_of), compiled(points_of)


@pytest.mark.parametrize("c", [[0.0, 0.0, 1.0], [5.0, 70.0, 3.0, 3.0, 2000.0], [0.0, 1e-9, 31.0, 1e8]])
def test_compiled_and_interpreted_agree_bit_for_bit(c: list[float]) -> None:
    K = len(c)
    one, two = np.empty((2, 2, K))
    compiled_moments(np.array(c), 0.7, parts(K), *one)
    moments_of(np.array(c), 0.7, parts(K), *two)
    assert one.tobytes() == two.tobytes()
    first, second = np.empty((2, 20, K))
    compiled_points(np.array(c), parts(K), 3, first)
    points_of(np.array(c), parts(K), 3, second)
    assert first.tobytes() == second.tobytes()


@given(st.floats(0.0, 1e4), st.floats(0.0, 1.0, exclude_max=True))
@example(0.0, 0.0)
@example(1e4, 1.0 - 2.0**-53)
@example(1e-300, 0.5)
def test_two_arms_are_drawn_by_the_inverse_of_their_distribution(c: float, u: float) -> None:
    y = share_of_two(c, u)
    assert 0.0 <= y <= 1.0
    with mpmath.workdps(60):
        exact = -mpmath.log1p(u * mpmath.expm1(-mpmath.mpf(c))) / c if c else mpmath.mpf(u)
    assert y == pytest.approx(float(exact), rel=1e-12, abs=1e-16)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 20.0, 300.0]), unit), min_size=3, max_size=6),
    st.floats(0.0, 1.0, exclude_max=True),
    st.floats(0.01, 1.0),
)
@example([(0.0, 0.0)] * 3, 0.0, 1.0)
@example([(0.0, 0.0), (300.0, 1.0), (300.0, 1.0)], 1.0 - 2.0**-53, 0.01)
def test_the_arm_of_largest_loss_takes_more_with_the_right_probability(
    pieces: list[tuple[float, float]], u: float, width: float
) -> None:
    """log P(r > y) = log(1 - u) at the y that was drawn: to 1e-11, or as far as the rounding of y allows."""
    c = [scale * part for scale, part in pieces]
    workspace = Workspace(*parts(len(c)))
    n = sort_nodes(np.array(c), 1.0, workspace)
    y = share_of_last(workspace, n, width, unit_of(workspace.nodes, n), u)
    assert 0.0 <= y <= width
    with mpmath.workdps(60):
        least = min(c)
        nodes = [x - least for x in c]
        drawn, rounding = mpmath.mpf(y), 2e-16 * max(y, width - y, 1e-300)
        levels = [survival(nodes, max(c) - least, shifted, width) for shifted in (drawn - rounding, drawn + rounding)]
    assert math.log(1.0 - u) <= float(mpmath.log(levels[0])) + 1e-11
    assert math.log(1.0 - u) >= (float(mpmath.log(levels[1])) if levels[1] > 0 else -math.inf) - 1e-11


@pytest.mark.parametrize("c", [[0.0, 1.0, 4.0], [0.0, 0.0, 80.0, 81.0, 3000.0]])
def test_points_have_the_density(c: list[float]) -> None:
    """Each share by Kolmogorov and Smirnov; pairs by E[r_a r_b] = |f[c, c_a, c_b]|/|f[c]|; all add up to one."""
    points = np.empty((4000, len(c)))
    compiled_points(np.array(c), parts(len(c)), 11, points)
    assert points.sum(axis=1) == pytest.approx(np.ones(4000), abs=1e-14)
    assert (points >= 0.0).all()
    with mpmath.workdps(40):
        for a, node in enumerate(c):
            distribution = np.vectorize(partial(lambda node, y: float(1 - survival(c, node, y, 1.0)), node))
            assert kstest(points[::8, a], distribution).pvalue > 0.01  # 0.41 the smallest with this seed
        for a in range(len(c)):
            for b in range(a):
                exact = float(divided([*c, c[a], c[b]]) / divided(c))
                products = points[:, a] * points[:, b]
                assert abs(products.mean() - exact) < 4 * products.std() / math.sqrt(4000)  # 1.5 at most


def test_attempts_and_arms_have_numbers_of_their_own() -> None:
    workspace = Workspace(*parts(3))
    n = sort_nodes(np.zeros(3), 1.0, workspace)
    point = np.empty(3)
    seen = set()
    for attempt in range(3):
        draw_point(workspace, n, 1.0, Draw((0.0, 0.0), 5, 9), attempt, point)
        assert point[2] == pytest.approx(1.0 - math.sqrt(1.0 - two_uniforms(5, 9, SIMPLEX, 3 * attempt + 2)[0]))
        seen |= set(point.tolist())
    assert len(seen) == 9
