"""Interior point method for the joint G-optimal design with one unknown per pair, for few pairs and large d.

    min over p  max over w  tr Σ(p)⁻¹ M(w),   p = g e,   Σ = Σ p z zᵀ,   M = Σ w z zᵀ

is convex in p and linear in w.  Its first derivatives are the scores zᵀΣ⁻¹MΣ⁻¹z and the leverages zᵀΣ⁻¹z.  With
G = z Σ⁻¹ zᵀ over all pairs, the second derivatives are entries of Q = G ∘ G and H = 2 G ∘ (z Σ⁻¹MΣ⁻¹ zᵀ).  Slacks:
s = ν_x - score pairs with p, r = τ - lev with w.  Newton's equations have as many unknowns as there are pairs; those
of `interior_point_matrix` have d(d+1)/2, whatever the number of pairs.
"""

from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.designs.joint_d import reach
from bothworlds.theory.designs.leverage import inverse_factor
from bothworlds.theory.designs.pairs import Pairs

LEAST_SLACK = 0.1  # share of the barrier's target: slacks are not linear, and a step may exhaust them
LEAST_CENTRING = 1e-3
ROUNDING = 1e-13  # relative rounding error of a leverage


class Point(NamedTuple):
    """Strictly feasible p and w, multipliers ν and τ, derived values, and the weights of the two barriers."""

    pairs: Pairs  # whitened: Σ(p) = I
    p: Floats
    w: Floats
    nu: Floats
    tau: float
    lev: Floats
    M: Floats
    score: Floats
    primal_weights: Floats
    dual_weights: Floats

    @property
    def s(self) -> Floats:
        """Slacks of the scores."""
        return np.asarray(self.nu[self.pairs.context] - self.score)

    @property
    def r(self) -> Floats:
        """Slacks of the leverages."""
        return np.asarray(self.tau - self.lev)


class Move(NamedTuple):
    """A direction, and the first-order change of the slacks."""

    p: Floats
    w: Floats
    nu: Floats
    tau: float
    s: Floats
    r: Floats

    def length(self, point: Point) -> float:
        """Return the longest step up to 1 that keeps everything positive."""
        ends = (point.p, self.p), (point.w, self.w), (point.s, self.s), (point.r, self.r)
        return min(reach(value, change) for value, change in ends)


class System(NamedTuple):
    """Newton's equations, w eliminated: K dp + dν_x = ..., Σ dp = 0 in each context."""

    K: Floats
    Q: Floats
    H: Floats
    stiffness: Floats
    ones: Floats  # one column per context
    spread: Floats  # K⁻¹ ones


def first_point(pairs: Pairs, e: Floats, w: Floats) -> Point:
    """Return a starting point for any e > 0 and w > 0, which also weight the barriers so that it is nearly central."""
    p = pairs.mass * e
    white, lev, M, score = _derived(pairs, p, w)
    highest = white.maxima(score)
    room = (lev.max() - np.trace(M) ** 2 / (white.g @ highest)) / 2.0
    return Point(white, p, w, highest + room, float(lev.max() + room), lev, M, score, p, w)


def advance(point: Point) -> tuple[Point, float]:
    """Take one predictor-corrector step; return the new point and the length of the step."""
    if min(point.s.min(), point.r.min()) < ROUNDING * point.tau:
        raise np.linalg.LinAlgError("the slacks are down to rounding")
    system = _system(point)
    ps, wr = point.p * point.s, point.w * point.r
    guess = _move(point, system, -ps, -wr)
    step = guess.length(point)
    remaining = (point.p + step * guess.p) @ (point.s + step * guess.s)
    remaining += (point.w + step * guess.w) @ (point.r + step * guess.r)
    gap = float(ps.sum() + wr.sum())
    mu = max((float(remaining) / gap) ** 2, LEAST_CENTRING) * gap / 2.0
    move = _move(
        point,
        system,
        mu * point.primal_weights - ps - guess.p * guess.s,
        mu * point.dual_weights - wr - guess.w * guess.r,
    )
    step = move.length(point)
    return _step(point, move, step, LEAST_SLACK * mu), step


def _system(point: Point) -> System:
    z, n = point.pairs.z, len(point.p)
    G = z @ z.T
    Q, H, stiffness = G * G, 2.0 * G * (z @ point.M @ z.T), point.w / point.r
    about = (Q - (Q @ stiffness / stiffness.sum())[:, None]) * np.sqrt(stiffness)
    K = H + about @ about.T
    K[np.diag_indices(n)] += point.s / point.p
    ones = np.equal.outer(point.pairs.context, np.arange(len(point.pairs.g))).astype(np.float64)
    return System(K, Q, H, stiffness, ones, np.linalg.solve(K, ones))


def _move(point: Point, system: System, ps: Floats, wr: Floats) -> Move:
    """Solve for the direction in which p s and w r change by ``ps`` and ``wr``, in first order."""
    K, Q, H, v, ones, spread = system
    shift = wr / point.r
    free = np.linalg.solve(K, ps / point.p + Q @ (shift - v * (shift.sum() / v.sum())))
    nu = np.asarray(np.linalg.solve(ones.T @ spread, ones.T @ free), dtype=np.float64)
    p = free - spread @ nu
    tau = float((shift.sum() - v @ (Q @ p)) / v.sum())
    r = tau + Q @ p
    w = shift - v * r
    return Move(p, w, nu, tau, nu[point.pairs.context] - Q @ w + H @ p, r)


def _step(point: Point, move: Move, step: float, least: float) -> Point:
    """Take the step; raise the multipliers where slacks are smaller than their first-order values."""
    p, w = point.p + step * move.p, point.w + step * move.w
    w = w / w.sum()
    white, lev, M, score = _derived(point.pairs, p, w)
    nu = np.maximum(point.nu + step * move.nu, white.maxima(score) + least)
    tau = max(point.tau + step * move.tau, float(lev.max()) + least)
    return Point(white, p, w, nu, tau, lev, M, score, point.primal_weights, point.dual_weights)


def _derived(pairs: Pairs, p: Floats, w: Floats) -> tuple[Pairs, Floats, Floats, Floats]:
    """Return the pairs whitened to Σ(p) = I, and their leverages, M and scores."""
    white = pairs._replace(z=pairs.z @ inverse_factor(pairs.moment(p)).T)
    M = white.moment(w)
    return white, np.einsum("ij,ij->i", white.z, white.z), M, white.forms(M)
