"""Roles of hosts, and when a trainer thread may learn: always, or while its host has the term of a shared store."""

from collections.abc import Iterable
from typing import Literal, Protocol

from bothworlds.service.experiment import Experiment

Role = Literal["decide", "learn", "both"]
NOT_LEARNING = "this host does not learn at the moment; send changes to the one that does, or try again"


class LearningPermit(Protocol):
    """Tells the trainer thread whether it may learn."""

    poll: float | None  # seconds between two looks for rewards of other hosts

    def begin(self, experiments: Iterable[Experiment]) -> bool:
        """Return whether this host may learn now, and bring the experiments up to date; call it before every round."""

    def holds(self) -> bool:
        """Return whether this host may still learn, as far as is known here."""


class AlwaysPermit:
    """The permit of a service with a store of its own."""

    poll: float | None = None

    def begin(self, experiments: Iterable[Experiment]) -> bool:  # noqa: ARG002
        """Return True: no other host learns."""
        return True

    def holds(self) -> bool:
        """Return True."""
        return True
