"""LinTS: linear Thompson sampling (Agrawal and Goyal 2013), with known propensities."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from bothworlds.algorithms.options import check_within
from bothworlds.algorithms.regression.ridge import BELIEFS, add_play, add_smallest, estimate, ridge_machine
from bothworlds.algorithms.shared.decision_checks import possible_seed
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Machine, Play, build_kernel
from bothworlds.kernels.exact_ftrl import draw_arm
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, learnt, planned, scratch
from bothworlds.kernels.linalg import product
from bothworlds.kernels.random import POSTERIOR, two_normals, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem

TO_INTEGER = 9007199254740992.0  # 2**53, the bits of a uniform
HALF = math.sqrt(0.5)


class Options(NamedTuple):
    """Hyper-parameters: v, or 0 for the theoretical value; delta; the number of posterior draws per plan."""

    spread: float
    delta: float
    draws: float


class State(NamedTuple):
    """State of a ridge regression, and the seed of the plan's draws; then the plan."""

    t: Annotated[Floats, learnt()]
    seed: Annotated[Floats, learnt()]
    response: Annotated[Floats, learnt("d")]
    sigma: Annotated[Floats, learnt("d", "d")]
    theta: Annotated[Floats, planned("d")]
    inverse: Annotated[Floats, planned("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: a half solution, a draw with its normals, and the index of every arm of a context."""

    half: Annotated[Floats, scratch("d")]
    sample: Annotated[Floats, scratch("d")]
    normals: Annotated[Floats, scratch("d")]
    scores: Annotated[Floats, scratch("K", packed=True)]


class Carried(NamedTuple):
    """What a decision carries: the seed of the plan after its feedback."""

    seed: Annotated[Floats, carries()]


@kernel
def spread_of(options: Options, state: State) -> float:
    """Return v: the constant, or R sqrt(9 d log(t/delta)) with R = 1 for losses in [-1, 1]."""
    if options.spread > 0.0:
        return options.spread
    return math.sqrt(9.0 * state.theta.shape[0] * math.log(state.t[0] / options.delta))


@kernel
def draw_normals(state: State, number: int, work: Work) -> None:
    """Write the standard normals of a pair of draws."""
    d = state.theta.shape[0]
    count = (d + 1) // 2
    for j in range(count):
        one, two = two_normals(int(state.seed[0] * TO_INTEGER), int(state.t[0]), POSTERIOR, number * count + j)
        work.normals[2 * j] = one
        if 2 * j + 1 < d:
            work.normals[2 * j + 1] = two


@kernel
def draw_posterior(state: State, v: float, number: int, work: Work) -> None:
    """Write draw ``number`` of the plan, theta_hat + v G^T n with n standard normal: its covariance is v^2 V^-1.

    Every second draw is the opposite of the one before it, -n instead of n: random numbers are expensive, and an
    antithetic pair has less variance than two independent draws.
    """
    d = state.theta.shape[0]
    if number % 2 == 0:
        draw_normals(state, number // 2, work)
    else:
        for i in range(d):
            work.normals[i] = 0.0 - work.normals[i]
    for k in range(d):
        total = 0.0
        for i in range(k, d):
            total += state.inverse[i, k] * work.normals[i]
        work.sample[k] = state.theta[k] + v * total


@kernel
def compare_two(known: Known, state: State, v: float, x: int, b: int, c: int, difference: Floats) -> None:
    """Write the exact probabilities of two arms: P(<phi_b - phi_c, theta> < 0) by the normal distribution."""
    d = state.theta.shape[0]
    mean = 0.0
    for i in range(d):
        difference[i] = known.z[x, b, i] - known.z[x, c, i]
        mean += difference[i] * state.theta[i]
    square = 0.0
    for i in range(d):
        total = 0.0
        for k in range(i + 1):
            total += state.inverse[i, k] * difference[k]
        square += total * total
    ratio = HALF * mean / (v * math.sqrt(square)) if square > 0.0 else 0.0
    state.pi[x, b] = 0.5 * math.erfc(ratio)
    state.pi[x, c] = 0.5 * math.erfc(-ratio)


@kernel
def offered(blocked: Floats) -> tuple[int, int, int]:
    """Return the number of arms offered, the first and the last of them."""
    count, first, last = 0, -1, -1
    for a in range(blocked.shape[0]):
        if blocked[a] == 0.0:
            count += 1
            last = a
            if first < 0:
                first = a
    return count, first, last


@kernel
def count_draws(known: Known, options: Options, state: State, work: Work, v: float) -> None:
    """Write the share of this plan's draws in which each arm is the best of its context."""
    S, K = state.pi.shape
    draws = int(options.draws)
    for x in range(S):
        for a in range(K):
            state.pi[x, a] = 0.0
    for number in range(draws):
        draw_posterior(state, v, number, work)
        for x in range(S):
            for a in range(K):
                work.scores[a] = product(work.sample, known.z[x, a]) + known.blocked[x, a]
            add_smallest(work.scores, state.pi[x])
    for x in range(S):
        for a in range(K):
            state.pi[x, a] /= draws


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan: exact where at most two arms are offered, else by draws."""
    status = estimate(state, work.half)
    if status != OK:
        return status
    v = spread_of(options, state)
    most = 0
    for x in range(state.pi.shape[0]):
        most = max(most, offered(known.blocked[x])[0])
    if most > 2:
        count_draws(known, options, state, work, v)
    for x in range(state.pi.shape[0]):
        count, first, last = offered(known.blocked[x])
        if count <= 2:
            for a in range(state.pi.shape[1]):
                state.pi[x, a] = 0.0
            state.pi[x, first] = 1.0
        if count == 2:
            compare_two(known, state, v, x, first, last, work.sample)
    return OK


@kernel
def choose(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Carried) -> int:
    """Draw A_t from pi_t(x); the decision carries the seed of the plan after its feedback."""
    carried.seed[0], _ = two_uniforms(draw.key, draw.time, POSTERIOR, 0)
    return draw_arm(state.pi, x, draw.uniforms)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Carried) -> None:
    """Add the play to the regression, and set the seed of the next plan."""
    add_play(known, options, state, play, carried)
    state.seed[0] = carried.seed[0]


KERNEL = build_kernel(refresh, choose, learn, possible=possible_seed)


def first_seed(key: Any) -> dict[str, Any]:
    """Seed the plan before any feedback with the stream's numbers of round 0, which has no decision."""
    return {"seed": two_uniforms(key, 0, POSTERIOR, 0)[0]}


@dataclass(frozen=True, kw_only=True)
class LinTS(Algorithm):
    """Play an arm as often as it is the best under theta ~ N(theta_hat, v^2 V^-1), the posterior of the losses.

    The plan of a round is pi_t(a|x) = the share of M draws of theta under which arm a has the smallest loss in context
    x, and the arm is drawn from pi_t(x). So the propensity is exactly the probability of the arm given the plan, not an
    estimate of it; averaged over the draws of the plan it is the probability of Thompson sampling itself, for every M.
    Where two arms are offered the plan is that probability, by the normal distribution, without draws. An arm that is
    best in no draw has probability zero in that round. Draws are determined by the seed, including those of the first
    plan, and a plan stays until feedback comes: decisions that wait together share their draws.

    For a stationary world only, like `LinUCB`: against an adversary its regret grows nearly linearly (measured). Proved
    in the stochastic regime for ``spread="theory"``, ridge 1, |phi| <= 1 and |theta_0| <= 1: O(d^(3/2) sqrt(T)) up to
    logarithms, with probability 1 - delta (Agrawal and Goyal 2013). Nothing is proved for a constant. One round costs
    O(M (S K d + d^2) + d^3).

    Parameters
    ----------
    spread
        v: a constant, 0.1 to 1 in practice, or "theory" for sqrt(9 d log(t/delta)).
    delta
        Probability with which the bound of the theory may fail; not used with a constant.
    draws
        M, the number of posterior draws per plan where more than two arms are offered. 1 is, with feedback after every
        decision, the textbook algorithm, with propensities of 0 and 1 given the plan and the least time; more give
        finer propensities for logs, and varied play while feedback is late. Draws come in opposite pairs.
    ridge
        V starts as ridge times the identity.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> LinTS().start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    spread: float | Literal["theory"] = 0.3
    delta: float = 1e-4
    draws: int = 16
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.spread, str) and self.spread != "theory":
            raise ValueError(f"spread must be a positive number or 'theory'; got {self.spread!r}")
        if not isinstance(self.spread, str):
            check_within(self, "spread", 0.0, math.inf)
        check_within(self, "delta", 0.0, 1.0)
        check_within(self, "ridge", 0.0, math.inf)
        draws: Any = self.draws
        if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or not 1 <= draws <= 10**6:
            raise ValueError(f"draws must be a whole number from 1 to 1,000,000; got {draws!r}")
        object.__setattr__(self, "draws", int(draws))

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        options = Options(0.0 if self.spread == "theory" else self.spread, self.delta, float(self.draws))
        beliefs = BELIEFS._replace(unchanged=("seed",))
        return ridge_machine(KERNEL, problem, options, ridge=self.ridge, seeded=first_seed, beliefs=beliefs)
