"""Logdet-FTRL without the probabilities of contexts, in kernel text: empirical moments, a ridge and a bonus.

In lifted coordinates [phi; 1] the published estimate needs no centring of its own. With M = (Cov + beta I)^-1 and the
mean m of phi, both over the contexts seen,

    [[E phi phi^T + beta I, m], [m^T, 1]]^-1 [phi; 1] = [M (phi - m); 1 - m^T M (phi - m)]

and its quadratic form is |phi - m|_M^2 + 1: estimate and bonus, up to a number that is the same for all arms.
"""

import math
from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.logdet import logdet_point
from bothworlds.kernels.matrix import product
from bothworlds.kernels.arithmetic import cube_of, matrix_of, row_of
from bothworlds.kernels.plan import all_finite, choose_exactly, invert
from bothworlds.kernels.seen import inverse_entry, seen_covariance, seen_in_all
from bothworlds.kernels.status import NOT_FINITE, OK


class Numbers(NamedTuple):
    """Hyper-parameters: eta_t = min{sqrt(pace), limit}/sqrt(t), alpha_t = alpha/sqrt(t), beta_t = ridge/(t - 1).

    ``lists`` has the ranks of the contexts, then their psi.
    """

    pace: float
    limit: float
    alpha: float
    ridge: float
    lists: Floats


class State(NamedTuple):
    """What is learnt: clock, Theta, sum of the bonus matrices, contexts seen, the last points p; then the plan."""

    t: Floats
    theta: Floats
    bonus: Floats
    rates: Floats  # eta_t, beta_t
    counts: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats


class Work(NamedTuple):
    """Scratch space; ``moment`` and ``factor`` are those of one context."""

    sums: Floats
    vector: Floats
    half: Floats
    moment: Floats
    factor: Floats
    losses: Floats
    lev: Floats


LEARNT = ("t", "theta", "bonus", "counts", "pi")


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3], n[4:])


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 3 + 3 * d + 6 * d * d + 2 * K, B + B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 3 + d
    return State(
        t=row_of(memory, 0, 1),
        rates=row_of(memory, 1, 2),
        theta=row_of(memory, 3, d),
        sigma=matrix_of(memory, m, d, d),
        inverse=matrix_of(memory, m + d * d, d, d),
        bonus=matrix_of(memory, m + 2 * d * d, d, d),
        counts=row_of(cells, 0, B),
        pi=matrix_of(cells, B, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    m = 3 + d + 3 * d * d
    v = m + 3 * d * d
    return Work(
        sums=matrix_of(memory, m, d, d),
        moment=matrix_of(memory, m + d * d, d, d),
        factor=matrix_of(memory, m + 2 * d * d, d, d),
        vector=row_of(memory, v, d),
        half=row_of(memory, v + d, d),
        losses=row_of(memory, v + 2 * d, K),
        lev=row_of(memory, v + 2 * d + K, K),
    )


@kernel
def with_bonus(known: Known, state: State, x: int, losses: Floats) -> None:
    """Write <Theta, psi> - psi^T (sum of alpha_s Sigma_s^-1) psi of a context; infinite for arms not offered."""
    d = state.theta.shape[0]
    for a in range(losses.shape[0]):
        z = known.z[x, a]
        total = product(state.theta, z) + known.blocked[x, a]
        for i in range(d):
            for j in range(d):
                total -= z[i] * state.bonus[i, j] * z[j]
        losses[a] = total


@kernel
def refresh(known: Known, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan: p_t of every context, and the lifted moments over the contexts seen, with a ridge."""
    S, K = state.pi.shape
    d = state.theta.shape[0]
    for i in range(d):
        if not all_finite(state.bonus[i]):
            return NOT_FINITE
    if not all_finite(state.theta):
        return NOT_FINITE
    eta = min(math.sqrt(numbers.pace), numbers.limit) / math.sqrt(state.t[0])
    psi = cube_of(numbers.lists, S, S, K, d)
    for x in range(S):
        with_bonus(known, state, x, work.losses)
        status = logdet_point(work.losses, eta, psi[x], int(numbers.lists[x]), state.pi[x], work.lev, work)
        if status != OK:
            return status
    ridge = numbers.ridge / max(seen_in_all(state.counts), 1.0)
    seen_covariance(known, state, work, ridge, d - 1)
    state.rates[0] = eta
    state.rates[1] = ridge
    return invert(state)


@kernel
def learn(
    known: Known,  # noqa: ARG001
    numbers: Numbers,
    state: State,
    x: int,
    a: int,  # noqa: ARG001
    loss: float,
    direction: Floats,
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add the estimate to Theta and alpha_t Sigma_t^-1 to the bonus; count the context."""
    alpha = numbers.alpha / math.sqrt(state.t[0])
    for i in range(state.theta.shape[0]):
        state.theta[i] += loss * direction[i]
        for j in range(i + 1):
            more = alpha * inverse_entry(state.inverse, i, j)
            state.bonus[i, j] += more
            if i != j:
                state.bonus[j, i] += more
    state.counts[x] += 1.0
    state.t[0] += 1.0


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose_exactly, learn)
