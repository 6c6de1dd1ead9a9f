"""Response types shared by client and service; needs only the standard library."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Decided:
    """A decision.

    Without ``stored`` it is not logged and not learned from: the safe arm of a service that cannot store anything at
    the moment, or the fallback arm of a client that does not reach the service (then ``version`` is -1).
    """

    id: str
    experiment: str
    context: str
    arm: str
    propensity: float | None
    version: int
    holdout: bool = False
    active: bool = True
    stored: bool = True


@dataclass(frozen=True)
class Rewarded:
    """A stored reward; ``reason`` says why it is not ``learned``."""

    id: str
    experiment: str
    reward: float
    learned: bool
    reason: str | None = None


@dataclass(frozen=True)
class Planned:
    """The current plan; ``probabilities`` has a row per context and a column per arm."""

    experiment: str
    version: int
    digest: str
    arms: list[str]
    contexts: list[str]
    probabilities: list[list[float]]


@dataclass(frozen=True)
class Known:
    """Everything known about a decision.

    ``learned_in`` is the first version that has learned the reward. With ``by_default`` it is the default reward;
    ``late_reward`` arrived after the window. With ``unanswered``, no reward came within the window and there is no
    default reward. ``confirmed`` says whether the decision's plan makes it again, None if
    that plan is not the current one. ``traceparent`` is that header of the request. Times are in seconds since 1970.
    """

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
    unanswered: bool = False
    traceparent: str | None = None


@dataclass(frozen=True)
class Changed:
    """The version after a change or a rollback."""

    experiment: str
    version: int
    digest: str
