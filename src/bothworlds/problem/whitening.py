"""Coordinates in which a second moment is the identity."""

import numpy as np

from bothworlds.kernels.arrays import Floats

PASSES = 3  # each removes what rounding left of the one before


def whitening(moment: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues of M, rising, and W with W^T M W = I, which is finite where they are positive.

    >>> values, turned = whitening(np.diag([9.0, 4.0]))
    >>> values.tolist(), abs(turned).round(3).tolist()
    ([4.0, 9.0], [[0.0, 0.333], [0.5, 0.0]])
    """
    values, vectors = np.linalg.eigh(moment)
    with np.errstate(divide="ignore", invalid="ignore"):
        return values, vectors / np.sqrt(values)
