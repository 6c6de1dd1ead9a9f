"""Coordinates in which policies compute: Sigma(e*) is the identity."""

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.contract import even_play
from bothworlds.problem import Problem
from bothworlds.problem.feature_space import PASSES, whitening
from bothworlds.problem.one_hot import one_hot
from bothworlds.theory import designs
from bothworlds.theory.design import Design


def whitened(problem: Problem, exploration: Floats) -> Floats:
    """Return features (S, K, d) in coordinates where Sigma(e*) is the identity.

    Every algorithm that uses Sigma_t^-1 is invariant under such a map. The condition number of Sigma_t is then at most
    1/(gamma_t lambda). One pass leaves an error of the order of the condition number of Sigma(e*), which is large with
    rare contexts; further passes remove it.
    """
    return whiten(problem.span.coordinates, problem.probabilities, exploration)


def whiten(z: Floats, g: Floats, exploration: Floats) -> Floats:
    """Map features z (S, K, d) linearly so that sum_x g(x) sum_a e(a|x) z z^T is the identity.

    One-hot coordinates of pairs that are all played stay one-hot: each is divided by the root of its variance.
    """
    played = g[:, None] * exploration
    chosen = played > 0.0
    axes = one_hot(z[chosen]) if int(chosen.sum()) == z.shape[2] else None
    if axes is not None:
        one_per_pair = np.zeros_like(z)
        one_per_pair[(*np.nonzero(chosen), axes.columns)] = np.sign(axes.values) / np.sqrt(played[chosen])
        return one_per_pair
    for _ in range(PASSES):
        values, whitener = whitening(designs.covariance(z, g, exploration))
        if not values[0] > 0.0:
            raise ValueError(
                f"the covariance of exploration has eigenvalues from {values[0]:.3g} to {values[-1]:.3g}: a direction "
                f"of the features is lost in rounding. The rarest context has probability {g.min():.3g}; leave out "
                "very rare contexts"
            )
        z = z @ whitener
    return z


def even_frame(problem: Problem) -> dict[str, Floats]:
    """Return arrays that do not depend on the context distribution: uniform play, and features of length at most 1.

    >>> even_frame(Problem(features=[[[3.0], [-6.0]]], probabilities=[1]))["coordinates"].round(9).tolist()
    [[[0.5], [-1.0]]]
    """
    z = problem.span.coordinates
    longest = float(np.sqrt((z**2).sum(axis=2)).max())
    return {"exploration": even_play(problem.available), "coordinates": z / longest}


def frame_of(problem: Problem, explore: Design) -> dict[str, Floats]:
    """Return the arrays that determine a machine bit for bit: exploration, coverage and coordinates."""
    return {
        "exploration": explore.exploration,
        "coverage": np.array([explore.coverage, explore.coverage_limit]),
        "coordinates": whitened(problem, explore.exploration),
    }
