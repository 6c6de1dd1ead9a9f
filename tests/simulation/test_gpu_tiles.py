"""Sums on a GPU equal those on a CPU bit for bit: interpreted, compiled, and in a whole simulation."""

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

from bothworlds.algorithms.lc_tsallis import certified_exploration, exploration_rate, step_cost
from bothworlds.arrays import Floats
from bothworlds.kernels import exact_ftrl, linalg, tsallis_half
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import compiled
from bothworlds.simulation.gpu import branchless_reciprocal
from bothworlds.simulation.gpu.tuned import small_factors, tiled_cholesky, tiled_sums

SIZES = [(3, 12, 20), (4, 10, 13), (2, 13, 14), (7, 5, 16), (3, 11, 4)]  # tiles that fit, and that do not
REPLACED = [
    (exact_ftrl.add_context, tiled_sums.add_context_later, exact_ftrl.add_arms),
    (exact_ftrl.covariance, tiled_sums.covariance_by_tiles, exact_ftrl.collect_sums),
    (certified_exploration.largest, tiled_sums.largest_by_strips, certified_exploration.largest),
    (exploration_rate.leverages, tiled_sums.leverages_by_strips, exploration_rate.leverages),
    (linalg.lower_bounds, tiled_sums.lower_bounds_by_strips, linalg.lower_bounds),
    (linalg.cholesky, tiled_cholesky.cholesky_by_tiles, linalg.cholesky),
    (linalg.solve, small_factors.solve_in_place, linalg.solve),
    (linalg.invert_lower, tiled_cholesky.invert_by_tiles, linalg.invert_lower),
    (linalg.apply_inverse, small_factors.apply_inverse_rowwise, linalg.apply_inverse),
    (linalg.leverage, small_factors.leverage_rowwise, linalg.leverage),
    (linalg.trace_of_ratio, tiled_cholesky.trace_by_tiles, linalg.trace_of_ratio),
    (exact_ftrl.forget, small_factors.clear_in_registers, exact_ftrl.forget),
    (linalg.reciprocal, branchless_reciprocal.branchless_reciprocal, linalg.reciprocal),
    (linalg.inverse_root, branchless_reciprocal.branchless_inverse_root, linalg.inverse_root),
    (tsallis_half.power_sums, branchless_reciprocal.power_sums_separately, tsallis_half.power_sums),
    (step_cost.in_two_passes, branchless_reciprocal.single_pass, step_cost.in_two_passes),
    (tsallis_half.shifted_sums, branchless_reciprocal.shifted_sums_separately, tsallis_half.shifted_sums),
]


def known_of_sizes(S: int, K: int, d: int) -> tuple[Known, Floats]:
    rng = np.random.default_rng(S + K + d)
    q = rng.dirichlet(np.ones(K), size=S)
    return Known(rng.normal(size=(S, K, d)), rng.dirichlet(np.ones(S)), np.zeros((S, K)), np.zeros((S, K))), q


def sigma_of(add: Callable[..., None], finish: Callable[..., None], known: Known, q: Floats, sigma: Floats) -> Floats:
    """Return the lower triangle that the steps of a plan write; the rest starts as NaN."""
    sums = np.full_like(sigma, np.nan)
    exact_ftrl.clear(sums)
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
    plain = sigma_of(exact_ftrl.add_context, exact_ftrl.covariance, known, q, np.full((d, d), np.nan))
    tiles = make(tiled_sums.covariance_by_tiles)
    ours = sigma_of(tiled_sums.add_context_later, tiles, known, q, np.full((d, d), np.nan))
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.tril(np.einsum("x,xa,xai,xaj->ij", known.g, q, known.z, known.z)), rel=1e-12)


@pytest.mark.parametrize("make", [as_they_are, compiled])
@pytest.mark.parametrize(("S", "K", "d"), SIZES)
def test_strips_give_the_same_leverages(S: int, K: int, d: int, make: Callable[..., Any]) -> None:
    """Entries above the diagonal of G are ignored."""
    known, q = known_of_sizes(S, K, d)
    sigma = np.eye(d) + np.einsum("x,xa,xai,xaj->ij", known.g, q, known.z, known.z)
    inverse = np.full((d, d), np.nan)
    assert linalg.cholesky(sigma, inverse)
    linalg.invert_lower(inverse)
    plain, ours = np.full(K, np.nan), np.full(K, np.nan)
    exploration_rate.leverages(inverse, known.z[0], plain)
    make(tiled_sums.leverages_by_strips)(inverse, known.z[0], ours)
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.einsum("ai,ij,aj->a", known.z[0], np.linalg.inv(sigma), known.z[0]), rel=1e-10)
    trial = certified_exploration.Trial(
        sigma, known.z, q, 0.5, np.zeros((d, d)), inverse, np.zeros(d), np.zeros((S, K))
    )
    unbounded = certified_exploration.bounds_at(certified_exploration.LastTrial(0.0, 0.0, 0.0), 0.1)
    assert make(tiled_sums.largest_by_strips)(trial, unbounded) == certified_exploration.largest(trial, unbounded)
    linalg.lower_bounds(known.z[1, 0], inverse, 0.7, known.z[0], known.blocked[0], plain)
    make(tiled_sums.lower_bounds_by_strips)(known.z[1, 0], inverse, 0.7, known.z[0], known.blocked[0], ours)
    np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize("make", [as_they_are, compiled])
