"""Algorithm: the base class of all algorithms."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Machine
from bothworlds.kernels.random import Seed, key_from
from bothworlds.policy.bookkeeping import Bookkeeping
from bothworlds.policy.feedback_registry import FeedbackRegistry
from bothworlds.policy.ids import new_name
from bothworlds.policy.learner_state import LearnerState
from bothworlds.policy.options import check_options
from bothworlds.policy.policy import Policy
from bothworlds.policy.prior import Prior
from bothworlds.policy.spec import PolicySpec
from bothworlds.policy.transfer import beliefs_of, fields_from_prior
from bothworlds.problem import OpenProblem, Problem, SampledProblem


def check_types(problem: Any, prior: Any = None) -> None:
    """Refuse a problem or a prior of another type."""
    if isinstance(problem, OpenProblem):
        raise ValueError(
            "this algorithm has no rule for an OpenProblem, whose contexts are not listed: take LCTsallisINF(), "
            "LinUCB(), DLinUCB() or SquareCB()"
        )
    if not isinstance(problem, Problem | SampledProblem):
        raise ValueError(f"a policy starts on a Problem; got {problem!r:.80}")
    if not isinstance(prior, Prior | None):
        raise ValueError(
            f"prior= must be a Prior, as from Prior.from_rows(problem, rows) or policy.prior(); got {prior!r:.80}"
        )


class Algorithm(ABC):
    """Hyperparameters, with a method that prepares the compiled kernel for a problem and one that starts a policy."""

    @internal
    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse unknown options, with a message that names the option that was probably meant."""
        if args or options:
            check_options(cls, args, options)
        return super().__new__(cls)

    @abstractmethod
    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Prepare the algorithm for a problem; ``frame`` has the arrays of a saved policy, to restore its machine."""

    def start(
        self,
        problem: Problem,
        *,
        rng: Seed = None,
        interpreted: bool = False,
        holdout: float = 0.0,
        prior: Prior | None = None,
    ) -> Policy:
        """Start a policy on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the kernel without compiling it: for debuggers, about a hundred times slower. ``holdout``
        is the share of decisions that are uniform over the offered arms and marked: an unbiased comparison for the
        policy (`bothworlds.Policy.health`). Their feedback is counted and not learned from. ``prior`` is what the
        policy believes before its first feedback.
        """
        check_types(problem, prior)
        key, machine = key_from(rng), self.machine(problem)
        spec = PolicySpec(algorithm=self, problem=problem, machine=machine, interpreted=interpreted, holdout=holdout)
        learner_state = LearnerState.initial(spec, key)
        if prior is not None:
            learner_state.set_learned(fields_from_prior(machine, beliefs_of(machine, self), problem, prior), updates=0)
        return Policy(learner_state, Bookkeeping(new_name(), spec, FeedbackRegistry.begin(key)), key=key)
