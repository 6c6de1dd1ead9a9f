"""The order of sums on a GPU: bit for bit those of a processor, interpreted, compiled, and in a whole simulation."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core.registry import cpu_target
from numba.core.target_extension import target_registry
from numba.core.utils import order_by_target_specificity

from bothworlds.algorithms.lc_tsallis import foresight, leaning
from bothworlds.kernels import exploration, inverses, matrix, plan, price, reach, root_point, stability
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import compiled
from bothworlds.simulation.gpu import anew, in_place, in_tiles, straight, tiled_factors

SIZES = [(3, 12, 20), (4, 10, 13), (2, 13, 14), (7, 5, 16), (3, 11, 4)]  # tiles that fit, and that do not
REPLACED = [
    (plan.add_context, in_tiles.add_context_later, plan.add_arms),
    (plan.covariance, in_tiles.covariance_by_tiles, plan.collect_all),
    (exploration.largest, in_tiles.largest_by_strips, exploration.largest),
    (reach.look_at, in_tiles.look_by_strips, reach.look_at),
    (price.squared_lengths, in_tiles.squared_lengths_by_strips, price.squared_lengths),
    (matrix.lower_bounds, in_tiles.lower_bounds_by_strips, matrix.lower_bounds),
    (matrix.cholesky, tiled_factors.cholesky_by_tiles, matrix.cholesky),
    (matrix.solve, in_place.solve_in_place, matrix.solve),
    (matrix.invert_lower, tiled_factors.invert_by_tiles, matrix.invert_lower),
    (matrix.apply_inverse, in_place.apply_in_turn, matrix.apply_inverse),
    (matrix.leverage, in_place.leverage_in_turn, matrix.leverage),
    (matrix.trace_of_ratio, tiled_factors.trace_by_tiles, matrix.trace_of_ratio),
    (plan.forget, in_place.forget_in_registers, plan.forget),
    (inverses.reciprocal, straight.straight_reciprocal, inverses.reciprocal),
    (inverses.inverse_root, straight.straight_inverse_root, inverses.inverse_root),
    (root_point.power_sums, straight.power_sums_in_turn, root_point.power_sums),
    (stability.in_two_passes, straight.in_one_pass, stability.in_two_passes),
    (root_point.moved_sums, straight.moved_sums_in_turn, root_point.moved_sums),
    (leaning.tell_all, anew.tell_later, leaning.tell_all),
    (leaning.told, anew.told_anew, leaning.told),
    (leaning.set_out, anew.set_out_by_vectors, leaning.set_out),
    (leaning.going, anew.going_anew, leaning.going),
    (foresight.foresee_all, anew.foresee_later, foresight.foresee_all),
    (foresight.foreseen_in, anew.foreseen_anew, foresight.foreseen_in),
    (foresight.keep_begun, anew.keep_solution, foresight.keep_begun),
    (foresight.begun_in, anew.kept_solution, foresight.begun_in),
    (root_point.point_at_rate, anew.point_anew, root_point.point_at_rate),
    (reach.find_centres, anew.find_centres_anew, reach.find_centres),
    (foresight.keep_point, anew.keep_point_and_roots, foresight.keep_point),
    (foresight.find_residuals, anew.find_residuals_anew, foresight.find_residuals),
]


def known_of_sizes(S: int, K: int, d: int) -> tuple[Known, Floats]:
    rng = np.random.default_rng(S + K + d)
    q = rng.dirichlet(np.ones(K), size=S)
    return Known(rng.normal(size=(S, K, d)), rng.dirichlet(np.ones(S)), np.zeros((S, K)), np.zeros((S, K))), q


def sigma_of(add: Callable[..., None], finish: Callable[..., None], known: Known, q: Floats, sigma: Floats) -> Floats:
    """Return the lower triangle that the steps of a plan write; what lies above begins as NaN."""
    sums = np.full_like(sigma, np.nan)
    plan.clear(sums)
    for x in range(len(q)):
        add(known, x, q[x], sums)
    finish(known, q, sums, sigma)
    return np.tril(sigma)


def as_they_are(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@pytest.mark.parametrize("make", [as_they_are, compiled])
@pytest.mark.parametrize(("S", "K", "d"), SIZES)
def test_tiles_add_up_in_the_same_order(S: int, K: int, d: int, make: Callable[..., Any]) -> None:
    known, q = known_of_sizes(S, K, d)
    plain = sigma_of(plan.add_context, plan.covariance, known, q, np.full((d, d), np.nan))
    tiles = make(in_tiles.covariance_by_tiles)
    ours = sigma_of(in_tiles.add_context_later, tiles, known, q, np.full((d, d), np.nan))
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.tril(np.einsum("x,xa,xai,xaj->ij", known.g, q, known.z, known.z)), rel=1e-12)


@pytest.mark.parametrize("make", [as_they_are, compiled])
@pytest.mark.parametrize(("S", "K", "d"), SIZES)
def test_strips_give_the_same_leverages(S: int, K: int, d: int, make: Callable[..., Any]) -> None:
    """Whatever lies above the diagonal of G."""
    known, q = known_of_sizes(S, K, d)
    sigma = np.eye(d) + np.einsum("x,xa,xai,xaj->ij", known.g, q, known.z, known.z)
    inverse = np.full((d, d), np.nan)
    assert matrix.cholesky(sigma, inverse)
    matrix.invert_lower(inverse)
    plain, ours = np.array([matrix.leverage(inverse, z) for z in known.z[0]]), np.full(K, np.nan)
    make(in_tiles.leverages_by_strips)(inverse, known.z[0], ours)
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.einsum("ai,ij,aj->a", known.z[0], np.linalg.inv(sigma), known.z[0]), rel=1e-10)
    trial = exploration.Trial(sigma, known.z, q, 0.5, np.zeros((d, d)), inverse, np.zeros(d), np.zeros((S, K)))
    unbounded = exploration.bounds_at(exploration.Seen(0.0, 0.0, 0.0), 0.1)
    assert make(in_tiles.largest_by_strips)(trial, unbounded) == exploration.largest(trial, unbounded)
    matrix.lower_bounds(known.z[1, 0], inverse, 0.7, known.z[0], known.blocked[0], plain)
    make(in_tiles.lower_bounds_by_strips)(known.z[1, 0], inverse, 0.7, known.z[0], known.blocked[0], ours)
    np.testing.assert_array_equal(ours, plain)


def case_of(known: Known, q: Floats, d: int) -> reach.Case:
    """Return a case whose centres are those of its q, with the factor of a rate at hand and nothing written yet."""
    S, K = q.shape
    rng, nothing = np.random.default_rng(d), np.full((S, K), np.nan)
    sigma, square = np.einsum("x,xa,xai,xaj->ij", known.g, q, known.z, known.z), np.full((d, d), np.nan)
    centre, rho = np.full((S, d), np.nan), rng.uniform(1.0, 2.0, size=(S, K))
    case = reach.Case(
        sigma, q, np.sqrt(q), rho, 3.0, 1.0, 0.25, square.copy(), square.copy(), centre, nothing.copy(), nothing.copy(),
        nothing.copy(), nothing.copy(), np.full(d, np.nan), np.full((5, d), np.nan), square.copy(),
    )  # fmt: skip
    reach.find_centres(known, case)
    case.chance[:] = np.nan
    assert matrix.invert_mixture(sigma, 0.1, case.mixed, case.inverse)
    return case


@pytest.mark.parametrize("make", [as_they_are, compiled])
@pytest.mark.parametrize(("S", "K", "d"), SIZES)
def test_strips_look_at_the_same_plays(S: int, K: int, d: int, make: Callable[..., Any]) -> None:
    known, q = known_of_sizes(S, K, d)
    plain, ours = case_of(known, q, d), case_of(known, q, d)
    whole = np.linalg.inv(0.9 * plain.sigma + 0.1 * np.eye(d))
    lev = np.einsum("xai,ij,xaj->xa", known.z, whole, known.z)
    psi = known.z - plain.centre[:, None]
    apart = np.einsum("xai,ij,xaj->xa", psi, whole, psi)
    for x in range(S):
        found = []
        for case, look in ((plain, reach.look_at), (ours, make(in_tiles.look_by_strips))):
            matrix.apply_half(case.inverse, case.centre[x], case.middle)
            found.append(look(known, case, x, matrix.product(case.middle, case.middle)))
        assert tuple(found[0]) == tuple(found[1])
        far, weighted = plain.rho[x] ** 2 * lev[x], q[x] * apart[x]
        right = lev[x].max(), far.max(), weighted.max()
        assert tuple(found[0]) == pytest.approx(right, rel=1e-7)
    np.testing.assert_array_equal(ours.reach, plain.reach)
    np.testing.assert_array_equal(ours.apart, plain.apart)
    assert plain.apart == pytest.approx(apart, rel=1e-7)
    assert plain.reach == pytest.approx(plain.rho**2 * lev, rel=1e-9)


@pytest.mark.parametrize("make", [as_they_are, compiled])
@pytest.mark.parametrize(("S", "K", "d"), SIZES)
def test_strips_give_the_same_lengths(S: int, K: int, d: int, make: Callable[..., Any]) -> None:
    known, q = known_of_sizes(S, K, d)
    case = case_of(known, q, d)
    price.find_lengths(known, case)
    whole = np.linalg.inv(0.9 * case.sigma + 0.1 * np.eye(d))
    assert case.mixed == pytest.approx(whole, rel=1e-7, abs=1e-9)
    assert case.length == pytest.approx(case.rho * np.linalg.norm(known.z @ whole, axis=2), rel=1e-8)
    plain, ours = np.full(K, np.nan), np.full(K, np.nan)
    price.squared_lengths(case.mixed, known.z[0], plain)
    make(in_tiles.squared_lengths_by_strips)(case.mixed, known.z[0], ours)
    np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize("make", [as_they_are, compiled])
@pytest.mark.parametrize("d", [1, 5, 8, 12, 13, 15, 23])
def test_factors_in_place_are_those_beside_each_other(d: int, make: Callable[..., Any]) -> None:
    rng = np.random.default_rng(d)
    half, b = rng.normal(size=(d, d + 2)), rng.normal(size=d)
    sigma = half @ half.T
    upper, lower = np.full((d, d), np.nan), np.full((d, d), np.nan)
    assert matrix.cholesky(sigma, upper)
    assert make(tiled_factors.cholesky_by_tiles)(sigma, lower)
    np.testing.assert_array_equal(np.tril(lower), np.triu(upper).T)
    plain, ours = np.full(d, np.nan), np.full(d, np.nan)
    matrix.solve(upper, b, plain)
    make(in_place.solve_in_place)(lower, b, ours)
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.linalg.solve(sigma, b), rel=1e-6)
    matrix.invert_lower(upper)
    make(tiled_factors.invert_by_tiles)(lower)
    np.testing.assert_array_equal(np.tril(lower), np.tril(upper))
    for apply, out in ((matrix.apply_inverse, plain), (make(in_place.apply_in_turn), ours)):
        apply(upper, b, np.full(d, np.nan), out)
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.linalg.solve(sigma, b), rel=1e-6)
    assert make(in_place.leverage_in_turn)(upper, b) == matrix.leverage(upper, b)
    for trace in (make(tiled_factors.trace_by_tiles), matrix.trace_of_ratio):
        assert trace(upper, sigma) == pytest.approx(d, rel=1e-9)


def test_a_gpu_forgets_a_matrix_that_fits_its_registers_and_no_other() -> None:
    small, large = (np.ones((d, d)) for d in (in_place.IN_REGISTERS - 1, in_place.IN_REGISTERS))
    for matrix_of_ones in (small, large):
        in_place.forget_in_registers(matrix_of_ones)
    assert not small.any()
    assert large.all()


@pytest.mark.parametrize(("called", "ours", "plain"), REPLACED)
def test_only_a_gpu_takes_the_other_order(
    called: Callable[..., None], ours: Callable[..., None], plain: Callable[..., None]
) -> None:
    """The compiler asks these templates in turn: the GPU's own first, and a processor never sees it."""
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()
    kind: Any = cpu_target.typing_context.resolve_value_type(called)
    asked = {name: order_by_target_specificity(target_registry[name], kind.templates) for name in ("cuda", "cpu")}
    chosen = {name: [template._overload_func() for template in order] for name, order in asked.items()}
    assert chosen["cuda"][0] is ours
    assert chosen["cpu"] == [plain]


