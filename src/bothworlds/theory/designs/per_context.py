"""Designs of each context on its own: uniform, and G-optimal for the features of the context."""

import numpy as np
from numpy.typing import NDArray

from bothworlds.arrays import Bools, Floats
from bothworlds.kernels.contract import even_play

RANK_THRESHOLD = 1e-10
BATCH_NUMBERS = 2_000_000
CENTRING = 0.1
STEP = 0.9


def uniform(z: Floats, g: Floats, offered: Bools) -> Floats:
    """Play the offered arms of each context with equal probability.

    e(a|x) = 1 / #offered(x)   (paper, Assumption 2.4; valid whenever the features span all dimensions)

    >>> uniform(np.zeros((1, 3, 1)), np.ones(1), np.array([[True, False, True]]))
    array([[0.5, 0. , 0.5]])
    """
    _check(z, g, offered)
    return even_play(offered)


def per_context_g_optimal(
    z: Floats, g: Floats, offered: Bools, *, tolerance: float = 1e-4, max_iterations: int = 200
) -> Floats:
    """Play the G-optimal design of each context, with which the paper proves that λ ≥ 1/(dL) is possible.

    e(·|x) = argmin_w max_a z(a,x)ᵀ Σ_x(w)⁺ z(a,x), minimum rank_x   (Kiefer-Wolfowitz; paper, Section 2.2)
    Reaches max_a ≤ rank_x (1 + tolerance) in every context or raises ValueError.  Zero features get weight 0; a
    context with zero features only is played uniformly.

    >>> z = np.array([[[1.0], [0.5], [0.0]]])
    >>> per_context_g_optimal(z, np.ones(1), np.ones((1, 3), dtype=bool)).round(3)
    array([[1., 0., 0.]])
    """
    _check(z, g, offered)
    e = uniform(z, g, offered)
    size = max(1, BATCH_NUMBERS // (z.shape[1] * max(z.shape[1:])))
    for first in range(0, len(z), size):
        part = slice(first, first + size)
        e[part] = _solve(z[part], e[part], tolerance, max_iterations)
    return e


def _check(z: Floats, g: Floats, offered: Bools) -> None:
    if g.shape != z.shape[:1] or offered.shape != z.shape[:2]:
        raise ValueError(f"Shapes disagree: z {z.shape}, g {g.shape}, offered {offered.shape}.")
    if not offered.any(axis=1).all():
        missing = int(np.flatnonzero(~offered.any(axis=1))[0])
        raise ValueError(f"Context {missing} offers no arm: every context must offer at least one.")


def _solve(z: Floats, e: Floats, tolerance: float, max_iterations: int) -> Floats:
    """Return D-optimal, hence G-optimal, weights of a batch of contexts; finished contexts leave the batch."""
    y, rank = _coordinates(z)
    todo = np.flatnonzero(rank > 0)
    y, rank = y[todo], rank[todo]
    usable = (y != 0.0).any(axis=2)
    w = usable / usable.sum(axis=1, keepdims=True)
    slack = np.zeros(w.shape)
    for iteration in range(max_iterations + 1):
        white, lev = _whiten(y, w, rank)
        done = lev.max(axis=1) <= rank * (1.0 + tolerance)
        e[todo[done]] = w[done]
        if done.all():
            return e
        todo, y, rank, usable, w, slack, white, lev = (v[~done] for v in (todo, y, rank, usable, w, slack, white, lev))
        if iteration == 0:
            slack = 2.0 * lev.max(axis=1, keepdims=True) - lev - rank[:, None]
        w, slack = _newton(white, lev, w, slack, usable)
    worst = float((lev.max(axis=1) / rank - 1.0).max())
    raise ValueError(
        f"The G-optimal design of {len(todo)} context(s) is off by {worst:.2g} (tolerance {tolerance:.2g}) "
        f"after {max_iterations} iterations: raise max_iterations or the tolerance."
    )


def _newton(white: Floats, lev: Floats, w: Floats, slack: Floats, usable: Bools) -> tuple[Floats, Floats]:
    """Take one primal-dual Newton step towards w s = target, s = ν - lev(w), Σ w = 1, in every context.

    With D = w/s and H(a,b) = (z_aᵀz_b)², dlev = -H dw and (I + D̃H) dw = c, where ~ projects out ν.
    """
    target = CENTRING * np.einsum("xa,xa->x", w, slack)[:, None] * usable / usable.sum(axis=1, keepdims=True)
    curvature = w / slack
    share = curvature / curvature.sum(axis=1, keepdims=True)
    free = target / slack + curvature * lev
    dw = _solve_pairs(white, curvature, share, free - share * free.sum(axis=1, keepdims=True))
    ds = np.where(usable, (target - slack * (w + dw)) / np.where(usable, w, 1.0), 0.0)
    w = w + _reach(w, dw, usable) * dw
    return w / w.sum(axis=1, keepdims=True), slack + _reach(slack, ds, usable) * ds


def _solve_pairs(white: Floats, curvature: Floats, share: Floats, c: Floats) -> Floats:
    """Solve (I + D̃H) dw = c with H = QQᵀ in the smaller of the spaces of arms and of symmetric matrices."""
    i, j = np.triu_indices(white.shape[2])
    if white.shape[1] <= len(i):
        matrix = curvature[:, :, None] * np.square(white @ white.transpose(0, 2, 1))
        matrix -= share[:, :, None] * matrix.sum(axis=1, keepdims=True)
        matrix[:, np.arange(c.shape[1]), np.arange(c.shape[1])] += 1.0
        return np.asarray(np.linalg.solve(matrix, c[:, :, None])[:, :, 0])
    q = white[:, :, i] * white[:, :, j] * np.where(i == j, 1.0, np.sqrt(2.0))
    centred = q - np.einsum("xa,xap->xp", share, q)[:, None, :]
    scatter = (curvature[:, :, None] * centred).transpose(0, 2, 1) @ centred + np.eye(len(i))
    move = np.linalg.solve(scatter, np.einsum("xap,xa->xp", q, c)[:, :, None])
    return np.asarray(c - curvature * (centred @ move)[:, :, 0])


def _reach(value: Floats, change: Floats, usable: Bools) -> Floats:
    """Return the largest step up to 1 that keeps a tenth of every positive number, per context."""
    fall = np.where(usable, -change / np.where(usable, value, 1.0), 0.0).max(axis=1, keepdims=True)
    return np.asarray(STEP / np.maximum(fall, STEP))


def _coordinates(z: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return orthonormal coordinates of the features of each context, zero beyond its rank, and the ranks."""
    left, size, _ = np.linalg.svd(z, full_matrices=False)
    significant = size > RANK_THRESHOLD * np.maximum(size[:, :1], np.finfo(float).tiny)
    y = left * significant[:, None, :]
    # Rounding noise in place of a zero feature must not become an arm worth playing.
    return y * (z != 0.0).any(axis=2, keepdims=True), significant.sum(axis=1)


def _whiten(y: Floats, e: Floats, rank: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return coordinates in which the covariance of each context is the identity on its span, and the leverages."""
    missing = np.arange(y.shape[2]) >= rank[:, None]
    sigma = np.einsum("xai,xa,xaj->xij", y, e, y, optimize=True)
    sigma[:, np.arange(y.shape[2]), np.arange(y.shape[2])] += missing
    factor = np.linalg.cholesky(sigma)
    white = np.asarray(np.linalg.solve(factor, y.transpose(0, 2, 1)).transpose(0, 2, 1), dtype=np.float64)
    return white, np.asarray(np.einsum("xai,xai->xa", white, white))
