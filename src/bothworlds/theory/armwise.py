"""Coordinates and scales of a problem as P.Indep: one feature vector per context and one theta per arm.

A problem made by `Problem.from_arm_independent` keeps its vectors. Any other problem is stacked (Theorem 4.5), x =
(phi(1, x), ..., phi(K, x)), and projected on the span of these vectors. Two cases give a warning: if the vectors are
linearly independent, every linear algorithm learns each context on its own; if they do not span all d K dimensions,
lambda_min = 0.

In these coordinates E[X X^T] is the identity. That changes nothing where covariances are inverted exactly, and is
the best choice for Matrix Geometric Resampling, whose number of draws grows with max |x|^2/lambda_min. It also bounds
the parameters: |theta_a|^2 = E<X, theta_a>^2 <= 1.
"""

import warnings
from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.errors import user_stacklevel
from bothworlds.kernels.contract import even_play
from bothworlds.problem import DegenerateProblemWarning, Problem
from bothworlds.problem.block_features import undo_blocks
from bothworlds.problem.feature_space import RELATIVE_RANK, span_of
from bothworlds.theory.coordinates import whiten


class Scales(NamedTuple):
    """Properties of a problem that learning and exploration rates depend on.

    Sigma_a(e) = sum_x g(x) e(a|x) x x^T for the exploration policy e. Where all K arms are offered everywhere and e
    is uniform, Sigma_a(e) = Sigma/K. Arm-dependent features have a single Sigma(e).
    """

    dimension: float  # sum over arms of the rank of Sigma_a(e): K d where all arms are offered
    leverage: float  # 1/lambda: max of x^T Sigma_a(e)^-1 x, at least the dimension
    norm: float  # sigma^2: max |x|^2
    floor: float  # smallest positive eigenvalue of all Sigma_a(e): 1/K where all arms are offered
    radius: float  # R^2: bound on |theta_a|^2

    @property
    def resampling(self) -> float:
        """The scale sigma^2/floor of resampling: K sigma^2/lambda_min where all arms are offered; at least 1/lambda."""
        return self.norm / self.floor


def contexts_of(problem: Problem) -> Floats:
    """Return one vector per context, shape (S, rank), with E[X X^T] = I; warn if the stacked problem is degenerate."""
    original = undo_blocks(problem.features)
    S = problem.n_contexts
    masked = np.where(problem.available[:, :, None], problem.features, 0.0)
    x = masked.reshape(S, -1) if original is None else original
    z = span_of(x[:, None, :], np.ones((S, 1), dtype=bool)).coordinates
    if original is None:
        _warn_of_stacking(S, z.shape[2], problem.n_arms * problem.dimension)
    return whiten(z, problem.probabilities, np.ones((S, 1)))[:, 0, :]


def _warn_of_stacking(n_contexts: int, rank: int, full: int) -> None:
    """Warn where the stacked problem of Theorem 4.5 shares nothing between contexts, or has lambda_min = 0."""
    if rank == n_contexts:
        consequence = (
            f"those of the {n_contexts} contexts are linearly independent: an algorithm for arm-independent features "
            "learns each context and arm on its own here. Algorithms for arm-dependent features share what they learn"
        )
    elif rank < full:
        consequence = (
            f"they fill {rank} of {full} dimensions: the covariance is singular, and bounds that divide by its "
            "smallest eigenvalue are empty. The algorithm works on their span only; algorithms for arm-dependent "
            "features do not have this limit"
        )
    else:
        return
    message = f"the features depend on the arm, and stacked over the arms {consequence}"
    warnings.warn(message, DegenerateProblemWarning, stacklevel=user_stacklevel())


def armwise_frame(problem: Problem) -> dict[str, Floats]:
    """Return the arrays that determine a machine: contexts, exploration, scales, complements.

    Exploration is uniform over the offered arms. ``complements`` (K, d, d) holds for each arm the projection on the
    orthogonal complement of the span of the contexts that offer it. It is empty where all arms are offered everywhere.
    """
    x = contexts_of(problem)
    offered = problem.available
    e = even_play(offered)
    if offered.all():
        K, (_, d) = problem.n_arms, x.shape
        norm = float((x**2).sum(axis=1).max())
        scales, complements = Scales(K * d, K * norm, norm, 1.0 / K, 1.0), np.zeros((0, d, d))
    else:
        scales, complements = _masked_scales(x, problem.probabilities, e, offered)
    return {"contexts": x, "exploration": e, "scales": np.array(scales), "complements": complements}


