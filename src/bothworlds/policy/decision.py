"""Decision: one choice, with everything that feedback will need later."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.policy.identity import MADE, id_of, source_of


class Decision(NamedTuple):
    """One decision; self-sufficient, so that feedback may come late, in any order, or by way of a log.

    Attributes
    ----------
    round
        Number of the decision, counted from 1 by the policy, or by the process that decides from plans; 0 where the
        caller gave the id.
    context, context_name, arm, arm_name
        Index and name of the context seen and of the arm chosen; the index is -1 where contexts are not listed.
    propensity
        pi_t(arm | context), the probability with which the arm was chosen.
    direction
        Sigma_t^-1 phi(arm, context) in the policy's coordinates: the estimate is loss times direction. Algorithms
        without such an estimate put here what else their update needs.
    baseline
        The control variate of the moment (matched tuning, reduced variance), or the entropy of q_t at the context
        seen (`RealFTRL` on a `SampledProblem`), else None.
    policy
        Name of the policy that decided; no other takes its feedback.
    source
        Who issued the id: a life of a policy or a process with plans ("@" and random letters), or the id given.
    version
        Which plan decided: how many rewards it had learnt from, and how often the law of contexts was changed.
    holdout
        Whether it was taken apart from the policy, uniformly among the arms offered (``start(..., holdout=...)``); its
        feedback is counted and not learnt, and it carries no direction.
    footing
        A mark of the problem, law and algorithm it was taken with: what it carries are numbers in their coordinates.
    """

    round: int
    context: int
    context_name: str
    arm: int
    arm_name: str
    propensity: float
    direction: Floats
    baseline: Floats | None
    policy: str
    source: str
    version: int
    holdout: bool = False
    footing: str = ""

    @property
    def id(self) -> str:
        """The decision's own name, never that of another; its feedback is accepted once."""
        return id_of(self.source, self.round)

    def __eq__(self, other: object) -> bool:
        return self is other  # arrays have no single truth value

    def __hash__(self) -> int:
        return id(self)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values that survives JSON without losing a bit."""
        return {
            "id": self.id,
            "round": self.round,
            "context": self.context,
            "context_name": self.context_name,
            "arm": self.arm,
            "arm_name": self.arm_name,
            "propensity": self.propensity,
            "direction": self.direction.tolist(),
            "baseline": None if self.baseline is None else self.baseline.tolist(),
            "policy": self.policy,
            "version": self.version,
            "holdout": self.holdout,
            "footing": self.footing,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from `to_dict`, for instance from a line of a JSON log.

        A line without an id, as it was written before there were ids, is that of its policy's first life; one without
        the mark was not held out.
        """
        later = ("source", "version", "holdout", "footing")
        missing = [name for name in cls._fields if name not in values and name not in later]
        if missing:
            raise ValueError(f"not a decision: {', '.join(missing)} missing in {sorted(values)}")
        baseline, number, policy = values["baseline"], int(values["round"]), str(values["policy"])
        return cls(
            round=number,
            context=int(values["context"]),
            context_name=str(values["context_name"]),
            arm=int(values["arm"]),
            arm_name=str(values["arm_name"]),
            propensity=float(values["propensity"]),
            direction=np.array(values["direction"], dtype=np.float64),
            baseline=None if baseline is None else np.array(baseline, dtype=np.float64),
            policy=policy,
            source=source_of(str(values.get("id", id_of(MADE + policy, number))), number),
            version=int(values.get("version", 0)),
            holdout=bool(values.get("holdout", False)),
            footing=str(values.get("footing", "")),
        )


# A decision from a tuple of its fields: a third of the time that calling the class takes.
decision_of: Callable[[tuple[Any, ...]], Decision] = partial(tuple.__new__, Decision)
