"""MWU-LC in the data-dependent reduction to both worlds (Dann, Wei and Zimmert 2023; Kuroki et al. 2024, Theorem 1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bothworlds.algorithms.mwu_lc.machine import Reduction, check_arms, mwu_machine, with_lonely
from bothworlds.algorithms.options import check_choice, check_not_negative, check_positive, check_whole, description
from bothworlds.algorithms.shared.reduction_candidates import CANDIDATES
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Machine
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.theory.armwise import armwise_frame


@dataclass(frozen=True, kw_only=True, repr=False)
class BoBWMWULC(Algorithm):
    """A master that plays a candidate, or lets `MWULC` play; its theorem does not cover finite contexts.

    Like `MWULC` its guarantee needs contexts with a log-concave density, which a finite set never has. As in
    `BoBWRealLinExp3` the candidate is an arm, while the regret compares with a map of contexts to arms: even on
    log-concave contexts log T follows only if one arm is the best in every context.

    In an epoch a two-point master with a log barrier ("dd-LSB Corral") plays the candidate with probability q_1, and
    with q_2 = 1 - q_1 the base, `MWULC` on the other arms, which learns with update probability q_2. With xi the
    observed losses, 1/eta_t = 4 (sum xi^2 (1{i} - q_i)^2/log T + c1 + c2^2)^(1/2), and the base has a bonus (c1 sum
    over its plays of xi^2/q_2^2)^(1/2) + c2 max 1/q_2. Epochs are those of `BoBWRealLinExp3`. References: Dann, Wei and
    Zimmert, *A blackbox approach to best of both worlds in bandits and beyond*, COLT 2023, Algorithms 1 and 6; Kuroki
    et al., AISTATS 2024.

    The printed constants c1 = kappa^2 and c2 = kappa (50 d K)^(1/2), kappa = 32 d K log(10 d K T) log T, are so large
    that at any feasible horizon the first epoch never ends, the shares do not depend on the losses (the candidate's
    falls from 1/2 to 0.2 within 100,000 rounds, good or bad), and the base plays nearly uniformly: regret grows
    linearly (computed in research/mwu-lc.md). ``scale`` below 1 shrinks c1 and c2, ``speed`` above 1 the caution of the
    base; both are heuristics without a theorem.

    What we had to choose: predictors of losses are 0, so xi is the loss. ``candidate="per-context"`` has a map as
    candidate and a base on all arms, as in `BoBWRealLinExp3`. The first candidate is not drawn but the arm offered most
    often. Where only the candidate is offered the base plays it. Feedback for decisions of an earlier epoch is not
    learned from. See `MWULC` for the choices in the base and for the cost of a round.

    Parameters
    ----------
    horizon
        T, at least 2.
    candidate
        "literal" or "per-context".
    scale
        Factor of c1 and c2; 1 is the paper's.
    speed
        Factor of the base's eta_t; 1 is the paper's.

    >>> problem = Problem.from_arm_independent([[1.0, 0.0], [1.0, 1.0]], probabilities=[0.5, 0.5], arms=3)
    >>> BoBWMWULC(horizon=1000).start(problem, rng=1).probabilities(0).round(3).tolist()
    [0.5, 0.25, 0.25]
    """

    horizon: int
    candidate: Literal["literal", "per-context"] = "literal"
    scale: float = 1.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self, "horizon", least=2)
        check_choice(self, "candidate", CANDIDATES)
        check_not_negative(self, "scale")
        check_positive(self, "speed")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        check_arms(problem)
        reduction = Reduction(self.horizon, self.candidate == "per-context", self.scale)
        arrays = with_lonely(problem, armwise_frame(problem)) if frame is None else frame
        return mwu_machine(problem, arrays, speed=self.speed, reduction=reduction)

    def __repr__(self) -> str:
        return description(self)
