"""Counts of an experiment from its log: contexts of all decisions, and rewards of those whose window has closed.

A reward that is 1 comes at once, and one that is 0 only when the window closes: among the rewards that have come, the
good ones are too many. So a decision counts once its window has closed, with the reward that it has then, in the order
of the log. Whether it counts does not depend on its reward, at any time. A context counts when it is decided on.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from bothworlds.policy.health import Tables, Totals, health_of
from bothworlds.policy.health_report import Health
from bothworlds.policy.paired_gain import GainSums
from bothworlds.policy.plan import Plan
from bothworlds.service.experiment import Experiment
from bothworlds.service.outcome_history import OutcomeHistory
from bothworlds.service.records import (
    ACTIVATION,
    DECISION,
    MARKS,
    DecisionDraw,
    DecisionHead,
    HoldoutChanged,
    Kind,
    RewardBody,
    unpacked,
)
from bothworlds.service.store import Store, erased_version_key
from bothworlds.theory.confidence import drift_of

PairTotals: TypeAlias = Mapping[tuple[str, str], Totals]  # by context and arm
CHUNK = 2000  # records of the log that are read at a time


class OutcomeCounts:
    """Follows the log of one experiment. Not thread-safe.

    ``decisions`` counts all decisions, ``active`` those that were active at some time, and ``closed`` those whose
    reward window has closed, without and with holdout. ``through`` and ``closed_through`` are sequence numbers in the
    log: up to them, decisions and outcomes are counted. Decisions that `Store.erase` may have erased are left out:
    which ones are left depends on their rewards.
    """

    def __init__(self, experiment: Experiment, store: Store) -> None:
        self.experiment, self.store = experiment, store
        self.through = self.closed_through = _erased_through(store, experiment.number)
        self.decisions = self.active = 0
        self.contexts: Counter[str] = Counter()  # since the context distribution was set
        self.history = OutcomeHistory(experiment)
        share = experiment.plan.spec.holdout
        self.gain = GainSums(share) if share else None
        self._gain_since = _last_holdout_change(store, experiment.number)  # a version
        self._sums: defaultdict[tuple[str, str, bool], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])

    @property
    def closed(self) -> tuple[Totals, Totals]:
        """Totals of the policy's own decisions, and of held-out ones, whose reward window has closed."""
        sums = np.zeros((2, 4))
        for (_, _, holdout), values in self._sums.items():
            sums[int(holdout)] += values
        own, held = (Totals(*map(float, row)) for row in sums)
        return own, held

    def pairs(self) -> PairTotals:
        """Return the totals of the policy's own decisions by context and arm, whose reward window has closed."""
        return {(context, arm): Totals(*values) for (context, arm, held), values in self._sums.items() if not held}

    def arms(self) -> list[tuple[str, float, float]]:
        """Return number and sum of rewards of the policy's own decisions by arm, whose reward window has closed."""
        arms: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for (_, arm), totals in self.pairs().items():
            arms[arm][0] += totals.decided
            arms[arm][1] += totals.total
        return [(arm, decided, total) for arm, (decided, total) in arms.items()]

    @property
    def in_window(self) -> int:
        """Number of active decisions whose reward window has not closed."""
        return max(0, self.active - int(sum(part.decided for part in self.closed)))

    def advance(self, *, now: float, seconds: float) -> float:
        """Read on in the log, for about ``seconds``, and return the share of the log that is read.

        While it is below 1, all counts are those of an earlier time.
        """
        end, last = time.monotonic() + seconds, self.store.last()
        erased = _erased_through(self.store, self.experiment.number)
        self.through, self.closed_through = max(self.through, erased), max(self.closed_through, erased)
        while self._read_decisions(last) | self._read_outcomes(now):  # both, by turns
            if time.monotonic() > end:
                return min(self.through / last, 0.99)
        return 1.0

    def _read_decisions(self, last: int) -> bool:
        """Count the next decisions; return whether there are more."""
        through = max(self.through, min(self.through + CHUNK, last))
        draws: list[tuple[float, DecisionDraw]] = []
        for record in self.store.read(after=self.through, through=through):
            if record.experiment != self.experiment.number:
                continue
            if record.kind == DECISION:
                self.decisions += 1
                self.active += bool(record.flag)
                draw = unpacked(DecisionDraw, record.body)
                self.contexts[draw.context] += 1
                draws.append((record.time, draw))
            elif record.kind == ACTIVATION:
                self.active += 1
            elif record.kind == Kind.VERSION:
                self.history.note_restarts(record)
            elif record.kind in MARKS:
                self.history.add_draws(draws)
                self.history.note(record)
                draws = []
                if record.kind == Kind.CHANGE:
                    self.contexts.clear()
                elif record.kind == Kind.HOLDOUT:
                    self._begin_gain(unpacked(HoldoutChanged, record.body))
        self.history.add_draws(draws)
        self.through = through
        return through < last

    def _read_outcomes(self, now: float) -> bool:
        """Count the next decisions whose reward window has closed; return whether there may be more."""
        through, settings = self._next_closed(now), self.experiment.settings
        if through <= self.closed_through:
            return False
        rewards: list[tuple[float, float, bool]] = []
        for active, decided, body, rewarded, reward in self.store.outcomes(
            self.experiment.number, after=self.closed_through, through=through
        ):
            head, value = unpacked(DecisionHead, body), None
            if reward is not None and rewarded is not None:
                in_time = settings.default_reward is not None or rewarded <= active + settings.seconds
                value = unpacked(RewardBody, reward).reward if in_time else None
            sums = self._sums[head.context, head.arm, head.holdout]
            sums[0] += 1.0
            if value is not None:
                sums[1] += 1.0
                sums[2] += value
                sums[3] += value * value
                rewards.append((decided, value, head.holdout))
                self._add_gain(head, value)
        self.history.add_rewards(rewards)
        self.closed_through = through
        return True

    def _begin_gain(self, change: HoldoutChanged) -> None:
        """Count the gain over uniform play anew, as another share of the decisions is held out."""
        if change.version > self._gain_since:
            self.gain = GainSums(change.holdout) if change.holdout else None
            self._gain_since = change.version

    def _add_gain(self, head: DecisionHead, value: float) -> None:
        """Count a reward towards the gain over uniform play."""
        other = head.other_propensity
        if self.gain is not None and other is not None and head.version >= self._gain_since:
            low, high = self.experiment.plan.problem.reward_range or (-1.0, 1.0)
            plan, uniform = (other, head.propensity) if head.holdout else (head.propensity, other)
            self.gain.add((value - low) / (high - low), plan=plan, uniform=uniform)

    def _next_closed(self, now: float) -> int:
        """Return a sequence number up to which all reward windows have closed, at most ``CHUNK`` records further.

        With a default reward it comes with the end of the window, so that the trainer knows, and perhaps on another
        host, which notes it with each snapshot; without one, time decides.
        """
        after, settings = self.closed_through, self.experiment.settings
        if settings.default_reward is not None:
            noted = self.store.note(self.experiment.cursor) if self.experiment.shared else 0
            return min(max(self.experiment.expired_through, noted), after + CHUNK)
        return self.store.overdue(
            self.experiment.number, after=after, before=now - settings.seconds, now=now, most=CHUNK
        )[1]

    def health(self, plan: Plan, *, alpha: float = 0.05) -> Health:
        """Return the health of the experiment: rewards of closed windows, and contexts of all decisions."""
        own, held, closed = self._tables(plan, holdout=False), self._tables(plan, holdout=True), self.closed
        visits = np.array([float(self.contexts[name]) for name in plan.problem.contexts])
        holds_out = plan.spec.holdout > 0.0 or closed[1].decided > 0.0
        return health_of(
            plan.problem,
            decided=own.decided,
            answered=own.answered,
            rewards=own.sums,
            probabilities=plan.probabilities(),
            holdout=held if holds_out else None,
            who=closed if holds_out else None,
            gain=self.gain,
            drift=drift_of(visits, plan.problem.probabilities),
            observed=int(visits.sum()),
            restarts=plan.restarts,
            alpha=alpha,
        )

    def _tables(self, plan: Plan, *, holdout: bool) -> Tables:
        """Return the counts of pairs of context and arm that the current problem has."""
        contexts, arms = plan.spec.numbered
        tables = np.zeros((3, *plan.problem.available.shape))
        for (context, arm, held), sums in self._sums.items():
            if held == holdout and context in contexts and arm in arms:
                tables[:, contexts[context], arms[arm]] += sums[:3]
        return Tables(*tables)


def _last_holdout_change(store: Store, experiment: int) -> int:
    """Return the version since which the share of held-out decisions is what it is now."""
    changes = (mark for mark in store.marks(experiment) if mark.kind == Kind.HOLDOUT)
    return max((unpacked(HoldoutChanged, mark.body).version for mark in changes), default=0)


def _erased_through(store: Store, experiment: int) -> int:
    """Return the sequence number up to which decisions may have been erased, 0 if none."""
    version = store.note(erased_version_key(experiment))
    return max((snapshot.end for snapshot in store.snapshots(experiment) if snapshot.version == version), default=0)
