"""Decisions of the default rule for open problems: functions of plan, features and the key of the draw.

``plan.weights`` is Theta + mu + r m, ``plan.matrix`` has G of Sigma^-1 = G^T G by blocks, ``plan.numbers`` beta, gamma,
the contexts in the reservoir, and 1 if a request is in its own covariance.
"""

import math

from bothworlds.algorithms.open_rules.reservoir import block_index, point_of, row_index, write_values
from bothworlds.arrays import Floats, Ints
from bothworlds.kernels.arithmetic import fused
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import apply_inverse, product
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.open_contexts.rule_contract import Choices, PlanArrays


@kernel
def write_probabilities(plan: PlanArrays, z: Floats, offered: Floats, roots: Floats, pi: Floats) -> int:
    """Write pi = (1 - gamma) q + gamma/count, over the candidates offered; return a status."""
    write_values(plan.weights, z, offered, math.inf, pi)
    status = point_of(plan.numbers[0], offered, roots, pi)
    count, gamma = 0.0, plan.numbers[1]
    for a in range(pi.shape[0]):
        count += offered[a]
    for a in range(pi.shape[0]):
        pi[a] = fused(1.0 - gamma, pi[a], gamma / count) if offered[a] > 0.0 else 0.0
    return status


@kernel
def write_direction(plan: PlanArrays, z: Floats, a: int, pi: float, half: Floats, direction: Floats) -> None:
    """Write Sigma^-1 phi of a candidate, the request being in its own covariance: (n + 1)/(n + pi lev) times that."""
    row = z[row_index(plan.weights.shape[0], a)]
    apply_inverse(plan.matrix[block_index(plan.weights.shape[0], a)], row, half, direction)
    n, own = plan.numbers[2], plan.numbers[3]
    share = (n + own) / (n + own * pi * product(direction, row)) if own > 0.0 else 1.0
    for i in range(row.shape[0]):
        direction[i] = share * direction[i]


@kernel
def decide_rows(
    plan: PlanArrays, z: Floats, offered: Floats, keys: Ints, times: Ints, work: Floats, half: Floats, out: Choices
) -> int:
    """Decide for many requests; return a status. ``work`` has room for a number per candidate, ``half`` for p."""
    for n in range(z.shape[0]):
        status = write_probabilities(plan, z[n], offered[n], work, out.probabilities[n])
        if status != OK:
            return status
        u, _ = two_uniforms(keys[n], times[n], ARM, 0)
        a = draw(out.probabilities[n], u)
        out.arms[n] = a
        write_direction(plan, z[n], a, out.probabilities[n, a], half, out.directions[n])
    return OK
