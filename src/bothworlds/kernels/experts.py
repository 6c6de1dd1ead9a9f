"""Listed policies in kernel text: what each one loses, and what a mixture of them plays.

``lists`` is flat: the arms of every policy, context by context, then (from ``start`` on) the points z_p = sum_x g(x)
phi(p(x), x), d numbers each.
"""

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel


@kernel
def loss_of_point(lists: Floats, theta: Floats, start: int, p: int) -> float:
    """Return <z_p, Theta>, the estimated loss of policy p."""
    d = theta.shape[0]
    total = 0.0
    for i in range(d):
        total += lists[start + p * d + i] * theta[i]
    return total


@kernel
def loss_in_table(lists: Floats, table: Floats, p: int) -> float:
    """Return sum_x table(x, p(x)), the loss of policy p where losses are kept per context and arm."""
    S = table.shape[0]
    total = 0.0
    for x in range(S):
        total += table[x, int(lists[p * S + x])]
    return total


@kernel
def marginals(lists: Floats, weights: Floats, table: Floats) -> None:
    """Write the weight of the policies with p(x) = a into table(x, a)."""
    S, K = table.shape
    for x in range(S):
        for a in range(K):
            table[x, a] = 0.0
    for p in range(weights.shape[0]):
        if weights[p] > 0.0:
            for x in range(S):
                table[x, int(lists[p * S + x])] += weights[p]


@kernel
def draw_policy(weights: Floats, u: float) -> int:
    """Return the policy drawn by a uniform u; never one of weight zero."""
    last = 0
    total = 0.0
    for p in range(weights.shape[0]):
        if weights[p] > 0.0:
            last = p
            total += weights[p]
            if u < total:
                return p
    return last
