"""LinUCB: optimism with a constant width (Li et al. 2010, Chu et al. 2011)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bothworlds.algorithms.regression.ridge import (
    State,
    Work,
    add_play,
    estimate,
    play_lower_bounds,
    ridge_machine,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known, Machine, kernel_text
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.plan import choose_only
from bothworlds.kernels.status import OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem


class Options(NamedTuple):
    """Hyper-parameters."""

    width: float


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Estimate theta, and play the smallest lower bound of each context, ties at random."""
    status = estimate(state, work.half)
    if status == OK:
        play_lower_bounds(known, state, work, options.width + 0.0 * state.t[0])
    return status


TEXT = kernel_text(refresh, choose_only, add_play, together=True)


@dataclass(frozen=True, kw_only=True)
class LinUCB(Algorithm):
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

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; it needs no frame."""
        return ridge_machine(TEXT, problem, Options(self.width), ridge=self.ridge)
