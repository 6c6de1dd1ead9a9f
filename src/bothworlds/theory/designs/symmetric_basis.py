"""Symmetric d x d matrices as vectors of d(d+1)/2 numbers, with tr AB as the plain inner product."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bothworlds.arrays import Floats
from bothworlds.theory.designs.pairs import Pairs


class Basis(NamedTuple):
    """Orthonormal basis of the symmetric matrices: indices i, j of the upper triangle, ``root`` 1 or √2, matrices."""

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    root: Floats
    matrices: Floats

    def vector(self, matrix: Floats) -> Floats:
        """Return the coordinates of a symmetric matrix."""
        return np.asarray(matrix[self.i, self.j] * self.root)

    def matrix(self, vector: Floats) -> Floats:
        """Return the symmetric matrix with these coordinates."""
        out = np.zeros(self.matrices.shape[1:])
        out[self.i, self.j] = out[self.j, self.i] = vector / self.root
        return out

    def squares(self, z: Floats) -> Floats:
        """Return the coordinates of z zᵀ, one row per row of z."""
        out = z[:, self.i] * z[:, self.j]
        out *= self.root
        return np.asarray(out)

    def sandwich(self, left: Floats, right: Floats) -> Floats:
        """Return the matrix of the linear map X -> (A X C + (A X C)ᵀ) / 2."""
        image = left @ self.matrices @ right
        image = image + image.transpose(0, 2, 1)
        return np.asarray((image[:, self.i, self.j] * (self.root / 2.0)).T)


def basis(d: int) -> Basis:
    """Build the basis for d x d matrices."""
    i, j = np.triu_indices(d)
    root = np.where(i == j, 1.0, np.sqrt(2.0))
    matrices = np.zeros((len(i), d, d))
    index = np.arange(len(i))
    matrices[index, i, j] = matrices[index, j, i] = 1.0 / root
    return Basis(i, j, root, matrices)


def scatter_within(pairs: Pairs, base: Basis, curvature: Floats) -> Floats:
    """Return Σ g D (q - q̄_x)(q - q̄_x)ᵀ, where q = vec(z zᵀ) and q̄_x is its D-weighted mean in the context.

    Centres before the product, because the difference of uncentred products loses all digits when one arm dominates.
    """
    share = curvature / pairs.sums(curvature)[pairs.context]
    weight = np.sqrt(pairs.mass * curvature)
    total = np.zeros((len(base.i), len(base.i)))
    for part, contexts in pairs.chunks():
        q = base.squares(pairs.z[part])
        start = pairs.start[contexts] - part.start
        mean = np.add.reduceat(share[part, None] * q, start)
        q -= mean[pairs.context[part] - contexts.start]
        q *= weight[part, None]
        total += q.T @ q
    return total


def scatter_about(pairs: Pairs, base: Basis, weight: Floats, centre: Floats) -> Floats:
    """Return Σ v (q - centre)(q - centre)ᵀ over all pairs."""
    root = np.sqrt(weight)
    total = np.zeros((len(base.i), len(base.i)))
    for part, _ in pairs.chunks():
        q = base.squares(pairs.z[part])
        q -= centre
        q *= root[part, None]
        total += q.T @ q
    return total
