"""D-LinUCB (Russac, Vernade and Cappé 2019): optimism on a regression that forgets, for a world that changes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from bothworlds.algorithms.options import check_within
from bothworlds.algorithms.regression.ridge import BELIEFS, add_smallest, estimate, ridge_machine
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, feature, larger, root
from bothworlds.kernels.contract import Known, Machine, Play, build_kernel
from bothworlds.kernels.exact_ftrl import choose_only
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch
from bothworlds.kernels.linalg import add_row, erase, product, write_inverse
from bothworlds.kernels.status import OK
from bothworlds.open_contexts.open_algorithm import OpenAlgorithm
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number


class Options(NamedTuple):
    """Hyper-parameters: width of the confidence bounds, discount gamma, ridge."""

    width: float
    discount: float
    ridge: float


class State(NamedTuple):
    """Learner state: clock, sum of the weights, V, V~ and sum of weight phi loss; then the plan.

    ``sigma`` is V, ``squared`` is V~, ``inverse`` is G with V^-1 = G^T G, and ``covariance`` is V^-1 V~ V^-1.
    """

    t: Annotated[Floats, learnt()]
    rounds: Annotated[Floats, learnt()]
    response: Annotated[Floats, learnt("d")]
    sigma: Annotated[Floats, learnt("d", "d")]
    squared: Annotated[Floats, learnt("d", "d")]
    theta: Annotated[Floats, planned("d")]
    inverse: Annotated[Floats, planned("d", "d")]
    covariance: Annotated[Floats, planned("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: a half solution, V^-1, V~ V^-1, and the index of every arm of a context."""

    half: Annotated[Floats, scratch("d")]
    inverted: Annotated[Floats, scratch("d", "d")]
    between: Annotated[Floats, scratch("d", "d")]
    scores: Annotated[Floats, scratch("K", packed=True)]


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Any) -> None:
    """Fade V by gamma, V~ by gamma^2 and the response by gamma, keep their ridge, and add the play to all three."""
    gamma, square = options.discount, options.discount * options.discount
    for i in range(state.response.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        state.response[i] = gamma * state.response[i] + play.loss * z
        for j in range(state.response.shape[0]):
            added = z * feature(known.z, play.x, play.a, j)
            state.sigma[i, j] = gamma * state.sigma[i, j] + added
            state.squared[i, j] = square * state.squared[i, j] + added
        state.sigma[i, i] = state.sigma[i, i] + (1.0 - gamma) * options.ridge
        state.squared[i, i] = state.squared[i, i] + (1.0 - square) * options.ridge
    state.rounds[0] = gamma * state.rounds[0] + 1.0
    state.t[0] += 1.0


@kernel
def multiply(left: Floats, right: Floats, out: Floats) -> None:
    """Write the product of two matrices (d, d)."""
    d = out.shape[0]
    for i in range(d):
        erase(out[i])
        for k in range(d):
            add_row(left[i, k], right[k], 0, d, out[i])


@kernel
def quadratic_form(matrix: Floats, z: Floats) -> Number:
    """Return z^T M z."""
    total = z[0] * product(matrix[0], z)
    for i in range(1, z.shape[0]):
        total = total + z[i] * product(matrix[i], z)
    return total


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Estimate theta, and play the arm with the smallest lower bound in each context; ties share evenly."""
    status = estimate(state, work.half)
    if status != OK:
        return status
    write_inverse(state.inverse, work.inverted)
    multiply(state.squared, work.inverted, work.between)
    multiply(work.inverted, work.between, state.covariance)
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            deviation = root(larger(quadratic_form(state.covariance, known.z[x, a]), 0.0))
            work.scores[a] = product(state.theta, known.z[x, a]) - options.width * deviation + known.blocked[x, a]
            state.pi[x, a] = 0.0
        add_smallest(work.scores, state.pi[x])
    return OK


KERNEL = build_kernel(refresh, choose_only, learn, together=True)


@dataclass(frozen=True, kw_only=True)
class DLinUCB(OpenAlgorithm):
    """Play the arm with the smallest lower confidence bound of a regression whose weights fade: D-LinUCB.

    A play that is n answers old has the weight gamma^n, gamma the ``discount``. With V = sum gamma^n phi phi^T +
    ridge I, V~ the same with gamma^(2n), and theta_hat = V^-1 sum gamma^n phi loss, the index of an arm is
    <phi, theta_hat> - width |phi| in the norm of V^-1 V~ V^-1, the covariance of theta_hat. With discount 1 it is
    `LinUCB`. One round costs O(S K d^2 + d^3).

    For a world that changes: it follows the best arm of the day, and its memory of about 1/(1 - gamma) answers must
    suit the pace of the changes. Late answers count from the moment at which they come. Where nothing changes it
    keeps exploring, so its regret grows linearly with a small slope; nothing protects it from an adversary.

    Proved for the width of the paper, which grows with d and log(1/delta), |phi| <= 1 and |theta| <= 1: dynamic
    regret O(T^(3/4)) up to logarithms for gamma tuned to the total change B of theta over the T rounds (Zhao and
    Zhang 2021; the T^(2/3) stated first, with 1 - gamma = (B/(d T))^(2/3), needs more than linear losses). Nothing is
    proved for a constant width. Reference: Russac, Vernade and Cappé 2019.

    Also starts on an `OpenProblem`, where an index is computed when a request comes.

    Parameters
    ----------
    width
        Factor of the confidence width, 0.2 to 2 in practice.
    discount
        gamma in (0, 1]. The default remembers about 500 answers: a compromise, right for no world in particular. 0.98
        suits changes every few hundred rounds, 0.9995 changes every ten thousand.
    ridge
        V and V~ start as ridge times the identity, and keep that much of it.

    >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    >>> policy = DLinUCB(discount=0.99).start(problem, rng=7)
    >>> policy.update(policy.act("day"), reward=0)
    >>> policy.probabilities("day").tolist()  # red was played, and brought nothing
    [0.0, 1.0]
    """

    width: float = 1.0
    discount: float = 0.998
    ridge: float = 1.0

    def __post_init__(self) -> None:
        check_within(self, "width", 0.0, math.inf, closed=True)
        check_within(self, "ridge", 0.0, math.inf)
        if not is_number(self.discount) or not 0.0 < self.discount <= 1.0:
            raise ValueError(f"discount must be a number above 0 and at most 1; got {self.discount!r}")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        options = Options(self.width, self.discount, self.ridge)
        beliefs = BELIEFS._replace(squared="squared", rounds="rounds")
        return ridge_machine(KERNEL, problem, options, ridge=self.ridge, beliefs=beliefs)
