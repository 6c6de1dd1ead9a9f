"""The joint G-optimal design: the best coverage λ over all contexts together, with a certificate."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.theory.designs import interior_point_matrix, interior_point_pairs
from bothworlds.theory.designs.leverage import SHARPNESS, whitener
from bothworlds.theory.designs.pairs import Pairs, flatten, unflatten
from bothworlds.theory.designs.symmetric_basis import basis

WARM_UP = (2, 2, 4, 4, 4, 8, 8, 8, 8)
MIXING = 0.1
SHORTEST_STEP = 1e-6
# Beyond these sizes a Newton step costs too much, and only multiplicative steps are used.
MOST_PAIRS = 2000
NEWTON_DIMENSION = 60
NEWTON_WORK = 1e11
ROUNDS_PER_POWER = 40
ROUNDS_PER_NEWTON = 10
LARGEST_POWER = 4096


@dataclass(frozen=True, slots=True)
class JointGOptimal:
    """A design e, its largest leverage `value` = 1/λ(e), a lower bound on 1/λ of every design, and iterations."""

    e: Floats
    value: float
    lower_bound: float
    iterations: int

    @property
    def gap(self) -> float:
        """The certified largest fraction by which `value` exceeds the optimum."""
        return self.value / self.lower_bound - 1.0


def joint_g_optimal(
    z: Floats, g: Floats, offered: Bools, *, tolerance: float = 0.01, max_iterations: int = 60
) -> JointGOptimal:
    """Maximise the coverage: minimise the largest leverage over all pairs.

    1/λ* = min_e max_{a,x} z(a,x)ᵀ Σ(e)⁻¹ z(a,x)   (the best e* for the paper's Assumption 2.4)
    Takes a few multiplicative steps on p-norms of the leverages, then uses an interior point method.  Stops when
    value ≤ (1 + tolerance) lower_bound, or after max_iterations Newton steps; `gap` bounds the remaining error.

    >>> design = joint_g_optimal(np.eye(2)[None], np.ones(1), np.ones((1, 2), dtype=bool))
    >>> design.e, round(design.value, 12), round(design.lower_bound, 12)
    (array([[0.5, 0.5]]), 2.0, 2.0)
    """
    pairs = flatten(z, g, offered)
    best, e, w = _warm_up(pairs, tolerance)
    if best.gap > tolerance:
        steps = _newton(pairs, (1.0 - MIXING) * best.e + MIXING * pairs.uniform(), (1.0 - MIXING) * w + MIXING / len(w))
        if steps is None:
            best = _multiplicative_steps(pairs, best, e, tolerance, max_iterations)
        else:
            best = _best_of_steps(islice(steps, max_iterations), best, tolerance)
    return replace(best, e=unflatten(best.e, offered))


class Step(NamedTuple):
    """The result of a step: a design, its largest leverage, a lower bound on 1/λ, and the length of the step."""

    e: Floats
    value: float
    bound: float
    length: float


def _newton(pairs: Pairs, e: Floats, w: Floats) -> Iterator[Step] | None:
    """Return the steps of the interior point method with fewer unknowns, from e and w; None if both are too large."""
    n, d = pairs.z.shape
    entries = d * (d + 1) / 2.0
    if n < entries and n <= MOST_PAIRS:
        return _by_pairs(pairs, e, w)
    return _by_matrices(pairs, e, w) if d <= NEWTON_DIMENSION and n * entries**2 <= NEWTON_WORK else None


def _warm_up(pairs: Pairs, tolerance: float) -> tuple[JointGOptimal, Floats, Floats]:
    """Take a few multiplicative steps from the uniform design; return the best design, the last one and its weights."""
    e = w = pairs.uniform()
    best = JointGOptimal(e, np.inf, float(pairs.z.shape[1]), 0)
    for power in WARM_UP:
        best, w, improved = _multiplicative(pairs, best, e, power)
        if best.gap <= tolerance:
            return best, e, w
        e = improved
    lev, white = _leverages(pairs, best.e)
    for k in SHARPNESS:
        best = _with_bound(best, _bound(white, (lev / lev.max()) ** k)[0])
    return best, e, w


def _multiplicative_steps(
    pairs: Pairs, best: JointGOptimal, e: Floats, tolerance: float, max_iterations: int
) -> JointGOptimal:
    """Continue with multiplicative steps, doubling the power, for problems too large for Newton's equations."""
    for iteration in range(ROUNDS_PER_NEWTON * max_iterations):
        power = min(WARM_UP[-1] * 2 ** (iteration // ROUNDS_PER_POWER), LARGEST_POWER)
        best, _, e = _multiplicative(pairs, best, e, power)
        if best.gap <= tolerance:
            break
    return best


def _multiplicative(pairs: Pairs, best: JointGOptimal, e: Floats, power: int) -> tuple[JointGOptimal, Floats, Floats]:
    """Evaluate e, then improve the p-norm of its leverages: e ∝ e·score^(2/(p+1)), w ∝ lev^(p-1).

    score(a,x) = zᵀΣ⁻¹M(w)Σ⁻¹z is minus the derivative of the p-norm by g(x) e(a|x), up to a constant.
    """
    lev, white = _leverages(pairs, e)
    w = (lev / lev.max()) ** (power - 1)
    bound, score = _bound(white, w)
    best = replace(_with_bound(_with_value(best, e, float(lev.max())), bound), iterations=best.iterations + 1)
    return best, w / w.sum(), pairs.normalised(e * np.maximum(score, 0.0) ** (2.0 / (power + 1.0)))


def _best_of_steps(steps: Iterator[Step], best: JointGOptimal, tolerance: float) -> JointGOptimal:
    """Take steps until the best design is within the tolerance or steps become too short."""
    try:
        for e, value, bound, length in steps:
            best = replace(_with_bound(_with_value(best, e, value), bound), iterations=best.iterations + 1)
            if best.gap <= tolerance or length < SHORTEST_STEP:
                break
    except np.linalg.LinAlgError:
        pass  # the slacks are down to rounding; the gap of the best design is still certified
    return best


def _by_pairs(pairs: Pairs, e: Floats, w: Floats) -> Iterator[Step]:
    """Yield Newton steps with one unknown per pair."""
    point = interior_point_pairs.first_point(pairs, e, w)
    while True:
        point, length = interior_point_pairs.advance(point)
        yield Step(point.p / pairs.mass, float(point.lev.max()), _bound(point.pairs, point.w)[0], length)


def _by_matrices(pairs: Pairs, e: Floats, w: Floats) -> Iterator[Step]:
    """Yield Newton steps with one unknown per entry of a symmetric matrix.

    A second bound uses the multiplier B instead of Σ⁻¹MΣ⁻¹:

    1/λ* ≥ (tr (B^½ M B^½)^½)² / Σ_x g(x) max_a zᵀBz   for every B ⪰ 0
    """
    base = basis(pairs.z.shape[1])
    point = interior_point_matrix.first_point(pairs, e, w)
    while True:
        point, length = interior_point_matrix.advance(point, base)
        white = point.pairs
        factor = np.linalg.cholesky(point.at.B)
        fidelity = np.sqrt(np.maximum(np.linalg.eigvalsh(factor.T @ point.M @ factor), 0.0)).sum()
        second = float(fidelity**2 / (white.g @ white.maxima(white.forms(point.at.B))))
        value = float(np.einsum("ij,ij->i", white.z, white.z).max())
        yield Step(point.at.e, value, max(second, _bound(white, point.at.w)[0]), length)


def _leverages(pairs: Pairs, e: Floats) -> tuple[Floats, Pairs]:
    white = pairs._replace(z=pairs.z @ whitener(pairs.moment(pairs.mass * e)).T)
    return np.einsum("ij,ij->i", white.z, white.z), white


def _bound(white: Pairs, w: Floats) -> tuple[float, Floats]:
    """Return (tr M)² / Σ_x g(x) max_a zᵀMz where Σ = I, and the scores zᵀMz."""
    moment = white.moment(w / w.sum())
    score = white.forms(moment)
    return float(np.trace(moment) ** 2 / (white.g @ white.maxima(score))), score


def _with_value(best: JointGOptimal, e: Floats, value: float) -> JointGOptimal:
    return replace(best, e=e, value=value) if value < best.value else best


def _with_bound(best: JointGOptimal, bound: float) -> JointGOptimal:
    return replace(best, lower_bound=bound) if bound > best.lower_bound else best
