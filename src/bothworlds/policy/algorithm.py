"""Algorithm: what makes policies."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Machine
from bothworlds.kernels.random import Seed, key_from
from bothworlds.policy.books import Books
from bothworlds.policy.carrying import begun_with, beliefs_of
from bothworlds.policy.core import Policy
from bothworlds.policy.footing import Footing
from bothworlds.policy.identity import new_name
from bothworlds.policy.ledger import Ledger
from bothworlds.policy.mind import Mind
from bothworlds.policy.prior import Prior
from bothworlds.problem import Problem, SampledProblem


def check_given(problem: Any, prior: Any = None) -> None:
    """Refuse to begin on what is no problem, or with what is no prior."""
    if not isinstance(problem, Problem | SampledProblem):
        raise ValueError(f"a policy begins on a Problem; got {problem!r:.80}")
    if not isinstance(prior, Prior | None):
        raise ValueError(f"prior= is a Prior, say Prior.from_rows(problem, rows) or policy.prior(); got {prior!r:.80}")


class Algorithm(ABC):
    """What makes policies: hyper-parameters, and a method that makes them ready for a problem as kernel text."""

    @abstractmethod
    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""

    def start(
        self,
        problem: Problem,
        *,
        rng: Seed = None,
        interpreted: bool = False,
        holdout: float = 0.0,
        prior: Prior | None = None,
    ) -> Policy:
        """Begin on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the same text without compiling it: for the debugger, some hundred times slower.
        ``holdout`` is the share of decisions that are uniform among the arms offered, and marked: an honest yardstick
        (`bothworlds.Policy.health`). Their feedback is counted and not learnt. ``prior`` is what is believed already.
        """
        check_given(problem, prior)
        key, machine = key_from(rng), self.machine(problem)
        footing = Footing(algorithm=self, problem=problem, machine=machine, interpreted=interpreted, holdout=holdout)
        mind = Mind.begun(footing, key)
        if prior is not None:
            mind.begin_with(begun_with(machine, beliefs_of(machine, self), problem, prior), updates=0)
        return Policy(mind, Books(new_name(), footing, Ledger.begin(key)), key=key)
