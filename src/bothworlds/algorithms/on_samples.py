"""Algorithms that can also play contexts which are drawn and not listed."""

from abc import abstractmethod
from typing import overload

from bothworlds.kernels.random import Seed, key_from
from bothworlds.policy import Algorithm, Policy, Prior
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import Rule, SampledPolicy, refuse_holdout


class OnSamples(Algorithm):
    """An algorithm with rates for contexts that are not listed."""

    @abstractmethod
    def sampled_rule(self, problem: SampledProblem) -> Rule:
        """Return the rates for contexts that are not listed. Internal."""

    @overload
    def start(
        self,
        problem: Problem,
        *,
        rng: Seed = None,
        interpreted: bool = False,
        holdout: float = 0.0,
        prior: Prior | None = None,
    ) -> Policy: ...
    @overload
    def start(self, problem: SampledProblem, *, rng: Seed = None, interpreted: bool = False) -> SampledPolicy: ...
    def start(
        self,
        problem: Problem | SampledProblem,
        *,
        rng: Seed = None,
        interpreted: bool = False,
        holdout: float = 0.0,
        prior: Prior | None = None,
    ) -> Policy | SampledPolicy:
        """Begin on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the same text without compiling it: for the debugger, some hundred times slower.
        ``holdout`` is the share of decisions that are uniform among the arms offered, and marked; their feedback is
        counted and not learnt. ``prior`` is what is believed already. Contexts that are not listed can have neither.
        """
        if isinstance(problem, SampledProblem):
            refuse_holdout(holdout)
            if prior is not None:
                raise ValueError("a prior is for a problem that lists its contexts: start without one here")
            rule = self.sampled_rule(problem)
            return SampledPolicy(self, problem, rule, key=key_from(rng), interpreted=interpreted)
        return super().start(problem, rng=rng, interpreted=interpreted, holdout=holdout, prior=prior)
