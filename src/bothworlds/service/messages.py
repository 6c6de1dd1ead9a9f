"""What clients say and hear: the bodies of requests and answers. The OpenAPI document is made of them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bothworlds.policy.identity import LONGEST

MOST = 1000  # decisions or rewards in one request

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST, description="Name of the event, not beginning with @.")]
Name = Annotated[str, Meta(max_length=200, description="Name of the experiment; may be left out if there is one.")]
Cell = str | int | float | bool | None
Context = (
    Annotated[str, Meta(max_length=1000)] | int | Annotated[dict[str, Cell], Meta(max_length=100)]
)  # a name, an index, or a row


class Decide(Struct, frozen=True, forbid_unknown_fields=True):
    """Choose an arm for a context (a name, an index, or a row by its columns).

    With an id the same request can be sent again, and has the same answer. An inactive decision counts once it is
    activated: for what is decided now and shown later, or never.
    """

    context: Context
    id: Id | None = None
    experiment: Name | None = None
    active: bool = True


class Activate(Struct, frozen=True, forbid_unknown_fields=True):
    """An inactive decision was shown: its window for rewards begins."""

    id: str
    experiment: Name | None = None


class Reward(Struct, frozen=True, forbid_unknown_fields=True):
    """What a decision brought."""

    id: str
    reward: float
    experiment: Name | None = None


class Decides(Struct, frozen=True, forbid_unknown_fields=True):
    """Several decisions; each is answered for itself, and all are stored together."""

    decisions: Annotated[list[Decide], Meta(min_length=1, max_length=MOST)]


class Rewards(Struct, frozen=True, forbid_unknown_fields=True):
    """Several rewards; each is answered for itself, and all are stored together."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=MOST)]


class Arm(Struct, frozen=True, forbid_unknown_fields=True):
    """A new arm: its features, one list of numbers for all contexts, or one for each."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    features: list[float | list[float]] | None = None


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """Arms come and go, or the traffic mix is another.

    Arms without features are for experiments that were declared with names of contexts alone. ``trust`` is the share of
    what was learnt that is still believed.
    """

    experiment: Name | None = None
    add: list[Arm] = []
    retire: list[str] = []
    probabilities: list[float] | None = None
    trust: Annotated[float, Meta(ge=0, le=1)] = 1.0
    fresh: Annotated[float, Meta(ge=0, le=1)] | None = None


class Rollback(Struct, frozen=True, forbid_unknown_fields=True):
    """Forget what was learnt after a version."""

    version: Annotated[int, Meta(ge=0)]
    experiment: Name | None = None


class Decided(Struct, frozen=True, omit_defaults=True):
    """The answer to a decision. ``stored`` is false for the safe answer, which is given where nothing can be stored."""

    id: str
    experiment: str
    context: str
    arm: str
    propensity: float | None
    version: int
    holdout: bool = False
    active: bool = True
    stored: bool = True


class Rewarded(Struct, frozen=True, omit_defaults=True):
    """The answer to a reward: whether it is learnt, and why not."""

    id: str
    experiment: str
    reward: float
    learned: bool
    reason: str | None = None


class Activated(Struct, frozen=True):
    """The answer to an activation."""

    id: str
    experiment: str
    active: Literal[True] = True


class Known(Struct, frozen=True, omit_defaults=True):
    """All that is known of a decision; ``learned_in`` is the first version that had heard its reward."""

    id: str
    experiment: str
    time: float
    context: str
    arm: str
    propensity: float
    probabilities: dict[str, float]
    version: int
    holdout: bool
    active: bool
    reward: float | None = None
    reward_time: float | None = None
    by_default: bool = False
    learned_in: int | None = None
    late_reward: float | None = None
    confirmed: bool | None = None


class Planned(Struct, frozen=True):
    """The plan of now: a row of probabilities for each context."""

    experiment: str
    version: int
    digest: str
    arms: list[str]
    contexts: list[str]
    probabilities: list[list[float]]


class Changed(Struct, frozen=True):
    """The version after a change or a rollback."""

    experiment: str
    version: int
    digest: str


class Refusal(Struct, frozen=True):
    """Why a request was refused, in a sentence."""

    error: str


class Several(Struct, frozen=True):
    """Answers in the order of what was asked; each with the status that it would have had alone."""

    answers: list["Answered"]


_ONE = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in (Decided, Rewarded, Refusal)]


class Answered(Struct, frozen=True):
    """One answer of several."""

    status: int
    body: Annotated[Any, Meta(extra_json_schema={"anyOf": _ONE})]


Answer = Decided | Rewarded | Activated | Changed | Refusal | Several
encode = msgspec.json.Encoder().encode
