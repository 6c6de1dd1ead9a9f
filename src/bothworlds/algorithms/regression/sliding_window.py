"""SW-LinUCB (Cheung, Simchi-Levi and Zhu 2019): optimism on the last answers only, for a world that changes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from bothworlds.algorithms.options import check_within
from bothworlds.algorithms.regression.ridge import BELIEFS, estimate, play_lower_bounds, ridge_machine
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import feature
from bothworlds.kernels.contract import Known, Machine, Play, build_kernel
from bothworlds.kernels.exact_ftrl import choose_only
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch
from bothworlds.kernels.linalg import erase
from bothworlds.kernels.status import OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

LONGEST = 1_000_000


class Options(NamedTuple):
    """Hyper-parameters: width of the confidence bounds, and ridge."""

    width: float
    ridge: float


class State(NamedTuple):
    """Learner state: clock, number of answers in the window, the window, V and sum of phi loss; then the plan.

    ``window`` has w = P rows: 1 + the number of the pair of context and arm, or 0 if the row is empty, and the loss.
    ``oldest`` is the row that the next answer overwrites. ``sigma`` is V, ``inverse`` is G with V^-1 = G^T G.
    """

    t: Annotated[Floats, learnt()]
    rounds: Annotated[Floats, learnt()]
    oldest: Annotated[Floats, learnt()]
    response: Annotated[Floats, learnt("d")]
    sigma: Annotated[Floats, learnt("d", "d")]
    window: Annotated[Floats, learnt("P", 2)]
    theta: Annotated[Floats, planned("d")]
    inverse: Annotated[Floats, planned("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: a half solution, and the index of every arm of a context."""

    half: Annotated[Floats, scratch("d")]
    scores: Annotated[Floats, scratch("K", packed=True)]


@kernel
def add_row_of_window(known: Known, state: State, row: int, sign: float) -> None:
    """Add the play in a row of the window to V and the response, or subtract it; nothing for an empty row."""
    pair = int(state.window[row, 0]) - 1
    if pair < 0:
        return
    K = known.z.shape[1]
    x, a = pair // K, pair % K
    for i in range(state.response.shape[0]):
        z = sign * feature(known.z, x, a, i)
        state.response[i] += state.window[row, 1] * z
        for j in range(state.response.shape[0]):
            state.sigma[i, j] += z * feature(known.z, x, a, j)


@kernel
def add_whole_window(known: Known, options: Options, state: State) -> None:
    """Compute V and the response anew from the window."""
    for i in range(state.response.shape[0]):
        erase(state.sigma[i])
        state.sigma[i, i] = options.ridge
    erase(state.response)
    for row in range(state.window.shape[0]):
        add_row_of_window(known, state, row, 1.0)


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Any) -> None:
    """Replace the oldest play by the new one; after every w answers, add up the window anew.

    So rounding errors of additions and subtractions are never older than w answers, and what a prior or an earlier
    problem brought is forgotten with the last answer of the first full window.
    """
    row = int(state.oldest[0])
    add_row_of_window(known, state, row, -1.0)
    state.window[row, 0] = 1.0 + play.x * known.z.shape[1] + play.a
    state.window[row, 1] = play.loss
    add_row_of_window(known, state, row, 1.0)
    state.rounds[0] = min(state.rounds[0] + 1.0, float(state.window.shape[0]))
    state.oldest[0] += 1.0
    state.t[0] += 1.0
    if row + 1 == state.window.shape[0]:
        state.oldest[0] = 0.0
        add_whole_window(known, options, state)


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Estimate theta, and play the arm with the smallest lower bound in each context; ties share evenly."""
    status = estimate(state, work.half)
    if status == OK:
        play_lower_bounds(known, state, work, options.width + 0.0 * state.t[0])
    return status


KERNEL = build_kernel(refresh, choose_only, learn, wide=True)


@dataclass(frozen=True, kw_only=True)
class SWLinUCB(Algorithm):
    """Play the arm with the smallest lower confidence bound of a regression on the last answers: SW-LinUCB.

    theta_hat = V^-1 sum phi loss and V = ridge I + sum phi phi^T over the last w answers, w the ``window``. The index
    of an arm is <phi, theta_hat> - width |phi|_{V^-1}. As long as no more than w answers have come it is `LinUCB`. One
    round costs O(S K d^2 + d^3), and the memory is 2 w numbers more than that of `LinUCB`.

    For a world that changes, like `DLinUCB`: what is older than w answers is forgotten at once. Late answers count from
    the moment at which they come. Where nothing changes its regret grows linearly with a small slope; nothing protects
    it from an adversary. After ``change``, or with a prior, what was known before is forgotten after w new answers.

    Proved for the width of the paper, |phi| <= 1 and |theta| <= 1: dynamic regret O(T^(3/4)) up to logarithms for a
    window tuned to the total change B of theta over the T rounds (Zhao and Zhang 2021; the T^(2/3) stated first, with
    w = d^(1/3) (T/B)^(2/3), needs more than linear losses). Nothing is proved for a constant width. Reference: Cheung,
    Simchi-Levi and Zhu 2019.

    Parameters
    ----------
    width
        Factor of the confidence width, 0.2 to 2 in practice.
    window
        w, the number of answers that are remembered, up to a million.
    ridge
        V starts as ridge times the identity.

    >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    >>> policy = SWLinUCB(window=200).start(problem, rng=7)
    >>> policy.update(policy.act("day"), reward=0)
    >>> policy.probabilities("day").tolist()  # red was played, and brought nothing
    [0.0, 1.0]
    """

    width: float = 1.0
    window: int = 1_000
    ridge: float = 1.0

    def __post_init__(self) -> None:
        check_within(self, "width", 0.0, math.inf, closed=True)
        check_within(self, "ridge", 0.0, math.inf)
        window = whole(self.window, 1, "window")
        if window > LONGEST:
            raise ValueError(f"window must be at most {LONGEST:,} answers; got {window:,}")
        object.__setattr__(self, "window", window)

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        options, beliefs = Options(self.width, self.ridge), BELIEFS._replace(rounds="rounds")
        return ridge_machine(KERNEL, problem, options, ridge=self.ridge, beliefs=beliefs, rows=self.window)
