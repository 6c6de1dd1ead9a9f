"""Theorem 4.5: the same losses as P.Dep(d, K, T) and as P.Indep(d', K, T), and which bounds carry over."""

from dataclasses import dataclass

import numpy as np

from bothworlds.problem import Problem
from bothworlds.problem.block_features import undo_blocks


@dataclass(frozen=True, kw_only=True)
class Transformation:
    """A problem in both settings.

    Attributes
    ----------
    arms, contexts
        K and S, the same in both.
    dependent, independent
        d of P.Dep and d' of P.Indep. A problem made from arm-independent features has d' as given and d = d' K; any
        other has d as given and d' = d K.
    native
        The setting in which the problem was given: "independent" or "dependent".
    smallest_eigenvalue
        lambda_min of E[x x^T] of the arm-independent features, scaled to max |x| = 1. Bounds of RealLinExp3 and
        related algorithms divide by it. Always zero if S < d', because the rank is at most S.
    """

    arms: int
    contexts: int
    dependent: int
    independent: int
    native: str
    smallest_eigenvalue: float

    @property
    def degenerate(self) -> bool:
        """Whether bounds for P.Indep are empty here: lambda_min = 0."""
        return self.smallest_eigenvalue == 0.0

    def __str__(self) -> str:
        K, d, other = self.arms, self.dependent, self.independent
        if self.native == "independent":
            return (
                f"made from arm-independent features: P.Indep({other}, {K}, T) is P.Dep({d}, {K}, T), so a bound "
                f"f(d, K, T) of an algorithm for arm-dependent features holds as f({d}, {K}, T)"
            )
        note = (
            f"; empty, because {self.contexts} contexts cannot fill {other} dimensions (lambda_min = 0)"
            if self.contexts < other
            else ""
        )
        return (
            f"P.Dep({d}, {K}, T) is P.Indep({other}, {K}, T) with stacked features, so a bound f(d', K, T) of an "
            f"algorithm for arm-independent features holds as f({other}, {K}, T){note}"
        )


def transformation(problem: Problem) -> Transformation:
    """Return a problem's sizes in both settings of Theorem 4.5.

    The theorem states that a regret f(d', K, T) in P.Indep becomes f(d K, K, T) in P.Dep. This is right for bounds in
    d', K and T alone. The bounds it is applied to also divide by lambda_min of the stacked features, which is zero
    whenever S < d K.

    >>> transformation(Problem(features=[[[1, 0], [1, 1]]], probabilities=[1])).degenerate
    True
    >>> print(transformation(Problem.from_arm_independent([[1.0], [2.0]], probabilities=[0.5, 0.5], arms=3)))
    made from arm-independent features: P.Indep(1, 3, T) is P.Dep(3, 3, T), so a bound
    f(d, K, T) of an algorithm for arm-dependent features holds as f(3, 3, T)
    """
    original = undo_blocks(problem.features)
    S, K, d = problem.n_contexts, problem.n_arms, problem.dimension
    x = problem.span.coordinates.reshape(S, K * d) if original is None else original
    return Transformation(
        arms=K,
        contexts=S,
        dependent=d,
        independent=x.shape[1],
        native="dependent" if original is None else "independent",
        smallest_eigenvalue=_smallest_eigenvalue(np.asarray(x), problem.probabilities),
    )


def _smallest_eigenvalue(x: np.ndarray, g: np.ndarray) -> float:
    """Return lambda_min of sum_x g(x) x x^T, features scaled to max |x| = 1; zero if it is zero up to rounding."""
    if len(x) < x.shape[1]:
        return 0.0
    scaled = x / np.sqrt((x**2).sum(axis=1).max())
    values = np.linalg.svd(np.sqrt(g)[:, None] * scaled, compute_uv=False)
    return float(values[-1] ** 2) if values[-1] > 1e-10 * values[0] else 0.0
