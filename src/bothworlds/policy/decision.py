"""Decision: one choice of an arm, with all numbers that its feedback needs later."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy.ids import id_of, source_of
from bothworlds.problem.cards import card
from bothworlds.problem.checks import whole


class Decision(NamedTuple):
    """One choice of an arm. It has all that its feedback needs, which may come late, in any order, or from a log.

    Attributes
    ----------
    round
        Number of the decision, counted from 1 by the policy, or by the process that decides from plans; 0 where the
        caller gave the id.
    context, context_name, arm, arm_name
        Index and name of the context and of the chosen arm; the index of a context is -1 if contexts are not listed.
    propensity
        pi_t(arm | context), the probability with which the arm was chosen.
    direction
        Sigma_t^-1 phi(arm, context) in the policy's coordinates: the estimate is loss times direction. Algorithms
        without this estimate store other numbers for their update here.
    baseline
        The control variate at the time of the decision (matched tuning, reduced variance), or the entropy of q_t at
        the context (`RealFTRL` on a `SampledProblem`), else None.
    policy
        Name of the policy that decided; no other takes its feedback.
    source
        The issuer of the id: a session of a policy or a process with plans ("@" and random letters), or the given id.
    version
        Version of the plan that decided: it rises with every decision learned from and every change of the problem.
    holdout
        Whether the decision was held out and uniform over the offered arms (``start(..., holdout=...)``). Its feedback
        is counted and not learned from, and its direction is empty.
    fingerprint
        Short fingerprint of the spec: direction and baseline are in the coordinates of that spec.

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
    fingerprint: str = ""

    @property
    def id(self) -> str:
        """The unique id of the decision, for which feedback is accepted once."""
        return id_of(self.source, self.round)

    def __repr__(self) -> str:
        held = ", held out" if self.holdout else ""
        return (
            f"Decision(context {self.context_name!r}, arm {self.arm_name!r}, propensity {self.propensity:.4g}, "
            f"id {self.id!r}{held})"
        )

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: context, arm, propensity and id."""
        facts = {"context": self.context_name, "arm": self.arm_name, "propensity": self.propensity, "id": self.id}
        return card("Decision", {**facts, "version": self.version, **({"held out": "yes"} if self.holdout else {})})

    def __eq__(self, other: object) -> bool:
        return self is other  # arrays have no single truth value

    def __hash__(self) -> int:
        return id(self)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values; JSON keeps every bit of it."""
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
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from the dictionary of `to_dict`, for example from a line of a JSON log."""
        if not isinstance(values, Mapping):
            raise ValueError(f"from_dict needs the dictionary of a decision; got {values!r:.80}")
        missing = [name for name in ("id", *cls._fields) if name not in values and name != "source"]
        if missing:
            raise ValueError(f"not a decision: {', '.join(missing)} missing in {sorted(values)}")
        round_number, name = _whole(values, "round"), _typed(str, values, "id")
        return cls(
            round=round_number,
            context=_whole(values, "context"),
            context_name=_typed(str, values, "context_name"),
            arm=_whole(values, "arm"),
            arm_name=_typed(str, values, "arm_name"),
            propensity=float(_typed((int, float, np.integer, np.floating), values, "propensity")),
            direction=_numbers(values, "direction"),
            baseline=None if values["baseline"] is None else _numbers(values, "baseline"),
            policy=_typed(str, values, "policy"),
            source=source_of(name, round_number),
            version=_whole(values, "version"),
            holdout=_typed(bool, values, "holdout"),
            fingerprint=_typed(str, values, "fingerprint"),
        )


def _typed(kind: Any, values: Mapping[str, Any], name: str) -> Any:
    """Return a value of a decision's dictionary; refuse other types."""
    if not isinstance(values[name], kind):
        raise ValueError(f"not a decision: its {name} is {values[name]!r:.60}")
    return values[name]


def _whole(values: Mapping[str, Any], name: str) -> int:
    """Return a whole number of a decision's dictionary."""
    return whole(values[name], -1, f"{name} of a decision")  # -1 is the index of an unlisted context


def _numbers(values: Mapping[str, Any], name: str) -> Floats:
    """Return a vector of a decision's dictionary; the policy checks length and range."""
    try:
        vector = np.array(values[name], dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.zeros(())
    if vector.ndim != 1:
        raise ValueError(f"not a decision: its {name} is {values[name]!r:.60}, not a list of numbers")
    return vector


# Make a decision from a tuple of its fields, in a third of the time of a call of the class.
decision_of: Callable[[tuple[Any, ...]], Decision] = partial(tuple.__new__, Decision)
