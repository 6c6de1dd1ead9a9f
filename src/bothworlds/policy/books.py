"""What a policy knows of its decisions: which may still be answered, on which problem they were taken, how many."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.policy.decision import Decision
from bothworlds.policy.epochs import Epoch, History
from bothworlds.policy.feeding import Columns, check_owner, word_of
from bothworlds.policy.footing import Footing
from bothworlds.policy.ledger import Ledger
from bothworlds.policy.tally import Counts
from bothworlds.problem import Problem


class Books:
    """The books of a policy, by its name; they hold no lock. ``counted`` is what `Counts` go on with."""

    __slots__ = (
        "_arms", "_baseline", "_direction", "_has_baseline", "_n_arms", "_n_contexts", "_own", "counts", "decided",
        "history", "ledger", "life", "mark", "name", "problem", "rounds",
    )  # fmt: skip

    def __init__(
        self, name: str, footing: Footing, ledger: Ledger, *, history: History | None = None, **counted: Any
    ) -> None:
        self.name, self.history = name, History() if history is None else history
        self._stand_on(footing)
        self.begin_life(ledger)
        self._count_with(Counts(footing.problem.available.shape, **counted))

    def _stand_on(self, footing: Footing) -> None:
        """Take decisions of one footing for those of today."""
        self.problem, self.mark = footing.problem, footing.mark
        self._arms = footing.problem.arms
        self._n_contexts, self._n_arms = footing.problem.available.shape
        length, further = footing.carried
        self._direction, self._baseline, self._has_baseline = (length,), (further,), footing.has_baseline

    def begin_life(self, ledger: Ledger) -> None:
        """Issue ids of another life from now on."""
        self.ledger, self.rounds, self.life = ledger, ledger.rounds, ledger.life

    def _count_with(self, counts: Counts) -> None:
        """Go on with counts of decisions and answers."""
        self.counts, self._own, self.decided = counts, counts.own, counts.own.decided

    def move(self, footing: Footing, history: History) -> None:
        """Go on with another problem."""
        counts = self.counts.moved(self.problem, footing.problem)
        self._stand_on(footing)
        self.history = history
        self._count_with(counts)

    def checked(self, made: Decision, *, once: bool = False) -> Decision | None:
        """Refuse a decision that is not this policy's, not open (unless it is known to come once), or damaged.

        Return it as one of the present problem, or None if its context or arm is gone.
        """
        check_owner(made, self.name)
        number, x, _, arm, arm_name, _, direction, baseline, _, source, _, holdout, footing = made
        own = source == self.life and self.rounds.has(number)
        if not (own or once) and (refusal := self.ledger.refusal(made)):
            raise ValueError(f"{word_of(made)} {refusal}; each decision takes feedback once")
        if footing != self.mark and self._is_late(made):
            return self.history.today(made, self.problem)
        if not (0 <= x < self._n_contexts and 0 <= arm < self._n_arms):
            raise ValueError(f"{word_of(made)}: no context {x} with an arm {arm}")
        if self._arms[arm] != arm_name:
            raise ValueError(f"{word_of(made)}: arm {arm} is {self._arms[arm]!r} and not {arm_name!r}")
        if holdout:
            return made
        if (baseline is not None) != self._has_baseline:
            raise ValueError(f"{word_of(made)}: the decision's baseline does not fit this policy")
        if direction.shape != self._direction or (baseline is not None and baseline.shape != self._baseline):
            counts = "{} and {}".format(*self._direction, *self._baseline)
            raise ValueError(f"{word_of(made)}: direction or baseline damaged, they need {counts} numbers")
        return made

    def _is_late(self, made: Any) -> bool:
        """Tell whether a decision or a row was of another problem, by its mark; without one, by its version."""
        return bool(made.footing) or made.version < self.history.began

    def listing(self, row: Any) -> Problem | Epoch:
        """Return names of contexts and arms as they were when a row of a log was decided."""
        late = row.footing != self.mark and self._is_late(row)
        return self.history.epoch_of(row.version, row.footing or "") if late else self.problem

    def close(self, made: Decision, now: Decision | None, loss: float) -> None:
        """Note that a decision was answered, and count it as one of the present problem."""
        number, x, _, arm, _, _, _, _, _, source, _, holdout, _ = made
        if source == self.life:
            self.rounds.close(number)
            counted = True
        else:
            counted = self.ledger.counted(made)
            self.ledger.close(made)
        if now is None:
            return
        if now is not made:
            x, arm = now.context, now.arm
        tally = self.counts.held if holdout else self._own
        tally.answered[x][arm] += 1
        tally.losses[x][arm] += loss
        if not counted:
            tally.decided[x][arm] += 1

    def count_all(self, now: Sequence[Decision | None], losses: Floats, columns: Columns | None) -> None:
        """Count decisions of a batch that was answered; the columns have contexts and arms of all."""
        counted, here = self.ledger.counted, [made for made in now if made is not None]
        strange = None
        if {made.source for made in here} != {self.life}:
            strange = np.array([not counted(made) for made in here], dtype=np.float64)
        if columns is not None:
            self.counts.own.answer_all(columns[0], columns[1], losses, strange)
            return
        heard = np.array([made is not None for made in now], dtype=bool)
        self.counts.answer_all(here, losses[heard], strange)

    def header(self) -> dict[str, Any]:
        """Return what a file's header keeps."""
        own = {"name": self.name, "mark": self.mark}
        return {**own, **self.ledger.header(), **self.counts.header(), **self.history.header()}

    def arrays(self) -> dict[str, Any]:
        """Return what a file keeps as arrays."""
        return {**self.ledger.arrays(), **self.counts.arrays(), **self.history.arrays()}
