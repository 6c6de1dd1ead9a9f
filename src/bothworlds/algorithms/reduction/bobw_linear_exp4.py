"""The black-box reduction to both worlds with policies as actions (Dann, Wei and Zimmert 2023); its base is EXP4."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bothworlds.algorithms.options import check_choice, check_not_negative, check_whole, description
from bothworlds.algorithms.reduction.kernel_policies import KERNEL, Options
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Machine, known_of
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.theory.coordinates import frame_of
from bothworlds.theory.design import design
from bothworlds.theory.linear_policies import all_policies, linear_policies, policy_points

POLICIES = ("linear", "all")
ESTIMATES = ("linear", "importance-weighted")
INSTEAD = "BoBWRealLinExp3(candidate='per-context') takes maps as candidates at any size, by a heuristic"


@dataclass(frozen=True, kw_only=True, repr=False)
class BoBWLinearEXP4(Algorithm):
    """A master that plays a candidate policy, or lets exponential weights draw another; epochs change the candidate.

    The reduction of `BoBWRealLinExp3` as in its theorem: the actions are policies, maps of contexts to arms. In an
    epoch a two-point master plays the candidate with probability q_1; otherwise the base draws one of the N other
    policies, P_t(p) proportional to exp(-eta_t estimated loss). The policies *drawn* are counted: an epoch ends, once
    twice as long as the last one, when another policy was drawn in half of its rounds. Reference: Dann, Wei and
    Zimmert, *A blackbox approach to best of both worlds in bandits and beyond*, COLT 2023.

    Proved: O(c1 log T/Delta) in the stochastic regime and O(sqrt(c1 T)) in the adversarial one, up to logarithms, with
    corruption in between, by the theorem of Dann et al.; the stability that it requires of the base is theirs for
    importance weights and ours for linear estimates. Delta is the gap between *policies*: with all maps listed it is
    the smallest g(x) Delta(a|x), a gap of arms times the probability of a context, so log T shows late.

    ``estimates="linear"``: theta_hat = Sigma^-1 phi loss/q_2 with Sigma of the base's play, a policy by its point z_p =
    sum_x g(x) phi(p(x), x), eta_t = min{sqrt(log N/((r + 2/lambda) sum 1/q)), lambda min q/2}, mixed with gamma_t =
    eta_t/(lambda q_t) of an even draw; c1 = 9 (r + 2/lambda) log N, c2 = 2 log N/lambda, r and lambda of that draw,
    recomputed for every candidate. ``"importance-weighted"``: EXP4 as published, on losses shifted to [0, 2]: eta_t =
    sqrt(log N/(4 K sum 1/q)), no exploration, c1 = 16 K log N, c2 = 0; features only determine which policies are
    listed.

    What we had to choose: the first candidate is not drawn but the policy listed first; feedback for decisions of an
    earlier epoch is not learned from. ``scale`` below 1 shrinks c1 and c2 and is a heuristic without a theorem.

    One round costs O(N (S + d) + S K d^2 + d^3).

    Parameters
    ----------
    horizon
        T, which affects the length of the first epoch.
    policies
        "linear": the distinct linear policies; "all": all maps of contexts to arms. Either up to 2,000: larger problems
        are refused at the start.
    estimates
        "linear" or "importance-weighted".
    scale
        Factor of c1 and c2; 1 is the theorem's, 0 leaves a plain two-armed Tsallis-INF as master.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> BoBWLinearEXP4(horizon=1000).start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    horizon: int
    policies: Literal["linear", "all"] = "linear"
    estimates: Literal["linear", "importance-weighted"] = "linear"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self, "horizon")
        check_choice(self, "policies", POLICIES)
        check_choice(self, "estimates", ESTIMATES)
        check_not_negative(self, "scale")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        frame = self._frame(problem) if frame is None else frame
        z, arms = frame["coordinates"], frame["policies"].astype(int)
        options = Options(
            log_horizon=math.log(self.horizon),
            scale=self.scale,
            linear=float(self.estimates == "linear"),
            arms=arms,
            points=policy_points(z, problem.probabilities, arms),
        )
        known = known_of(problem, frame["exploration"], z)
        begin = {"epoch": 1.0, "clock": 1.0}  # the candidate is policy 0
        return Machine(kernel=KERNEL, known=known, options=options, begin=begin, frame=frame, listed=len(arms))

    def _frame(self, problem: Problem) -> dict[str, Floats]:
        """Return coordinates and the list of policies; raises ValueError if the list is too long."""
        listed = linear_policies if self.policies == "linear" else all_policies
        arms = listed(problem, instead=INSTEAD).astype(np.float64)
        return {**frame_of(problem, design(problem, "uniform")), "policies": arms}

    def __repr__(self) -> str:
        return description(self)