def lonely_complements(problem: Problem, x: Floats) -> Floats:
    """Return for each arm the projection on the complement of the span of the contexts that offer only this arm.

    Shape (K, d, d); empty where all arms are offered everywhere. A base algorithm that excludes an arm must still play
    it in these contexts.
    """
    d = x.shape[1]
    if problem.available.all():
        return np.zeros((0, d, d))
    single = problem.available & (problem.available.sum(axis=1, keepdims=True) == 1)
    bases = [span_basis(x[single[:, a]]) for a in range(problem.n_arms)]
    return np.array([np.eye(d) - basis @ basis.T for basis in bases])


def span_basis(x: Floats) -> Floats:
    """Return an orthonormal basis (d, rank) of the span of the rows, whatever their lengths."""
    lengths = np.sqrt((x**2).sum(axis=1, keepdims=True))
    _, values, rows = np.linalg.svd(x / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    return np.asarray(rows[values > RELATIVE_RANK * values.max(initial=0.0)].T)


def arm_inverse(x: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return A^+ for A = sum of weights x x^T, the positive eigenvalues of A, and x^T A^+ x of every row."""
    basis = span_basis(x)
    values, vectors = np.linalg.eigh((x @ basis * weights[:, None]).T @ (x @ basis))
    axes = basis @ vectors
    return axes / values @ axes.T, values, np.asarray(((x @ axes) ** 2 / values).sum(axis=1))


def _masked_scales(x: Floats, g: Floats, e: Floats, offered: Bools) -> tuple[Scales, Floats]:
    """Compute scales and complements arm by arm, for problems in which some contexts do not offer all arms."""
    d = x.shape[1]
    complements = np.zeros((offered.shape[1], d, d))
    dimension, leverage, norm, floor, radius = 0.0, 0.0, 0.0, np.inf, 0.0
    for a in range(offered.shape[1]):
        vectors = x[offered[:, a]]
        weights = (g * e[:, a])[offered[:, a]]
        basis = span_basis(vectors)
        complements[a] = np.eye(d) - basis @ basis.T
        _, values, leverages = arm_inverse(vectors, weights)
        if len(values) == 0:
            continue
        dimension += len(values)
        leverage = max(leverage, float(leverages.max()))
        norm = max(norm, float((vectors**2).sum(axis=1).max()))
        floor = min(floor, float(values.min()))
        radius = max(radius, float(weights.sum() / values.min()))
    return Scales(dimension, leverage, norm, floor, radius), complements


def robust_frame(problem: Problem) -> dict[str, Floats]:
    """Return the arrays of importance-weighted estimates: contexts, exploration, scales, inverses.

    The matrix of arm a is Sigma_a = sum of g(x) x x^T over the contexts that offer it, whatever the policy. Where all
    contexts offer all arms it is the identity, and ``inverses`` is empty. With n the largest number of arms offered in
    a context, the scales are n sum_x g(x) max_a x^T Sigma_a^+ x (K d where all arms are offered) and
    n max_{a,x} x^T Sigma_a^+ x.
    """
    x, g = contexts_of(problem), problem.probabilities
    offered = problem.available
    counts = offered.sum(axis=1)
    (S, d), most = x.shape, int(counts.max())
    inverses = np.zeros((0 if offered.all() else problem.n_arms, d, d))
    highest = (x**2).sum(axis=1) if offered.all() else np.zeros(S)
    for a in range(len(inverses)):
        vectors = x[offered[:, a]]
        inverses[a], _, leverages = arm_inverse(vectors, g[offered[:, a]])
        highest[offered[:, a]] = np.maximum(highest[offered[:, a]], leverages)
    scales = Scales(most * float(g @ highest), most * float(highest.max()), float((x**2).sum(axis=1).max()), 1.0, 1.0)
    return {"contexts": x, "exploration": offered / counts[:, None], "scales": np.array(scales), "inverses": inverses}
