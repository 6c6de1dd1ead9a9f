"""Decision: one choice, with everything that feedback will need later."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.policy.identity import MADE, id_of, source_of
from bothworlds.problem.checks import whole


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
        Which plan decided: one more with every answer that was learnt, and with every change of the problem.
    holdout
        Whether it was taken apart from the policy, uniformly among the arms offered (``start(..., holdout=...)``); its
        feedback is counted and not learnt, and it carries no direction.
    footing
        A mark of the problem, law and algorithm it was taken with: what it carries are numbers in their coordinates.

    >>> from bothworlds import FixedPolicy, Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"], arms=["red", "blue"])
    >>> decision = FixedPolicy([[0.0, 1.0]]).start(problem, rng=7).act("always")
    >>> decision.round, decision.context_name, decision.arm_name, decision.propensity
    (1, 'always', 'blue', 1.0)
    >>> Decision.from_dict(decision.to_dict()).id == decision.id
    True
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
        if not isinstance(values, Mapping):
            raise ValueError(f"a decision is made again of its dictionary; got {values!r:.80}")
        later = ("source", "version", "holdout", "footing")
        missing = [name for name in cls._fields if name not in values and name not in later]
        if missing:
            raise ValueError(f"not a decision: {', '.join(missing)} missing in {sorted(values)}")
        given = {"version": 0, "holdout": False, "footing": "", **values}
        number, policy = _whole(given, "round"), _of(str, given, "policy")
        name = _of(str, {"id": id_of(MADE + policy, number), **given}, "id")
        return cls(
            round=number,
            context=_whole(given, "context"),
            context_name=_of(str, given, "context_name"),
            arm=_whole(given, "arm"),
            arm_name=_of(str, given, "arm_name"),
            propensity=float(_of((int, float, np.integer, np.floating), given, "propensity")),
            direction=_numbers(given, "direction"),
            baseline=None if given["baseline"] is None else _numbers(given, "baseline"),
            policy=policy,
            source=source_of(name, number),
            version=_whole(given, "version"),
            holdout=_of(bool, given, "holdout"),
            footing=_of(str, given, "footing"),
        )


def _of(kind: Any, values: Mapping[str, Any], name: str) -> Any:
    """Return a value of a decision's dictionary; refuse one of another kind."""
    if not isinstance(values[name], kind):
        raise ValueError(f"not a decision: its {name} is {values[name]!r:.60}")
    return values[name]


def _whole(values: Mapping[str, Any], name: str) -> int:
    """Return a whole number of a decision's dictionary."""
    return whole(values[name], -1, f"{name} of a decision")  # -1 is the context where there is no list


def _numbers(values: Mapping[str, Any], name: str) -> Floats:
    """Return a row of numbers of a decision's dictionary; which ones they may be is for the policy to say."""
    try:
        found = np.array(values[name], dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.ndim != 1:
        raise ValueError(f"not a decision: its {name} is {values[name]!r:.60}, and no row of numbers")
    return found


# A decision from a tuple of its fields: a third of the time that calling the class takes.
decision_of: Callable[[tuple[Any, ...]], Decision] = partial(tuple.__new__, Decision)
