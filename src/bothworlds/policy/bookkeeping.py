"""Bookkeeping of decisions: which still take feedback, on which problem they were taken, and their counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy.counts import PolicyCounts
from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback import DecisionBatch, check_owner, label_of
from bothworlds.policy.feedback_registry import FeedbackRegistry
from bothworlds.policy.problem_history import Epoch, History
from bothworlds.policy.spec import PolicySpec
from bothworlds.problem import Problem


class Bookkeeping:
    """Checks and counts decisions of one policy. Not thread-safe; ``counted`` has the options of `PolicyCounts`."""

    __slots__ = (
        "_arms",
        "_baseline_shape",
        "_direction_shape",
        "_has_baseline",
        "_n_arms",
        "_n_contexts",
        "_own",
        "counts",
        "decided",
        "history",
        "name",
        "problem",
        "registry",
        "rounds",
        "session",
        "short_fingerprint",
    )  # fmt: skip

    def __init__(
        self, name: str, spec: PolicySpec, registry: FeedbackRegistry, *, history: History | None = None, **counted: Any
    ) -> None:
        self.name, self.history = name, History() if history is None else history
        self._set_spec(spec)
        self.begin_session(registry)
        self._set_counts(PolicyCounts(spec.problem.available.shape, **counted))

    def _set_spec(self, spec: PolicySpec) -> None:
        """Make a spec the current one."""
        self.problem, self.short_fingerprint = spec.problem, spec.short_fingerprint
        self._arms = spec.problem.arms
        self._n_contexts, self._n_arms = spec.problem.available.shape
        direction_length, baseline_length = spec.carried
        self._direction_shape, self._baseline_shape = (direction_length,), (baseline_length,)
        self._has_baseline = spec.has_baseline

    def begin_session(self, registry: FeedbackRegistry) -> None:
        """Issue ids of another session from now on."""
        self.registry, self.rounds, self.session = registry, registry.rounds, registry.session

    def _set_counts(self, counts: PolicyCounts) -> None:
        """Replace the counts of decisions and feedback."""
        self.counts, self._own, self.decided = counts, counts.own, counts.own.decided

    def move(self, spec: PolicySpec, history: History) -> None:
        """Switch to the spec of another problem."""
        counts = self.counts.for_problem(self.problem, spec.problem)
        self._set_spec(spec)
        self.history = history
        self._set_counts(counts)

    def resolve(self, decision: Decision, *, once: bool = False) -> Decision | None:
        """Return a decision as one of the current problem; None if its context or arm was removed.

        Raise ValueError if it is of another policy, not open (not checked with ``once``), or damaged.
        """
        check_owner(decision, self.name)
        number, x, _, arm, arm_name, _, direction, baseline, _, source, _, holdout, fingerprint = decision
        is_open = source == self.session and self.rounds.has(number)
        if not (is_open or once) and (refusal := self.registry.refusal(decision)):
            raise ValueError(f"{label_of(decision)} {refusal}; each decision takes feedback once")
        if fingerprint != self.short_fingerprint:
            return self.history.convert(decision, self.problem)
        if not (0 <= x < self._n_contexts and 0 <= arm < self._n_arms):
            raise ValueError(f"{label_of(decision)}: the problem has no context {x} with an arm {arm}")
        if self._arms[arm] != arm_name:
            raise ValueError(f"{label_of(decision)}: arm {arm} is {self._arms[arm]!r}, not {arm_name!r}")
        if holdout:
            return decision
        if (baseline is not None) != self._has_baseline:
            raise ValueError(f"{label_of(decision)}: the decision's baseline does not fit this policy")
        if direction.shape != self._direction_shape or (
            baseline is not None and baseline.shape != self._baseline_shape
        ):
            lengths = "{} and {}".format(*self._direction_shape, *self._baseline_shape)
            raise ValueError(f"{label_of(decision)}: direction or baseline damaged; they must have {lengths} numbers")
        return decision

    def listing(self, row: Any) -> Problem | Epoch:
        """Return the names of contexts and arms at the time when a row of a log was decided."""
        return (
            self.problem if row.fingerprint == self.short_fingerprint else self.history.epoch_of(row.fingerprint or "")
        )

    def close(self, decision: Decision, resolved: Decision | None, loss: float) -> None:
        """Close a decision that got its feedback, and count it as one of the current problem."""
        number, x, _, arm, _, _, _, _, _, source, _, holdout, _ = decision
        if source == self.session:
            self.rounds.close(number)
            counted = True
        else:
            counted = self.registry.counted(decision)
            self.registry.close(decision)
        if resolved is None:
            return
        if resolved is not decision:
            x, arm = resolved.context, resolved.arm
        counts = self.counts.held if holdout else self._own
        counts.answered[x][arm] += 1
        counts.losses[x][arm] += loss
        if not counted:
            counts.decided[x][arm] += 1

    def count_batch(self, resolved: Sequence[Decision | None], losses: Floats, columns: DecisionBatch | None) -> None:
        """Count the feedback of a batch; ``columns`` has all contexts and arms, if they are at hand."""
        counted, present = self.registry.counted, [decision for decision in resolved if decision is not None]
        uncounted = None
        if {decision.source for decision in present} != {self.session}:
            uncounted = np.array([not counted(decision) for decision in present], dtype=np.float64)
        if columns is not None:
            self.counts.own.add_batch(columns[0], columns[1], losses, uncounted)
            return
        is_present = np.array([decision is not None for decision in resolved], dtype=bool)
        self.counts.add_batch(present, losses[is_present], uncounted)

    def header(self) -> dict[str, Any]:
        """Return the entries for the header of a file."""
        identity = {"name": self.name, "short_fingerprint": self.short_fingerprint}
        return {**identity, **self.registry.header(), **self.counts.header(), **self.history.header()}

    def arrays(self) -> dict[str, Any]:
        """Return the arrays for a file."""
        return {**self.registry.arrays(), **self.counts.arrays(), **self.history.arrays()}
