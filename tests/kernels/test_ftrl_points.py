"""The FTRL point against optimality conditions, 50-digit arithmetic, scipy, and its limits."""

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.kernels import ftrl_points, tsallis_half
from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.status import NOT_CONVERGED, OK

ALPHAS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)
point = compiled(ftrl_points.tsallis_point)


def kkt_residual(losses: Floats, eta: float, alpha: float, start: float = 1.0) -> float:
    """Return the largest |log q + p log(s + y)| of arms that did not underflow; check that the others had to."""
    q = np.empty_like(losses)
    status, y = point(losses, eta, alpha, start, np.empty_like(q), q)
    assert status == OK
    assert abs(q.sum() - 1.0) <= 1e-12
    with np.errstate(over="ignore"):
        base = eta * (losses - losses.min()) + y
    p = 1.0 / (1.0 - alpha)
    alive = q > 1e-290
    assert (p * np.log(base[~alive]) > 600.0).all()
    return float(np.abs(np.log(q[alive]) + p * np.log(base[alive])).max())


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("K", [1, 2, 3, 50, 10_000])
def test_optimality_conditions_hold_at_every_scale(K: int, alpha: float) -> None:
    rng = np.random.default_rng(K)
    for scale in (1e-300, 1e-6, 1e-2, 1.0, 1e3, 1e12, 1e300):
        losses = rng.normal(size=K) * scale
        for start in (1.0, 0.0, 1e9):
            assert kkt_residual(losses, 1.0, alpha, start) <= 1e-10


@pytest.mark.parametrize("alpha", ALPHAS)
def test_ties_and_one_dominant_arm(alpha: float) -> None:
    for losses in ([0.0, 0.0, 5.0, 5.0], [0.0] + [1e9] * 7, [1.0] * 6):
        table = np.array(losses)
        assert kkt_residual(table, 1.0, alpha) <= 1e-10
        q = bw.ftrl_point(table, alpha=alpha)
        for value in set(losses):
            assert np.ptp(q[table == value]) == 0.0
    assert bw.ftrl_point([1.0] * 6, alpha=alpha) == pytest.approx(np.full(6, 1 / 6), abs=1e-15)


def fifty_digits(losses: Floats, eta: float, alpha: float) -> list[mp.mpf]:
    """Return the same point by bisection with 50 digits."""
    with mp.workdps(60):
        p = 1 / (1 - mp.mpf(alpha))
        s = [mp.mpf(eta) * (mp.mpf(float(value)) - mp.mpf(float(losses.min()))) for value in losses]
        low, high = mp.mpf(1), mp.mpf(len(losses)) ** (1 / p)
        for _ in range(190):
            y = (low + high) / 2
            if sum((v + y) ** (-p) for v in s) > 1:
                low = y
            else:
                high = y
        return [(v + y) ** (-p) for v in s]


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.5, 0.8, 0.99])
def test_against_fifty_digits(alpha: float) -> None:
    rng = np.random.default_rng(3)
    for scale in (1e-3, 1.0, 30.0):
        losses = rng.normal(size=6) * scale
        exact = np.array([float(v) for v in fifty_digits(losses, 0.7, alpha)])
        q = bw.ftrl_point(losses, learning_rate=0.7, alpha=alpha)
        assert q == pytest.approx(exact, rel=2e-14 / (1.0 - alpha), abs=1e-300)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_against_a_general_convex_solver(alpha: float) -> None:
    losses = np.array([0.3, -1.0, 0.5, 2.0])

    def objective(q: Floats) -> float:
        return float(losses @ q + (1.0 - (q**alpha).sum()) / alpha / 0.8)

    constraint = {"type": "eq", "fun": lambda q: q.sum() - 1.0}
    found = minimize(
        objective,
        np.full(4, 0.25),
        bounds=[(1e-9, 1)] * 4,
        constraints=constraint,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert bw.ftrl_point(losses, learning_rate=0.8, alpha=alpha) == pytest.approx(found.x, abs=2e-6)
    assert objective(bw.ftrl_point(losses, learning_rate=0.8, alpha=alpha)) <= found.fun + 1e-12


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.floats(0.02, 0.98),
    st.floats(1e-3, 1e3),
    st.floats(-1e3, 1e3),
)
def test_permutation_shift_and_kkt(losses: list[float], alpha: float, eta: float, shift: float) -> None:
    table = np.array(losses)
    assert kkt_residual(table, eta, alpha) <= 1e-10
    q = bw.ftrl_point(table, learning_rate=eta, alpha=alpha)
    order = np.random.default_rng(len(losses)).permutation(len(losses))
    assert bw.ftrl_point(table[order], learning_rate=eta, alpha=alpha) == pytest.approx(q[order], rel=1e-9)
    rounding = eta * (np.abs(table).max() + abs(shift)) * 4e-16 / (1.0 - alpha)
    assert bw.ftrl_point(table + shift, learning_rate=eta, alpha=alpha) == pytest.approx(q, rel=1e-9 + 10 * rounding)


