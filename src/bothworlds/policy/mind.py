"""What is learnt, and the plan that follows from it, in two memories of kernel text.

An update fills the spare memory, which becomes the current one if all went well; on any error nothing has changed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from bothworlds.errors import NumericalError
from bothworlds.kernels.arithmetic import WIDTH
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Machine, out_of_blocks
from bothworlds.kernels.entries import body_of, memory_of, put
from bothworlds.kernels.jit.compile import explained
from bothworlds.kernels.jit.prompt import Prompt, settled
from bothworlds.kernels.status import DAMAGED, OK
from bothworlds.policy.decision import Decision
from bothworlds.policy.feeding import Columns, damaged, failed
from bothworlds.policy.footing import Footing, aligned_copy
from bothworlds.policy.plan import Plan

empty = np.empty  # looked up once: a third of what a small array costs


class Mind:
    """A mind on a footing; it holds no lock, and knows nothing of ids.

    ``believed`` is how many rounds it believes in that were never answered: those of a prior, less those no longer
    trusted.
    """

    __slots__ = (
        "_act", "_blocked", "_common", "_feed", "_further", "_has_baseline", "_length", "_memories", "_no_baseline",
        "_packs", "_prompt", "_sides", "_sizes", "_step", "_tables", "believed", "body", "footing", "side",
    )  # fmt: skip

    def __init__(self, footing: Footing, key: int) -> None:
        machine = footing.machine
        self.footing, self.believed, self.side = footing, 0, 0
        self._settle()
        self.body = self._common, self._packs, self._sizes = body_of(machine, key)
        self._memories = tuple(memory_of(machine, self.body, side) for side in (0, 1))
        self._sides = tuple(machine.text.state_of(*memory, tuple(machine.block_sizes)) for memory in self._memories)
        self._tables = tuple(names.pi for names in self._sides)
        self._blocked = self._tables[0].ndim == 3
        self._length, self._further = footing.carried
        self._has_baseline, self._no_baseline = footing.has_baseline, np.zeros(self._further)

    @classmethod
    def begun(cls, footing: Footing, key: int) -> Self:
        """Return a mind with the plan before any feedback."""
        mind = cls(footing, key)
        with explained(packs=footing.machine.text.wide):
            mind.refresh()
        return mind

    @property
    def machine(self) -> Machine:
        """The algorithm, made ready for the problem."""
        return self.footing.machine

    @property
    def state(self) -> Any:
        """The fields of the current memory by name, as they lie there."""
        return self._sides[self.side]

    def plan(self, **said: Any) -> Plan:
        """Return what it would do now, with the name of the policy, version and secret."""
        core, rows = self._memories[self.side]
        return Plan(footing=self.footing, _core=core.copy(), _rows=aligned_copy(rows), **said)

    @property
    def updates(self) -> int:
        """How many decisions were learnt."""
        return int(self.state.t[0]) - 1 - self.believed

    def plain_state(self) -> Any:
        """Return the state by name; arrays with an entry per context are copies, (contexts, ...), of its own."""
        return _map(self.footing.plain, self.state)

    def table(self) -> Floats:
        """Return pi_t, (contexts, arms)."""
        pi = self._tables[self.side]
        return out_of_blocks(pi, self.footing.problem.n_contexts) if self._blocked else pi.copy()

    def learnt(self) -> dict[str, Floats]:
        """Return what is learnt, by name, as copies."""
        return self.footing.learnt(*self._memories[self.side])

    def act(self, x: int, key: int, number: int) -> tuple[int, float, Floats, Floats | None]:
        """Draw an arm; return it with its propensity, direction and baseline."""
        direction, side = empty(self._length), self.side
        if self._has_baseline:
            filled = baseline = empty(self._further)
        else:
            filled, baseline = self._no_baseline, None
        arm = self._act(self._common, self._packs, self._sizes, side, x, key, number, direction, filled)
        pi = self._tables[side]
        return arm, pi.item(x // WIDTH, arm, x % WIDTH) if self._blocked else pi.item(x, arm), direction, baseline

    def learn(self, made: Decision, loss: float) -> None:
        """Learn from one decision, and compute the plan."""
        status = self._taught(made, loss, True, True)
        if status == OK:
            self.side = 1 - self.side
        else:
            self._turn(status, made)

    def feed(self, batch: list[Decision], losses: Floats, columns: Columns | None) -> None:
        """Learn from a batch, one decision after the other, and compute the plan once."""
        if columns is not None:
            fed = self.feed_columns(losses, columns)
            if fed < len(batch):
                self._turn(DAMAGED, batch[fed])
            return
        last = len(batch) - 1
        for i, (made, loss) in enumerate(zip(batch, losses.tolist(), strict=True)):
            status = self._taught(made, loss, i == 0, i == last)
            if status != OK or i == last:
                self._turn(status, made)

    def feed_columns(self, losses: Floats, columns: Columns) -> int:
        """Learn from a batch as columns, and compute the plan; return how many came before one that is damaged.

        Then nothing has changed.
        """
        fed = self._feed(self._common, self._packs, self._sizes, self.side, losses, *columns)
        if fed == len(losses):
            self._turn(self._planned(begins=False))
        return fed

    def refresh(self) -> None:
        """Compute the plan from what is learnt."""
        self._turn(self._planned(begins=True))

    def begin_with(self, learnt: Mapping[str, Any], *, updates: int | None) -> None:
        """Put in what is learnt, and compute the plan; ``updates`` decisions were answered so far, or all there are."""
        for part, value in learnt.items():
            put(self.machine, self.body, self.side, part, value)
        self.refresh()
        self.believed = 0 if updates is None else int(self.state.t[0]) - 1 - updates

    def _settle(self) -> None:
        """Take up machine code that has been made meanwhile."""
        self._act, self._step, self._feed, *_ = map(settled, self.footing.entries)
        self._prompt = isinstance(self._act, Prompt) or isinstance(self._step, Prompt)

    def _taught(self, made: Decision, loss: float, begins: bool, ends: bool) -> int:
        if self._prompt:
            self._settle()
        _, x, _, arm, _, propensity, direction, baseline, _, _, _, _, _ = made
        if baseline is None:
            baseline = self._no_baseline
        return self._step(
            self._common, self._packs, self._sizes, self.side, begins, True, ends, x, arm, loss, propensity, direction,
            baseline,
        )  # fmt: skip

    def _planned(self, *, begins: bool) -> int:
        memory = self._common, self._packs, self._sizes, self.side
        return self._step(*memory, begins, False, True, 0, 0, 0.0, 1.0, np.zeros(self._length), self._no_baseline)

    def _turn(self, status: int, made: Decision | None = None) -> None:
        """Make the spare memory the current one, or raise and keep the old one."""
        if status == OK:
            self.side = 1 - self.side
            return
        if status == DAMAGED and made is not None:
            raise ValueError(damaged(made))
        raise NumericalError(failed(status, self._sides[1 - self.side], self.footing.problem))


def _map(change: Callable[[str, Floats], Floats], record: Any) -> Any:
    """Return a record with every field at an end changed."""
    parts = zip(record._fields, record, strict=True)
    return record._make(_map(change, part) if hasattr(part, "_fields") else change(name, part) for name, part in parts)
