"""Independent copies of a bandit algorithm, one per context: FTRL on importance-weighted losses. Kernel functions.

Copy x has its own clock, n_x = 1 + the number of its updates, and the sums of its estimated losses, one number per arm;
losses in [-1, 1] are mapped to [0, 1] by (1 + loss)/2. Features are not used: nothing learned in one context helps in
another. Algorithms differ in the regulariser, the rate and the estimator.

A decision carries two arrays for its feedback, fixed when it is taken: direction = 1/pi(A) at the arm A played and zero
elsewhere, baseline = b. The estimate b + (loss - b(A)) direction is unbiased for any b, however late.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np

from bothworlds.algorithms.shared.decision_checks import possible_weight
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Draw, Known, Machine, Play, build_kernel, even_play, known_of
from bothworlds.kernels.exact_ftrl import all_finite, draw_arm
from bothworlds.kernels.ftrl_points import shannon_point, tsallis_point
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, learnt, recalled, scratch
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem

TSALLIS, SHANNON = 0.0, 1.0
# eta_n sqrt(n), and the cutoff of the baseline in units of eta^2; in the normalisation pi = (eta (L - y))^-2.
ESTIMATORS = {"iw": (1.0, 0.0), "rv": (2.0, 4.0)}


class Options(NamedTuple):
    """Hyper-parameters: the regulariser, eta_n sqrt(n) (1 for Shannon entropy), and c of b = 1/2 where pi >= c eta^2.

    c = 0 means no baseline.
    """

    kind: float
    gain: float
    cutoff: float


class State(NamedTuple):
    """Learner state: updates, clocks, sums of estimates; then the plan, and the clocks it was computed for."""

    t: Annotated[Floats, learnt()]
    clocks: Annotated[Floats, learnt("S")]
    losses: Annotated[Floats, learnt("S", "K")]
    planned: Annotated[Floats, recalled("S")]
    pi: Annotated[Floats, recalled("S", "K")]


class Work(NamedTuple):
    """Scratch space: powers of the FTRL point."""

    powers: Annotated[Floats, scratch("K", packed=True)]


class Carried(NamedTuple):
    """What a decision carries: 1/pi(A) at the arm played, and b."""

    direction: Annotated[Floats, carries("K")]
    baseline: Annotated[Floats, carries("K")]


@kernel
def rate(options: Options, blocked: Floats, clock: float) -> float:
    """Return eta_n: gain/sqrt(n), for Shannon entropy times sqrt(log k/k), k the number of arms offered."""
    eta = options.gain / math.sqrt(clock)
    if options.kind == TSALLIS:
        return eta
    count = 0
    for a in range(blocked.shape[0]):
        count += 1 if blocked[a] == 0.0 else 0
    arms = max(count, 2)
    return eta * math.sqrt(math.log(arms) / arms)


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the point of every copy with new feedback since the last plan; a pure function of the learner state."""
    for x in range(state.pi.shape[0]):
        if state.planned[x] == state.clocks[x]:
            continue
        if not all_finite(state.losses[x]):
            return NOT_FINITE
        q = state.pi[x]
        eta = rate(options, known.blocked[x], state.clocks[x])
        for a in range(q.shape[0]):
            q[a] = state.losses[x, a] + known.blocked[x, a]
        if options.kind == TSALLIS:
            status, _ = tsallis_point(q, eta, 0.5, 1.0, work.powers, q)
            if status != OK:
                return status
        else:
            shannon_point(q, eta, q)
        state.planned[x] = state.clocks[x]
    return OK


@kernel
def choose(known: Known, options: Options, state: State, work: Work, x: int, draw: Draw, carried: Carried) -> int:
    """Draw A_t from pi(x), and write the direction and the current baseline."""
    arm = draw_arm(state.pi, x, draw.uniforms)
    eta = rate(options, known.blocked[x], state.clocks[x])
    least = options.cutoff * eta * eta
    for a in range(state.pi.shape[1]):
        carried.direction[a] = 0.0
        carried.baseline[a] = 0.5 if options.cutoff > 0.0 and state.pi[x, a] >= least else 0.0
    carried.direction[arm] = 1.0 / state.pi[x, arm]
    return arm


@kernel
def learn(known: Known, options: Options, state: State, play: Play, carried: Carried) -> None:
    """Add the estimate to the sums of copy x, and advance its clock."""
    rest = 0.5 * (1.0 + play.loss) - carried.baseline[play.a]
    for b in range(state.losses.shape[1]):
        state.losses[play.x, b] += carried.baseline[b] + rest * carried.direction[b]
    state.clocks[play.x] += 1.0
    state.t[0] += 1.0


KERNEL = build_kernel(refresh, choose, learn, possible=possible_weight)


def per_context_machine(problem: Problem, options: Options) -> Machine:
    """Return the machine of an algorithm with one copy per context."""
    known = known_of(problem, even_play(problem.available), np.zeros((*problem.available.shape, 0)))
    return Machine(kernel=KERNEL, known=known, options=options, begin={"clocks": 1.0})  # no plan yet


@dataclass(frozen=True, kw_only=True)
class PerContextTsallisINF(Algorithm):
    """One Tsallis-INF per context, each with its own clock n_x: the baseline that uses contexts but no features.

    With losses mapped to [0, 1], context x plays the FTRL point of its estimated losses at rate eta = 1/sqrt(n_x)
    (importance weighting) or 2/sqrt(n_x) (reduced variance: b_a = 1/2 for arms with pi_a >= 4 eta^2, estimate
    b_a + 1{A = a} (loss - b_a)/pi_a). There is no other exploration. One round costs O(K), however many contexts.

    Proved, in units of losses in [0, 1], for each context with T_x visits and immediate feedback: adversarial
    4 sqrt(K T_x) + 1 (iw) and 2 sqrt(K T_x) + O(K log T_x) (rv), stochastic O(sum_a log(T_x)/Delta_a), corrupted in
    between. Summed over contexts that is O(sqrt(S K T)) and O(S K log(T)/Delta): it grows with S, where an algorithm
    that shares features between contexts pays for d. The regret of losses in [-1, 1] is twice that.

    Parameters
    ----------
    estimator
        "iw" (importance weighting) or "rv" (reduced variance).

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> PerContextTsallisINF().start(problem, rng=1).probabilities(0).round(12).tolist()
    [0.5, 0.5]
    """

    estimator: Literal["iw", "rv"] = "rv"

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise ValueError(f"estimator must be 'iw' or 'rv'; got {self.estimator!r}")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        gain, cutoff = ESTIMATORS[self.estimator]
        return per_context_machine(problem, Options(kind=TSALLIS, gain=gain, cutoff=cutoff))


@dataclass(frozen=True, kw_only=True)
class PerContextExp3(Algorithm):
    """One Exp3 per context, each with its own clock n_x; uses contexts but no features.

    With losses mapped to [0, 1], pi(a|x) is proportional to exp(-eta L_a), L the importance-weighted losses and
    eta = sqrt(log K/(K n_x)), K the arms offered in x. One round costs O(K), whatever the number of contexts.

    Proved, for losses in [0, 1], each context with T_x visits and immediate feedback: regret 2 sqrt(T_x K log K) in the
    adversarial regime, so O(sqrt(S K T log K)) in all; nothing better in the stochastic one. Losses in [-1, 1] double
    it.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> PerContextExp3().start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` is not used."""
        return per_context_machine(problem, Options(kind=SHANNON, gain=1.0, cutoff=0.0))
