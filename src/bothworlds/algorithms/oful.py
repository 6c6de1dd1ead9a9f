"""OFUL: optimism with a confidence ellipsoid (Abbasi-Yadkori, Pal, Szepesvari 2011)."""

from dataclasses import dataclass

from bothworlds.algorithms.optimism import DETERMINANT, optimistic_machine
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import Seed
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem


@dataclass(frozen=True, kw_only=True)
class OFUL:
    """Play the arm of smallest lower confidence bound, with the radius of the determinant form.

    With probability at least 1 - delta, for all t, |theta_hat - theta_0|_V <= sqrt(log(det V/(ridge^d delta^2))) +
    sqrt(ridge) |theta_0|, losses in [-1, 1]. Proved for the stochastic regime only: regret O(d sqrt(T) log T), and
    squared-logarithmic with a gap; linear against an adversary. One round costs O(S K d^2 + d^3).

    Parameters
    ----------
    delta
        Probability of a wrong confidence set; 1/T for expected regret.
    ridge
        V starts as ridge times the identity.
    bound
        A bound on |theta_0|.
    """

    delta: float = 1e-4
    ridge: float = 1.0
    bound: float = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.delta < 1.0 and self.ridge > 0.0 and self.bound >= 0.0):
            raise ValueError(
                "delta must lie in (0, 1), ridge be positive and bound not negative; "
                f"got {self.delta!r}, {self.ridge!r}, {self.bound!r}"
            )

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the seed decides ties."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:  # noqa: ARG002
        """Make the algorithm ready for a problem; it needs no frame."""
        return optimistic_machine(problem, self.ridge, [DETERMINANT, self.ridge, self.delta, self.bound])
