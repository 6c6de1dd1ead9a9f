"""OpenDecision: one choice for an open problem, with all that its feedback needs; many of them as columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.arrays import Bools, Floats, Ints
from bothworlds.policy.ids import id_of, source_of
from bothworlds.problem.cards import card
from bothworlds.problem.checks import whole


class OpenDecision(NamedTuple):
    """One choice for an `OpenProblem`. It has all that its feedback needs, which may come late and in any order.

    Attributes
    ----------
    round
        Number of the decision, counted from 1 by its issuer; 0 where the caller gave the id.
    arm, arm_name
        Index and name of the arm, or of the candidate that came with the request.
    propensity
        The probability with which it was chosen.
    direction, baseline
        Vectors for the estimate: Sigma^-1 phi in the block of the arm, and the prediction at the time of the decision.
    features, offered
        The request as the learner keeps it: rows of features, and 1 for every candidate offered.
    place
        Index of the arm in ``features`` and ``offered``: the learner keeps 256 candidates of a request at most.
    policy, source, version, fingerprint
        Name of the policy, issuer of the id, version of the plan, and short fingerprint of algorithm and problem.
    holdout
        Whether the decision was held out and uniform over what was offered (``start(..., holdout=...)``). Its feedback
        is counted and not learned from, so that vectors and request are left out.

    >>> from bothworlds import LinUCB, OpenProblem
    >>> decision = LinUCB().start(OpenProblem(context=2, arms=["red", "blue"]), rng=7).act([0.5, 1.0])
    >>> decision.round, decision.propensity, OpenDecision.from_dict(decision.to_dict()).id == decision.id
    (1, 0.5, True)
    """

    round: int
    arm: int
    arm_name: str
    propensity: float
    direction: Floats
    baseline: Floats
    features: Floats
    offered: Floats
    place: int
    policy: str
    source: str
    version: int
    holdout: bool
    fingerprint: str

    @property
    def id(self) -> str:
        """The unique id of the decision, for which feedback is accepted once."""
        return id_of(self.source, self.round)

    def __repr__(self) -> str:
        held = ", held out" if self.holdout else ""
        return f"OpenDecision(arm {self.arm_name!r}, propensity {self.propensity:.4g}, id {self.id!r}{held})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: arm, propensity and id."""
        facts = {"arm": self.arm_name, "propensity": self.propensity, "id": self.id, "version": self.version}
        return card("Decision", {**facts, **({"held out": "yes"} if self.holdout else {})})

    def __eq__(self, other: object) -> bool:
        return self is other  # arrays have no single truth value

    def __hash__(self) -> int:
        return id(self)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values; JSON keeps every bit of it."""
        values = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in self._items()}
        return {"id": self.id, **{name: value for name, value in values.items() if name != "source"}}

    def _items(self) -> Iterator[tuple[str, Any]]:
        return zip(self._fields, self, strict=True)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from the dictionary of `to_dict`, for example from a line of a JSON log."""
        if not isinstance(values, Mapping):
            raise ValueError(f"from_dict needs the dictionary of a decision; got {values!r:.80}")
        missing = [name for name in ("id", *cls._fields) if name not in values and name != "source"]
        if missing:
            raise ValueError(f"not a decision of an open problem: {', '.join(missing)} missing in {sorted(values)}")
        number = whole(values["round"], 0, "round of a decision")
        return cls(
            round=number,
            arm=whole(values["arm"], 0, "arm of a decision"),
            arm_name=_typed(str, values, "arm_name"),
            propensity=float(_typed((int, float, np.integer, np.floating), values, "propensity")),
            direction=_array(values, "direction", 1),
            baseline=_array(values, "baseline", 2),
            features=_array(values, "features", 2),
            offered=_array(values, "offered", 1),
            place=whole(values["place"], 0, "place of a decision"),
            policy=_typed(str, values, "policy"),
            source=source_of(_typed(str, values, "id"), number),
            version=whole(values["version"], 0, "version of a decision"),
            holdout=_typed(bool, values, "holdout"),
            fingerprint=_typed(str, values, "fingerprint"),
        )


class OpenDecisions(Sequence[OpenDecision]):
    """Many decisions of one plan as columns; an index or a loop gives single ones.

    Attributes
    ----------
    arms, arm_names, propensities, ids, holdouts
        One entry per decision, in the order of the requests.
    """

    def __init__(self, decisions: Sequence[OpenDecision]) -> None:
        self._decisions = decisions

    @property
    def arms(self) -> Ints:
        """Indices of the arms, or of the candidates of each request."""
        return np.array([decision.arm for decision in self._decisions])

    @property
    def arm_names(self) -> list[str]:
        """Names of the arms, or ids of the candidates."""
        return [decision.arm_name for decision in self._decisions]

    @property
    def propensities(self) -> Floats:
        """Probabilities with which the arms were chosen."""
        return np.array([decision.propensity for decision in self._decisions])

    @property
    def ids(self) -> list[str]:
        """Unique ids."""
        return [decision.id for decision in self._decisions]

    @property
    def holdouts(self) -> Bools:
        """Which decisions were held out."""
        return np.array([decision.holdout for decision in self._decisions], dtype=bool)

    def __len__(self) -> int:
        return len(self._decisions)

    def __getitem__(self, index: Any) -> Any:
        found = self._decisions[index]
        return OpenDecisions(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f"OpenDecisions({len(self)} decisions)"


def _typed(kind: Any, values: Mapping[str, Any], name: str) -> Any:
    """Return a value of a decision's dictionary; refuse other types."""
    if not isinstance(values[name], kind):
        raise ValueError(f"not a decision of an open problem: its {name} is {values[name]!r:.60}")
    return values[name]


def _array(values: Mapping[str, Any], name: str, axes: int) -> Floats:
    """Return an array of a decision's dictionary; the policy checks its shape and range."""
    try:
        array = np.array(values[name], dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros((0,) * 9)
    if array.ndim != axes:
        raise ValueError(f"not a decision of an open problem: its {name} is {values[name]!r:.60}")
    return array
