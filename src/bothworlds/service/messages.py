"""Bodies of requests and responses; the OpenAPI document is generated from them."""

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from bothworlds.policy.ids import LONGEST
from bothworlds.service import client_types
from bothworlds.service.names import check_name

MAX_BATCH = 1000  # decisions or rewards in one request

Id = Annotated[
    str,
    Meta(
        min_length=1, max_length=LONGEST, description="Id of the decision, chosen by the client; must not start with @."
    ),
]
AnyId = Annotated[
    str, Meta(min_length=1, max_length=LONGEST, description="Id of a decision, chosen by the client or by the service.")
]
Name = Annotated[str, Meta(max_length=200, description="Name of the experiment; optional if there is only one.")]
Cell = str | int | float | bool | None
Context = (
    Annotated[str, Meta(max_length=1000)] | int | Annotated[dict[str, Cell], Meta(max_length=100)]
)  # a name, an index, or a row


@final
class Decide(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Choose an arm for a context: its name, its index, or a row as an object with columns and values.

    A request with an id can be repeated and gets the same answer. An inactive decision counts once it is activated; use
    it for what is decided now and shown later, if at all.
    """

    context: Context
    id: Id | None = None
    experiment: Name | None = None
    active: bool = True


@final
class Activate(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Activate a decision: it was shown, and its reward window begins."""

    id: AnyId
    experiment: Name | None = None


@final
class Reward(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The reward of a decision."""

    id: AnyId
    reward: float
    experiment: Name | None = None


class Decides(Struct, frozen=True, forbid_unknown_fields=True):
    """Several decisions; each has its own answer, and all are stored in one commit."""

    decisions: Annotated[list[Decide], Meta(min_length=1, max_length=MAX_BATCH)]


@final
class Local(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A decision that a client has taken from a plan; the service stores it if it computes the same."""

    id: Id
    context: Annotated[str, Meta(max_length=1000)]
    version: Annotated[int, Meta(ge=0)]
    arm: Annotated[str, Meta(max_length=200)]
    propensity: float
    active: bool = True
    experiment: Name | None = None


class Locals(Struct, frozen=True, forbid_unknown_fields=True):
    """Several decisions of a client; each has its own answer, and all are stored in one commit."""

    decisions: Annotated[list[Local], Meta(min_length=1, max_length=MAX_BATCH)]


class PlanFile(Struct, frozen=True):
    """The current plan as a file in base64; null if the client has it. It has the key of the draws: a secret."""

    version: int
    fingerprint: str
    content: str | None


class Rewards(Struct, frozen=True, forbid_unknown_fields=True):
    """Several rewards; each has its own answer, and all are stored in one commit."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=MAX_BATCH)]


class Arm(Struct, frozen=True, forbid_unknown_fields=True):
    """A new arm; its features are one list of numbers for all contexts, or one list per context."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    features: list[float | list[float]] | None = None

    def __post_init__(self) -> None:
        check_name("an arm", self.name)


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """Add and retire arms, or replace the context distribution.

    An arm needs no features if the experiment was declared with names of arms and contexts only. ``trust`` is the share
    of the learned information that is kept.
    """

    experiment: Name | None = None
    add: list[Arm] = []
    retire: list[str] = []
    probabilities: list[float] | None = None
    trust: Annotated[float, Meta(ge=0, le=1)] = 1.0
    fresh: Annotated[float, Meta(ge=0, le=1)] | None = None


class SettingsChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Decide with another holdout, reward window or algorithm from now on; what is left out stays as it is.

    ``algorithm`` is the name of a tuning, or a table as in the settings file. What was learned is its prior; decisions
    of the algorithm before that wait for rewards are not learned from.
    """

    experiment: Name | None = None
    holdout: Annotated[float, Meta(ge=0, lt=1)] | None = None
    window: Annotated[str, Meta(max_length=100)] | None = None
    algorithm: Annotated[str, Meta(max_length=200)] | dict[str, Any] | None = None


class Rollback(Struct, frozen=True, forbid_unknown_fields=True):
    """Return to an earlier version; what was learned after it is forgotten."""

    version: Annotated[int, Meta(ge=0)]
    experiment: Name | None = None


def _as_struct(answer: type[Any]) -> type[Struct]:
    """Return a response type of the client as a Struct: fast to create and encode, without default values in JSON."""
    struct_fields = [
        (field.name, field.type, NODEFAULT if field.default is MISSING else field.default) for field in fields(answer)
    ]
    namespace = {"__doc__": answer.__doc__}
    return msgspec.defstruct(
        answer.__name__, struct_fields, namespace=namespace, module=__name__, frozen=True, omit_defaults=True, gc=False
    )


if TYPE_CHECKING:  # type checkers cannot follow defstruct; these have the same fields
    Decided = client_types.Decided
    Rewarded = client_types.Rewarded
    Known = client_types.Known
    Planned = client_types.Planned
    Changed = client_types.Changed
else:
    Decided, Rewarded, Known, Planned, Changed = map(
        _as_struct,
        (
            client_types.Decided,
            client_types.Rewarded,
            client_types.Known,
            client_types.Planned,
            client_types.Changed,
        ),
    )


class Activated(Struct, frozen=True):
    """The response to an activation."""

    id: str
    experiment: str
    active: Literal[True] = True


@final
class Refusal(Struct, frozen=True):
    """Why a request was refused."""

    error: str


class Several(Struct, frozen=True):
    """Responses in the order of the requests, each with the status of the request sent alone."""

    answers: list["Answered"]


_ONE = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in (Decided, Rewarded, Refusal)]


class Answered(Struct, frozen=True):
    """One response of a batch."""

    status: int
    body: Annotated[Any, Meta(extra_json_schema={"anyOf": _ONE})]


Answer = Decided | Rewarded | Activated | Changed | Refusal | Several
encode = msgspec.json.Encoder().encode
