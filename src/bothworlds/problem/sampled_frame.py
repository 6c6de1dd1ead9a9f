"""Estimates from a sample of contexts: the span of the features, coordinates for the algorithms, the coverage."""

from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem.feature_space import PASSES, span_of, whitening

SINGULAR = 1e-10


class Frame(NamedTuple):
    """Coordinates z = phi @ basis in which the sampled Sigma(e) is the identity, and phi = z @ lift on the span.

    ``coverage`` is one over the largest leverage |z|^2 of the sample. ``halves`` are the coverages of the two halves of
    the sample, each with its own Sigma(e); their difference shows the error of the estimate.
    """

    basis: Floats
    lift: Floats
    coverage: float
    halves: tuple[float, float]
    notes: tuple[str, ...]


def frame_of_sample(features: Floats, exploration: Floats) -> Frame:
    """Return the frame estimated from features (n, arms, columns) and exploration probabilities (n, arms)."""
    n, K, _ = features.shape
    span = span_of(features, np.ones((n, K), dtype=bool))
    if n < span.rank:
        raise ValueError(
            f"{n} sampled contexts span {span.rank} dimensions, and a larger sample may span more: raise samples to "
            f"several times {span.rank}"
        )
    z, basis = span.coordinates, span.basis
    if np.linalg.eigvalsh(second_moment(z, exploration))[0] <= SINGULAR:
        raise ValueError(
            "the exploration policy does not explore all directions of the features: its second moment over "
            f"{n} sampled contexts is singular. Give every arm a positive probability, or raise samples"
        )
    for _ in range(PASSES):
        _, whitener = whitening(second_moment(z, exploration))
        z, basis = z @ whitener, basis @ whitener
    flat = z.reshape(n * K, -1)
    lift = np.asarray(np.linalg.solve(flat.T @ flat, flat.T @ features.reshape(n * K, -1)), dtype=np.float64)
    half = n // 2
    halves = (coverage_of(z[:half], exploration[:half]), coverage_of(z[half:], exploration[half:]))
    return Frame(basis, lift, coverage_of(z, exploration), halves, span.notes)


def second_moment(z: Floats, exploration: Floats) -> Floats:
    """Return the average over contexts of sum_a e(a) z_a z_a^T."""
    flat = z.reshape(-1, z.shape[2])
    moment: Floats = flat.T @ (flat * exploration.reshape(-1, 1)) / len(z)
    return moment


def coverage_of(z: Floats, exploration: Floats) -> float:
    """Return lambda = 1/max z^T Sigma(e)^-1 z; 0 where Sigma(e) is singular."""
    if len(z) == 0:
        return 0.0
    values, whitener = whitening(second_moment(z, exploration))
    if values[0] <= SINGULAR * values[-1]:
        return 0.0
    return float(1.0 / ((z @ whitener) ** 2).sum(axis=2).max())
