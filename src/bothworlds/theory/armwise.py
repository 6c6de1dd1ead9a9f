"""A problem as P.Indep, one feature vector per context and one theta per arm: coordinates and scales.

A problem made by `Problem.from_arm_independent` gives its vectors back. Any other is stacked (Theorem 4.5), x =
(phi(1, x), ..., phi(K, x)), and projected on what these vectors span. If they are linearly independent, every linear
algorithm learns each context on its own; if they do not fill all d K dimensions, lambda_min = 0. Either is said.

Coordinates are such that E[X X^T] is the identity. That costs nothing where covariances are inverted exactly, and is
the best that can be done for Matrix Geometric Resampling, whose number of draws grows with max |x|^2/lambda_min. It
also bounds the parameters, |theta_a|^2 = E<X, theta_a>^2 <= 1: no bound on them need be known.
"""

import warnings
from typing import NamedTuple

import numpy as np

from bothworlds.errors import users_line
from bothworlds.kernels.arrays import Bools, Floats
from bothworlds.kernels.contract import even_play
from bothworlds.problem import DegenerateProblemWarning, Problem
from bothworlds.problem.span import RELATIVE_RANK, span_of
from bothworlds.problem.transform import undo_blocks
from bothworlds.theory.frame import whiten


class Scales(NamedTuple):
    """What rates depend on.

    With Sigma_a(e) = sum_x g(x) e(a|x) x x^T for the exploration policy e; where all K arms are offered everywhere and
    e is uniform, Sigma_a(e) = Sigma/K. Arm-dependent features have a single Sigma(e).
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
    """Return one vector per context, shape (S, rank), with E[X X^T] = I; warn where the problem degenerates."""
    own = undo_blocks(problem.features)
    S = problem.n_contexts
    masked = np.where(problem.available[:, :, None], problem.features, 0.0)
    x = masked.reshape(S, -1) if own is None else own
    z = span_of(x[:, None, :], np.ones((S, 1), dtype=bool)).coordinates
    if own is None:
        _warn_of_stacking(S, z.shape[2], problem.n_arms * problem.dimension)
    return whiten(z, problem.probabilities, np.ones((S, 1)))[:, 0, :]


def _warn_of_stacking(n_contexts: int, rank: int, full: int) -> None:
    """Say where the stacked problem of Theorem 4.5 is degenerate: contexts on their own, or lambda_min = 0."""
    if rank == n_contexts:
        what = (
            f"those of the {n_contexts} contexts are linearly independent: an algorithm for arm-independent features "
            "learns each context and arm on its own here. Algorithms for arm-dependent features share what they learn"
        )
    elif rank < full:
        what = (
            f"they fill {rank} of {full} dimensions: the covariance is singular, and bounds that divide by its "
            "smallest eigenvalue are empty. It plays on what they span; algorithms for arm-dependent features need not"
        )
    else:
        return
    sentence = f"the features depend on the arm, and stacked over the arms {what}"
    warnings.warn(sentence, DegenerateProblemWarning, stacklevel=users_line())


def armwise_frame(problem: Problem) -> dict[str, Floats]:
    """Return the arrays from which a machine can be built again: contexts, exploration, scales, complements.

    Exploration is uniform over the arms offered. ``complements`` is empty where all arms are offered everywhere; else
    it has for each arm the projection on what the contexts that offer it do not span.
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
    """Return for each arm the projection on what the contexts that offer nothing else do not span, or an empty array.

    Like ``complements``: a base that leaves an arm out plays it there all the same.
    """
    d = x.shape[1]
    if problem.available.all():
        return np.zeros((0, d, d))
    alone = problem.available & (problem.available.sum(axis=1, keepdims=True) == 1)
    bases = [span_basis(x[alone[:, a]]) for a in range(problem.n_arms)]
    return np.array([np.eye(d) - basis @ basis.T for basis in bases])


def span_basis(x: Floats) -> Floats:
    """Return an orthonormal basis (d, rank) of the span of the rows, which may differ wildly in length."""
    lengths = np.sqrt((x**2).sum(axis=1, keepdims=True))
    _, values, rows = np.linalg.svd(x / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    return np.asarray(rows[values > RELATIVE_RANK * values.max(initial=0.0)].T)


def arm_inverse(x: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return A^+ of A = sum of weights x x^T, the positive eigenvalues of A, and x^T A^+ x of every row."""
    basis = span_basis(x)
    values, vectors = np.linalg.eigh((x @ basis * weights[:, None]).T @ (x @ basis))
    axes = basis @ vectors
    return axes / values @ axes.T, values, np.asarray(((x @ axes) ** 2 / values).sum(axis=1))


def _masked_scales(x: Floats, g: Floats, e: Floats, offered: Bools) -> tuple[Scales, Floats]:
    """Compute scales and complements arm by arm, where some arms are not offered everywhere."""
    d = x.shape[1]
    complements = np.zeros((offered.shape[1], d, d))
    dimension, leverage, norm, floor, radius = 0.0, 0.0, 0.0, np.inf, 0.0
    for a in range(offered.shape[1]):
        mine = x[offered[:, a]]
        weights = (g * e[:, a])[offered[:, a]]
        basis = span_basis(mine)
        complements[a] = np.eye(d) - basis @ basis.T
        _, values, levers = arm_inverse(mine, weights)
        if len(values) == 0:
            continue
        dimension += len(values)
        leverage = max(leverage, float(levers.max()))
        norm = max(norm, float((mine**2).sum(axis=1).max()))
        floor = min(floor, float(values.min()))
        radius = max(radius, float(weights.sum() / values.min()))
    return Scales(dimension, leverage, norm, floor, radius), complements


def robust_frame(problem: Problem) -> dict[str, Floats]:
    """Return the arrays of an importance-weighted estimate: contexts, exploration, scales, inverses.

    The matrix of arm a is Sigma_a = sum of g(x) x x^T over the contexts that offer it, whatever the policy: the
    identity where all do, and then ``inverses`` is empty. With n the most arms offered in a context, scales are n
    sum_x g(x) max_a x^T Sigma_a^+ x (K d where all arms are offered) and n max_{a,x} x^T Sigma_a^+ x.
    """
    x, g = contexts_of(problem), problem.probabilities
    offered = problem.available
    counts = offered.sum(axis=1)
    (S, d), most = x.shape, int(counts.max())
    inverses = np.zeros((0 if offered.all() else problem.n_arms, d, d))
    highest = (x**2).sum(axis=1) if offered.all() else np.zeros(S)
    for a in range(len(inverses)):
        mine = x[offered[:, a]]
        inverses[a], _, levers = arm_inverse(mine, g[offered[:, a]])
        highest[offered[:, a]] = np.maximum(highest[offered[:, a]], levers)
    scales = Scales(most * float(g @ highest), most * float(highest.max()), float((x**2).sum(axis=1).max()), 1.0, 1.0)
    return {"contexts": x, "exploration": offered / counts[:, None], "scales": np.array(scales), "inverses": inverses}
