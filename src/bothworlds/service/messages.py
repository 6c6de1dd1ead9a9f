"""What clients say and hear: the bodies of requests and answers. The OpenAPI document is made of them."""

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from bothworlds.policy.identity import LONGEST
from bothworlds.service import answers

MOST = 1000  # decisions or rewards in one request

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST, description="Name of the event, not beginning with @.")]
AnyId = Annotated[str, Meta(min_length=1, max_length=LONGEST, description="Id of a decision, given or made.")]
Name = Annotated[str, Meta(max_length=200, description="Name of the experiment; may be left out if there is one.")]
Cell = str | int | float | bool | None
Context = (
    Annotated[str, Meta(max_length=1000)] | int | Annotated[dict[str, Cell], Meta(max_length=100)]
)  # a name, an index, or a row


@final
class Decide(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Choose an arm for a context (a name, an index, or a row by its columns).

    With an id the same request can be sent again, and has the same answer. An inactive decision counts once it is
    activated: for what is decided now and shown later, or never.
    """

    context: Context
    id: Id | None = None
    experiment: Name | None = None
    active: bool = True


@final
class Activate(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An inactive decision was shown: its window for rewards begins."""

    id: AnyId
    experiment: Name | None = None


@final
class Reward(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What a decision brought."""

    id: AnyId
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


def _sent(answer: type[Any]) -> type[Struct]:
    """Return an answer as a structure, quick to make and to write, that leaves out what is as it is mostly."""
    told = [(one.name, one.type, NODEFAULT if one.default is MISSING else one.default) for one in fields(answer)]
    about = {"__doc__": answer.__doc__}
    return msgspec.defstruct(
        answer.__name__, told, namespace=about, module=__name__, frozen=True, omit_defaults=True, gc=False
    )


if TYPE_CHECKING:  # types cannot be made when the program runs; these have the same fields
    Decided = answers.Decided
    Rewarded = answers.Rewarded
    Known = answers.Known
    Planned = answers.Planned
else:
    Decided, Rewarded, Known, Planned = map(_sent, (answers.Decided, answers.Rewarded, answers.Known, answers.Planned))


class Activated(Struct, frozen=True):
    """The answer to an activation."""

    id: str
    experiment: str
    active: Literal[True] = True


class Changed(Struct, frozen=True):
    """The version after a change or a rollback."""

    experiment: str
    version: int
    digest: str


@final
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
