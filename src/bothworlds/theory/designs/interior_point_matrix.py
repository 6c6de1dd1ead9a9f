"""Interior point method for the joint G-optimal design, a linear program with one 2d x 2d matrix inequality.

    min τ  over e ≥ 0, Σ_a e(a|x) = 1, U:   zᵀUz ≤ τ for every pair,   [[Σ(e), I], [I, U]] ⪰ 0   (so U ⪰ Σ⁻¹)
    max -2 tr Y - Σ_x g(x) ν_x  over w ≥ 0, Σ w = 1, ν:   zᵀBz ≤ ν_x for every pair,  [[B, Y], [Yᵀ, M(w)]] ⪰ 0

Slacks: r = τ - zᵀUz pairs with w, s = ν_x - zᵀBz with e.  The features are whitened in every step so that
Σ(e) = I, and the matrix inequality is replaced by the congruent diag(I, E), E = U - I, whose entries keep their
digits near the optimum; those of the original lose all of them.  Newton's equations then need only two weighted
Gram matrices of vec(z zᵀ), of size d(d+1)/2, whatever the number of pairs.
"""

from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.designs.joint_d import STEP, reach
from bothworlds.theory.designs.leverage import whitener
from bothworlds.theory.designs.pairs import Pairs
from bothworlds.theory.designs.symmetric_basis import Basis, scatter_about, scatter_within

RECENTRE_BELOW = 0.1
RECENTRING = 0.5


class Unknowns(NamedTuple):
    """The unknowns of both programs and their slacks, or changes of them."""

    e: Floats
    w: Floats
    r: Floats
    s: Floats
    U: Floats
    B: Floats
    Y: Floats


class Point(NamedTuple):
    """A strictly feasible primal-dual pair where Σ(e) = I, and the weights of the barriers of e s and w r."""

    pairs: Pairs
    at: Unknowns
    M: Floats
    primal_weights: Floats
    dual_weights: Floats

    def primal_matrix(self) -> Floats:
        """Return diag(I, E), congruent to the matrix inequality."""
        d = len(self.at.U)
        return _block(np.eye(d), np.zeros((d, d)), self.at.U - np.eye(d))

    def dual_matrix(self) -> Floats:
        """Return the multiplier of the matrix inequality under the same congruence; its corner is Y + M."""
        return _block(self.at.B + self.at.Y + self.at.Y.T + self.M, self.at.Y + self.M, self.M)

    def complementarity(self) -> float:
        """Return the remaining duality gap."""
        linear = self.pairs.mass @ (self.at.e * self.at.s) + self.at.w @ self.at.r
        return float(linear + np.vdot(self.primal_matrix(), self.dual_matrix()))


class Move(NamedTuple):
    """A direction: changes of the unknowns of a `Point` and of the two congruent matrices."""

    by: Unknowns
    primal: Floats
    dual: Floats


class System(NamedTuple):
    """Newton's equations at a point, eliminated down to the change J of Σ: (I + PT) J = right side."""

    V: Floats
    mean: Floats
    P: Floats
    T: Floats
    A: Floats
    cross: Floats
    follow: Floats
    inverse: Floats


def first_point(pairs: Pairs, e: Floats, w: Floats) -> Point:
    """Return a starting point for any e > 0 and w > 0, which also weight the barriers so that it is nearly central."""
    pairs = pairs._replace(z=pairs.z @ whitener(pairs.moment(pairs.mass * e)).T)
    d = pairs.z.shape[1]
    M = pairs.moment(w)
    lev, score = pairs.forms(np.eye(d)), pairs.maxima(pairs.forms(M))
    room = (lev.max() - np.trace(M) ** 2 / (pairs.g @ score)) / 3.0
    mu = room / (2 * d)
    U = np.eye(d) + mu * _inverse(M + 0.1 * np.trace(M) / d * np.eye(d))
    B = M + mu * np.eye(d)
    upper, score = pairs.forms(U), pairs.forms(B)
    s = (pairs.maxima(score) + room)[pairs.context] - score
    return Point(pairs, Unknowns(e, w, upper.max() + room - upper, s, U, B, -M), M, e, w)


def advance(point: Point, base: Basis) -> tuple[Point, float]:
    """Take one predictor-corrector step; return the new point and the longer of the primal and dual step lengths."""
    system = _system(point, base)
    gap, dual = point.complementarity(), point.dual_matrix()
    guess = _move(point, base, system, 0.0 * point.at.e, 0.0 * point.at.w, -dual)
    primal_step, dual_step = _lengths(point, guess)
    ratio = _remaining(point, guess, primal_step, dual_step) / gap
    mu = min(1.0, max(ratio**2, 1e-4, 0.5 * (1.0 - min(primal_step, dual_step)) ** 3)) * gap / 3.0
    move = _move(point, base, system, *_targets(point, mu, guess))
    steps = _lengths(point, move)
    if min(steps) < RECENTRE_BELOW:
        other = _move(point, base, system, *_targets(point, RECENTRING * gap / 3.0, None))
        if min(_lengths(point, other)) > min(steps):
            move, steps = other, _lengths(point, other)
    return _step(point, move, *steps), max(steps)


