"""LinTS: linear Thompson sampling (Agrawal and Goyal 2013), with known propensities."""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from bothworlds.algorithms.possible import is_seed
from bothworlds.algorithms.ridge import LEARNT as REGRESSION
from bothworlds.algorithms.ridge import (
    State,
    Work,
    add_play,
    add_smallest,
    estimate,
    ridge_machine,
    sizes,
    state_of,
    work_of,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.matrix import product
from bothworlds.kernels.plan import draw_arm
from bothworlds.kernels.random import POSTERIOR, Pair, Seed, two_normals, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem

TO_INTEGER = 9007199254740992.0  # 2**53, the bits of a uniform
HALF = math.sqrt(0.5)
LEARNT = (*REGRESSION, "seed")


class Numbers(NamedTuple):
    """Hyper-parameters: v, or 0 for the theory's; delta; how many posterior draws make a plan."""

    spread: float
    delta: float
    draws: float


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2])


@kernel
def spread_of(numbers: Numbers, state: State) -> float:
    """Return v: the constant, or R sqrt(9 d log(t/delta)) with R = 1 for losses in [-1, 1]."""
    if numbers.spread > 0.0:
        return numbers.spread
    return math.sqrt(9.0 * state.theta.shape[0] * math.log(state.t[0] / numbers.delta))


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

    Every other draw is opposite to the one before it, -n instead of n: random numbers are dear, and such a pair tells
    more of the posterior than two draws that know nothing of each other.
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
def compare_two(world: World, state: State, v: float, x: int, b: int, c: int, difference: Floats) -> None:
    """Write the exact probabilities of two arms: P(<phi_b - phi_c, theta> < 0) by the normal distribution."""
    d = state.theta.shape[0]
    mean = 0.0
    for i in range(d):
        difference[i] = world.z[x, b, i] - world.z[x, c, i]
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
    """Return how many arms are offered, the first and the last of them."""
    count, first, last = 0, -1, -1
    for a in range(blocked.shape[0]):
        if blocked[a] == 0.0:
            count += 1
            last = a
            if first < 0:
                first = a
    return count, first, last


@kernel
def count_draws(world: World, numbers: Numbers, state: State, work: Work, v: float) -> None:
    """Write how often each arm is the best of its context in the draws of this plan."""
    S, K = state.pi.shape
    draws = int(numbers.draws)
    for x in range(S):
        for a in range(K):
            state.pi[x, a] = 0.0
    for number in range(draws):
        draw_posterior(state, v, number, work)
        for x in range(S):
            for a in range(K):
                work.scores[a] = product(work.sample, world.z[x, a]) + world.blocked[x, a]
            add_smallest(work.scores, state.pi[x])
    for x in range(S):
        for a in range(K):
            state.pi[x, a] /= draws


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan: exact where at most two arms are offered, else by draws."""
    status = estimate(state, work.half)
    if status != OK:
        return status
    v = spread_of(numbers, state)
    most = 0
    for x in range(state.pi.shape[0]):
        most = max(most, offered(world.blocked[x])[0])
    if most > 2:
        count_draws(world, numbers, state, work, v)
    for x in range(state.pi.shape[0]):
        count, first, last = offered(world.blocked[x])
        if count <= 2:
            for a in range(state.pi.shape[1]):
                state.pi[x, a] = 0.0
            state.pi[x, first] = 1.0
        if count == 2:
            compare_two(world, state, v, x, first, last, work.sample)
    return OK


@kernel
def choose(
    world: World,  # noqa: ARG001
    numbers: Numbers,  # noqa: ARG001
    state: State,
    work: Work,  # noqa: ARG001
    x: int,
    uniforms: Pair,
    key: int,
    time: int,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> int:
    """Draw A_t from pi_t(x); the decision carries, in place of a direction, the seed of the plan after its feedback."""
    for i in range(direction.shape[0]):
        direction[i] = 0.0
    direction[0], _ = two_uniforms(key, time, POSTERIOR, 0)
    return draw_arm(state.pi, x, uniforms)


@kernel
def learn(
    world: World, numbers: Numbers, state: State, x: int, a: int, loss: float, direction: Floats, baseline: Floats
) -> None:
    """Add the play to the regression, and let the next plan draw anew."""
    add_play(world, numbers, state, x, a, loss, direction, baseline)
    state.seed[0] = direction[0]


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose, learn)


def seed_first_plan(state: State, key: Any) -> None:
    """Let the plan before any feedback draw with the stream's own numbers: those of round 0, which decides nothing."""
    state.seed[...], _ = two_uniforms(key, 0, POSTERIOR, 0)


@dataclass(frozen=True, kw_only=True)
class LinTS:
    """Play an arm as often as it is the best under theta ~ N(theta_hat, v^2 V^-1), the posterior of the losses.

    The plan of a round is pi_t(a|x) = the share of M draws of theta under which arm a has the smallest loss in context
    x, and the arm is drawn from pi_t(x). So the propensity is exactly the probability of the draw given the plan, not
    an estimate of it; averaged over the draws of the plan it is the probability of Thompson sampling itself, for every
    M. Where two arms are offered the plan is that probability, by the normal distribution, and nothing is drawn. An
    arm that no draw favours has probability zero in that round. Draws come from the seed, the first plan's included,
    and a plan stays until feedback comes: decisions that wait together share their draws.

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
        M, how many posterior draws make a plan where more than two arms are offered: 1 is, with feedback after every
        decision, the textbook algorithm, with propensities of 0 and 1 given the plan and the least time; more make
        finer propensities for logs, and play that stays spread while feedback is late. Draws come in opposite pairs.
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
        spread: Any = self.spread
        if spread != "theory" and (isinstance(spread, str) or not 0.0 < spread < math.inf):
            raise ValueError(f"spread must be a positive number or 'theory'; got {spread!r}")
        if not (0.0 < self.delta < 1.0 and 0.0 < self.ridge < math.inf):
            raise ValueError(f"delta must lie in (0, 1) and ridge be positive; got {self.delta!r}, {self.ridge!r}")
        draws: Any = self.draws
        if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or not 1 <= draws <= 10**6:
            raise ValueError(f"draws must be a whole number from 1 to 1,000,000; got {draws!r}")
        object.__setattr__(self, "draws", int(draws))

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the same seed gives the same decisions."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:  # noqa: ARG002
        """Make the algorithm ready for a problem; it needs no frame."""
        numbers = [0.0 if self.spread == "theory" else self.spread, self.delta, float(self.draws)]
        return ridge_machine(
            TEXT, problem, ridge=self.ridge, numbers=numbers, learnt=LEARNT, seed=seed_first_plan, possible=is_seed
        )
