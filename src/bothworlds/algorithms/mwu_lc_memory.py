"""The memory of MWU-LC: names for its hyper-parameters, its state and its scratch space."""

from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.divided import Room
from bothworlds.kernels.arithmetic import matrix_of, row_of


class Numbers(NamedTuple):
    """Hyper-parameters: K d, the factor of eta_t, and of the reduction whether there is one, maps, log T, c1, c2.

    ``complements`` is for arms where they are offered, ``lonely`` for arms where nothing else is; both may be empty.
    """

    dimension: float
    speed: float
    reduced: float
    maps: float
    log_horizon: float
    c1: float
    c2: float
    complements: Floats
    lonely: Floats


class State(NamedTuple):
    """What is learnt, then the plan, then the matrix and factor of the arm looked at last.

    ``clock``, ``previous``, ``losses``, ``candidate``, ``counts`` and ``excluded`` are as in the reduction of
    RealLinExp3. ``total`` is the sum of xi^2 upd/q_2^2, ``worst`` the largest 1/q_2, ``spread`` the sum of xi^2 (1{i} -
    q_i)^2, ``pace`` that of 16 trunc^2 xi^2 upd/q_2^2; ``rejected`` counts draws. ``rates`` are eta_t and trunc_t;
    ``base`` and ``squares`` are E[r_a] and E[r_a^2] of the base.
    """

    t: Floats
    epoch: Floats
    clock: Floats
    previous: Floats
    losses: Floats
    total: Floats
    worst: Floats
    spread: Floats
    pace: Floats
    rejected: Floats
    theta: Floats
    arms: Floats
    candidate: Floats
    counts: Floats
    excluded: Floats
    shares: Floats
    rates: Floats
    base: Floats
    squares: Floats
    pi: Floats
    sigma: Floats
    factor: Floats


class Work(NamedTuple):
    """Scratch space: for covariances, for the losses, draw, leverages and directions of a context, for integrals."""

    vector: Floats
    sums: Floats
    losses: Floats
    point: Floats
    levers: Floats
    solved: Floats
    room: Room


LEARNT = (
    *("t", "epoch", "clock", "previous", "losses", "total", "worst", "spread", "pace", "rejected"),
    *("theta", "candidate", "counts"),
)


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters; n[7] tells how many numbers the complements have."""
    end = 8 + int(n[7])
    return Numbers(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[8:end], n[end:])


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return 15 + 2 * K * d + 3 * d * d + d + 9 * K + 2 * K * K, 2 * B + 4 * B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    m = 15 + K * d
    c = 2 * B
    return State(
        t=row_of(memory, 0, 1),
        epoch=row_of(memory, 1, 1),
        clock=row_of(memory, 2, 1),
        previous=row_of(memory, 3, 1),
        losses=row_of(memory, 4, 2),
        total=row_of(memory, 6, 1),
        worst=row_of(memory, 7, 1),
        spread=row_of(memory, 8, 1),
        pace=row_of(memory, 9, 1),
        rejected=row_of(memory, 10, 1),
        shares=row_of(memory, 11, 2),
        rates=row_of(memory, 13, 2),
        theta=row_of(memory, 15, K * d),
        arms=matrix_of(memory, 15, K, d),
        sigma=matrix_of(memory, m, d, d),
        factor=matrix_of(memory, m + d * d, d, d),
        candidate=row_of(cells, 0, B),
        excluded=row_of(cells, B, B),
        counts=matrix_of(cells, c, B, K),
        base=matrix_of(cells, c + B * K, B, K),
        squares=matrix_of(cells, c + 2 * B * K, B, K),
        pi=matrix_of(cells, c + 3 * B * K, B, K),
    )


@kernel
def room_of(memory: Floats, start: int, K: int) -> Room:
    """Name the parts of the memory for integrals."""
    m = start + 6 * K
    return Room(
        nodes=row_of(memory, start, K),
        arms=row_of(memory, start + K, K),
        mass=row_of(memory, start + 2 * K, K),
        powers=row_of(memory, start + 3 * K, K),
        ones=row_of(memory, start + 4 * K, K),
        twos=row_of(memory, start + 5 * K, K),
        once=matrix_of(memory, m, K, K),
        twice=matrix_of(memory, m + K * K, K, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:  # noqa: ARG001
    """Name the parts of the scratch space."""
    m = 15 + K * d + 2 * d * d
    v = m + d * d
    k = v + d
    return Work(
        sums=matrix_of(memory, m, d, d),
        vector=row_of(memory, v, d),
        losses=row_of(memory, k, K),
        point=row_of(memory, k + K, K),
        levers=row_of(memory, k + 2 * K, K),
        solved=matrix_of(memory, k + 3 * K, K, d),
        room=room_of(memory, k + 3 * K + K * d, K),
    )
