"""The memory of LC-Tsallis-INF: hyper-parameters, what is learnt, the plan, scratch space, and where they lie."""

from typing import NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.numbers import matrix_of, row_of

HEAD = 10  # single numbers, before those that there are d of


class Numbers(NamedTuple):
    """Hyper-parameters as numbers, in the order of the flat array."""

    kind: float
    alpha: float
    gain: float  # eta_t = min(gain/sqrt(t), cap)
    cap: float
    linear: float  # gamma_t <= min(linear eta, power_scale eta^power)
    power_scale: float
    power: float
    constant: float  # c of the stability condition, or of the adaptive tuning's; 0 does without
    slope: float  # adaptive: eta_t = gain (1 + n/offset)^-slope
    offset: float  # adaptive
    floor: float  # adaptive: gamma_t >= min(1/2, floor/t)
    recency: float  # adaptive: Theta is multiplied by t/(t + recency) with every update
    forgetting: float  # adaptive: the same for the ridge regression
    full: float  # adaptive: (K^(1-alpha) - 1)/alpha, -psi of the uniform distribution
    leverage: float  # adaptive: 1/lambda, the largest leverage of e*
    beta: float  # resampling step; 0 means the exact inverse
    samples: float  # resampling: fixed number of draws, or 0 for log_bias
    log_bias: float  # resampling: draws = log_bias/(gamma beta)


class State(NamedTuple):
    """What is learnt, then the plan that follows from it."""

    t: Floats
    theta: Floats
    start: Floats  # y of the plan before, where Newton starts
    start_rate: Floats  # gamma of the plan before, where its search starts
    ridge: Floats
    response: Floats
    noisy: Floats  # adaptive: rounds so far, weighted by noise and by how undecided the plan was
    tail: Floats  # adaptive: residual^4 leverage and residual^2 leverage, recent ones
    rates: Floats  # eta_t, gamma_t
    inverse_rate: Floats  # matched: 1/eta_t
    fresh: Floats  # matched: updates since the plan was made
    step: Floats  # matched: sum of their estimates; where the adaptive tuning has its response
    entropy: Floats  # adaptive, matched: -psi(q_t) in the mean over contexts
    y: Floats
    baseline: Floats
    q: Floats
    pi: Floats
    sigma: Floats
    inverse: Floats  # G with Sigma_t^-1 = G^T G


LEARNT = ("t", "theta", "start", "start_rate")
LEARNT_BY_MATCHED = (*LEARNT, "inverse_rate")
LEARNT_BY_ADAPTIVE = (*LEARNT, "ridge", "response", "noisy", "tail")


class Work(NamedTuple):
    """Scratch space: nothing in it outlives a call."""

    sums: Floats
    powers: Floats
    vector: Floats
    half: Floats
    mixed: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(
        n[0],
        n[1],
        n[2],
        n[3],
        n[4],
        n[5],
        n[6],
        n[7],
        n[8],
        n[9],
        n[10],
        n[11],
        n[12],
        n[13],
        n[14],
        n[15],
        n[16],
        n[17],
    )


def kept(B: int, d: int) -> tuple[int, int]:
    """Return how many numbers of the state, from its start, are not computed afresh with every plan."""
    return HEAD + d, 2 * B


def kept_by_adaptive(B: int, d: int) -> tuple[int, int]:
    """Return the same for the adaptive tuning, with its baseline and its ridge regression."""
    return HEAD + 3 * d + d * d, 2 * B


def sizes(B: int, K: int, d: int) -> tuple[int, int]:
    """Return how many numbers the memory takes: state first, then scratch."""
    return HEAD + 5 * d + 4 * d * d, 2 * B + 2 * B * K + d * d + K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:
    """Name the parts of a policy's memory."""
    v = HEAD + 3 * d
    s = v + d * d
    c = 2 * B
    return State(
        t=row_of(memory, 0, 1),
        noisy=row_of(memory, 1, 1),
        rates=row_of(memory, 2, 2),
        start_rate=row_of(memory, 4, 1),
        tail=row_of(memory, 5, 2),
        entropy=row_of(memory, 7, 1),
        inverse_rate=row_of(memory, 8, 1),
        fresh=row_of(memory, 9, 1),
        theta=row_of(memory, HEAD, d),
        response=row_of(memory, HEAD + d, d),
        step=row_of(memory, HEAD + d, d),
        baseline=row_of(memory, HEAD + 2 * d, d),
        ridge=matrix_of(memory, v, d, d),
        sigma=matrix_of(memory, s, d, d),
        inverse=matrix_of(memory, s + d * d, d, d),
        start=row_of(cells, 0, B),
        y=row_of(cells, B, B),
        pi=matrix_of(cells, c, B, K),
        q=matrix_of(cells, c + B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Work:
    """Name the parts of the scratch space."""
    v = HEAD + 3 * d + 3 * d * d
    c = 2 * B + 2 * B * K
    return Work(
        vector=row_of(memory, v, d),
        half=row_of(memory, v + d, d),
        mixed=matrix_of(memory, v + 2 * d, d, d),
        sums=matrix_of(cells, c, d, d),
        powers=row_of(cells, c + d * d, K),
    )
