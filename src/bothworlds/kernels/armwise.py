"""Arm-independent features (P.Indep): one vector per context, one theta and one covariance per arm.

``known.z`` repeats the vector of a context for every arm, in coordinates where E[X X^T] is the identity; the loss of
arm a in context x is <x, theta_a>. The estimate is theta_hat_a = Sigma_{t,a}^-1 X_t loss for the arm played and zero
for the others, with

    Sigma_{t,a} = sum_x g(x) pi_t(a|x) x x^T,

so a round needs the matrix of one arm only, and needs it after the draw: it belongs to the decision, not to the plan.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.kernels.arithmetic import Number, at, every, feature
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Play
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch
from bothworlds.kernels.matrix import cholesky, product, solve
from bothworlds.kernels.plan import Direction, add_theta_hat, clear, collect, draw_arm, draw_context
from bothworlds.kernels.random import RESAMPLING, two_uniforms
from bothworlds.kernels.resampling import begin, contract
from bothworlds.kernels.simplex import shannon_point


class State(NamedTuple):
    """What is learnt, then the plan; covariances belong to decisions."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("K*d")]
    arms: Annotated[Floats, learnt("K", "d", same_as="theta")]  # the same Theta, one row per arm
    rates: Annotated[Floats, planned(2)]  # eta_t, gamma_t
    q: Annotated[Floats, planned("S", "K")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: what a direction needs, with the matrix of the arm looked at last and its factor."""

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
    """Factor Sigma_{t,a} of the policy in a table into work.factor; tell whether that exists.

    ``complements`` has for every arm the projection on what the contexts that offer it do not span: added to
    Sigma_{t,a} it makes the inverse a pseudo-inverse on their span.
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
    """Write Sigma_{t,a}^-1 x for a context and arm; not-a-number, which the update refuses, where that does not exist.

    ``weights`` are pi_t, or whatever else the covariance of an arm is made of.
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
    """Write beta sum_{k=0}^M Y_k: Matrix Geometric Resampling for Sigma_{t,a}^-1 x, as a product with vectors only.

    Y_0 = x, and Y_k = Y_{k-1} - beta <Y_{k-1}, X(k)> X(k) where the k-th draw plays the arm, else Y_k = Y_{k-1}.
    Whether it does is a coin of probability pi_t(arm|X(k)). ``step`` is beta and M.
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
