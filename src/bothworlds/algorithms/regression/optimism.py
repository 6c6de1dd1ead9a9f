"""Optimism in the face of uncertainty on a ridge regression: LinUCB and OFUL, which differ in the confidence width."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bothworlds.algorithms.options import check_within
from bothworlds.algorithms.regression.ridge import State, Work, add_play, estimate, play_lower_bounds, ridge_machine
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, larger, logarithm, root
from bothworlds.kernels.contract import Known, Machine, build_kernel
from bothworlds.kernels.exact_ftrl import choose_only
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.status import OK
from bothworlds.open_contexts.open_algorithm import OpenAlgorithm
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem


class Width(NamedTuple):
    """Hyper-parameters of LinUCB."""

    width: float


class Ellipsoid(NamedTuple):
    """Hyper-parameters of OFUL."""

    delta: float
    ridge: float
    bound: float


@kernel
def radius(options: Ellipsoid, state: State) -> Number:
    """Return R sqrt(log(det V/(ridge^d delta^2))) + sqrt(ridge) bound, R = 1 for losses in [-1, 1]."""
    log_determinant = 0.0
    for i in range(state.inverse.shape[0]):
        log_determinant = log_determinant - (2.0 * logarithm(state.inverse[i, i]) + math.log(options.ridge))
    noise = root(larger(log_determinant, 0.0) - 2.0 * math.log(options.delta))
    return noise + math.sqrt(options.ridge) * options.bound


@kernel
def refresh_by_width(known: Known, options: Width, state: State, work: Work) -> int:
    """Estimate theta, and play the arm with the smallest lower bound in each context; ties share evenly."""
    status = estimate(state, work.half)
    if status == OK:
        play_lower_bounds(known, state, work, options.width + 0.0 * state.t[0])
    return status


@kernel
def refresh_by_ellipsoid(known: Known, options: Ellipsoid, state: State, work: Work) -> int:
    """Estimate theta, and play the smallest lower bound with the radius of the confidence ellipsoid."""
    status = estimate(state, work.half)
    if status == OK:
        play_lower_bounds(known, state, work, radius(options, state))
    return status


BY_WIDTH = build_kernel(refresh_by_width, choose_only, add_play, together=True)
BY_ELLIPSOID = build_kernel(refresh_by_ellipsoid, choose_only, add_play, together=True)


@dataclass(frozen=True, kw_only=True)
class LinUCB(OpenAlgorithm):
    """Play the arm with the smallest lower confidence bound <phi, theta_hat> - width |phi|_{V^-1} of the loss.

    For a stationary world only: theta_hat is a ridge regression on all plays, so an adversary, or corruption before
    the arms are distinguished, makes the regret grow linearly. No guarantee for a constant width; `OFUL` has one. Not
    invariant under linear maps of the features. One round costs O(S K d^2 + d^3) (all contexts are ranked).
    References: Li, Chu, Langford and Schapire 2010; Chu, Li, Reyzin and Schapire 2011.

    Also starts on an `OpenProblem`, where an index is computed when a request comes.

    Parameters
    ----------
    width
        Factor of the confidence width, 0.2 to 2 in practice.
    ridge
        V starts as ridge times the identity.

    >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    >>> policy = LinUCB(width=0.5).start(problem, rng=7)
    >>> policy.update(policy.act("day"), reward=0)
    >>> policy.probabilities("day").tolist()  # red was played, and brought nothing
    [0.0, 1.0]
    """

    width: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        check_within(self, "width", 0.0, math.inf, closed=True)
        check_within(self, "ridge", 0.0, math.inf)

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        return ridge_machine(BY_WIDTH, problem, Width(self.width), ridge=self.ridge)


@dataclass(frozen=True, kw_only=True)
class OFUL(Algorithm):
    """Play the arm with the smallest lower confidence bound, with the radius of the determinant form.

    With probability at least 1 - delta, for all t, |theta_hat - theta_0|_V <= sqrt(log(det V/(ridge^d delta^2))) +
    sqrt(ridge) |theta_0|, losses in [-1, 1]. Proved for the stochastic regime only: regret O(d sqrt(T) log T), and
    squared-logarithmic with a gap; linear against an adversary. One round costs O(S K d^2 + d^3). Reference:
    Abbasi-Yadkori, Pal and Szepesvari 2011.

    Parameters
    ----------
    delta
        Probability of a wrong confidence set; 1/T for expected regret.
    ridge
        V starts as ridge times the identity.
    bound
        An upper bound on |theta_0|.

    >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    >>> policy = OFUL(delta=0.01).start(problem, rng=7)
    >>> policy.update(policy.act("day"), reward=0)
    >>> policy.probabilities("day").tolist()  # red was played, and brought nothing
    [0.0, 1.0]
    """

    delta: float = 1e-4
    ridge: float = 1.0
    bound: float = 1.0

    def __post_init__(self) -> None:
        check_within(self, "delta", 0.0, 1.0)
        check_within(self, "ridge", 0.0, math.inf)
        check_within(self, "bound", 0.0, math.inf, closed=True)

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        return ridge_machine(BY_ELLIPSOID, problem, Ellipsoid(self.delta, self.ridge, self.bound), ridge=self.ridge)
