"""LinUCB: optimism with a constant width (Li et al. 2010, Chu et al. 2011)."""

from dataclasses import dataclass

from bothworlds.algorithms.optimism import CONSTANT, optimistic_machine
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import Seed
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem


@dataclass(frozen=True, kw_only=True)
class LinUCB:
    """Play the arm of smallest lower confidence bound <phi, theta_hat> - width |phi|_{V^-1} of the loss.

    For a stationary world only: theta_hat is a ridge regression on all plays, so an adversary, or corruption before
    the arms are told apart, makes the regret grow linearly. No guarantee for a constant width; `OFUL` has one. Not
    invariant under linear maps of the features. One round costs O(S K d^2 + d^3) (all contexts are ranked).

    Parameters
    ----------
    width
        How optimistic, 0.2 to 2 in practice.
    ridge
        V starts as ridge times the identity.
    """

    width: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not (self.width >= 0.0 and self.ridge > 0.0):
            raise ValueError(
                f"width must not be negative and ridge must be positive; got {self.width!r}, {self.ridge!r}"
            )

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the seed decides ties."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:  # noqa: ARG002
        """Make the algorithm ready for a problem; it needs no frame."""
        return optimistic_machine(problem, self.ridge, [CONSTANT, self.width])
