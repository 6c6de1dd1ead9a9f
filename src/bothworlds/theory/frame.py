"""The coordinates in which a policy works: Sigma(e*) is the identity."""

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import even_play
from bothworlds.problem import Problem
from bothworlds.problem.whitening import PASSES, whitening
from bothworlds.theory import designs
from bothworlds.theory.design import Design


def whitened(problem: Problem, exploration: Floats) -> Floats:
    """Return features (S, K, d) in coordinates where Sigma(e*) is the identity.

    Every algorithm that uses Sigma_t^-1 is invariant under such a map; it makes the condition number of Sigma_t
    at most 1/(gamma_t lambda). One pass leaves an error of the order of the condition number of Sigma(e*), large
    with rare contexts; the next passes remove it.
    """
    return whiten(problem.span.coordinates, problem.probabilities, exploration)


def whiten(z: Floats, g: Floats, exploration: Floats) -> Floats:
    """Map features z (S, K, d) linearly so that sum_x g(x) sum_a e(a|x) z z^T is the identity."""
    for _ in range(PASSES):
        values, turned = whitening(designs.covariance(z, g, exploration))
        if not values[0] > 0.0:
            raise ValueError(
                f"the covariance of exploration has eigenvalues from {values[0]:.3g} to {values[-1]:.3g}: a direction "
                f"of the features is lost in rounding. The rarest context has probability {g.min():.3g}; leave out "
                "contexts that hardly ever come"
            )
        z = z @ turned
    return z


def even_frame(problem: Problem) -> dict[str, Floats]:
    """Return arrays that do not depend on the probabilities of contexts: even play, and features of length 1 at most.

    >>> even_frame(Problem(features=[[[3.0], [-6.0]]], probabilities=[1]))["coordinates"].round(9).tolist()
    [[[0.5], [-1.0]]]
    """
    z = problem.span.coordinates
    longest = float(np.sqrt((z**2).sum(axis=2)).max())
    return {"exploration": even_play(problem.available), "coordinates": z / longest}


def frame_of(problem: Problem, explore: Design) -> dict[str, Floats]:
    """Return the arrays from which a machine can be built again, bit for bit."""
    return {
        "exploration": explore.exploration,
        "coverage": np.array([explore.coverage, explore.coverage_limit]),
        "coordinates": whitened(problem, explore.exploration),
    }
