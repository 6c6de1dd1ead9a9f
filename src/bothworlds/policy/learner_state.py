"""Learner state of a policy: everything learned and the current plan, in two buffers of kernel memory.

An update fills the spare buffer, which becomes the current one on success; after an error nothing has changed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.errors import NumericalError
from bothworlds.kernels.arithmetic import WIDTH
from bothworlds.kernels.contract import Machine, out_of_blocks
from bothworlds.kernels.entry_points import arrays_of, memory_of, put
from bothworlds.kernels.jit.background_compile import BackgroundCompiled, without_detour
from bothworlds.kernels.jit.compile import readable_errors
from bothworlds.kernels.status import DAMAGED, OK
from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback import DecisionBatch, damage_message, failure_message
from bothworlds.policy.plan import Plan
from bothworlds.policy.spec import PolicySpec, aligned_copy

empty = np.empty  # a global name: the attribute lookup is a third of the cost of a small array


class LearnerState:
    """Learner state for one spec. Not thread-safe; does not track ids of decisions.

    ``prior_rounds`` is the number of rounds in the clock without feedback: those of a prior, minus rounds dropped by
    ``trust``.
    """

    __slots__ = (
        "_act",
        "_baseline_length",
        "_blocked",
        "_common",
        "_compiling",
        "_direction_length",
        "_feed",
        "_has_baseline",
        "_memories",
        "_no_baseline",
        "_packs",
        "_sizes",
        "_states",
        "_step",
        "_tables",
        "body",
        "prior_rounds",
        "side",
        "spec",
    )  # fmt: skip

    def __init__(self, spec: PolicySpec, key: int) -> None:
        machine = spec.machine
        self.spec, self.prior_rounds, self.side = spec, 0, 0
        self._load_entries()
        self.body = self._common, self._packs, self._sizes = arrays_of(machine, key)
        self._memories = tuple(memory_of(machine, self.body, side) for side in (0, 1))
        self._states = tuple(machine.kernel.state_of(*memory, tuple(machine.block_sizes)) for memory in self._memories)
        self._tables = tuple(state.pi for state in self._states)
        self._blocked = self._tables[0].ndim == 3
        self._direction_length, self._baseline_length = spec.carried
        self._has_baseline, self._no_baseline = spec.has_baseline, np.zeros(self._baseline_length)

    @classmethod
    def initial(cls, spec: PolicySpec, key: int) -> Self:
        """Return a learner state with the plan before any feedback."""
        learner_state = cls(spec, key)
        with readable_errors(packs=spec.machine.kernel.wide):
            learner_state.refresh()
        return learner_state

    @property
    def machine(self) -> Machine:
        """The algorithm, prepared for the problem."""
        return self.spec.machine

    @property
    def state(self) -> Any:
        """Views of the fields in the current buffer, by name."""
        return self._states[self.side]

    def plan(self, **identity: Any) -> Plan:
        """Return the current plan; ``identity`` has name of the policy, version and secret."""
        core, rows = self._memories[self.side]
        return Plan(spec=self.spec, _core=core.copy(), _rows=aligned_copy(rows), **identity)

    @property
    def updates(self) -> int:
        """Number of decisions learned from."""
        return int(self.state.t[0]) - 1 - self.prior_rounds

    def plain_state(self) -> Any:
        """Return the fields by name; arrays by context are copies of shape (contexts, ...)."""
        return _map(self.spec.plain, self.state)

    def table(self) -> Floats:
        """Return pi_t, shape (contexts, arms)."""
        pi = self._tables[self.side]
        return out_of_blocks(pi, self.spec.problem.n_contexts) if self._blocked else pi.copy()

    def learnt(self) -> dict[str, Floats]:
        """Return the learned fields by name, as copies."""
        return self.spec.learnt(*self._memories[self.side])

    def act(self, x: int, key: int, number: int) -> tuple[int, float, Floats, Floats | None]:
        """Draw an arm; return it with its propensity, direction and baseline."""
        direction, side = empty(self._direction_length), self.side
        if self._has_baseline:
            output = baseline = empty(self._baseline_length)
        else:
            output, baseline = self._no_baseline, None
        arm = self._act(self._common, self._packs, self._sizes, side, x, key, number, direction, output)
        pi = self._tables[side]
        return arm, pi.item(x // WIDTH, arm, x % WIDTH) if self._blocked else pi.item(x, arm), direction, baseline

    def learn(self, decision: Decision, loss: float) -> None:
        """Learn from one decision and compute the plan."""
        status = self._observe(decision, loss, True, True)
        if status == OK:
            self.side = 1 - self.side
        else:
            self._commit(status, decision)

    def feed(self, batch: list[Decision], losses: Floats, columns: DecisionBatch | None) -> None:
        """Learn from a batch, one decision after the other, and compute the plan: of each row, or once."""
        if columns is not None:
            valid = self.feed_columns(losses, columns)
            if valid < len(batch):
                self._commit(DAMAGED, batch[valid])
            return
        last, row_by_row = len(batch) - 1, self.machine.kernel.row_by_row
        for i, (decision, loss) in enumerate(zip(batch, losses.tolist(), strict=True)):
            status = self._observe(decision, loss, i == 0, row_by_row or i == last)
            if status != OK or i == last:
                self._commit(status, decision)

    def feed_columns(self, losses: Floats, columns: DecisionBatch) -> int:
        """Learn from a batch as columns and compute the plan; return the number of valid decisions.

        A number below the length of the batch is the index of a damaged decision; then nothing has changed.
        """
        valid = self._feed(self._common, self._packs, self._sizes, self.side, losses, *columns)
        if valid < 0:
            self._commit(-valid)
        if valid == len(losses):
            self._commit(self._compute_plan(begins=False))
        return valid

    def refresh(self) -> None:
        """Compute the plan from the learned fields."""
        self._commit(self._compute_plan(begins=True))

    def set_learned(self, fields: Mapping[str, Any], *, updates: int | None) -> None:
        """Set the learned fields and compute the plan.

        ``updates`` is the number of decisions learned from; None counts all rounds of the clock.
        """
        for name, value in fields.items():
            put(self.machine, self.body, self.side, name, value)
        self.refresh()
        self.prior_rounds = 0 if updates is None else int(self.state.t[0]) - 1 - updates

    def _load_entries(self) -> None:
        """Load the entry points: machine code if it is ready, else functions that compile in the background."""
        self._act, self._step, self._feed, *_ = map(without_detour, self.spec.entries)
        self._compiling = isinstance(self._act, BackgroundCompiled) or isinstance(self._step, BackgroundCompiled)

    def _observe(self, decision: Decision, loss: float, begins: bool, ends: bool) -> int:
        if self._compiling:
            self._load_entries()
        _, x, _, arm, _, propensity, direction, baseline, _, _, _, _, _ = decision
        if baseline is None:
            baseline = self._no_baseline
        return self._step(
            self._common, self._packs, self._sizes, self.side, begins, True, ends, x, arm, loss, propensity, direction,
            baseline,
        )  # fmt: skip

    def _compute_plan(self, *, begins: bool) -> int:
        memory = self._common, self._packs, self._sizes, self.side
        direction = np.zeros(self._direction_length)
        return self._step(*memory, begins, False, True, 0, 0, 0.0, 1.0, direction, self._no_baseline)

    def _commit(self, status: int, decision: Decision | None = None) -> None:
        """Make the spare buffer the current one if the status is OK, else raise."""
        if status == OK:
            self.side = 1 - self.side
            return
        if status == DAMAGED and decision is not None:
            raise ValueError(damage_message(decision))
        raise NumericalError(failure_message(status, self._states[1 - self.side], self.spec.problem))


def _map(function: Callable[[str, Floats], Floats], record: Any) -> Any:
    """Apply a function to the name and value of every leaf of nested named tuples."""
    fields = zip(record._fields, record, strict=True)
    return record._make(
        _map(function, value) if hasattr(value, "_fields") else function(name, value) for name, value in fields
    )
