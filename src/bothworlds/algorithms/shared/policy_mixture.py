"""Listed policies: the loss of each one, and the arm probabilities of a mixture. Kernel functions.

``arms`` (policies, contexts) has the arm that each policy plays in each context, ``points`` (policies, d) the points
z_p = sum_x g(x) phi(p(x), x).
"""

import math

from bothworlds.arrays import Floats
from bothworlds.kernels.jit.compile import kernel


@kernel
def loss_of_point(points: Floats, theta: Floats, p: int) -> float:
    """Return <z_p, Theta>, the estimated loss of policy p."""
    total = 0.0
    for i in range(theta.shape[0]):
        total += points[p, i] * theta[i]
    return total


@kernel
def loss_in_table(arms: Floats, table: Floats, p: int) -> float:
    """Return sum_x table(x, p(x)), the loss of policy p if losses are stored by context and arm."""
    total = 0.0
    for x in range(table.shape[0]):
        total += table[x, int(arms[p, x])]
    return total


@kernel
def weigh_policies(arms: Floats, eta: float, losses: Floats, table: Floats) -> None:
    """Write q(a|x) = sum of P(p) over the policies with p(x) = a into a table, P(p) ~ exp(-eta losses(p))."""
    S, K = table.shape
    least = math.inf
    for p in range(losses.shape[0]):
        least = min(least, losses[p])
    for x in range(S):
        for a in range(K):
            table[x, a] = 0.0
    total = 0.0
    for p in range(losses.shape[0]):
        weight = math.exp(eta * (least - losses[p]))
        total += weight
        for x in range(S):
            table[x, int(arms[p, x])] += weight
    for x in range(S):
        for a in range(K):
            table[x, a] /= total


@kernel
def marginals(arms: Floats, weights: Floats, table: Floats) -> None:
    """Write the weight of the policies with p(x) = a into table(x, a)."""
    S, K = table.shape
    for x in range(S):
        for a in range(K):
            table[x, a] = 0.0
    for p in range(weights.shape[0]):
        if weights[p] > 0.0:
            for x in range(S):
                table[x, int(arms[p, x])] += weights[p]


@kernel
def draw_policy(weights: Floats, u: float) -> int:
    """Return the policy that a uniform u draws; never one of weight zero."""
    last = 0
    total = 0.0
    for p in range(weights.shape[0]):
        if weights[p] > 0.0:
            last = p
            total += weights[p]
            if u < total:
                return p
    return last
