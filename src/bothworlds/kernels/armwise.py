"""Arm-independent features (P.Indep): one vector per context, one theta and one covariance per arm.

A column of ``world.z`` is a context, in coordinates where E[X X^T] is the identity; the loss of arm a in context x is
<x, theta_a>. The estimate is theta_hat_a = Sigma_{t,a}^-1 X_t loss for the arm played and zero for the others, with

    Sigma_{t,a} = sum_x g(x) pi_t(a|x) x x^T,

so a round needs the matrix of one arm only, and needs it after the draw: it belongs to the decision, not to the plan.
"""

import math
from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.matrix import cholesky, combine, solve
from bothworlds.kernels.plan import covariance_of_points
from bothworlds.kernels.random import RESAMPLING, draw, two_uniforms
from bothworlds.kernels.resampling import contract
from bothworlds.kernels.simplex import shannon_point

LANES = 16
LEARNT = ("t", "theta")


class State(NamedTuple):
    """What is learnt: the clock and Theta; the plan; and the matrix of the arm played last, with its factor."""

    t: Floats
    theta: Floats
    arms: Floats  # the same Theta, one row per arm
    rates: Floats  # eta_t, gamma_t
    q: Floats
    pi: Floats
    sigma: Floats
    factor: Floats


class Work(NamedTuple):
    """Scratch space: cumulative losses (arms, contexts), and what a covariance and a direction need."""

    losses: Floats
    weights: Floats
    scaled: Floats
    lanes: Floats
    vector: Floats


class OneArm(NamedTuple):
    """The plan of a single arm, for the shared covariance."""

    q: Floats
    sigma: Floats


def state_size(S: int, K: int, d: int) -> int:
    """Return how many numbers State takes."""
    return 3 + K * d + 2 * d * d + 2 * S * K


@kernel
def state_of(memory: Floats, S: int, K: int, d: int, cells: int) -> State:  # noqa: ARG001
    """Name the parts of a policy's memory."""
    m = 3 + K * d
    p = m + 2 * d * d
    return State(
        t=memory[0:1],
        rates=memory[1:3],
        theta=memory[3:m],
        arms=memory[3:m].reshape((K, d)),
        sigma=memory[m : m + d * d].reshape((d, d)),
        factor=memory[m + d * d : p].reshape((d, d)),
        q=memory[p : p + S * K].reshape((S, K)),
        pi=memory[p + S * K : p + 2 * S * K].reshape((S, K)),
    )


def work_size(K: int, d: int, cells: int) -> int:
    """Return how many numbers Work takes."""
    return LANES + d + (2 + K) * cells


@kernel
def work_of(scratch: Floats, S: int, K: int, d: int, cells: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    v = LANES + d
    w = v + 2 * cells
    return Work(
        lanes=scratch[0:LANES],
        vector=scratch[LANES:v],
        weights=scratch[v : v + cells],
        scaled=scratch[v + cells : w],
        losses=scratch[w : w + K * cells].reshape((K, cells)),
    )


@kernel
def armwise_plan(world: World, state: Any, work: Any, eta: float, gamma: float) -> None:
    """Compute q_t(a|x) proportional to exp(-eta <x, Theta_a>) and pi_t = (1 - gamma) q_t + gamma e."""
    S, K = state.q.shape
    for a in range(K):
        combine(state.arms[a], world.z, work.losses[a])
    for x in range(S):
        q = state.q[x]
        for a in range(K):
            q[a] = work.losses[a, x] + world.blocked[x, a]
        shannon_point(q, eta, q)
        for a in range(K):
            state.pi[x, a] = (1.0 - gamma) * q[a] + gamma * world.e[x, a]
    state.rates[0] = eta
    state.rates[1] = gamma


@kernel
def exact_arm_direction(
    world: World, state: Any, work: Any, complements: Floats, x: int, arm: int, direction: Floats
) -> None:
    """Write Sigma_{t,a}^-1 x for the arm played; not-a-number, which the update refuses, where that does not exist.

    ``complements`` is empty, or has for every arm, flat, the projection on what the contexts that offer it do not span:
    added to Sigma_{t,a} it makes the inverse a pseudo-inverse on their span.
    """
    covariance_of_points(world, OneArm(state.pi[:, arm : arm + 1], state.sigma), work)
    d = direction.shape[0]
    if complements.shape[0] > 0:
        for i in range(d):
            for j in range(d):
                state.sigma[i, j] += complements[(arm * d + i) * d + j]
    for i in range(d):
        work.vector[i] = world.z[i, x]
    if cholesky(state.sigma, state.factor):
        solve(state.factor, work.vector, direction)
    else:
        for i in range(d):
            direction[i] = math.nan


@kernel
def resampled_arm_direction(
    world: World,
    state: Any,
    work: Any,
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
        y[i] = world.z[i, x]
        direction[i] = beta * y[i]
    for k in range(samples):
        u, v = two_uniforms(key, time, RESAMPLING, k)
        drawn = draw(world.g, u)
        if v < state.pi[drawn, arm]:
            contract(world.z, drawn, beta, y, direction)
        else:
            for i in range(y.shape[0]):
                direction[i] += beta * y[i]


@kernel
def learn_arm(state: Any, a: int, loss: float, direction: Floats) -> None:
    """Add theta_hat to the Theta of the arm played, and advance the clock."""
    for i in range(direction.shape[0]):
        state.arms[a, i] += loss * direction[i]
    state.t[0] += 1.0
