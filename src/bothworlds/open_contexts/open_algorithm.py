"""Base class of algorithms that can also start on an `OpenProblem`."""

from typing import overload

from bothworlds._hooks import provided
from bothworlds._public_names import internal
from bothworlds.kernels.random import Seed, key_from
from bothworlds.open_contexts.open_policy import OpenPolicy
from bothworlds.open_contexts.rule_contract import OpenRule
from bothworlds.policy import Algorithm, Policy, Prior
from bothworlds.problem import OpenProblem, Problem


class OpenAlgorithm(Algorithm):
    """An algorithm with a rule for problems whose contexts are not listed."""

    @internal
    def open_rule(self) -> OpenRule:
        """Return the rule for open problems; raise ValueError without one."""
        rule: OpenRule = provided("open_rule_of")(self)
        return rule

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
    def start(
        self,
        problem: Problem | OpenProblem,
        *,
        rng: Seed = None,
        interpreted: bool = False,
        holdout: float = 0.0,
        prior: Prior | None = None,
    ) -> Policy | OpenPolicy:
        """Start a policy on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the same functions without compiling them: for the debugger, some hundred times slower.
        ``holdout`` is the share of decisions that are uniform among the arms or candidates offered, and marked; their
        feedback is counted and not learned from. ``prior`` is what the policy believes before its first feedback; with
        an `OpenProblem` it raises ValueError.
        """
        if isinstance(problem, OpenProblem):
            return start_open(self, problem, rng=rng, interpreted=interpreted, holdout=holdout, prior=prior)
        return super().start(problem, rng=rng, interpreted=interpreted, holdout=holdout, prior=prior)


def start_open(
    algorithm: OpenAlgorithm,
    problem: OpenProblem,
    *,
    rng: Seed,
    interpreted: bool,
    holdout: float,
    prior: Prior | None,
) -> OpenPolicy:
    """Start a policy on an open problem; raise ValueError for a prior, which it does not support."""
    if prior is not None:
        raise ValueError("a prior needs a problem that lists its contexts: start without prior=")
    rule, key = algorithm.open_rule(), key_from(rng)
    return OpenPolicy(algorithm, problem, rule, key=key, interpreted=interpreted, holdout=holdout)
