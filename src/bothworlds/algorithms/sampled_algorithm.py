"""Base class of algorithms that also run on problems without a list of contexts."""

from abc import abstractmethod
from typing import overload

from bothworlds._public_names import internal
from bothworlds.kernels.random import Seed, key_from
from bothworlds.open_contexts import OpenPolicy
from bothworlds.open_contexts.open_algorithm import OpenAlgorithm, start_open
from bothworlds.policy import Policy, Prior
from bothworlds.problem import OpenProblem, Problem, SampledProblem
from bothworlds.sampled import SampledPolicy, SampledRule, refuse_holdout


class SampledAlgorithm(OpenAlgorithm):
    """An algorithm with rates for problems without a list of contexts."""

    @abstractmethod
    @internal
    def sampled_rule(self, problem: SampledProblem) -> SampledRule:
        """Return the rates for a problem without a list of contexts."""

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
    def start(
        self, problem: OpenProblem, *, rng: Seed = None, interpreted: bool = False, holdout: float = 0.0
    ) -> OpenPolicy: ...
    @overload
    def start(self, problem: SampledProblem, *, rng: Seed = None, interpreted: bool = False) -> SampledPolicy: ...
    def start(
        self,
        problem: Problem | OpenProblem | SampledProblem,
        *,
        rng: Seed = None,
        interpreted: bool = False,
        holdout: float = 0.0,
        prior: Prior | None = None,
    ) -> Policy | OpenPolicy | SampledPolicy:
        """Start a policy on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the same functions without compiling them: for the debugger, some hundred times slower.
        ``holdout`` is the share of decisions that are uniform among the arms or candidates offered, and marked; their
        feedback is counted and not learned from. ``prior`` is what the policy believes before its first feedback. A
        prior on an `OpenProblem`, and either option on a `SampledProblem`, raises ValueError.
        """
        if isinstance(problem, SampledProblem):
            refuse_holdout(holdout)
            if prior is not None:
                raise ValueError("a prior needs a problem that lists its contexts: start without prior=")
            rule = self.sampled_rule(problem)
            return SampledPolicy(self, problem, rule, key=key_from(rng), interpreted=interpreted)
        if isinstance(problem, OpenProblem):
            return start_open(self, problem, rng=rng, interpreted=interpreted, holdout=holdout, prior=prior)
        return super().start(problem, rng=rng, interpreted=interpreted, holdout=holdout, prior=prior)
