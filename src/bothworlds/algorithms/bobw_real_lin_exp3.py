"""The black-box reduction of RealLinExp3 to both worlds (Dann, Wei and Zimmert 2023; Kuroki et al. 2024, Prop. 8)."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bothworlds.algorithms import bobw_real_lin_exp3_text as text
from bothworlds.algorithms.options import check_choice, check_horizon, check_scale, description
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import Seed
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem
from bothworlds.theory.design import design
from bothworlds.theory.frame import frame_of, world_of

CANDIDATES = ("literal", "per-context")


@dataclass(frozen=True, kw_only=True, repr=False)
class BoBWRealLinExp3:
    """A master that plays a candidate, or lets exponential weights play; epochs change the candidate.

    In an epoch a two-point master (Corral with Tsallis entropy and a log barrier) plays the candidate with probability
    q_1 and otherwise RealLinExp3, which learns with probability q_2 = 1 - q_1 and divides by it; its losses get a bonus
    sqrt(c1 sum 1/q_2) + c2 max 1/q_2. An epoch lasts at least twice as long as the last one, the first 2 c2 log T
    rounds, and ends when another candidate holds half of its plays; then all is forgotten. References: Dann, Wei and
    Zimmert, *A blackbox approach to best of both worlds in bandits and beyond*, COLT 2023; Kuroki, Rumi, Tsuchiya,
    Vitale and Cesa-Bianchi, *Best-of-both-worlds algorithms for linear contextual bandits*, AISTATS 2024, Prop. 8.

    Proved, and this is less than published. ``candidate="literal"``, as in Kuroki et al.: the candidate is an arm, and
    the base plays all others. The reduction compares with that arm in all contexts, or with policies that never play
    it: if *one arm is the best in every context*, O(c1 log T/Delta) stochastic and O(sqrt(c1 T)) adversarial, up to
    logarithms. Otherwise the best policy may be neither, and regret grows nearly linearly (measured, see
    docs/rivals-reductions.md). ``candidate="per-context"``: the candidate is a map of contexts to arms and the base
    plays all arms, so that every policy is compared with: O(sqrt(c1 T)) up to logarithms in both regimes (ours). The
    rule that changes the map is a heuristic, and without exclusion O(log T) is not proved for exponential weights.

    With the theorem's constants the candidate has little influence until T is about c1/Delta^2; ``scale`` below 1
    shrinks c1 and c2 and is a heuristic without a theorem.

    What we had to choose: the base is re-derived for arm-dependent features (ours): eta_t = min{sqrt(log K/((r +
    2/lambda) sum 1/q)), lambda min q/2}, gamma_t = eta_t/(lambda q_t), which gives c1 = 9 (r + 2/lambda) log K, c2 = 2
    log K/lambda, K the largest number of arms of the base, r the rank and lambda the coverage of even play of these,
    all computed anew for every candidate. The first candidate is not drawn but the arm offered most often (the first
    one offered in each context). In contexts that do not offer the candidate both options play the base; where nothing
    else is offered the base plays the candidate. Feedback for decisions of an earlier epoch is not learnt from.

    One round costs O(S K d^2 + d^3).

    Parameters
    ----------
    horizon
        T, which enters through the length of the first epoch.
    candidate
        "literal" or "per-context".
    scale
        Factor of c1 and c2; 1 is the theorem's, 0 leaves a plain two-armed Tsallis-INF as master.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> BoBWRealLinExp3(horizon=1000).start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    horizon: int
    candidate: Literal["literal", "per-context"] = "literal"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_horizon(self, least=1)
        check_choice(self, "candidate", CANDIDATES)
        check_scale(self)

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the same seed gives the same decisions."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""
        frame = frame_of(problem, design(problem, "uniform")) if frame is None else frame
        maps = self.candidate == "per-context"
        first = _first_arms(problem) if maps else _first_arm(problem)

        def begin(state: text.State) -> None:
            state.t[...] = state.epoch[...] = state.clock[...] = 1.0
            state.candidate[...] = first

        return Machine(
            text=text.TEXT,
            world=world_of(problem, frame["exploration"], frame["coordinates"]),
            numbers=np.array(text.Numbers(math.log(self.horizon), self.scale, float(maps), 0.0)),
            begin=begin,
            learnt=text.LEARNT,
            frame=frame,
            has_baseline=False,
            carried=frame["coordinates"].shape[2] + text.MORE,
        )

    def __repr__(self) -> str:
        return description(self, candidate="literal", scale=1.0)


def _first_arms(problem: Problem) -> Floats:
    """Return the first arm offered in each context."""
    return np.asarray(problem.available.argmax(axis=1), dtype=np.float64)


def _first_arm(problem: Problem) -> Floats:
    """Return the arm offered with the largest probability, in each context; -1 where it is not offered."""
    arm = int((problem.probabilities @ problem.available).argmax())
    return np.where(problem.available[:, arm], float(arm), -1.0)
