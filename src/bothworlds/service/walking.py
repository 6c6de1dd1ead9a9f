"""A way through a piece of a log: every decision is drawn again, every batch learnt again, and compared.

Between two marks of the log one plan decides. Its decisions are drawn again together, and kept as columns until their
rewards are learnt, together again: what is learnt is what was computed here, not what the log says.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from bothworlds.policy import Policy
from bothworlds.policy.plan import Plan
from bothworlds.service.drawing import all_drawn, drawn_from
from bothworlds.service.experiment import Lesson, columns_in, followed, learn, opened, places_in, ready, restored
from bothworlds.service.pieces import Found, Piece
from bothworlds.service.records import MARKS, Asked, Drawn, Kind, Paid, all_unpacked, packed, unpacked
from bothworlds.service.shelf import Shelf
from bothworlds.service.store import Row, Store

DECISION, REWARD = int(Kind.DECISION), int(Kind.REWARD)


class Walk:
    """A way through a piece: the policy of the moment, its plan, and rewards that are not learnt yet."""

    def __init__(self, store: Store, piece: Piece) -> None:
        self.store, self.piece, self.found = store, piece, Found(pieces=1)
        self.paid: list[Row] = []

    def done(self) -> Found:
        """Walk to the end, or to the first version that is not as the log says."""
        piece = self.piece
        try:
            self.policy = self._beginning()
            self._go_on_with(ready(self.policy), anew=True)
            for rows in self.store.blocks(piece.experiment, after=piece.begin.through, through=piece.first):
                self.paid += [row for row in rows if row[1] == REWARD]
            for rows in self.store.blocks(piece.experiment, after=piece.first, through=piece.last):
                self._take(rows)
            if piece.end is not None and (self.policy.version, self.policy.digest) != piece.end[1:4:2]:
                self.found.faults.append(f"the snapshot of version {piece.end.version} is not what the log leads to")
        except ValueError as error:
            self.found.faults.append(f"after version {piece.begin.version}: {error}")
        return self.found

    def _beginning(self) -> Policy:
        """Return the policy that the piece begins with; where a service has dropped the snapshot, learnt again."""
        number, begin = self.piece.experiment, self.piece.begin
        try:
            return opened(self.store, begin)
        except ValueError:
            if begin in self.store.snapshots(number):
                raise
        policy = self._went_back(begin.version)
        if (policy.version, policy.digest) != (begin.version, begin.digest):
            raise ValueError("its snapshot, which is gone, was not what the log leads to")
        return policy

    def _go_on_with(self, plan: Plan, *, anew: bool) -> None:
        """Decide with another plan; ``anew``: of another footing, on which nothing is at hand."""
        self.plan = plan
        if anew:
            self.shelf = Shelf(plan.footing.carried)

    def _take(self, rows: list[Row]) -> None:
        """Take records: what lies between two marks together, and each mark."""
        begin = 0
        for place in [place for place, row in enumerate(rows) if row[1] in MARKS]:
            self._pass(rows[begin:place])
            self._follow(rows[place][1], unpacked(MARKS[rows[place][1]], rows[place][3]))
            begin = place + 1
        self._pass(rows[begin:])

    def _pass(self, rows: list[Row]) -> None:
        """Compute the decisions among records without a mark again, and keep the rewards."""
        made = [(name, body) for _, kind, name, body in rows if kind == DECISION]
        bodies = dict(made)
        if len(bodies) < len(made) or None in bodies:
            names = [name for name, _ in made]
            twice = next(name for name in names if name is None or names.count(name) > 1)
            raise ValueError(f"decision {twice!r} has no id, or stands in the log twice")
        self._decide_again(bodies)  # type: ignore[arg-type]
        paid = [row for row in rows if row[1] == REWARD]
        self.paid += paid
        self.found.rewards += len(paid)

    def _decide_again(self, made: dict[str, bytes]) -> None:
        """Compute decisions again, and keep them for learning."""
        self.found.decisions += len(made)
        if self.plan.footing.holdout:
            held = [name for name in made if self.plan.holds_out(name)]
            self._hold_again({name: made.pop(name) for name in held})
        if made:
            self._draw_again(list(made), list(made.values()))

    def _hold_again(self, made: dict[str, bytes]) -> None:
        for name, body in made.items():
            told = unpacked(Asked, body)
            if packed(drawn_from(self.plan.again(told.context, name), self.plan, told.asked)) != body:
                self._blame(name)
        self.shelf.hold(list(made))

    def _draw_again(self, names: list[str], bodies: list[bytes]) -> None:
        told = all_unpacked(Asked, bodies)
        xs = places_in(self.plan.footing.numbered[0], [one.context for one in told])
        columns = self.plan.again_all(xs, names)
        made = [packed(one) for one in all_drawn(self.plan, columns, [one.asked for one in told])]
        if made != bodies:
            for name, one, other in zip(names, made, bodies, strict=True):
                if one != other:
                    self._blame(name)
        self.shelf.put(names, columns)

    def _blame(self, name: str) -> None:
        self.found.faults.append(f"decision {name!r} is not what plan {self.plan.version} decides")

    def _follow(self, kind: int, body: Any) -> None:
        count = bisect_right(self.paid, body.through, key=itemgetter(0))
        learnt, self.paid = self.paid[:count], self.paid[count:]

        def taught(policy: Policy) -> None:
            paid = all_unpacked(Paid, [row[3] for row in learnt])
            self._learn(policy, [str(row[2]) for row in learnt], [one.reward for one in paid])

        self.policy = followed(self.policy, kind, body, taught=taught, went_back=self._went_back)
        plan = ready(self.policy)
        self._go_on_with(plan, anew=plan.footing.mark != self.plan.footing.mark)
        self.found.versions += 1

    def _learn(self, policy: Policy, names: list[str], rewards: list[float]) -> None:
        """Learn a batch again, of decisions at hand; those that are not there are taken from the store."""
        missing = self.shelf.missing(names)
        if missing and (not self._fetched(missing) or self.shelf.missing(names)):
            drawn = self._drawn(names)
            learn(policy, [Lesson(0, name, drawn[name], reward) for name, reward in zip(names, rewards, strict=True)])
            return
        columns, heard = self.shelf.take(names)
        if len(heard):
            policy.learn(columns, reward=np.array(rewards)[heard])

    def _drawn(self, names: Sequence[str]) -> dict[str, Drawn]:
        """Return decisions that stand in the store."""
        found = self.store.find(self.piece.experiment, names)
        drawn = {str(one.id): unpacked(Drawn, one.body) for one in found if one.kind == Kind.DECISION}
        for name in names:
            if name not in drawn:
                raise ValueError(f"the log has a reward of decision {name!r}, and no such decision")
        return drawn

    def _fetched(self, names: Sequence[str]) -> bool:
        """Have decisions at hand, if all of them are of the present footing."""
        drawn, footing = self._drawn(names), self.plan.footing
        own = {name: one for name, one in drawn.items() if not one.holdout}
        if any(one.footing != footing.mark for one in own.values()):
            return False
        self.shelf.hold([name for name in names if name not in own])
        if own:
            self.shelf.put(list(own), columns_in(list(own.values()), footing))
        return True

    def _went_back(self, version: int) -> Policy:
        return restored(self.store, self.piece.experiment, version=version)[0]
