"""The black-box reduction of RealLinExp3 to both worlds (Dann, Wei and Zimmert 2023; Kuroki et al. 2024, Prop. 8)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bothworlds.algorithms.options import check_choice, check_not_negative, check_whole, description
from bothworlds.algorithms.reduction import kernel_armwise, kernel_linear
from bothworlds.algorithms.shared.armwise import armwise_machine, complements_of
from bothworlds.algorithms.shared.reduction_candidates import CANDIDATES, first_candidate
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Machine, known_of
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.theory.armwise import armwise_frame
from bothworlds.theory.coordinates import frame_of
from bothworlds.theory.design import design

FEATURES = ("arm-dependent", "arm-independent")
CONSTANTS = ("tuned", "printed")


@dataclass(frozen=True, kw_only=True, repr=False)
class BoBWRealLinExp3(Algorithm):
    """A master that plays a candidate, or lets exponential weights play; epochs change the candidate.

    In an epoch a two-point master (Corral with Tsallis entropy and a log barrier) plays the candidate with probability
    q_1 and otherwise RealLinExp3, which learns with probability q_2 = 1 - q_1 and divides by it; its losses get a bonus
    sqrt(c1 sum 1/q_2) + c2 max 1/q_2. An epoch lasts at least twice as long as the last one, the first 2 c2 log T
    rounds, and ends when another candidate has half of its plays; then all estimates are reset. References: Dann, Wei
    and Zimmert, *A blackbox approach to best of both worlds in bandits and beyond*, COLT 2023; Kuroki, Rumi, Tsuchiya,
    Vitale and Cesa-Bianchi, *Best-of-both-worlds algorithms for linear contextual bandits*, AISTATS 2024, Prop. 8.

    Proved, and this is less than published. ``candidate="literal"``, as in Kuroki et al.: the candidate is an arm, and
    the base plays all others. The reduction compares with that arm in all contexts, or with policies that never play
    it: if *one arm is the best in every context*, O(c1 log T/Delta) stochastic and O(sqrt(c1 T)) adversarial, up to
    logarithms. Otherwise the best policy may be neither, and regret grows nearly linearly (measured, see
    research/reductions.md). ``candidate="per-context"``: the candidate is a map of contexts to arms and the base
    plays all arms, so that every policy is compared with: O(sqrt(c1 T)) up to logarithms in both regimes (ours). The
    rule that changes the map is a heuristic, and without exclusion O(log T) is not proved for exponential weights.

    With the theorem's constants the candidate has little influence until T is about c1/Delta^2; ``scale`` below 1
    shrinks c1 and c2 and is a heuristic without a theorem.

    ``features="arm-independent"`` is the base of Kuroki et al., one vector per context and one covariance per arm; any
    other problem is stacked (Theorem 4.5), with a warning if that makes it one bandit per context. The default is
    the same base re-derived for arm-dependent features (ours), with one covariance. ``constants="printed"``: eta_t =
    min{sqrt(log K/sum 1/q), lambda min q/2}, gamma_t = eta_t/(lambda q_t), which gives c1 = log K (4/lambda + 3 D +
    1)^2, c2 = 2 log K/lambda. ``"tuned"`` (ours): eta_t = min{sqrt(log K/((D + 2/lambda) sum 1/q)), lambda min q/2}
    and c1 = 9 (D + 2/lambda) log K: D and 1/lambda are not squared.

    What we had to choose: K is the largest number of arms of the base, D the rank (the sum of the ranks of the arms
    if each has its own covariance: K d) and lambda the coverage of even play of these, where the paper has
    lambda_min/K; all recomputed for every candidate. The first candidate is not drawn but the arm offered most often
    (the first one offered in each context). In contexts that do not offer the candidate both options play the base;
    where only the candidate is offered the base plays it. Feedback for decisions of an earlier epoch is not learned
    from. For policies as actions see `BoBWLinearEXP4`.

    One round costs O(S K d^2 + d^3); with arm-independent features O(S K d + S d^2 + d^3), d that of the contexts.

    Parameters
    ----------
    horizon
        T, which affects the length of the first epoch.
    candidate
        "literal" or "per-context".
    features
        "arm-dependent" or "arm-independent".
    constants
        "tuned" or "printed".
    scale
        Factor of c1 and c2; 1 is the theorem's, 0 leaves a plain two-armed Tsallis-INF as master.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> BoBWRealLinExp3(horizon=1000).start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    horizon: int
    candidate: Literal["literal", "per-context"] = "literal"
    features: Literal["arm-dependent", "arm-independent"] = "arm-dependent"
    constants: Literal["tuned", "printed"] = "tuned"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self, "horizon")
        check_choice(self, "candidate", CANDIDATES)
        check_choice(self, "features", FEATURES)
        check_choice(self, "constants", CONSTANTS)
        check_not_negative(self, "scale")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        maps, printed = self.candidate == "per-context", self.constants == "printed"
        given = math.log(self.horizon), self.scale, float(maps), float(printed)
        begin = {"epoch": 1.0, "clock": 1.0, "candidate": first_candidate(problem, maps=maps)}
        if self.features == "arm-independent":
            frame = armwise_frame(problem) if frame is None else frame
            options = kernel_armwise.Options(*given, _ranks(problem, frame), complements_of(frame, problem.n_arms))
            return armwise_machine(kernel_armwise.KERNEL, problem, frame, options, begin)
        frame = frame_of(problem, design(problem, "uniform")) if frame is None else frame
        known = known_of(problem, frame["exploration"], frame["coordinates"])
        rule = kernel_linear.Options(*given)
        return Machine(kernel=kernel_linear.KERNEL, known=known, options=rule, begin=begin, frame=frame)

    def __repr__(self) -> str:
        return description(self)


def _ranks(problem: Problem, frame: Mapping[str, Floats]) -> Floats:
    """Return for each arm the rank of the contexts that offer it (K,)."""
    d, complements = frame["contexts"].shape[1], frame["complements"]
    if len(complements) == 0:
        return np.full(problem.n_arms, float(d))
    return np.asarray(np.round(d - np.trace(complements, axis1=1, axis2=2)))