def _system(point: Point, base: Basis) -> System:
    """Assemble Newton's equations; V and P come from the pairs, the sandwich maps from the two matrices."""
    pairs, E = point.pairs, _inverse(point.at.U - np.eye(len(point.at.U)))
    stiffness = point.at.w / point.at.r
    mean = base.vector(pairs.moment(stiffness)) / stiffness.sum()
    V = scatter_about(pairs, base, stiffness, mean)
    P = scatter_within(pairs, base, point.at.e / point.at.s)
    dual = point.dual_matrix()
    d = len(point.at.U)
    H = base.sandwich(point.M, E)
    cross = -base.sandwich(dual[:d, d:], E)
    diagonal = base.sandwich(point.at.B, np.eye(d)) + base.sandwich(dual[:d, :d], E)
    A = V + H
    follow, parallel, bent = np.split(np.linalg.solve(A, np.hstack([V - cross.T, H, cross.T])), 3, axis=1)
    # V - V A⁻¹ V = V A⁻¹ H: the difference on the left loses digits where V is the larger of the two.
    joint = V @ (0.5 * parallel + bent)
    T = diagonal - cross @ bent + joint + joint.T
    return System(V, mean, P, T, A, cross, follow, E)


def _move(point: Point, base: Basis, system: System, es: Floats, wr: Floats, target: Floats) -> Move:
    """Solve for the direction with e s -> es and w r -> wr; `target` is goal minus multiplier of the matrices."""
    pairs, d, stiffness = point.pairs, len(point.at.U), point.at.w / point.at.r
    curvature = point.at.e / point.at.s
    share = curvature / pairs.sums(curvature)[pairs.context]
    c = es / point.at.s - point.at.e
    k = wr / point.at.r - point.at.w
    lift = k.sum() / stiffness.sum()
    h = base.vector(pairs.moment(k - stiffness * lift))
    rest = np.linalg.solve(system.A, base.vector(target[d:, d:]) - h)
    corner = target[:d, d:]
    right = base.vector(target[:d, :d] - corner - corner.T) + h + (system.V - system.cross) @ rest
    b = base.vector(pairs.moment(pairs.mass * (c - share * pairs.sums(c)[pairs.context])))
    J = np.linalg.solve(np.eye(len(b)) + system.P @ system.T, b + system.P @ right)
    dB, dU = base.matrix(right - system.T @ J), base.matrix(rest + system.follow @ J - J)
    dr = lift + float(system.mean @ base.vector(dU)) - pairs.forms(dU)
    fall = pairs.forms(dB)
    ds = (pairs.sums(c + curvature * fall) / pairs.sums(curvature))[pairs.context] - fall
    return _with_matrices(point, system, target, (c - curvature * ds, k - stiffness * dr, dr, ds, dU, dB))


def _with_matrices(
    point: Point, system: System, target: Floats, parts: tuple[Floats, Floats, Floats, Floats, Floats, Floats]
) -> Move:
    """Add the changes of the matrix pair; parts that are linear in e and w are exact."""
    de, dw, dr, ds, dU, dB = parts
    d = len(dU)
    J, dM = point.pairs.moment(point.pairs.mass * de), point.pairs.moment(dw)
    primal = _block(J, -J, dU + J)
    half = point.dual_matrix() @ primal @ _block(np.eye(d), np.zeros((d, d)), system.inverse)
    corner = (target - 0.5 * (half + half.T))[:d, d:]
    dY = corner - dM
    return Move(Unknowns(de, dw, dr, ds, dU, dB, dY), primal, _block(dB + dY + dY.T + dM, corner, dM))


def _targets(point: Point, mu: float, guess: Move | None) -> tuple[Floats, Floats, Floats]:
    """Return the targets of the three complementarity products, with Mehrotra's correction when a guess is given."""
    d = len(point.at.U)
    inverse = _inverse(point.primal_matrix())
    es, wr, goal = mu * point.primal_weights, mu * point.dual_weights, mu / (2 * d) * inverse - point.dual_matrix()
    if guess is None:
        return es, wr, goal
    half = guess.dual @ guess.primal @ inverse
    return es - guess.by.e * guess.by.s, wr - guess.by.w * guess.by.r, goal - 0.5 * (half + half.T)


def _lengths(point: Point, move: Move) -> tuple[float, float]:
    at, by = point.at, move.by
    primal = min(reach(at.e, by.e), reach(at.r, by.r), _reach(point.primal_matrix(), move.primal))
    dual = min(reach(at.w, by.w), reach(at.s, by.s), _reach(point.dual_matrix(), move.dual))
    return primal, dual


def _reach(matrix: Floats, change: Floats) -> float:
    """Return the longest step up to 1 that stays inside the positive definite matrices with a margin."""
    c = _inverse(_cholesky(matrix))
    return STEP / max(STEP, -float(np.linalg.eigvalsh(c @ change @ c.T)[0]))


def _remaining(point: Point, move: Move, primal: float, dual: float) -> float:
    at, by = point.at, move.by
    es = (at.e + primal * by.e) * (at.s + dual * by.s)
    wr = (at.w + dual * by.w) * (at.r + primal * by.r)
    left, right = point.primal_matrix() + primal * move.primal, point.dual_matrix() + dual * move.dual
    return float(point.pairs.mass @ es + wr.sum() + np.vdot(left, right))


def _step(point: Point, move: Move, primal: float, dual: float) -> Point:
    """Take the step, then whiten again so that Σ(e) = I."""
    pairs, at, by = point.pairs, point.at, move.by
    e, w = pairs.normalised(at.e + primal * by.e), at.w + dual * by.w
    w = w / w.sum()
    factor = _cholesky(pairs.moment(pairs.mass * e))
    back = _inverse(factor).T
    pairs = pairs._replace(z=pairs.z @ back)
    moved = Unknowns(
        e,
        w,
        at.r + primal * by.r,
        at.s + dual * by.s,
        factor.T @ (at.U + primal * by.U) @ factor,
        factor.T @ (at.B + dual * by.B) @ factor,
        factor.T @ (at.Y + dual * by.Y) @ back,
    )
    return Point(pairs, moved, pairs.moment(w), point.primal_weights, point.dual_weights)


def _inverse(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _cholesky(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def _block(first: Floats, corner: Floats, last: Floats) -> Floats:
    return np.block([[first, corner], [corner.T, last]])
