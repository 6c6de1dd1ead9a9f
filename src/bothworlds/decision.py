"""Decision: one choice, with everything that feedback will need later."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.kernels.arrays import Floats


class Decision(NamedTuple):
    """One decision; self-sufficient, so that feedback may come late, in any order, or by way of a log.

    Attributes
    ----------
    round
        Number of the decision, counted from 1.
    context, context_name, arm, arm_name
        Index and name of the context seen and of the arm chosen; the index is -1 where contexts are not listed.
    propensity
        pi_t(arm | context), the probability with which the arm was chosen.
    direction
        Sigma_t^-1 phi(arm, context) in the policy's coordinates: the estimate is loss times direction. Algorithms
        without such an estimate put here what else their update needs.
    baseline
        The control variate of the moment (adaptive tuning, reduced variance), or the entropy of q_t at the context
        seen (`RealFTRL` on a `SampledProblem`), else None.
    policy
        Name of the policy that decided; no other takes its feedback.
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

    def __eq__(self, other: object) -> bool:
        return self is other  # arrays have no single truth value

    def __hash__(self) -> int:
        return id(self)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values that survives JSON without losing a bit."""
        return {
            "round": self.round,
            "context": self.context,
            "context_name": self.context_name,
            "arm": self.arm,
            "arm_name": self.arm_name,
            "propensity": self.propensity,
            "direction": self.direction.tolist(),
            "baseline": None if self.baseline is None else self.baseline.tolist(),
            "policy": self.policy,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from `to_dict`, for instance from a line of a JSON log."""
        missing = [name for name in cls._fields if name not in values]
        if missing:
            raise ValueError(f"not a decision: {', '.join(missing)} missing in {sorted(values)}")
        baseline = values["baseline"]
        return cls(
            round=int(values["round"]),
            context=int(values["context"]),
            context_name=str(values["context_name"]),
            arm=int(values["arm"]),
            arm_name=str(values["arm_name"]),
            propensity=float(values["propensity"]),
            direction=np.array(values["direction"], dtype=np.float64),
            baseline=None if baseline is None else np.array(baseline, dtype=np.float64),
            policy=str(values["policy"]),
        )
