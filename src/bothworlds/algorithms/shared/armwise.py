"""Estimates arm by arm: each arm has its own coefficients and covariance. Kernel functions."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, at, every, feature
from bothworlds.kernels.contract import Draw, Kernel, Known, Machine, Play, known_of
from bothworlds.kernels.exact_ftrl import Direction, add_theta_hat, clear, collect, draw_arm, draw_context
from bothworlds.kernels.ftrl_points import shannon_point
from bothworlds.kernels.geometric_resampling import begin, contract
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch
from bothworlds.kernels.linalg import cholesky, product, solve
from bothworlds.kernels.random import RESAMPLING, two_uniforms
from bothworlds.problem import Problem


class State(NamedTuple):
    """Learner state, then the plan; covariances are computed per decision."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("K*d")]
    arms: Annotated[Floats, learnt("K", "d", same_as="theta")]  # the same memory, one row per arm
    rates: Annotated[Floats, planned(2)]  # eta_t, gamma_t
    q: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space of a direction, with the covariance of one arm and its factor."""

    vector: Annotated[Floats, scratch("d")]
    sums: Annotated[Floats, scratch("d", "d", packed=True)]
    sigma: Annotated[Floats, scratch("d", "d")]
    factor: Annotated[Floats, scratch("d", "d")]


@kernel
def armwise_plan(known: Known, state: Any, eta: Number, gamma: Number) -> None:
    """Compute q_t(a|x) proportional to exp(-eta <x, Theta_a>) and pi_t = (1 - gamma) q_t + gamma e."""
    for x in range(state.q.shape[0]):
        q = state.q[x]
        for a in range(q.shape[0]):
            q[a] = product(state.arms[a], known.z[x, a]) + known.blocked[x, a]
        shannon_point(q, eta, q)
        for a in range(q.shape[0]):
            state.pi[x, a] = (1.0 - gamma) * q[a] + gamma * known.e[x, a]
    state.rates[0] = eta
    state.rates[1] = gamma


@kernel
def covariance_under(known: Known, table: Floats, work: Any, a: int) -> None:
    """Compute sum_x g(x) table(x, a) x x^T, for the policy in a table, into the lower triangle of work.sigma."""
    clear(work.sums)
    for x in range(table.shape[0]):
        weight = known.g[x] * table[x, a]
        z = known.z[x, a]
        for i in range(work.vector.shape[0]):
            left = weight * z[i]
            for j in range(i + 1):
                work.sums[i, j] = work.sums[i, j] + left * z[j]
    collect(work.sums, work.sigma)


@kernel
def factor_of_arm(known: Known, work: Any, table: Floats, complements: Floats, arm: int) -> bool:
    """Factor Sigma_{t,a} of the policy in a table into work.factor; return whether it is positive definite.

    ``complements`` has for each arm the projection on the complement of the span of the contexts that offer it: added
    to Sigma_{t,a} it makes the inverse a pseudo-inverse on their span.
    """
    covariance_under(known, table, work, arm)
    for i in range(work.vector.shape[0]):
        for j in range(i + 1):
            work.sigma[i, j] += complements[arm, i, j]
            work.sigma[j, i] = work.sigma[i, j]
    return every(cholesky(work.sigma, work.factor))


@kernel
def exact_arm_direction(
    known: Known, weights: Floats, work: Any, complements: Floats, pair: tuple[int, int], direction: Floats
) -> None:
    """Write Sigma_{t,a}^-1 x for a context and arm; NaN, which the update rejects, if Sigma_{t,a} is singular.

    ``weights`` are pi_t, or another table that defines the covariance of an arm.
    """
    x, arm = pair
    sound = factor_of_arm(known, work, weights, complements, arm)
    d = work.vector.shape[0]
    for i in range(d):
        work.vector[i] = feature(known.z, x, arm, i)
    if sound:
        solve(work.factor, work.vector, direction)
    else:
        for i in range(d):
            direction[i] = math.nan


@kernel
def resampled_arm_direction(
    known: Known, pi: Floats, pair: tuple[int, int], step: tuple[float, int], draw: Draw, y: Floats, direction: Floats
) -> None:
    """Write beta sum_{k=0}^M Y_k: Matrix Geometric Resampling for Sigma_{t,a}^-1 x, by products with vectors only.

    Y_0 = x, and Y_k = Y_{k-1} - beta <Y_{k-1}, X(k)> X(k) if the k-th draw plays the arm, else Y_k = Y_{k-1}. A coin of
    probability pi_t(arm|X(k)) decides whether it does. ``step`` is beta and M.
    """
    (_, arm), (beta, samples) = pair, step
    begin(known, pair, beta, y, direction)
    for k in range(samples):
        u, v = two_uniforms(draw.key, draw.time, RESAMPLING, k)
        drawn = draw_context(known.g, u)
        if v < at(pi, drawn, arm):
            contract(known.z, drawn, arm, beta, y, direction)
        else:
            for i in range(y.shape[0]):
                direction[i] += beta * y[i]


@kernel
def choose_by_arm(known: Known, options: Any, state: Any, work: Any, x: int, draw: Draw, carried: Direction) -> int:
    """Draw A_t from pi_t(x) and write direction = Sigma_{t,A}^-1 x; return A_t."""
    arm = draw_arm(state.pi, x, draw.uniforms)
    exact_arm_direction(known, state.pi, work, options.complements, (x, arm), carried.direction)
    return arm


@kernel
def learn_arm(known: Known, options: Any, state: Any, play: Play, carried: Any) -> None:
    """Add theta_hat to the Theta of the arm played, and advance the clock."""
    add_theta_hat(play.loss, carried.direction, state.arms[play.a])
    state.t[0] += 1.0


def armwise_machine(
    functions: Kernel,
    problem: Problem,
    frame: Mapping[str, Floats],
    options: Any,
    begin: Mapping[str, Any] | None = None,
    *,
    rates: str = "",
) -> Machine:
    """Return the machine for a frame of `theory.armwise`: every arm has the feature vector of the context."""
    z = np.repeat(frame["contexts"][:, None, :], problem.n_arms, axis=1)
    known = known_of(problem, frame["exploration"], z)
    return Machine(kernel=functions, known=known, options=options, begin=begin or {}, frame=frame, rates=rates)


def per_arm(matrices: Floats, n_arms: int, otherwise: Floats) -> Floats:
    """Return one matrix per arm; a frame omits them if all are equal to ``otherwise``."""
    return matrices if len(matrices) else np.repeat(otherwise[None], n_arms, axis=0)


def complements_of(frame: Mapping[str, Floats], n_arms: int, name: str = "complements") -> Floats:
    """Return for each arm the projection on the complement of its contexts' span: zero where all offer it."""
    d = frame["contexts"].shape[1]
    return per_arm(frame[name], n_arms, np.zeros((d, d)))