@pytest.mark.parametrize(
    ("module", "sums", "alphas", "most"),
    [(ftrl_points, "newton_sums", ALPHAS, 9), (tsallis_half, "step_from", (0.5,), 5)],  # 8 and 5 in 3,000 draws
)
def test_never_many_evaluations(
    module: Any, sums: str, alphas: tuple[float, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluations = 0
    original = getattr(module, sums)

    def counted(*args: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        return original(*args)

    monkeypatch.setattr(module, sums, counted)
    rng = np.random.default_rng(0)
    worst = 0
    for _ in range(500):
        K, alpha = int(rng.integers(2, 100)), float(rng.choice(alphas))
        losses = rng.normal(size=K) * 10.0 ** rng.uniform(-6, 12)
        for start in (1.0, 1e9):
            evaluations = 0
            status, _ = ftrl_points.tsallis_point(losses, 1.0, alpha, start, np.empty(K), np.empty(K))
            assert status == OK
            worst = max(worst, evaluations)
    assert 1 < worst <= most


@given(
    st.lists(st.floats(0.0, 1e3), min_size=1, max_size=30),
    st.floats(-0.02, 0.02),
)
def test_two_evaluations_are_enough_from_nearby(losses: list[float], away: float) -> None:
    """Steps are of fourth order: from 2 % away, one step brings y close enough for the last step."""
    q, scratch = np.empty(len(losses)), np.empty(len(losses))
    _, y = ftrl_points.tsallis_point(np.array(losses), 1.0, 0.5, 1.0, scratch, q)
    s = np.array(losses) - min(losses)
    near = min(max(y * (1.0 + away), 1.0), math.sqrt(len(losses)))
    after = near + tsallis_half.step_from(near, tsallis_half.power_sums(s, 1.0, near, scratch))
    assert abs(after - y) <= tsallis_half.LAST_STEP * y
    last = tsallis_half.step_from(after, tsallis_half.power_sums(s, 1.0, after, scratch))
    assert abs(after + last - y) <= 4e-15 * y


def test_a_short_step_moves_reciprocals_up_to_rounding() -> None:
    rng = np.random.default_rng(5)
    y, s = rng.uniform(1.0, 3.0, size=2000), rng.exponential(size=2000) * 10.0 ** rng.integers(-3, 9, size=2000)
    x = y * tsallis_half.SHORT_STEP * rng.uniform(-1.0, 1.0, size=2000) ** 3
    x[:2] = y[:2] * tsallis_half.SHORT_STEP * np.array([-1.0, 1.0])
    for k in range(2000):
        base = s[k] + y[k]
        moved = tsallis_half.shifted_reciprocal(1.0 / base, x[k])
        exact = 1 / (Fraction(float(base)) + Fraction(float(x[k])))
        assert abs(Fraction(float(moved)) / exact - 1) <= 1.5 * 2.0**-52  # 0.92 measured
    assert tsallis_half.shifted_reciprocal(0.0, 0.01) == 0.0  # an arm not offered


@pytest.mark.parametrize("k", [1.0, 1.0 - 2.0**-20, 0.999, 0.9, 0.3])
def test_a_point_from_another_rate_against_fifty_digits(k: float) -> None:
    """From any start, even one so near that only the last step is done; an arm not offered has probability zero."""
    rng = np.random.default_rng(3)
    for scale in (1e-3, 1.0, 30.0, 1e4):
        losses = rng.normal(size=6) * scale
        before, exact = (np.array([float(v) for v in fifty_digits(losses, eta, 0.5)]) for eta in (0.7, 0.7 * k))
        first = float(before.max()) ** -0.5
        for start in (
            1.0,
            first * (1.0 + 0.9 * tsallis_half.LAST_STEP),
            first * (1.0 - 0.9 * tsallis_half.CLOSE_STEP),
            2.0,
        ):
            raised, q, roots = np.append(losses - losses.min(), np.inf), np.empty(7), np.empty(7)
            near = tsallis_half.near_point(raised, 0.7, start, roots)
            assert near.status == OK
            assert abs(near.y + near.step - first) <= 2e-8 * first
            total = tsallis_half.sum_of_roots(near, roots)
            assert total == pytest.approx(np.sqrt(before).sum(), rel=2e-8, abs=0.0)
            status, y, total = tsallis_half.point_at_rate(raised, 0.7 * k, k, near, q, roots)
            assert status == OK
            assert y == pytest.approx(exact.max() ** -0.5, rel=1e-14, abs=0.0)
            assert roots[:6] == pytest.approx(np.sqrt(exact), rel=1e-14, abs=0.0)
            assert total == pytest.approx(np.sqrt(exact).sum(), rel=1e-14, abs=0.0)
            assert q[:6] == pytest.approx(exact, rel=2e-15, abs=0.0)
            assert q[6] == roots[6] == 0.0


@pytest.mark.parametrize("away", [-0.05, 0.03, 0.014, -0.012, 2.0**-9, -(2.0**-13), 2.0**-15])
def test_starts_nearby_lead_to_the_same_point(away: float) -> None:
    rng = np.random.default_rng(8)
    for scale in (0.1, 3.0, 100.0):
        losses = rng.normal(size=6) * scale
        exact = np.array([float(v) for v in fifty_digits(losses, 0.7, 0.5)])
        y = float(1.0 / np.sqrt(exact.max()))
        q = np.empty(6)
        status, _ = point(losses, 0.7, 0.5, y * (1.0 + away), np.empty(6), q)
        assert status == OK
        assert np.abs(q / exact - 1.0).max() <= 2e-15  # 7e-16 measured


def test_limits_shannon_and_log_barrier() -> None:
    losses = np.array([0.0, 0.4, 1.0, 3.0])
    near_one = bw.ftrl_point(losses, learning_rate=1e-5, alpha=1.0 - 1e-5)
    assert near_one == pytest.approx(bw.ftrl_point(losses, alpha=1.0), abs=1e-4)
    near_zero = bw.ftrl_point(losses, alpha=1e-7)
    multiplier = 1.0 / near_zero - losses  # log barrier: 1/q = loss + multiplier
    assert np.ptp(multiplier) <= 1e-5


def test_shannon_is_the_softmax() -> None:
    losses = np.array([[1.0, 2.0, 4.0], [1e300, 0.0, 1.0]])
    q = bw.ftrl_point(losses, learning_rate=2.0, alpha=1.0)
    weights = np.exp(-2.0 * np.array([0.0, 1.0, 3.0]))
    assert q[0] == pytest.approx(weights / weights.sum(), rel=1e-15)
    assert q[1, 0] == 0.0
    assert q[1].sum() == pytest.approx(1.0, abs=1e-15)


def test_an_arm_not_offered_has_infinite_loss() -> None:
    q = np.empty(4)
    status, _ = point(np.array([0.3, math.inf, 0.0, math.inf]), 1.0, 0.5, 1.0, np.empty(4), q)
    assert status == OK
    assert q[[1, 3]].tolist() == [0.0, 0.0]
    assert q[[0, 2]] == pytest.approx(bw.ftrl_point([0.3, 0.0]), abs=1e-15)


@pytest.mark.parametrize(
    ("losses", "options", "words"),
    [
        ([0.0, math.nan], {}, "finite"),
        ([0.0, math.inf], {}, "finite"),
        ([-1e308, 1e308], {}, "overflow"),
        ([0.0, 1.0], {"alpha": 0.0}, "alpha"),
        ([0.0, 1.0], {"alpha": 1.5}, "alpha"),
        ([0.0, 1.0], {"learning_rate": 0.0}, "learning_rate"),
        ([], {}, "shape"),
    ],
)
def test_bad_input_is_refused(losses: list[float], options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.ftrl_point(losses, **options)


def test_reaching_the_iteration_cap_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ftrl_points, "MAX_NEWTON", 1)
    monkeypatch.setattr(tsallis_half, "MAX_STEPS", 1)
    for alpha in (0.3, 0.5):
        status, _ = ftrl_points.tsallis_point(np.array([0.0, 1.0, 2.0]), 1.0, alpha, 1.0, np.empty(3), np.empty(3))
        assert status == NOT_CONVERGED
    monkeypatch.setattr("bothworlds.ftrl._points", lambda: (ftrl_points.tsallis_point, ftrl_points.shannon_point))
    with pytest.raises(bw.NumericalError, match="iteration cap"):
        bw.ftrl_point([0.0, 1.0, 2.0])


@pytest.mark.parametrize("alpha", [math.nextafter(1.0, 0.0), 1.0 - 1e-12, 1.0 - 5e-9])
def test_an_index_at_which_digits_are_lost_is_refused(alpha: float) -> None:
    """At 1 - 1e-16 a probability was off by 86 %."""
    with pytest.raises(ValueError, match="probabilities lose their precision"):
        bw.ftrl_point([0.0, 1.0], learning_rate=1.0 - alpha, alpha=alpha)
    with pytest.raises(ValueError, match="probabilities lose their precision"):
        bw.LCTsallisINF(alpha=alpha, tuning="certified")


def test_next_to_shannon_entropy_points_keep_eight_digits() -> None:
    losses, alpha = np.array([0.0, 0.5, 1.0]), 1.0 - 1.1e-8
    exact = np.array([float(v) for v in fifty_digits(losses, 1.0 - alpha, alpha)])
    found = bw.ftrl_point(losses, learning_rate=1.0 - alpha, alpha=alpha)
    assert np.abs(found / exact - 1.0).max() < 3e-8  # 7e-9 measured
