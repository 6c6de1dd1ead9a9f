"""Exponential weights in every context on its own: Exp3 with an anytime rate (Bubeck and Cesa-Bianchi 2012)."""

from dataclasses import dataclass

from bothworlds.algorithms.per_context import SHANNON, Numbers, per_context_machine
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import Seed
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem


@dataclass(frozen=True, kw_only=True)
class PerContextExp3:
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

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the same seed gives the same decisions."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:  # noqa: ARG002
        """Make the algorithm ready for a problem; it needs no frame."""
        return per_context_machine(problem, Numbers(kind=SHANNON, gain=1.0, cutoff=0.0))
