"""Policy: an algorithm in progress. Act, update, ask, save."""

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from bothworlds.decision import ROUNDING, Decision
from bothworlds.errors import NumericalError, sentence
from bothworlds.feedback import checked_loss
from bothworlds.kernels.arrays import Floats, Ints, aligned
from bothworlds.kernels.entries import (
    KernelText,
    World,
    compiled_entries,
    flat_world,
    in_blocks,
    interpreted_entries,
    out_of_blocks,
)
from bothworlds.kernels.numbers import WIDTH
from bothworlds.kernels.random import Seed, key_from
from bothworlds.kernels.status import DAMAGED, OK
from bothworlds.plain import to_plain
from bothworlds.problem import Problem
from bothworlds.problem.storage import write_arrays
from bothworlds.rounds import OpenRounds

FORMAT = "bothworlds-policy-1"
ONE_CONTEXT = (str, int, np.integer)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An algorithm made ready for a problem: kernel text, and the arrays it works on.

    ``begin(state)`` writes what is known before the first round into a state of zeros, ``learnt`` names the parts of
    the state that a file must keep, and ``frame`` the arrays from which the same machine can be built again.
    ``kept(blocks, d)`` tells how many numbers of the two memories, from their starts, are not computed afresh with
    every plan (None: all may be kept). ``carried`` is how long a decision's direction and baseline are: d, unless told.
    ``extra`` numbers are at the end of the learner's memory, for an algorithm that also has an entry per policy, say.
    ``seed(state, key)`` writes what the first plan draws with, for an algorithm whose plans are drawn; the key is that
    of the policy or of the replication, or an array of them, one for each entry of the last axis.
    ``possible(decision)`` tells whether some plan of the algorithm can have made a decision (None: nothing is known).
    """

    text: KernelText
    world: World
    numbers: Floats
    begin: Callable[[Any], None]
    learnt: tuple[str, ...]
    frame: dict[str, Floats]
    has_baseline: bool
    kept: Callable[[int, int], tuple[int, int]] | None = None
    carried: int = -1
    extra: int = 0
    seed: Callable[[Any, Any], None] | None = None
    possible: Callable[[Decision], bool] | None = None

    def __post_init__(self) -> None:
        if self.carried < 0:
            object.__setattr__(self, "carried", self.world.z.shape[2])

    def sizes(self, blocks: int) -> tuple[int, int]:
        """Return how many numbers the two memories take."""
        _, K, d = self.world.z.shape
        size, cell_size = self.text.sizes(blocks, K, d)
        return size + self.extra, cell_size

    def memory(self, blocks: int, *tail: int, cells: tuple[int, ...], key: Any = 0) -> tuple[Floats, Floats]:
        """Return the two memories at the start: numbers of the learner, then those with an entry per context.

        ``tail`` and ``cells`` are further axes of the two: eight replications, or eight contexts.
        """
        _, K, d = self.world.z.shape
        size, cell_size = self.sizes(blocks)
        numbers, per_context = aligned(size, *tail), aligned(cell_size, *cells)
        state = self.text.state_of(numbers, per_context, blocks, K, d)
        self.begin(state)
        if self.seed is not None:
            self.seed(state, key)
        return numbers, per_context


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
        wide = machine.text.wide
        self._fixed = (flat_world(machine.world, wide=wide), machine.numbers)
        S, K, d = machine.world.z.shape
        self._shape = (-(-S // WIDTH) if wide else S, K, d)
        cells = (WIDTH,) if wide else ()
        self._nothing = np.zeros(machine.carried)
        # Two memories: an update fills the spare one, which becomes current if all went well.
        self._memory = machine.memory(self._shape[0], cells=cells, key=key)
        self._spare = machine.memory(self._shape[0], cells=cells, key=key)
        self._named, self._spare_named = self._names(self._memory), self._names(self._spare)
        everything = tuple(len(part) for part in self._memory)
        self._kept = everything if machine.kept is None else machine.kept(self._shape[0], d)
        self._rounds = OpenRounds()
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
        return int(self._named.t[0]) - 1

    @property
    def open_rounds(self) -> int:
        """How many decisions still wait for feedback."""
        return len(self._rounds)

    def _names(self, memory: tuple[Floats, Floats]) -> Any:
        """Return the named parts of a memory."""
        return self._machine.text.state_of(*memory, *self._shape)

    @property
    def state(self) -> Any:
        """The algorithm's state by name; arrays with an entry per context are copies, (contexts, ...), of its own."""
        return self._plain(self._named, self._memory[1])

    def _plain(self, named: Any, cells: Floats) -> Any:
        """Return named parts of a memory with contexts in the first axis."""
        if not self._machine.text.wide:
            return named
        S = self.problem.n_contexts
        return named._make(out_of_blocks(part, S) if np.may_share_memory(part, cells) else part for part in named)

    def _swap(self) -> None:
        """Exchange the two memories."""
        self._memory, self._spare = self._spare, self._memory
        self._named, self._spare_named = self._spare_named, self._named

    def _propensity(self, x: int, a: int) -> float:
        """Return pi_t(a|x)."""
        pi = self._named.pi
        return float(pi.item(x // WIDTH, a, x % WIDTH) if pi.ndim == 3 else pi.item(x, a))

    def probabilities(self, context: str | int | None = None) -> Floats:
        """Return pi_t(. | context), shape (arms,), or the table of all contexts, shape (contexts, arms)."""
        pi = self._named.pi
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
        direction = np.empty(self._nothing.shape)
        baseline = np.empty(self._nothing.shape) if self._machine.has_baseline else None
        filled = self._nothing if baseline is None else baseline
        arm = self._entries.act(*self._fixed, *self._memory, *self._shape, x, self._key, number, direction, filled)
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
            self._accept(self._feed(decision, value, kept=self._kept, finish=True))
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
            status = self._feed(made, value, kept=self._kept if i == 0 else (0, 0), finish=i == last)
            if status != OK:
                break
        if batch:
            self._accept(status)
        for made in batch:
            self._rounds.close(made.round)

    def _feed(self, made: Decision, loss: float, *, kept: tuple[int, ...], finish: bool) -> int:
        """Learn from one decision in the spare memory; return a status."""
        baseline = self._nothing if made.baseline is None else made.baseline
        return self._entries.step(
            *self._fixed,
            *self._memory,
            *self._spare,
            *self._shape,
            *kept,
            True,
            finish,
            made.context,
            made.arm,
            loss,
            made.direction,
            baseline,
        )

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
        if not (0 <= made.context < self.problem.n_contexts and 0 <= made.arm < self._shape[1]):
            raise ValueError(f"round {made.round}: no context {made.context} with an arm {made.arm}")
        if (made.baseline is not None) != self._machine.has_baseline:
            raise ValueError(f"round {made.round}: the decision's baseline does not fit this policy")
        expected = self._nothing.shape
        if made.direction.shape != expected or (made.baseline is not None and made.baseline.shape != expected):
            raise ValueError(f"round {made.round}: direction or baseline damaged, they need {expected[0]} numbers each")
        possible = self._machine.possible
        if not 0.0 < made.propensity <= 1.0 + ROUNDING or (possible is not None and not possible(made)):
            raise ValueError(
                f"round {made.round}: propensity, direction or baseline damaged: no plan of this policy plays arm "
                f"{made.arm} in context {made.context} with such numbers. Nothing was learnt; if the decision was read "
                "from a log, read that line again, or close the round with expire"
            )

    def _refresh(self) -> None:
        """Compute the plan from what is learnt."""
        nothing = self._nothing
        status = self._entries.step(
            *self._fixed,
            *self._memory,
            *self._spare,
            *self._shape,
            *self._kept,
            False,
            True,
            0,
            0,
            0.0,
            nothing,
            nothing,
        )
        self._accept(status)

    def _accept(self, status: int) -> None:
        """Make the new state the current one, or raise and keep the old one."""
        if status == OK:
            self._swap()
            return
        if status == DAMAGED:
            raise ValueError(f"decision damaged: {sentence(status)}; nothing was learnt")
        failed = self._spare_named
        rarest = int(self.problem.probabilities.argmin())
        with np.errstate(all="ignore"):
            sigma = np.tril(failed.sigma) + np.tril(failed.sigma, -1).T
            condition = np.linalg.cond(sigma) if np.isfinite(sigma).all() else math.inf
        raise NumericalError(
            f"{sentence(status)} at t = {int(failed.t[0])} (condition number {condition:.3g}, rarest context "
            f"{self.problem.contexts[rarest]!r} with probability {self.problem.probabilities[rarest]:.3g}). "
            "The update was not applied; more exploration or better scaled features avoid this"
        )

    def learnt(self) -> dict[str, Floats]:
        """Return what was learnt, by name, as copies: together with problem and algorithm all that a file keeps."""
        return {name: getattr(self.state, name).copy() for name in self._machine.learnt}

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
        for part in self._machine.learnt:
            target = getattr(self._named, part)
            blocked = self._machine.text.wide and np.may_share_memory(target, self._memory[1])
            target[...] = in_blocks(learnt[part]) if blocked else learnt[part]
        self._refresh()

    def __repr__(self) -> str:
        return f"Policy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"
