"""Policy: an algorithm in progress. Act, update, ask, save."""

import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from bothworlds.decision import Decision
from bothworlds.errors import NumericalError, sentence
from bothworlds.feedback import checked_loss
from bothworlds.kernels.arithmetic import WIDTH
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import Machine, out_of_blocks
from bothworlds.kernels.entries import body_of, compiled_entries, interpreted_entries, memory_of, part_of, put
from bothworlds.kernels.jit.compile import explained
from bothworlds.kernels.random import Seed, key_from
from bothworlds.kernels.status import DAMAGED, OK
from bothworlds.plain import to_plain
from bothworlds.problem import Problem
from bothworlds.problem.storage import write_arrays
from bothworlds.rounds import OpenRounds

FORMAT = "bothworlds-policy-1"
ONE_CONTEXT = (str, int, np.integer)


class Algorithm(ABC):
    """What makes policies: hyper-parameters, and a method that makes them ready for a problem as kernel text."""

    @abstractmethod
    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> "Policy":
        """Begin on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the same text without compiling it: for the debugger, some hundred times slower.
        """
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)


class Policy:
    """An algorithm in progress on a problem; made by ``algorithm.start(problem, rng=...)``.

    The clock of the learning rate counts updates, `Decision.round` counts decisions: feedback may be late, out of
    order, in batches, or missing, and every estimate is unbiased given what was known when the decision was taken, as
    long as whether feedback comes does not depend on the outcome.
    """

    def __init__(
        self, algorithm: object, problem: Problem, machine: Machine, *, key: int, interpreted: bool = False
    ) -> None:
        self.algorithm = algorithm
        self.problem = problem
        self.name = uuid.uuid4().hex[:12]
        self._machine = machine
        self._key = key
        self._entries = (interpreted_entries if interpreted else compiled_entries)(machine.text)
        self._body = body_of(machine, key)
        self._sides = tuple(self._names(side) for side in (0, 1))
        self._side = 0
        self._has_baseline = machine.text.has_baseline
        self._carried = machine.carried
        self._direction, self._baseline = (np.zeros(count) for count in self._carried)
        self._shapes = self._direction.shape, self._baseline.shape
        self._rounds = OpenRounds()
        with explained(packs=machine.text.wide):
            self._refresh()

    @classmethod
    def begin(
        cls, algorithm: object, problem: Problem, machine: Machine, *, rng: Seed, interpreted: bool = False
    ) -> Self:
        """Start an algorithm; ``rng`` is an integer, a SeedSequence, a Generator, or None for a random seed."""
        return cls(algorithm, problem, machine, key=key_from(rng), interpreted=interpreted)

    @property
    def rounds(self) -> int:
        """How many decisions were taken."""
        return self._rounds.last

    @property
    def updates(self) -> int:
        """How many decisions were answered."""
        return int(self._sides[self._side].t[0]) - 1

    @property
    def open_rounds(self) -> int:
        """How many decisions still wait for feedback."""
        return len(self._rounds)

    def _names(self, side: int) -> Any:
        """Return the state by name, as it lies in one of the two memories."""
        sizes = tuple(self._machine.block_sizes)
        return self._machine.text.state_of(*memory_of(self._machine, self._body, side), sizes)

    @property
    def state(self) -> Any:
        """The algorithm's state by name; arrays with an entry per context are copies, (contexts, ...), of its own."""
        return _map(self._plain, self._sides[self._side])

    def _propensity(self, x: int, a: int) -> float:
        """Return pi_t(a|x)."""
        pi = self._sides[self._side].pi
        return float(pi.item(x // WIDTH, a, x % WIDTH) if pi.ndim == 3 else pi.item(x, a))

    def probabilities(self, context: str | int | None = None) -> Floats:
        """Return pi_t(. | context), shape (arms,), or the table of all contexts, shape (contexts, arms)."""
        pi = self._sides[self._side].pi
        table: Floats = out_of_blocks(pi, self.problem.n_contexts) if pi.ndim == 3 else pi.copy()
        return table if context is None else table[self.problem.context_index(context)]

    @overload
    def act(self, context: str | int) -> Decision: ...  # type: ignore[overload-overlap]  # str is a sequence
    @overload
    def act(self, context: Sequence[str | int] | Ints) -> list[Decision]: ...
    def act(self, context: str | int | Sequence[str | int] | Ints) -> Decision | list[Decision]:
        """Choose an arm for a context, given by name or index; for a sequence of contexts, one arm for each."""
        if isinstance(context, ONE_CONTEXT):
            return self._act(self.problem.context_index(context))
        if getattr(context, "ndim", 1) == 0 or not hasattr(context, "__len__"):
            raise ValueError(f"a context is a name, an index, or a sequence of those; got {context!r}")
        return [self._act(x) for x in [self.problem.context_index(c) for c in context]]

    def _act(self, x: int) -> Decision:
        number = self._rounds.add()
        direction = np.empty(self._carried[0])
        baseline = np.empty(self._carried[1]) if self._has_baseline else None
        filled = self._baseline if baseline is None else baseline
        arm = self._entries.act(*self._body, self._side, x, self._key, number, direction, filled)
        return Decision(
            number,
            x,
            self.problem.contexts[x],
            arm,
            self.problem.arms[arm],
            self._propensity(x, arm),
            direction,
            baseline,
            self.name,
        )

    def update(
        self,
        decision: Decision | Sequence[Decision],
        *,
        loss: float | Sequence[float] | Floats | None = None,
        reward: float | Sequence[float] | Floats | None = None,
    ) -> None:
        """Learn from the loss, or the reward, of one decision or of a batch; the plan is computed once after it.

        No click is ``reward=0`` (with ``reward_range=(0, 1)``), not "no update": leaving it out would teach the
        policy that every arm is clicked always. On any error nothing has changed.
        """
        if (loss is None) == (reward is None):
            raise ValueError("give either loss= or reward=, one of the two")
        given, is_reward = (reward, True) if loss is None else (loss, False)
        if isinstance(decision, Decision):
            value = self._loss(given, is_reward=is_reward)
            self._check(decision)
            self._accept(self._feed(decision, value, begins=True, ends=True), decision)
            self._rounds.close(decision.round)
        elif isinstance(decision, Mapping):
            raise ValueError("this is a decision's dictionary; make it a decision again with Decision.from_dict")
        else:
            self._update_batch(list(decision), given, is_reward=is_reward)

    def _update_batch(self, batch: list[Decision], given: Any, *, is_reward: bool) -> None:
        """Check everything, then learn everything, then compute the plan once."""
        if not hasattr(given, "__len__") or len(given) != len(batch):
            raise ValueError(f"a batch of {len(batch)} decisions needs as many values, in their order; got {given!r}")
        losses = [self._loss(value, is_reward=is_reward) for value in given]
        for made in batch:
            self._check(made)
        if len({made.round for made in batch}) < len(batch):
            raise ValueError("a round stands twice in the batch; each decision takes feedback once")
        last = len(batch) - 1
        status = OK
        for i, (made, value) in enumerate(zip(batch, losses, strict=True)):
            status = self._feed(made, value, begins=i == 0, ends=i == last)
            if status != OK:
                break
        if batch:
            self._accept(status, batch[i])
        for made in batch:
            self._rounds.close(made.round)

    def _feed(self, made: Decision, loss: float, *, begins: bool, ends: bool) -> int:
        """Learn from one decision in the spare memory; return a status."""
        baseline = self._baseline if made.baseline is None else made.baseline
        play = made.context, made.arm, loss, made.propensity, made.direction, baseline
        return self._entries.step(*self._body, self._side, begins, True, ends, *play)

    def expire(self, *, before: int) -> int:
        """Close all decisions of rounds before the given one that were never answered; return how many."""
        number: Any = before
        if not isinstance(number, int | np.integer):
            raise ValueError(f"before must be the number of a round, a whole number; got {before!r}")
        return self._rounds.expire(before=int(number))

    def _loss(self, given: Any, *, is_reward: bool) -> float:
        return checked_loss(given, is_reward=is_reward, reward_range=self.problem.reward_range)

    def _check(self, made: Decision) -> None:
        """Refuse a decision that is not this policy's, not open, or damaged."""
        if made.policy != self.name:
            raise ValueError(f"the decision is of policy {made.policy!r}, this is {self.name!r}: give it to that one")
        if made.round not in self._rounds:
            known = "was answered or has expired" if 1 <= made.round <= self.rounds else "was never decided"
            raise ValueError(f"round {made.round} {known}; each decision takes feedback once")
        if not (0 <= made.context < self.problem.n_contexts and 0 <= made.arm < self.problem.n_arms):
            raise ValueError(f"round {made.round}: no context {made.context} with an arm {made.arm}")
        if (made.baseline is not None) != self._has_baseline:
            raise ValueError(f"round {made.round}: the decision's baseline does not fit this policy")
        direction, baseline = self._shapes
        if made.direction.shape != direction or (made.baseline is not None and made.baseline.shape != baseline):
            counts = "{} and {}".format(*self._carried)
            raise ValueError(f"round {made.round}: direction or baseline damaged, they need {counts} numbers")

    def _refresh(self) -> None:
        """Compute the plan from what is learnt."""
        nothing = 0, 0, 0.0, 1.0, self._direction, self._baseline
        self._accept(self._entries.step(*self._body, self._side, True, False, True, *nothing))

    def _accept(self, status: int, made: Decision | None = None) -> None:
        """Make the new state the current one, or raise and keep the old one."""
        if status == OK:
            self._side = 1 - self._side
            return
        if status == DAMAGED and made is not None:
            raise ValueError(
                f"round {made.round}: propensity, direction or baseline damaged: no plan of this policy plays arm "
                f"{made.arm} in context {made.context} with such numbers. Nothing was learnt; if the decision was read "
                "from a log, read that line again, or close the round with expire"
            )
        failed = self._sides[1 - self._side]
        rarest = int(self.problem.probabilities.argmin())
        condition = _condition(failed.sigma) if hasattr(failed, "sigma") else math.nan
        raise NumericalError(
            f"{sentence(status)} at t = {int(failed.t[0])} (condition number {condition:.3g}, rarest context "
            f"{self.problem.contexts[rarest]!r} with probability {self.problem.probabilities[rarest]:.3g}). "
            "The update was not applied; more exploration or better scaled features avoid this"
        )

    def learnt(self) -> dict[str, Floats]:
        """Return what was learnt, by name, as copies: together with problem and algorithm all that a file keeps."""
        names = self._machine.text.memory.learnt
        found = [part_of(self._machine, self._body, self._side, name) for name in names]
        return {name: self._plain(name, part).copy() for name, part in zip(names, found, strict=True)}

    def _plain(self, name: str, part: Floats) -> Floats:
        """Return a field of the state with contexts in its first axis."""
        blocked = self._machine.text.wide and self._machine.text.memory.leaves[name].array == "rows"
        return out_of_blocks(part, self.problem.n_contexts) if blocked else part

    def save(self, path: str | Path) -> None:
        """Write the policy to an .npz file; `bothworlds.load` continues it bit for bit."""
        if Path(path).suffix != ".npz":
            raise ValueError(f"{path}: a policy is saved as .npz")
        problem = self.problem
        header = {
            "format": FORMAT,
            "algorithm": to_plain(self.algorithm),
            "contexts": problem.contexts,
            "arms": problem.arms,
            "reward_range": problem.reward_range,
            "name": self.name,
            "key": self._key,
            "rounds": self.rounds,
        }
        arrays = {
            "features": problem.features,
            "probabilities": problem.probabilities,
            "available": problem.available,
            "open": self._rounds.intervals,
            **{f"frame.{name}": array for name, array in self._machine.frame.items()},
            **{f"learnt.{name}": array for name, array in self.learnt().items()},
        }
        write_arrays(path, header, arrays)

    def restore(self, *, name: str, rounds: OpenRounds, learnt: dict[str, Floats]) -> None:
        """Put back what a file kept (used by `bothworlds.load`)."""
        self.name = name
        self._rounds = rounds
        for part in self._machine.text.memory.learnt:
            put(self._machine, self._body, self._side, part, learnt[part])
        self._refresh()

    def __repr__(self) -> str:
        return f"Policy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"


def _map(change: Callable[[str, Floats], Floats], record: Any) -> Any:
    """Return a record with every field at an end changed."""
    parts = zip(record._fields, record, strict=True)
    return record._make(_map(change, part) if hasattr(part, "_fields") else change(name, part) for name, part in parts)


def _condition(sigma: Floats) -> float:
    """Return the condition number of a matrix of which the lower triangle is at hand."""
    with np.errstate(all="ignore"):
        whole = np.tril(sigma) + np.tril(sigma, -1).T
        return float(np.linalg.cond(whole)) if np.isfinite(whole).all() else math.inf