@pytest.mark.parametrize("d", [1, 5, 8, 12, 13, 15, 23])
def test_factors_in_place_are_those_beside_each_other(d: int, make: Callable[..., Any]) -> None:
    rng = np.random.default_rng(d)
    half, b = rng.normal(size=(d, d + 2)), rng.normal(size=d)
    sigma = half @ half.T
    upper, lower = np.full((d, d), np.nan), np.full((d, d), np.nan)
    assert linalg.cholesky(sigma, upper)
    assert make(tiled_cholesky.cholesky_by_tiles)(sigma, lower)
    np.testing.assert_array_equal(np.tril(lower), np.triu(upper).T)
    for factor, left in ((linalg.cholesky, np.triu), (make(tiled_cholesky.cholesky_by_tiles), np.tril)):
        place = np.tril(sigma)  # where the matrix itself is replaced, as `exploration_rate.above_floor` does
        assert factor(place, place)
        np.testing.assert_array_equal(left(place), left(upper if left is np.triu else lower))
        place = np.tril(sigma - 1.01 * np.linalg.eigvalsh(sigma)[0] * np.eye(d))
        assert not factor(place, place)
    plain, ours = np.full(d, np.nan), np.full(d, np.nan)
    linalg.solve(upper, b, plain)
    make(small_factors.solve_in_place)(lower, b, ours)
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.linalg.solve(sigma, b), rel=1e-6)
    linalg.invert_lower(upper)
    make(tiled_cholesky.invert_by_tiles)(lower)
    np.testing.assert_array_equal(np.tril(lower), np.tril(upper))
    for apply, out in ((linalg.apply_inverse, plain), (make(small_factors.apply_inverse_rowwise), ours)):
        apply(upper, b, np.full(d, np.nan), out)
    np.testing.assert_array_equal(ours, plain)
    assert ours == pytest.approx(np.linalg.solve(sigma, b), rel=1e-6)
    assert make(small_factors.leverage_rowwise)(upper, b) == linalg.leverage(upper, b)
    for trace in (make(tiled_cholesky.trace_by_tiles), linalg.trace_of_ratio):
        assert trace(upper, sigma) == pytest.approx(d, rel=1e-9)


def test_a_gpu_forgets_a_matrix_that_fits_its_registers_and_no_other() -> None:
    small, large = (np.ones((d, d)) for d in (small_factors.IN_REGISTERS - 1, small_factors.IN_REGISTERS))
    for matrix_of_ones in (small, large):
        small_factors.clear_in_registers(matrix_of_ones)
    assert not small.any()
    assert large.all()


@pytest.mark.parametrize(("called", "ours", "plain"), REPLACED)
def test_only_a_gpu_takes_the_other_order(
    called: Callable[..., None], ours: Callable[..., None], plain: Callable[..., None]
) -> None:
    """The compiler tries these templates in order: the GPU's first; a CPU does not see it."""
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()
    kind: Any = cpu_target.typing_context.resolve_value_type(called)
    asked = {name: order_by_target_specificity(target_registry[name], kind.templates) for name in ("cuda", "cpu")}
    chosen = {name: [template._overload_func() for template in order] for name, order in asked.items()}
    assert chosen["cuda"][0] is ours
    assert chosen["cpu"] == [plain]


SIMULATED = """
import sys
import numpy as np
import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.jit import compile

replacements = []
on_gpu = compile.on_gpu

def recorded(plain):
    def mark(function):
        replacements.append((plain, function))
        return on_gpu(plain)(function)
    return mark

compile.on_gpu = recorded
from bothworlds.simulation.gpu import launcher
from bothworlds.simulation.gpu.tuned import tiled_sums

launcher.free_memory = lambda: 10_000_000
world = en.stochastic(en.random_instance(contexts=3, arms=10, dimension=13, gap=0.2, seed=1))
algorithms = {name: bw.LCTsallisINF(tuning=name) for name in ("paper", "certified", "matched")} | {"ucb": bw.LinUCB()}
options = dict(horizon=4, replications=2, rng=5)
plain = bw.simulate(world, algorithms, **options)
replacements = [pair for pair in replacements if pair[1].__module__ == tiled_sums.__name__]
assert len(replacements) == 5, replacements
modules = [module for name, module in sys.modules.items() if name.startswith("bothworlds.") and ".gpu" not in name]
for module in modules:
    for name, value in list(vars(module).items()):
        for original, function in replacements:
            if value is original:
                setattr(module, name, function)
tiled = bw.simulate(world, algorithms, **options, device="gpu")
for label in algorithms:
    for name in ("expected", "realised", "policy"):
        np.testing.assert_array_equal(getattr(tiled[label], name), getattr(plain[label], name), err_msg=label)
print("same")
"""


def test_a_simulated_gpu_with_its_order_gives_the_same_numbers() -> None:
    """Numba's simulator interprets the plain functions, so the program replaces them by those of the GPU."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", SIMULATED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "same", done.stderr[-2000:]
