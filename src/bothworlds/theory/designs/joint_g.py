"""The design with the best coverage λ: G-optimal over all contexts together, with a certificate."""

from dataclasses import dataclass, replace

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats
from bothworlds.theory.designs.leverage import SHARPNESS, whitener
from bothworlds.theory.designs.pairs import Pairs, flatten, unflatten
from bothworlds.theory.designs.saddle import Point, advance, first_point
from bothworlds.theory.designs.symmetric import basis

WARM_UP = (2, 2, 4, 4, 4, 8, 8, 8, 8)
MIXING = 0.1
SHORTEST_STEP = 1e-6
# Beyond this size a Newton step is not affordable and the multiplicative scheme goes on alone.
NEWTON_DIMENSION = 60
NEWTON_WORK = 1e11
ROUNDS_PER_POWER = 40
ROUNDS_PER_NEWTON = 10
LARGEST_POWER = 4096


@dataclass(frozen=True, slots=True)
class JointGOptimal:
    """A design e, its largest leverage value = 1/λ(e), a lower bound on 1/λ of every design, iterations."""

    e: Floats
    value: float
    lower_bound: float
    iterations: int

    @property
    def gap(self) -> float:
        """Return how much of 1/λ could at most be saved, relative to the best design."""
        return self.value / self.lower_bound - 1.0


def joint_g_optimal(
    z: Floats, g: Floats, offered: Bools, *, tolerance: float = 0.01, max_iterations: int = 60
) -> JointGOptimal:
    """Maximise the coverage: minimise the largest leverage over all pairs.

    1/λ* = min_e max_{a,x} z(a,x)ᵀ Σ(e)⁻¹ z(a,x)   (the best e* for the paper's Assumption 2.4)
    A few multiplicative steps on p-norms of the leverages, then an interior point method.  Stops when value ≤
    (1 + tolerance) lower_bound, or after max_iterations Newton steps: `gap` says how good the design is.

    >>> design = joint_g_optimal(np.eye(2)[None], np.ones(1), np.ones((1, 2), dtype=bool))
    >>> design.e, round(design.value, 12), round(design.lower_bound, 12)
    (array([[0.5, 0.5]]), 2.0, 2.0)
    """
    pairs = flatten(z, g, offered)
    best, e, w = _warm_up(pairs, tolerance)
    if best.gap > tolerance and _affordable(pairs):
        best = _interior(pairs, best, w, tolerance, max_iterations)
    elif best.gap > tolerance:
        best = _patient(pairs, best, e, tolerance, max_iterations)
    return replace(best, e=unflatten(best.e, offered))


def _affordable(pairs: Pairs) -> bool:
    n, d = pairs.z.shape
    return bool(d <= NEWTON_DIMENSION and n * (d * (d + 1) / 2.0) ** 2 <= NEWTON_WORK)


def _warm_up(pairs: Pairs, tolerance: float) -> tuple[JointGOptimal, Floats, Floats]:
    """Take a few multiplicative steps from uniform design; return the best, the last and its weights."""
    e = w = pairs.uniform()
    best = JointGOptimal(e, np.inf, float(pairs.z.shape[1]), 0)
    for power in WARM_UP:
        best, w, following = _multiplicative(pairs, best, e, power)
        if best.gap <= tolerance:
            return best, e, w
        e = following
    lev, white = _leverages(pairs, best.e)
    for k in SHARPNESS:
        best = _raised(best, _bound(white, (lev / lev.max()) ** k)[0])
    return best, e, w


def _patient(pairs: Pairs, best: JointGOptimal, e: Floats, tolerance: float, max_iterations: int) -> JointGOptimal:
    """Go on with multiplicative steps, doubling the power: for problems too large for Newton's equations."""
    for iteration in range(ROUNDS_PER_NEWTON * max_iterations):
        power = min(WARM_UP[-1] * 2 ** (iteration // ROUNDS_PER_POWER), LARGEST_POWER)
        best, _, e = _multiplicative(pairs, best, e, power)
        if best.gap <= tolerance:
            break
    return best


def _multiplicative(pairs: Pairs, best: JointGOptimal, e: Floats, power: int) -> tuple[JointGOptimal, Floats, Floats]:
    """Judge e, and improve the p-norm of its leverages: e ∝ e·score^(2/(p+1)), w ∝ lev^(p-1).

    score(a,x) = zᵀΣ⁻¹M(w)Σ⁻¹z is minus the derivative of the p-norm by g(x) e(a|x), up to a constant.
    """
    lev, white = _leverages(pairs, e)
    w = (lev / lev.max()) ** (power - 1)
    bound, score = _bound(white, w)
    best = replace(_raised(_lowered(best, e, float(lev.max())), bound), iterations=best.iterations + 1)
    return best, w / w.sum(), pairs.normalised(e * np.maximum(score, 0.0) ** (2.0 / (power + 1.0)))


def _interior(pairs: Pairs, best: JointGOptimal, w: Floats, tolerance: float, max_iterations: int) -> JointGOptimal:
    """Run the interior point method from the best design, mixed with the uniform one to be inside."""
    base = basis(pairs.z.shape[1])
    start = (1.0 - MIXING) * best.e + MIXING * pairs.uniform()
    point = first_point(pairs, start, (1.0 - MIXING) * w + MIXING / len(w))
    for _ in range(max_iterations):
        try:
            point, step = advance(point, base)
            best = _judged(point, best)
        except np.linalg.LinAlgError:
            break  # the last digits are spent; the gap of the best design says how far it came
        if best.gap <= tolerance or step < SHORTEST_STEP:
            break
    return best


def _judged(point: Point, best: JointGOptimal) -> JointGOptimal:
    """Update value and lower bound; the second bound takes the multiplier B instead of Σ⁻¹MΣ⁻¹.

    1/λ* ≥ (tr (B^½ M B^½)^½)² / Σ_x g(x) max_a zᵀBz   for every B ⪰ 0
    """
    pairs = point.pairs
    factor = np.linalg.cholesky(point.B)
    fidelity = np.sqrt(np.maximum(np.linalg.eigvalsh(factor.T @ point.M @ factor), 0.0)).sum()
    second = float(fidelity**2 / (pairs.g @ pairs.maxima(pairs.forms(point.B))))
    value = float(np.einsum("ij,ij->i", pairs.z, pairs.z).max())
    best = _raised(_lowered(best, point.e, value), max(second, _bound(pairs, point.w)[0]))
    return replace(best, iterations=best.iterations + 1)


def _leverages(pairs: Pairs, e: Floats) -> tuple[Floats, Pairs]:
    white = pairs._replace(z=pairs.z @ whitener(pairs.moment(pairs.mass * e)).T)
    return np.einsum("ij,ij->i", white.z, white.z), white


def _bound(white: Pairs, w: Floats) -> tuple[float, Floats]:
    """(tr M)² / Σ_x g(x) max_a zᵀMz where Σ = I, and the scores zᵀMz."""
    moment = white.moment(w / w.sum())
    score = white.forms(moment)
    return float(np.trace(moment) ** 2 / (white.g @ white.maxima(score))), score


def _lowered(best: JointGOptimal, e: Floats, value: float) -> JointGOptimal:
    return replace(best, e=e, value=value) if value < best.value else best


def _raised(best: JointGOptimal, bound: float) -> JointGOptimal:
    return replace(best, lower_bound=bound) if bound > best.lower_bound else best
