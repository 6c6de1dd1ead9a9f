"""Arm-independent features (P.Indep): one vector per context, one theta and one covariance per arm.

``world.z`` repeats the vector of a context for every arm, in coordinates where E[X X^T] is the identity; the loss of
arm a in context x is <x, theta_a>. The estimate is theta_hat_a = Sigma_{t,a}^-1 X_t loss for the arm played and zero
for the others, with

    Sigma_{t,a} = sum_x g(x) pi_t(a|x) x x^T,

so a round needs the matrix of one arm only, and needs it after the draw: it belongs to the decision, not to the plan.
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.matrix import cholesky, product, solve
from bothworlds.kernels.numbers import Number, at, every, feature, matrix_of, row_of
from bothworlds.kernels.plan import clear, collect, draw_context
from bothworlds.kernels.random import RESAMPLING, two_uniforms
from bothworlds.kernels.resampling import contract
from bothworlds.kernels.simplex import shannon_point

LEARNT = ("t", "theta")


class State(NamedTuple):
    """What is learnt, the plan, and the matrix of the arm played last, with its factor.

    Learnt are the clock and Theta; ``pace`` and ``entropy`` are there for algorithms whose rate adapts.
    """

    t: Floats
    pace: Floats
    entropy: Floats
    theta: Floats
    arms: Floats  # the same Theta, one row per arm
    rates: Floats  # eta_t, gamma_t
    q: Floats
    pi: Floats
    sigma: Floats
    factor: Floats


class Work(NamedTuple):
    """Scratch space: what a covariance and a direction need."""

    vector: Floats
    sums: Floats


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 5 + K * d + 2 * d * d + d, 2 * B * K + d * d


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 5 + K * d
    return State(
        t=row_of(memory, 0, 1),
        pace=row_of(memory, 1, 1),
        entropy=row_of(memory, 2, 1),
        rates=row_of(memory, 3, 2),
        theta=row_of(memory, 5, K * d),
        arms=matrix_of(memory, 5, K, d),
        sigma=matrix_of(memory, m, d, d),
        factor=matrix_of(memory, m + d * d, d, d),
        q=matrix_of(cells, 0, B, K),
        pi=matrix_of(cells, B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:
    """Name the parts of the scratch space."""
    return Work(row_of(memory, 5 + K * d + 2 * d * d, d), matrix_of(cells, 2 * B * K, d, d))


@kernel
def armwise_plan(world: World, state: State, eta: Number, gamma: Number) -> None:
    """Compute q_t(a|x) proportional to exp(-eta <x, Theta_a>) and pi_t = (1 - gamma) q_t + gamma e."""
    for x in range(state.q.shape[0]):
        q = state.q[x]
        for a in range(q.shape[0]):
            q[a] = product(state.arms[a], world.z[x, a]) + world.blocked[x, a]
        shannon_point(q, eta, q)
        for a in range(q.shape[0]):
            state.pi[x, a] = (1.0 - gamma) * q[a] + gamma * world.e[x, a]
    state.rates[0] = eta
    state.rates[1] = gamma


@kernel
def covariance_under(world: World, table: Floats, sigma: Floats, work: Work, a: int) -> None:
    """Compute sum_x g(x) table(x, a) x x^T, for the policy in a table, into the lower triangle of sigma."""
    clear(work.sums)
    for x in range(table.shape[0]):
        weight = world.g[x] * table[x, a]
        z = world.z[x, a]
        for i in range(work.vector.shape[0]):
            left = weight * z[i]
            for j in range(i + 1):
                work.sums[i, j] = work.sums[i, j] + left * z[j]
    collect(work.sums, sigma)


@kernel
def factor_of_arm(world: World, state: Any, work: Any, table: Floats, complements: Floats, arm: int) -> bool:
    """Factor Sigma_{t,a} of the policy in a table into state.factor; tell whether that exists.

    ``complements`` is empty, or has for every arm, flat, the projection on what the contexts that offer it do not span:
    added to Sigma_{t,a} it makes the inverse a pseudo-inverse on their span.
    """
    covariance_under(world, table, state.sigma, work, arm)
    d = work.vector.shape[0]
    for i in range(d):
        for j in range(i + 1):
            if complements.shape[0] > 0:
                state.sigma[i, j] += complements[(arm * d + i) * d + j]
            state.sigma[j, i] = state.sigma[i, j]
    return every(cholesky(state.sigma, state.factor))


@kernel
def exact_arm_direction(
    world: World, weights: Floats, state: Any, work: Any, complements: Floats, x: int, arm: int, direction: Floats
) -> None:
    """Write Sigma_{t,a}^-1 x for the arm played; not-a-number, which the update refuses, where that does not exist.

    ``weights`` are pi_t, or whatever else the covariance of an arm is made of.
    """
    sound = factor_of_arm(world, state, work, weights, complements, arm)
    d = work.vector.shape[0]
    for i in range(d):
        work.vector[i] = feature(world.z, x, arm, i)
    if sound:
        solve(state.factor, work.vector, direction)
    else:
        for i in range(d):
            direction[i] = math.nan


@kernel
def resampled_arm_direction(
    world: World,
    state: State,
    work: Work,
    beta: float,
    samples: int,
    x: int,
    arm: int,
    key: int,
    time: int,
    direction: Floats,
) -> None:
    """Write beta sum_{k=0}^M Y_k: Matrix Geometric Resampling for Sigma_{t,a}^-1 x, as a product with vectors only.

    Y_0 = x, and Y_k = Y_{k-1} - beta <Y_{k-1}, X(k)> X(k) where the k-th draw plays the arm, else Y_k = Y_{k-1}.
    Whether it does is a coin of probability pi_t(arm|X(k)).
    """
    y = work.vector
    for i in range(y.shape[0]):
        y[i] = feature(world.z, x, arm, i)
        direction[i] = beta * y[i]
    for k in range(samples):
        u, v = two_uniforms(key, time, RESAMPLING, k)
        drawn = draw_context(world.g, u)
        if v < at(state.pi, drawn, arm):
            contract(world.z, drawn, arm, beta, y, direction)
        else:
            for i in range(y.shape[0]):
                direction[i] += beta * y[i]


@kernel
def learn_arm(state: State, a: int, loss: float, direction: Floats) -> None:
    """Add theta_hat to the Theta of the arm played, and advance the clock."""
    for i in range(direction.shape[0]):
        state.arms[a, i] += loss * direction[i]
    state.t[0] += 1.0
