"""The answers that a client reads: told once, for the service too, with nothing but the standard library."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Decided:
    """What was decided. Without ``stored`` it is the safe answer of a service that cannot store anything now."""

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
    """A reward that was stored, whether it is learnt, and why not."""

    id: str
    experiment: str
    reward: float
    learned: bool
    reason: str | None = None


@dataclass(frozen=True)
class Planned:
    """The plan of now: a row of probabilities for each context."""

    experiment: str
    version: int
    digest: str
    arms: list[str]
    contexts: list[str]
    probabilities: list[list[float]]


@dataclass(frozen=True)
class Known:
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
