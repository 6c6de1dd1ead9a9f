"""Covariance, leverages and coverage of an exploration design e*, and a lower bound on 1/λ of every design."""

import numpy as np

from bothworlds.arrays import Floats

SHARPNESS = (1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 255.0, 1023.0, 4095.0)


def covariance(z: Floats, g: Floats, e: Floats) -> Floats:
    """Return the covariance (d, d) of the features that a design plays.

    Σ(e) = Σ_x g(x) Σ_a e(a|x) z(a,x) z(a,x)ᵀ   (paper, Assumption 2.4)

    >>> covariance(np.eye(2)[None], np.ones(1), np.array([[0.25, 0.75]]))
    array([[0.25, 0.  ],
           [0.  , 0.75]])
    """
    flat = z.reshape(-1, z.shape[2])
    played = (g[:, None] * e).reshape(-1, 1)
    return np.asarray((flat * played).T @ flat)


def leverages(z: Floats, sigma: Floats) -> Floats:
    """Return the leverage of each pair, shape (S, K); zero features (pairs not offered) give zero.

    lev(a,x) = z(a,x)ᵀ Σ⁻¹ z(a,x)   (paper, Assumption 2.4)

    >>> leverages(np.eye(2)[None], np.diag([0.25, 0.75]))
    array([[4.        , 1.33333333]])
    """
    white = z @ whitener(sigma).T
    return np.asarray(np.einsum("xai,xai->xa", white, white))


def coverage(z: Floats, g: Floats, e: Floats) -> float:
    """Return the exact coverage λ of a design.

    λ(e) = 1 / max_{a,x} z(a,x)ᵀ Σ(e)⁻¹ z(a,x)   (paper, Assumption 2.4; at most 1/d)

    >>> round(coverage(np.eye(2)[None], np.ones(1), np.array([[0.5, 0.5]])), 12)
    0.5
    """
    return float(1.0 / leverages(z, covariance(z, g, e)).max())


def lower_bound(z: Floats, g: Floats, e: Floats, *, weights: Floats | None = None) -> float:
    """Return a lower bound on 1/λ of every design, from one design and any weights on the pairs.

    1/λ* ≥ max(d, (tr Σ⁻¹M)² / Σ_x g(x) max_a zᵀΣ⁻¹MΣ⁻¹z),  M = Σ w(a,x) z zᵀ,  Σ w = 1.
    Cauchy-Schwarz: (tr Σ⁻¹M)² ≤ tr(Σ'⁻¹M) tr(Σ'Σ⁻¹MΣ⁻¹) for the covariance Σ' of any other design, and
    tr(Σ'⁻¹M) is a weighted mean of its leverages.  Without `weights`, uses the best w ∝ lev^k, k = 1, ..., 4095.

    >>> round(lower_bound(np.eye(2)[None], np.ones(1), np.array([[0.5, 0.5]])), 12)
    2.0
    """
    white = z @ whitener(covariance(z, g, e)).T
    lev = np.einsum("xai,xai->xa", white, white)
    candidates = [(lev / lev.max()) ** k for k in SHARPNESS] if weights is None else [weights]
    return max(float(z.shape[2]), *(_bound(white, g, w) for w in candidates))


def _bound(white: Floats, g: Floats, w: Floats) -> float:
    """Return (tr M)² / Σ_x g(x) max_a zᵀMz in coordinates where the covariance is the identity."""
    if w.min() < 0.0 or not 0.0 < w.sum() < np.inf:
        raise ValueError("The weights of a lower bound must be finite, not negative and not all zero.")
    flat = white.reshape(-1, white.shape[2])
    moment = (flat * (w / w.sum()).reshape(-1, 1)).T @ flat
    score = np.einsum("ij,ij->i", flat @ moment, flat).reshape(w.shape)
    return float(np.trace(moment) ** 2 / (g @ score.max(axis=1)))


def whitener(sigma: Floats) -> Floats:
    """Return C with C Σ Cᵀ = I, the inverse Cholesky factor; raise ValueError if Σ is not positive definite."""
    try:
        return inverse_factor(sigma)
    except np.linalg.LinAlgError:
        low, high = np.linalg.eigvalsh(sigma)[[0, -1]]
        raise ValueError(
            f"The covariance of the design is not positive definite (eigenvalues {low:.3g} to {high:.3g}): "
            "some direction of the features is never played. Give positive probability to arms that span it."
        ) from None


def inverse_factor(sigma: Floats) -> Floats:
    """Return C with C Σ Cᵀ = I; LinAlgError if Σ is not positive definite."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(sigma)))
