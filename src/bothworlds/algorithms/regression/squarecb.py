"""SquareCB (Foster and Rakhlin 2020): inverse gap weighting on a ridge regression, with known propensities."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from bothworlds.algorithms.options import check_within
from bothworlds.algorithms.regression.ridge import add_play, add_smallest, ridge_machine
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, larger, root, where
from bothworlds.kernels.contract import Known, Machine, build_kernel
from bothworlds.kernels.exact_ftrl import choose_only
from bothworlds.kernels.ftrl_points import smallest
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch
from bothworlds.kernels.least_squares import ridge_estimate
from bothworlds.kernels.linalg import product
from bothworlds.kernels.status import OK
from bothworlds.open_contexts.open_algorithm import OpenAlgorithm
from bothworlds.problem import Problem


class Options(NamedTuple):
    """Hyper-parameters: gamma_t = scale sqrt(K t/d)."""

    scale: float


class State(NamedTuple):
    """Learner state: the clock, V and sum of phi loss; then the plan."""

    t: Annotated[Floats, learnt()]
    response: Annotated[Floats, learnt("d")]
    sigma: Annotated[Floats, learnt("d", "d")]
    theta: Annotated[Floats, planned("d")]
    factor: Annotated[Floats, planned("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: the predicted loss of every arm of a context."""

    losses: Annotated[Floats, scratch("K", packed=True)]


@kernel
def inverse_gap_weights(losses: Floats, gamma: Number, pi: Floats) -> None:
    """Write p_a = 1/(n + gamma (f_a - min f)) of n offered arms; the best arm, or all best arms, get what is left.

    Losses are infinite where an arm is not offered.

    >>> import numpy as np
    >>> pi = np.zeros(3)
    >>> inverse_gap_weights(np.array([0.2, math.inf, 0.1]), 20.0, pi)
    >>> pi.tolist()
    [0.25, 0.0, 0.75]
    """
    best = smallest(losses)
    count = 0.0 * best
    for a in range(losses.shape[0]):
        count = count + where(losses[a] < math.inf, 1.0, 0.0)
        pi[a] = 0.0
    add_smallest(losses, pi)
    left = 1.0 + 0.0 * best
    for a in range(losses.shape[0]):
        left = left - where(losses[a] < math.inf, 1.0 / (count + gamma * (losses[a] - best)), 0.0)
    left = larger(left, 0.0)
    for a in range(losses.shape[0]):
        weight = where(losses[a] < math.inf, 1.0 / (count + gamma * (losses[a] - best)), 0.0)
        pi[a] = weight + left * pi[a]


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Estimate theta, predict the losses of every context, and weight the arms by their predicted gaps."""
    status = ridge_estimate(state.sigma, state.response, state.factor, state.theta)
    if status != OK:
        return status
    K, d = state.pi.shape[1], state.theta.shape[0]
    gamma = options.scale * root(state.t[0] * (K / d))
    for x in range(state.pi.shape[0]):
        for a in range(K):
            work.losses[a] = product(state.theta, known.z[x, a]) + known.blocked[x, a]
        inverse_gap_weights(work.losses, gamma, state.pi[x])
    return OK


KERNEL = build_kernel(refresh, choose_only, add_play, together=True)


@dataclass(frozen=True, kw_only=True)
class SquareCB(OpenAlgorithm):
    """Play an arm with a probability that falls with its predicted gap: 1/(n + gamma_t gap), n arms being offered.

    A ridge regression predicts the loss of every arm; the arm of the smallest prediction gets the rest of the
    probability. gamma_t = scale sqrt(K t/d) grows with the number of answers, so play becomes greedy. Every offered
    arm keeps a positive probability in every round, and propensities are exact, as a log for evaluation needs them.

    Proved for a stationary world whose losses are linear: regret O(sqrt(K T R)) with R = O(d log T) the regret of the
    regression in squared loss, for gamma = 4 sqrt(K T/R) chosen in advance (Foster and Rakhlin 2020); gamma_t follows
    that choice without the horizon. The contexts may be chosen by an adversary, the losses may not: against an
    adversary nothing is proved. No logarithmic regret with gaps. One round costs O(S K d + d^3).

    Also starts on an `OpenProblem`, where an index is computed when a request comes.

    Parameters
    ----------
    scale
        Factor of gamma_t; larger explores less. 1 to 20 in practice.
    ridge
        The regression starts with ridge times the identity.

    >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    >>> policy = SquareCB().start(problem, rng=7)
    >>> policy.probabilities("day").tolist()
    [0.5, 0.5]
    """

    scale: float = 4.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        check_within(self, "scale", 0.0, math.inf)
        check_within(self, "ridge", 0.0, math.inf)

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        return ridge_machine(KERNEL, problem, Options(self.scale), ridge=self.ridge)
