"""The coordinates in which a policy works: Sigma(e*) is the identity, cells are padded for vector arithmetic."""

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.entries import World
from bothworlds.problem import Problem
from bothworlds.theory import designs


def whitening(problem: Problem, exploration: Floats) -> Floats:
    """Return B with Sigma(e*) = I for the features z B, z the coordinates of the problem's span.

    Every algorithm that uses Sigma_t^-1 is invariant under such a map; it makes the condition number of Sigma_t
    at most 1/(gamma_t lambda).
    """
    sigma = designs.covariance(problem.span.coordinates, problem.probabilities, exploration)
    values, vectors = np.linalg.eigh(sigma)
    return np.asarray(vectors / np.sqrt(values))


def world_of(problem: Problem, exploration: Floats, basis: Floats, *, width: int) -> World:
    """Return the arrays that the kernels read; features of arms not offered are zero."""
    S, K = problem.available.shape
    d = basis.shape[1]
    features = np.where(problem.available[:, :, None], problem.features, 0.0) @ basis
    cells = -(-S * K // width) * width
    z = np.zeros((d, cells))
    z[:, : S * K] = features.reshape(S * K, d).T
    blocked = np.where(problem.available, 0.0, np.inf)
    return World(z, blocked, np.array(problem.probabilities), np.array(exploration))
