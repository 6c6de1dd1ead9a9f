"""Problems for exploration designs, in coordinates of full rank."""

import numpy as np

from bothworlds.arrays import Bools, Floats

Instance = tuple[Floats, Floats, Bools]
KINDS = ["unit", "heavy", "sparse", "integer", "masked", "flat"]


def coordinates(z: Floats, offered: Bools) -> Floats:
    """Full-rank coordinates in which the plain average of z zᵀ over offered cells is the identity."""
    left, size, _ = np.linalg.svd(z[offered], full_matrices=False)
    kept = size > 1e-10 * size[0]
    out = np.zeros((*offered.shape, int(kept.sum())))
    out[offered] = left[:, kept] * np.sqrt(offered.sum())
    return out


def instance(S: int, K: int, d: int, seed: int, kind: str = "unit") -> Instance:
    """A problem with an uneven g; heavy norms, sparse or integer features, arms missing, or nearly one direction."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((S, K, d))
    z /= np.linalg.norm(z, axis=2, keepdims=True)
    offered = np.ones((S, K), dtype=bool)
    if kind == "heavy":
        z *= np.abs(rng.standard_t(1.5, (S, K, 1)))
    if kind == "sparse":
        z *= rng.random((S, K, d)) < 0.3
    if kind == "integer":
        z = np.round(1.5 * z)
    if kind == "masked":
        offered = rng.random((S, K)) < 0.6
        offered[np.arange(S), rng.integers(0, K, S)] = True
    if kind == "flat":
        z = z[:, :, :1] * z[0, 0] + 0.01 * z
    if not z[offered].any():
        z[offered] = 1.0
    z[~offered] = 0.0
    g = rng.dirichlet(np.ones(S)) + 1e-6
    return coordinates(z, offered), g / g.sum(), offered
