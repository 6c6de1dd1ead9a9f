"""A base algorithm that plays all arms but one: its arms, even play, and covariance. Kernel functions.

In context x the base plays the arms M(x): those offered except the excluded one (-1: none), or that one where nothing
else is offered. Their features may span fewer dimensions, so every choice of M needs its own coordinates J: they give a
generalised inverse, and since the features of M lie in the range of the covariance, estimates of their losses do not
depend on the choice of J. Coordinates outside J are removed from all features and have an identity in the covariance.

``state`` is a record with excluded, base, pi, span, sigma and inverse.
"""

import math
from typing import Annotated, Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.exact_ftrl import clear, invert
from bothworlds.kernels.ftrl_points import shannon_point
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import scratch
from bothworlds.kernels.linalg import apply_inverse, leverage
from bothworlds.kernels.status import OK

LEAST_RATE = 1e-300
DEPENDENT = 1e-9  # largest pivot that counts as zero: a direction outside the span of M


class Work(NamedTuple):
    """Scratch space of a base with one covariance."""

    sums: Annotated[Floats, scratch("d", "d")]
    vector: Annotated[Floats, scratch("d")]
    half: Annotated[Floats, scratch("d")]


@kernel
def others(known: Known, state: Any, x: int) -> int:
    """Return how many arms other than the excluded one are offered."""
    count = 0
    for a in range(state.pi.shape[1]):
        if known.blocked[x, a] == 0.0 and a != state.excluded[x]:
            count += 1
    return count


@kernel
def in_base(known: Known, state: Any, x: int, a: int, alone: bool) -> bool:
    """Return whether the base may play an arm; ``alone``: only the excluded arm is offered."""
    return known.blocked[x, a] == 0.0 and (alone or a != state.excluded[x])


@kernel
def base_covariance(known: Known, state: Any, work: Work) -> None:
    """Write Sigma of the base's policy into sigma, in the coordinates J, with an identity elsewhere."""
    d = state.sigma.shape[0]
    clear(work.sums)
    for x in range(state.base.shape[0]):
        for a in range(state.base.shape[1]):
            weight = known.g[x] * state.base[x, a]
            if weight > 0.0:
                for i in range(d):
                    for j in range(i + 1):
                        work.sums[i, j] += weight * known.z[x, a, i] * known.z[x, a, j]
    for i in range(d):
        for j in range(i + 1):
            inside = state.span[i] * state.span[j]
            state.sigma[i, j] = work.sums[i, j] * inside
            state.sigma[j, i] = state.sigma[i, j]
        state.sigma[i, i] += 1.0 - state.span[i]


@kernel
def find_span(state: Any) -> float:
    """Mark the coordinates J, those with a positive pivot in a Cholesky factorisation of sigma; return their number."""
    d = state.sigma.shape[0]
    factor = state.inverse
    rank = 0.0
    for i in range(d):
        for j in range(i + 1):
            rest = state.sigma[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = rest / factor[j, j] if state.span[j] > 0.0 else 0.0
            else:
                state.span[i] = 1.0 if rest > DEPENDENT else 0.0
                factor[i, i] = math.sqrt(rest) if rest > DEPENDENT else 1.0
                rank += state.span[i]
    return rank


@kernel
def inside(known: Known, state: Any, x: int, a: int, vector: Floats) -> None:
    """Write phi(a, x) in the coordinates J."""
    for i in range(vector.shape[0]):
        vector[i] = known.z[x, a, i] * state.span[i]


@kernel
def highest_leverage(known: Known, state: Any, work: Work) -> float:
    """Return 1/lambda: the largest leverage of the arms that the base may play, under the policy in ``base``."""
    highest = 0.0
    for x in range(state.base.shape[0]):
        for a in range(state.base.shape[1]):
            if state.base[x, a] > 0.0:
                inside(known, state, x, a, work.vector)
                highest = max(highest, leverage(state.inverse, work.vector))
    return highest


@kernel
def span_of_base(known: Known, state: Any, work: Work) -> tuple[int, float, float]:
    """Compute the coordinates J of the policy in ``base`` and its covariance; return a status, |J|, and 1/lambda."""
    for i in range(state.span.shape[0]):
        state.span[i] = 1.0
    base_covariance(known, state, work)
    rank = find_span(state)
    base_covariance(known, state, work)
    status = invert(state)
    highest = highest_leverage(known, state, work) if status == OK else 0.0
    return status, rank, highest


@kernel
def base_direction(known: Known, state: Any, work: Work, x: int, arm: int, direction: Floats) -> None:
    """Write Sigma^-1 phi(arm, x)/q_2 of the base."""
    inside(known, state, x, arm, work.vector)
    apply_inverse(state.inverse, work.vector, work.half, direction)
    for i in range(direction.shape[0]):
        direction[i] /= state.master.shares[1]


@kernel
def play_evenly(known: Known, state: Any) -> int:
    """Make the base's policy uniform over its arms; return the largest number of them in a context."""
    most = 1
    for x in range(state.base.shape[0]):
        count = others(known, state, x)
        alone = count == 0
        most = max(most, count)
        for a in range(state.base.shape[1]):
            state.base[x, a] = 1.0 / max(count, 1) if in_base(known, state, x, a, alone) else 0.0
    return most


@kernel
def exclude(known: Known, state: Any, maps: bool) -> int:
    """Exclude the candidate, or no arm if candidates are maps, and play evenly; return the largest number of arms."""
    for x in range(state.excluded.shape[0]):
        state.excluded[x] = -1.0 if maps else state.candidate[x]
    return play_evenly(known, state)


@kernel
def play_softly(known: Known, state: Any, x: int) -> None:
    """Turn the losses in ``base`` into the base's policy in a context: (1 - gamma) softmax + gamma even play of M."""
    eta, gamma = state.rates[0], state.rates[1]
    count = others(known, state, x)
    alone = count == 0
    row = state.base[x]
    for a in range(row.shape[0]):
        if not in_base(known, state, x, a, alone):
            row[a] = math.inf
    shannon_point(row, max(eta, LEAST_RATE), row)
    for a in range(row.shape[0]):
        even = 1.0 / max(count, 1) if in_base(known, state, x, a, alone) else 0.0
        row[a] = (1.0 - gamma) * row[a] + gamma * even
