"""Random numbers, small matrices and resampling: known answers, NumPy, and interpreted against compiled."""

import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import bothworlds
from bothworlds.arrays import Floats, aligned
from bothworlds.kernels import arithmetic, exact_ftrl, geometric_resampling, linalg, random
from bothworlds.kernels.arithmetic import WIDTH, contexts
from bothworlds.kernels.contract import Draw, Known, flat_known, in_blocks
from bothworlds.kernels.jit.compile import (
    CACHE_NAME,
    KERNEL_FOLDERS,
    _drop_old_caches,
    _folder_for,
    compiled,
    kernel,
    source_hash,
)
from bothworlds.kernels.layout import Layout
from bothworlds.kernels.random import MASK

KNOWN_ANSWERS = [
    ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("words", "expected"), KNOWN_ANSWERS)
def test_philox_known_answers(words: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert random.philox(*words) == expected
    assert tuple(compiled(random.philox)(*words)) == expected


@pytest.mark.parametrize(("words", "expected"), KNOWN_ANSWERS)
def test_uniforms_are_the_53_highest_bits_of_two_words(words: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """27 bits of one word and 26 of the next: 2^53 equally likely numbers on [0, 1)."""
    c0, c1, index, purpose, k0, k1 = words
    w0, w1, w2, w3 = expected
    u, v = random.two_uniforms(k0 + (k1 << 32), c0 + (c1 << 32), purpose, index)
    assert Fraction(u) == Fraction((w0 >> 5 << 26) + (w1 >> 6), 2**53)
    assert Fraction(v) == Fraction((w2 >> 5 << 26) + (w3 >> 6), 2**53)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**62), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_uniforms_are_the_same_interpreted_and_compiled(key: int, time: int, purpose: int, index: int) -> None:
    pair = random.two_uniforms(key, time, purpose, index)
    assert tuple(compiled_uniforms(key, time, purpose, index)) == pair
    assert all(0.0 <= u < 1.0 for u in pair)


compiled_uniforms = compiled(random.two_uniforms)


def test_draws_follow_their_probabilities() -> None:
    p = np.array([0.1, 0.0, 0.4, 0.3, 0.2])
    counts = np.zeros(5)
    for time in range(20_000):
        counts[random.draw(p, compiled_uniforms(11, time, 0, 0)[0])] += 1
    assert counts[1] == 0
    keep = p > 0
    assert chisquare(counts[keep], 20_000 * p[keep]).pvalue > 0.01  # 0.56 with this seed


def test_a_draw_never_lands_on_probability_zero() -> None:
    assert random.draw(np.array([0.5, 0.5 - 1e-12, 0.0]), 1.0 - 1e-16) == 1


def test_rng_accepts_the_three_kinds_of_seed() -> None:
    assert random.key_from(5) == 5
    assert random.key_from(np.random.SeedSequence(5)) == random.key_from(np.random.SeedSequence(5))
    assert 0 <= random.key_from(np.random.default_rng(1)) < 2**63
    assert random.key_from(None) != random.key_from(None)
    for bad in (-1, 2**63, 1.5, True, "x"):
        with pytest.raises(ValueError, match="rng must be"):
            random.key_from(bad)  # type: ignore[arg-type]


def positive_matrix(seed: int, d: int) -> Floats:
    a = np.random.default_rng(seed).normal(size=(d, 2 * d))
    return a @ a.T / d


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_cholesky_solves_trace_and_leverages_against_numpy(d: int) -> None:
    sigma = positive_matrix(d, d)
    factor, out, work = np.zeros((d, d)), np.empty(d), np.empty(d)
    assert linalg.cholesky(sigma, factor)
    lower = np.linalg.cholesky(sigma)
    assert factor == pytest.approx(np.triu(lower.T, 1) + np.diag(1.0 / np.diag(lower)), abs=1e-12)
    b = np.arange(1.0, d + 1.0)
    linalg.solve(factor, b, out)
    assert out == pytest.approx(np.linalg.solve(sigma, b), rel=1e-9)
    linalg.invert_lower(factor)
    assert np.tril(factor) == pytest.approx(np.linalg.inv(np.linalg.cholesky(sigma)), rel=1e-9, abs=1e-12)
    linalg.apply_inverse(factor, b, work, out)
    assert out == pytest.approx(np.linalg.solve(sigma, b), rel=1e-9)
    assert work == pytest.approx(np.linalg.solve(np.linalg.cholesky(sigma), b), rel=1e-9)
    assert linalg.trace_of_ratio(factor, sigma) == pytest.approx(d, rel=1e-10)
    other = positive_matrix(d + 50, d)  # so that off-diagonal entries count
    assert linalg.trace_of_ratio(factor, other) == pytest.approx(np.trace(np.linalg.solve(sigma, other)), rel=1e-9)
    assert linalg.leverage(factor, b) == pytest.approx(b @ np.linalg.solve(sigma, b), rel=1e-9)
    assert linalg.product(b, out) == pytest.approx(b @ out)


def test_cholesky_refuses_what_is_not_positive_definite() -> None:
    for sigma in (
        np.diag([1.0, 0.0]),
        np.diag([1.0, -1.0]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.full((2, 2), np.nan),
    ):
        assert not linalg.cholesky(sigma, np.zeros((2, 2)))


READ = Layout(Known).reader(Known, "known")


@kernel
def whole_covariance(known: Known, q: Floats, sums: Floats, sigma: Floats) -> None:
    """Compute a covariance by its three steps."""
    exact_ftrl.begin_covariance(sums)
    for x in range(q.shape[0]):
        exact_ftrl.add_context(known, x, q[x], sums)
    exact_ftrl.covariance(known, q, sums, sigma)


def blocks_of_contexts(known: Floats, q: Floats, sums: Floats, sigma: Floats, sizes: tuple[int, ...]) -> None:
    whole_covariance(READ(contexts(known), sizes), contexts(q), contexts(sums), sigma)


compiled_blocks = compiled(blocks_of_contexts)


@pytest.mark.parametrize(
    ("S", "K", "d"), [(1, 2, 1), (11, 3, 5), (24, 4, 9), (10, 7, 6), (9, 5, 29), (17, 3, 33), (8, 9, 40)]
)
def test_covariance_of_one_and_of_eight_contexts_at_a_time(S: int, K: int, d: int) -> None:
    """With few coordinates, and with many by tiles of columns; interpreted and compiled are the same bit for bit."""
    rng = np.random.default_rng(5)
    z, g, q = rng.normal(size=(S, K, d)), rng.random(S), rng.random((S, K))
    known = Known(z, g, np.zeros((S, K)), np.zeros((S, K)))
    expected = np.tril(np.einsum("x,xa,xai,xaj->ij", g, q, z, z))
    alone, block, machine = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    whole_covariance(READ(flat_known(known), (S, K, d, 0)), q, np.full((d, d), np.nan), alone)
    assert alone == pytest.approx(expected, rel=1e-12, abs=1e-12)
    sizes, packs = (-(-S // WIDTH), K, d, 0), flat_known(known, wide=True)
    table, sums = aligned(sizes[0], K, WIDTH), aligned(d, d, WIDTH)
    table[...], sums[...] = in_blocks(q), np.nan
    blocks_of_contexts(packs, table, sums, block, sizes)
    assert block == pytest.approx(expected, rel=1e-12, abs=1e-12)
    sums[...] = np.nan
    compiled_blocks(packs, table, sums, machine, sizes)
    np.testing.assert_array_equal(machine, block)


def exactly(left: float, right: float, addend: float) -> float:
    """left * right + addend as rational numbers, rounded once."""
    return float(Fraction(left) * Fraction(right) + Fraction(addend))


def fused_packs(left: Floats, right: Floats, addend: Floats, out: Floats) -> None:
    left_packs, right_packs, addend_packs, result = contexts(left), contexts(right), contexts(addend), contexts(out)
    for k in range(result.shape[0]):
        result[k] = arithmetic.fused(left_packs[k], right_packs[k], addend_packs[k])


def fused_numbers(left: Floats, right: Floats, addend: Floats, out: Floats) -> None:
    for k in range(out.shape[0]):
        out[k] = arithmetic.fused(left[k], right[k], addend[k])


def test_fused_products_are_rounded_once_however_they_are_computed() -> None:
    rng = np.random.default_rng(3)
    left, right, addend = aligned(50, WIDTH), aligned(50, WIDTH), aligned(50, WIDTH)
    left[...], right[...] = rng.normal(size=(2, 50, WIDTH))
    addend[...] = -left * right * (1.0 + rng.integers(-3, 4, size=left.shape) * 2.0**-52)  # so that rounding shows
    exact = np.array([exactly(*numbers) for numbers in zip(left.flat, right.flat, addend.flat, strict=True)])
    assert (exact != (left * right + addend).ravel()).mean() > 0.5
    for function, shape in ((fused_packs, (50, WIDTH)), (fused_numbers, (50 * WIDTH,))):
        for make in (function, compiled(function)):
            out = aligned(*shape)
            make(left.reshape(shape), right.reshape(shape), addend.reshape(shape), out)
            np.testing.assert_array_equal(out.ravel(), exact)


def test_resampling_averages_to_the_geometric_series_by_enumeration() -> None:
    """All sequences of 0 to 3 draws over 4 cells, each with its probability: equals the closed form exactly."""
    rng = np.random.default_rng(6)
    z, weights, beta = rng.normal(size=(2, 4)), rng.dirichlet(np.ones(4)), 0.05
    sigma = (z * weights) @ z.T
    for draws in range(4):
        mean = np.zeros(2)
        for cells in itertools.product(range(4), repeat=draws):
            y, out = z[:, 1].copy(), beta * z[:, 1]
            for cell in cells:
                geometric_resampling.contract(z.T[None], 0, cell, beta, y, out)
            mean += np.prod(weights[list(cells)]) * out
        power = np.linalg.matrix_power(np.eye(2) - beta * sigma, draws + 1)
        assert mean == pytest.approx(np.linalg.solve(sigma, (np.eye(2) - power) @ z[:, 1]), rel=1e-12)


def test_resampling_draws_from_the_policy() -> None:
    rng = np.random.default_rng(8)
    z, g, pi = rng.normal(size=(2, 6)), np.array([0.3, 0.7]), rng.dirichlet(np.ones(3), 2)
    beta = 0.5 / float((z**2).sum(axis=0).max())
    sigma = (z * (g[:, None] * pi).reshape(-1)) @ z.T
    known = Known(z.T.reshape(2, 3, 2).copy(), g, np.zeros((2, 3)), np.zeros((2, 3)))
    run = compiled(geometric_resampling.resample)
    outs = np.empty((20_000, 2))
    for time, out in enumerate(outs):
        run(known, pi, (0, 2), (beta, 40), Draw((0.0, 0.0), 3, time), np.empty(2), out)
    power = np.linalg.matrix_power(np.eye(2) - beta * sigma, 41)
    expected = np.linalg.solve(sigma, (np.eye(2) - power) @ z[:, 2])
    errors = (outs.mean(axis=0) - expected) / (outs.std(axis=0) / np.sqrt(len(outs)))
    assert np.abs(errors).max() < 4.0  # standard errors; 1.3 with this seed


def test_source_hash_sees_every_file_that_machine_code_can_depend_on(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.py").write_text("x = 1\n")
    first = source_hash(tmp_path)
    (tmp_path / "kernels" / "b.py").write_text("")
    second = source_hash(tmp_path)
    (tmp_path / "kernels" / "a.py").write_text("x = 2\n")
    third = source_hash(tmp_path)
    assert len({first, second, third}) == 3
    (tmp_path / "report.py").write_text("")
    assert source_hash(tmp_path) == third
    assert source_hash() == source_hash(Path(bothworlds.__file__).parent)  # algorithms and worlds included


def test_all_kernel_code_lies_in_folders_that_are_hashed() -> None:
    root = Path(bothworlds.__file__).parent
    marked = re.compile(r"@(kernel|compiled|on_gpu|numba|register_jitable|njit)")
    folders = {path.relative_to(root).parts[0] for path in root.rglob("*.py") if marked.search(path.read_text())}
    assert folders <= {*KERNEL_FOLDERS}
    assert "kernels" in folders


def test_only_our_own_old_caches_are_dropped(tmp_path: Path) -> None:
    keep = tmp_path / f"{CACHE_NAME}{'0' * 20}"
    ours = [tmp_path / f"{CACHE_NAME}{i:020x}" for i in range(1, 8)]
    foreign = [tmp_path / "my-important-project", tmp_path / f"{CACHE_NAME}notes-of-20-letters", tmp_path / ("a" * 20)]
    for folder in (keep, *ours, *foreign):
        folder.mkdir()
    _drop_old_caches(tmp_path, keep=keep)
    left = {path.name for path in tmp_path.iterdir()}
    assert {path.name for path in (keep, *foreign)} <= left
    assert len(left) == 4 + len(foreign)


PROBE = """
import numpy as np
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.probe import caller
f = compiled(caller)
print(f(np.eye(3)), sum(f.stats.cache_hits.values()))
"""

CALLER = """
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import trace_of_ratio

@kernel
def caller(u):
    return trace_of_ratio(u, u)
"""


def test_an_edited_kernel_is_seen_by_compiled_callers(tmp_path: Path) -> None:
    """Copy the package, run, edit a callee in another file, run again: the new result, not the cached one."""
    package = tmp_path / "bothworlds"
    source = Path(bothworlds.__file__).parent
    needed = [source / "arrays.py", source / "kernels" / "arithmetic.py", source / "kernels" / "linalg.py"]
    for path in [*needed, *(source / "kernels" / "jit").glob("*.py")]:
        target = package / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text())
    for name in ("__init__.py", "kernels/__init__.py"):
        (package / name).write_text("")
    (package / "probe.py").write_text(CALLER)

    def run() -> list[str]:
        environment = {"PYTHONPATH": str(tmp_path), "BOTHWORLDS_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run() == ["3.0", "0"]
    assert run() == ["3.0", "1"]
    edited = package / "kernels" / "linalg.py"
    edited.write_text(edited.read_text().replace("total = fused(row[j],", "total = fused(2.0 * row[j],"))
    assert run() == ["6.0", "0"]


def test_functions_of_one_name_with_other_closures_never_share_an_index() -> None:
    """Two processes that write to one index at the same time could store the code of one under the key of the other."""

    def make(step: float) -> Callable[[float], float]:
        def moved(x: float) -> float:
            return x + step

        return moved

    folders = {_folder_for(make(step)) for step in (1.0, 2.0)}
    assert len(folders) == 2
    assert _folder_for(make(1.0)) in folders