SIMULATED = """
import numpy as np
import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis import algorithm_1, foresight, leaning, matched_text
from bothworlds.algorithms.regression import ridge
from bothworlds.kernels import exploration, price, reach, worth
from bothworlds.simulation.gpu import anew, in_tiles
from bothworlds.simulation.gpu import replications as gpu

gpu.free_memory = lambda: 10_000_000
world = en.stochastic(en.random_instance(contexts=3, arms=10, dimension=13, gap=0.2, seed=1))
algorithms = {name: bw.LCTsallisINF(tuning=name) for name in ("paper", "certified", "matched")} | {"ucb": bw.LinUCB()}
options = dict(horizon=4, replications=2, rng=5)
plain = bw.simulate(world, algorithms, **options)
for text in (algorithm_1, matched_text):
    text.add_context, text.covariance = in_tiles.add_context_later, in_tiles.covariance_by_tiles
reach.look_at, price.squared_lengths = in_tiles.look_by_strips, in_tiles.squared_lengths_by_strips
exploration.largest, ridge.lower_bounds = in_tiles.largest_by_strips, in_tiles.lower_bounds_by_strips
matched_text.tell_all, leaning.told = anew.tell_later, anew.told_anew
leaning.set_out, leaning.going, foresight.going = anew.set_out_by_vectors, anew.going_anew, anew.going_anew
matched_text.foresee_all, matched_text.foreseen_in = anew.foresee_later, anew.foreseen_anew
matched_text.keep_begun, matched_text.begun_in = anew.keep_solution, anew.kept_solution
matched_text.point_at_rate, worth.find_centres = anew.point_anew, anew.find_centres_anew
matched_text.keep_point, matched_text.find_residuals = anew.keep_point_and_roots, anew.find_residuals_anew
tiled = bw.simulate(world, algorithms, **options, device="gpu")
for label in algorithms:
    for name in ("expected", "realised", "policy"):
        ours, theirs = getattr(tiled[label], name), getattr(plain[label], name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-13 if label == "matched" else 0.0, err_msg=label)
print("same")
"""


def test_a_simulated_gpu_with_its_order_gives_the_same_numbers() -> None:
    """Numba's simulator runs the text as it stands, so the GPU's is put in by hand."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", SIMULATED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "same", done.stderr[-2000:]
