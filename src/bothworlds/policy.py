"""Policy: an algorithm in progress. Act, update, ask, save."""

import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from bothworlds.carrying import begun_with, beliefs_of, carried_over, explored, prior_from
from bothworlds.decision import Decision, decision_of
from bothworlds.epochs import Epoch, History
from bothworlds.errors import NumericalError
from bothworlds.feedback import FEW, checked_loss, checked_losses
from bothworlds.feeding import columns_of, damaged, failed, one_of, word_of
from bothworlds.footing import Footing, aligned_copy
from bothworlds.health import Health
from bothworlds.identity import apart_after_fork, new_source, secret_of, stream_of
from bothworlds.kernels.arithmetic import WIDTH
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import Machine, out_of_blocks
from bothworlds.kernels.entries import body_of, memory_of, put
from bothworlds.kernels.jit.compile import explained
from bothworlds.kernels.random import Seed, key_from
from bothworlds.kernels.status import DAMAGED, OK
from bothworlds.ledger import Ledger
from bothworlds.mapping import change_of, pairs_of
from bothworlds.plan import Plan
from bothworlds.prior import Prior
from bothworlds.problem import Problem, TrafficMix
from bothworlds.problem.rows import Context, Labelled
from bothworlds.problem.storage import write_arrays
from bothworlds.tally import Counts

FORMAT = "bothworlds-policy-1"
ONE_CONTEXT = (str, int, np.integer)
empty = np.empty  # looked up once: a third of what a small array costs


class Algorithm(ABC):
    """What makes policies: hyper-parameters, and a method that makes them ready for a problem as kernel text."""

    @abstractmethod
    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""

    def start(
        self,
        problem: Problem,
        *,
        rng: Seed = None,
        interpreted: bool = False,
        holdout: float = 0.0,
        prior: Prior | None = None,
    ) -> "Policy":
        """Begin on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the same text without compiling it: for the debugger, some hundred times slower.
        ``holdout`` is the share of decisions that are uniform among the arms offered, and marked: an honest yardstick
        (`bothworlds.Policy.health`). Their feedback is counted and not learnt. ``prior`` is what is believed already.
        """
        options = {"interpreted": interpreted, "holdout": holdout}
        return Policy.begin(self, problem, self.machine(problem), rng=rng, **options).believing(prior)


class Policy:
    """An algorithm in progress on a problem; made by ``algorithm.start(problem, rng=...)``.

    The clock of the learning rate counts updates, `Decision.round` counts decisions: feedback may be late, out of
    order, in batches, or missing, and every estimate is unbiased given what was known when the decision was taken, as
    long as whether feedback comes does not depend on the outcome.

    Safe in threads: one call at a time works on it, the others wait. To decide in many threads or processes without
    waiting take a `Plan`; a policy has one owner, and a second one makes a ``copy()``. A process that is forked off
    goes on with random numbers and ids of its own.
    """

    def __init__(self, footing: Footing, *, key: int) -> None:
        self.name = uuid.uuid4().hex[:12]
        self._key, self._secret = key, secret_of(key)
        self._stand_on(footing)
        self._count_with(Counts((len(self._contexts), len(self._arms))))
        self._lock = threading.RLock()
        self._version = 0
        self._history, self._believed = History(), 0
        self._begin_life(Ledger.begin(key))
        with explained(packs=footing.machine.text.wide):
            self._refresh()
        apart_after_fork(self)

    # Python finds up to 29 attributes of an object faster than more: what is seldom asked for is a property.
    @property
    def algorithm(self) -> object:
        """The algorithm in progress."""
        return self._footing.algorithm

    @property
    def _machine(self) -> Machine:
        return self._footing.machine

    def _stand_on(self, footing: Footing) -> None:
        """Take problem, algorithm and kernel text, with both memories as they begin."""
        self._footing, self.problem = footing, footing.problem
        machine, problem, key = footing.machine, footing.problem, self._key
        self._entries = footing.entries
        self._body = body_of(machine, key)
        self._memories = tuple(memory_of(machine, self._body, side) for side in (0, 1))
        self._sides = tuple(machine.text.state_of(*memory, tuple(machine.block_sizes)) for memory in self._memories)
        self._side = 0
        self._tables = tuple(names.pi for names in self._sides)
        self._blocked = self._tables[0].ndim == 3
        self._contexts, self._arms = problem.contexts, problem.arms
        self._plan: Plan | None = None
        self._has_baseline = machine.text.has_baseline
        self._carried = machine.carried
        self._baseline = np.zeros(self._carried[1])
        self._mark = footing.mark
        self._holdout = footing.holdout_with(self._secret)

    @classmethod
    def begin(cls, algorithm: object, problem: Problem, machine: Machine, *, rng: Seed, **options: Any) -> Self:
        """Start an algorithm; ``rng`` is an integer, a SeedSequence, a Generator, or None for a random seed."""
        return cls(Footing(algorithm=algorithm, problem=problem, machine=machine, **options), key=key_from(rng))

    def _begin_life(self, ledger: Ledger) -> None:
        """Issue ids of another life from now on."""
        self._ledger, self._rounds, self._life = ledger, ledger.rounds, ledger.life

    def _count_with(self, counts: Counts) -> None:
        """Go on with counts of decisions and answers."""
        self._counts, self._decided = counts, counts.own.decided

    def set_apart(self) -> None:
        """Go on with ids and random numbers of its own, in a process that was forked off the owner's."""
        self._lock = threading.RLock()
        self._key = stream_of(self._key, new_source())
        self._begin_life(self._ledger.next_life(self._key, same_stream=False))

    @property
    def rounds(self) -> int:
        """How many decisions were taken, not counting those with a given id, nor those of plans."""
        return self._rounds.last

    @property
    def updates(self) -> int:
        """How many decisions were answered."""
        return int(self._sides[self._side].t[0]) - 1 - self._believed

    @property
    def version(self) -> int:
        """Which plan decides now: one more with every answer that was learnt, and with every change of the problem."""
        return self._version

    @property
    def open_rounds(self) -> int:
        """How many decisions still wait for feedback, not counting those with a given id, nor those of plans."""
        with self._lock:
            return len(self._ledger)

    @property
    def digest(self) -> str:
        """A hash of what is learnt and of what it stands on: equal if and only if all bits are."""
        return self.plan().digest

    @property
    def state(self) -> Any:
        """The algorithm's state by name; arrays with an entry per context are copies, (contexts, ...), of its own."""
        return _map(self._footing.plain, self._sides[self._side])

    def probabilities(self, context: Context | None = None) -> Floats:
        """Return pi_t(. | context), shape (arms,), or the table of all contexts, shape (contexts, arms)."""
        with self._lock:
            pi = self._tables[self._side]
            table: Floats = out_of_blocks(pi, self.problem.n_contexts) if self._blocked else pi.copy()
        return table if context is None else table[self.problem.context_index(context)]

    def plan(self) -> Plan:
        """Return what the policy would do now: immutable, for any number of threads and processes."""
        with self._lock:
            if self._plan is None:
                core, rows = self._memories[self._side]
                self._plan = Plan(
                    footing=self._footing,
                    policy=self.name,
                    version=self._version,
                    secret=self._secret,
                    _core=core.copy(),
                    _rows=aligned_copy(rows),
                )
            return self._plan

    def copy(self) -> "Policy":
        """Return a second policy that has learnt the same, with a name, ids and random numbers of its own.

        Nothing is open in it: feedback of what this policy has decided goes to this policy.
        """
        with self._lock:
            key = stream_of(self._key, new_source())
            made = Policy(self._footing, key=key)
            names = History(gone=self._history.gone)
            learnt, updates = self.learnt(), self.updates
            made.restore(name=made.name, ledger=made._ledger, learnt=learnt, history=names, updates=updates)
            return made

    def believing(self, prior: Prior | None) -> Self:
        """Begin with a prior, before any feedback (used by ``algorithm.start``)."""
        if prior is not None:
            beliefs = beliefs_of(self._machine, self.algorithm)
            self._begin_with(begun_with(self._machine, beliefs, self.problem, prior), updates=0)
        return self

    def prior(self) -> Prior:
        """Return what was learnt, in the features of the problem: for another policy, or another algorithm."""
        with self._lock:
            beliefs = beliefs_of(self._machine, self.algorithm)
            return prior_from(self._machine, beliefs, self.problem, self.learnt(), self.probabilities())

    def change(self, problem: Problem, *, trust: float = 1.0, fresh: float | None = None) -> None:
        """Go on with another problem: arms and contexts come and go, name, ids, secret and what is open stay.

        What is learnt is carried over by features: those of every pair of a context and an arm that both problems have,
        by their names, must be the same up to a linear map, one for all, that is found here. A new arm begins where its
        features put it, and in what they leave open (a column of its own, say) at the mean of the others; it is
        explored. Feedback of decisions that are open is taken, and learnt where their context and arm are still there.
        A name is that of one arm for all time. Plans of now have a higher version than all before; servers need a new
        file of a plan, with its frame.

        Rates and certificates begin anew, with what was learnt as a prior: docs/theory.md says what is proved.

        Parameters
        ----------
        problem
            What is played from now on.
        trust
            Which share of the rounds so far is still believed, and of the plays in a regression: less where the world
            has changed as well.
        fresh
            How far, in what its features leave open, a new arm begins behind the best of the others: 1 is where the
            mean of the others has fallen behind, 0 beside the best. Without it as far as the mean, but no further than
            one penalty, so that a new arm that is better is found as if it had been there from the start.

        >>> from bothworlds import LCTsallisINF
        >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
        >>> policy = LCTsallisINF(tuning="adaptive").start(problem, rng=7)
        >>> decision = policy.act("mobile")
        >>> policy.change(Problem.from_sample(["mobile", "desktop"], arms=["blue", "green"], reward_range=(0, 1)))
        >>> policy.update(decision, reward=1)
        >>> policy.problem.arms, policy.probabilities("mobile").tolist()
        (('blue', 'green'), [0.5, 0.5])
        """
        for name, share in {"trust": trust, "fresh": fresh}.items():
            if share is not None and not 0.0 <= share <= 1.0:
                raise ValueError(f"{name} must lie between 0 and 1; got {share!r}")
        if problem == self.problem and trust == 1.0:
            return
        seen = self._footing
        new = seen.on(problem)  # a design may take long, and others decide meanwhile
        with self._lock:
            if problem.reward_range != self.problem.reward_range:
                raise ValueError(
                    f"rewards were in {self.problem.reward_range} and would be in {problem.reward_range} now: losses "
                    "of two scales cannot be added. Keep reward_range, or start a new policy"
                )
            old, learnt, updates = self._footing, self.learnt(), self.updates
            if old is not seen:
                raise ValueError("another thread has changed the problem meanwhile: one at a time does that")
            beliefs = beliefs_of(old.machine, self.algorithm)
            change = change_of(pairs_of(old.problem, old.machine), pairs_of(problem, new.machine))
            history = self._history.after(
                old.problem,
                problem,
                change,
                carried=old.carried,
                linear=beliefs.linear,
                began=self._version + 1,
                footing=old.mark,
            )
            begun = carried_over(old.machine, learnt, new.machine, beliefs, change, trust=trust)
            self._stand_on(new)
            try:
                self._begin_with(begun, updates=updates)
                rate = float(getattr(self._sides[self._side], "rates", np.ones(1))[0])
                tried = explored(new.machine, beliefs, change, begun, fresh=fresh, rate=rate)
                if tried is not None:
                    self._begin_with(tried, updates=updates)
            except NumericalError:
                self._stand_on(old)
                self._begin_with(learnt, updates=updates)
                raise
            self._history, self._version = history, history.began
            self._count_with(self._counts.moved(old.problem, problem))

    def _begin_with(self, learnt: Mapping[str, Any], *, updates: int) -> None:
        """Put in what is learnt, and compute the plan; ``updates`` decisions were answered so far."""
        for part, value in learnt.items():
            put(self._machine, self._body, self._side, part, value)
        self._refresh()
        self._believed = int(self._sides[self._side].t[0]) - 1 - updates

    def change_probabilities(self, probabilities: Any) -> None:
        """Go on under another law of contexts: `change` to ``problem.with_probabilities(probabilities)``.

        Estimated losses stay what they were, up to rounding; exploration, coordinates and covariance are those of the
        law. Open decisions stay open: each is unbiased under the law of its moment, and is learnt as such. The version
        is one higher. The same law again is no change, but contexts are counted anew from here on.
        """
        problem = self.problem.with_probabilities(probabilities)
        self.change(problem)
        with self._lock:
            self._counts.begin_law()

    def follow(self, mix: TrafficMix) -> TrafficMix:
        """Let a traffic mix observe the contexts that came since the present law was given, and take its law.

        Returns the mix after that; say it every hour, not with every decision: each law is a plan of its own. Contexts
        count when they are decided, those of plans and of given ids when they are answered.

        >>> from bothworlds import LinUCB
        >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"])
        >>> policy, mix = LinUCB().start(problem, rng=7), TrafficMix.estimated(problem.probabilities, strength=10)
        >>> decisions = policy.act(["mobile"] * 80 + ["desktop"] * 10)
        >>> mix = policy.follow(mix)
        >>> policy.problem.probabilities.tolist(), policy.version
        ([0.85, 0.15], 1)
        """
        with self._lock:
            seen = mix.observe(self._counts.visits())
        self.change_probabilities(seen.probabilities)
        return seen

    def _is_late(self, made: Any) -> bool:
        """Tell whether a decision or a row was of another problem, by its mark; without one, by its version."""
        return bool(made.footing) or made.version < self._history.began

    def listing(self, row: Any) -> Problem | Epoch:
        """Return names of contexts and arms as they were when a row of a log was decided."""
        late = row.footing != self._mark and self._is_late(row)
        return self._history.epoch_of(row.version, row.footing or "") if late else self.problem

    def renumber(self, version: int) -> None:
        """Go on with what is learnt under a higher version: for those who went back to an earlier one."""
        with self._lock:
            if version <= self._version:
                raise ValueError(f"versions only rise: {version} is not above {self._version}")
            self._version, self._plan = version, None

    def __reduce__(self) -> Any:
        raise TypeError(
            "a policy is not copied like data, since two owners would issue the same ids: use policy.copy() for a "
            "second policy, policy.save and bothworlds.load for a file, policy.plan() for other threads and processes"
        )

    @overload
    def act(  # type: ignore[overload-overlap]
        self, context: str | int | Mapping[str, Any], *, id: str | None = None
    ) -> Decision: ...
    @overload
    def act(self, context: tuple[Any, ...] | Labelled, *, id: str | None = None) -> Any: ...
    @overload
    def act(self, context: Sequence[Context] | Ints) -> list[Decision]: ...
    def act(self, context: Context | Sequence[Context] | Ints, *, id: str | None = None) -> Decision | list[Decision]:
        """Choose an arm for a context, given by name, by index, or as a row; for several contexts, one arm for each.

        Rows are dictionaries, tuples or rows of a DataFrame, where the problem has them (`Problem.from_sample`);
        several contexts are a list, an array, or a DataFrame of rows (`Problem.context_indices`).

        Without ``id`` the decision counts a round, and is drawn from the policy's stream of random numbers. With it,
        it counts none, and is what ``policy.plan().act(context, id=id)`` decides.
        """
        problem = self.problem
        if isinstance(context, ONE_CONTEXT) and id is None:
            return self._act(problem.context_index(context), problem)
        found = problem.context_indices(context)
        if id is None:
            return [self._act(x, problem) for x in found] if isinstance(found, list) else self._act(found, problem)
        if isinstance(found, list):
            raise ValueError("an id is that of one decision; give one context with it")
        return self.plan().act(found, id=id)

    def _act(self, x: int, problem: Problem) -> Decision:
        self._lock.acquire()  # half the time of a with statement, here and in `update`
        try:
            if problem is not self.problem:  # which another thread has changed since the context was found
                x = self.problem.context_index(problem.contexts[x])
            direction = empty(self._carried[0])
            baseline = empty(self._carried[1]) if self._has_baseline else None
            filled = self._baseline if baseline is None else baseline
            number, side = self._rounds.add(), self._side
            if self._holdout is not None:
                held = self._holdout.decided(self.name, x, self._life, number, self._version)
                if held is not None:
                    self._counts.held.decided[x][held.arm] += 1
                    return held
            arm = self._entries.act(*self._body, side, x, self._key, number, direction, filled)
            self._decided[x][arm] += 1
            pi = self._tables[side]
            propensity = pi.item(x // WIDTH, arm, x % WIDTH) if self._blocked else pi.item(x, arm)
            seen = number, x, self._contexts[x], arm, self._arms[arm], propensity
            return decision_of((*seen, direction, baseline, self.name, self._life, self._version, False, self._mark))
        finally:
            self._lock.release()

    def update(
        self,
        decision: Decision | Sequence[Decision],
        *,
        loss: float | Sequence[float] | Floats | None = None,
        reward: float | Sequence[float] | Floats | None = None,
    ) -> None:
        """Learn from the loss, or the reward, of one decision or of a batch; the plan is computed once after it.

        Each decision takes feedback once, by its id; that of held-out decisions is counted, and not learnt. No click is
        ``reward=0`` (with ``reward_range=(0, 1)``), not "no update": leaving it out would teach the policy that every
        arm is clicked always. On any error nothing has changed.
        """
        given, is_reward = one_of(loss, reward)
        if isinstance(decision, Decision):
            value = self._loss(given, is_reward=is_reward)
            self._lock.acquire()
            try:
                now = self._checked(decision)
                if now is not None and not now.holdout:
                    baseline = self._baseline if now.baseline is None else now.baseline
                    play = now.context, now.arm, value, now.propensity, now.direction, baseline
                    self._accept(self._entries.step(*self._body, self._side, True, True, True, *play), now)
                self._close(decision, now, value)
            finally:
                self._lock.release()
        elif isinstance(decision, Mapping):
            raise ValueError("this is a decision's dictionary; make it a decision again with Decision.from_dict")
        else:
            self._update_batch(list(decision), given, is_reward=is_reward, once=False)

    def learn(
        self,
        decisions: Sequence[Decision],
        *,
        loss: Sequence[float] | Floats | None = None,
        reward: Sequence[float] | Floats | None = None,
    ) -> None:
        """Learn from a batch as `update` does, where a store sees to it that each decision comes once.

        Nothing is looked up and nothing is noted: a decision that comes twice is learnt twice. What is learnt depends
        on the order of the decisions and on where batches end, in all but the tunings ``paper`` and ``certified``; who
        wants the same bits again keeps both.
        """
        given, is_reward = one_of(loss, reward)
        self._update_batch(list(decisions), given, is_reward=is_reward, once=True)

    def takes(self, decision: Decision) -> bool:
        """Tell whether feedback of a decision would be taken: it is this policy's, not answered and not expired."""
        with self._lock:
            return decision.policy == self.name and not self._ledger.refusal(decision)

    def _update_batch(self, batch: list[Decision], given: Any, *, is_reward: bool, once: bool) -> None:
        """Check everything, then learn everything, then compute the plan once."""
        if not hasattr(given, "__len__") or len(given) != len(batch):
            raise ValueError(f"a batch of {len(batch)} decisions needs as many values, in their order; got {given!r}")
        if not batch:
            return
        losses = checked_losses(given, is_reward=is_reward, reward_range=self.problem.reward_range)
        with self._lock:
            late = {made.footing for made in batch} != {self._mark}
            now = [self._checked(made, once=once) for made in batch] if late else batch
            whole = not late and True not in [made.holdout for made in batch]
            heard = [] if whole else [made is not None and not made.holdout for made in now]
            taught = batch if whole else [made for made in now if made is not None and not made.holdout]
            columns = self._columns(taught)
            sure = once and whole and columns is not None
            if not late and not (sure and {made.policy for made in batch} == {self.name}):
                for made in batch:
                    self._checked(made, once=once)
            if not once and len({(made.source, made.round) for made in batch}) < len(batch):
                raise ValueError("a decision stands twice in the batch; each takes feedback once")
            if taught:
                self._feed(taught, losses if whole else losses[np.array(heard)], columns)
            if once:
                self._count_all(now, losses, columns if whole else None)
            else:
                for made, present, loss in zip(batch, now, losses.tolist(), strict=True):
                    self._close(made, present, loss)

    def _close(self, made: Decision, now: Decision | None, loss: float) -> None:
        """Note that a decision was answered, and count it as one of the present problem."""
        if made.source == self._life:
            self._rounds.close(made.round)
            counted = True
        else:
            counted = self._ledger.counted(made)
            self._ledger.close(made)
        if now is None:
            return
        x, arm, tally = now.context, now.arm, self._counts.held if now.holdout else self._counts.own
        tally.answered[x][arm] += 1
        tally.losses[x][arm] += loss
        if not counted:
            tally.decided[x][arm] += 1

    def _count_all(self, now: Sequence[Decision | None], losses: Floats, columns: Any) -> None:
        """Count decisions of a batch that was answered; the columns have contexts and arms of all."""
        counted, here = self._ledger.counted, [made for made in now if made is not None]
        strange = None
        if {made.source for made in here} != {self._life}:
            strange = np.array([not counted(made) for made in here], dtype=np.float64)
        if columns is not None:
            self._counts.own.answer_all(columns[0], columns[1], losses, strange)
            return
        heard = np.array([made is not None for made in now], dtype=bool)
        self._counts.answer_all(here, losses[heard], strange)

    def _columns(self, batch: list[Decision]) -> Any:
        """Return a batch as columns, or None where some do not fit, or where they are few."""
        if len(batch) < FEW:
            return None
        cells = len(self._contexts), len(self._arms)
        return columns_of(batch, cells, self._carried, has_baseline=self._has_baseline)

    def _feed(self, batch: list[Decision], losses: Floats, columns: Any) -> None:
        """Learn from a batch in the spare memory, one decision after the other, and compute the plan once."""
        memory = *self._body, self._side
        if columns is not None:
            fed = self._entries.feed(*memory, losses, *columns)
            if fed < len(batch):
                self._accept(DAMAGED, batch[fed])
            nothing = 0, 0, 0.0, 1.0, np.zeros(self._carried[0]), self._baseline
            self._accept(self._entries.step(*memory, False, False, True, *nothing), batch[-1], count=len(batch))
            return
        for i, (made, loss) in enumerate(zip(batch, losses.tolist(), strict=True), start=1):
            baseline = self._baseline if made.baseline is None else made.baseline
            play = made.context, made.arm, loss, made.propensity, made.direction, baseline
            status = self._entries.step(*memory, i == 1, True, i == len(batch), *play)
            if status != OK or i == len(batch):
                self._accept(status, made, count=i)

    def expire(self, *, before: int) -> int:
        """Close all decisions of rounds before the given one that were never answered; return how many.

        Earlier lives of the policy (`bothworlds.load`) are older than this one's first round. Decisions with a given
        id and those of plans have no round, and stay as they are.
        """
        number: Any = before
        if not isinstance(number, int | np.integer):
            raise ValueError(f"before must be the number of a round, a whole number; got {before!r}")
        with self._lock:
            return self._ledger.expire(before=int(number))

    def _loss(self, given: Any, *, is_reward: bool) -> float:
        return checked_loss(given, is_reward=is_reward, reward_range=self.problem.reward_range)

    def _checked(self, made: Decision, *, once: bool = False) -> Decision | None:
        """Refuse a decision that is not this policy's, not open (unless it is known to come once), or damaged.

        Return it as one of the present problem, or None if its context or arm is gone.
        """
        if made.policy != self.name:
            raise ValueError(f"the decision is of policy {made.policy!r}, this is {self.name!r}: give it to that one")
        own = made.source == self._life and made.round in self._rounds
        if not (own or once) and (refusal := self._ledger.refusal(made)):
            raise ValueError(f"{word_of(made)} {refusal}; each decision takes feedback once")
        if made.footing != self._mark and self._is_late(made):
            return self._history.today(made, self.problem)
        if not (0 <= made.context < len(self._contexts) and 0 <= made.arm < len(self._arms)):
            raise ValueError(f"{word_of(made)}: no context {made.context} with an arm {made.arm}")
        if self._arms[made.arm] != made.arm_name:
            raise ValueError(f"{word_of(made)}: arm {made.arm} is {self._arms[made.arm]!r} and not {made.arm_name!r}")
        if made.holdout:
            return made
        if (made.baseline is not None) != self._has_baseline:
            raise ValueError(f"{word_of(made)}: the decision's baseline does not fit this policy")
        length, further = self._carried
        if made.direction.shape != (length,) or (made.baseline is not None and made.baseline.shape != (further,)):
            counts = "{} and {}".format(*self._carried)
            raise ValueError(f"{word_of(made)}: direction or baseline damaged, they need {counts} numbers")
        return made

    def _refresh(self) -> None:
        """Compute the plan from what is learnt."""
        nothing = 0, 0, 0.0, 1.0, np.zeros(self._carried[0]), self._baseline
        self._accept(self._entries.step(*self._body, self._side, True, False, True, *nothing), count=0)

    def _accept(self, status: int, made: Decision | None = None, *, count: int = 1) -> None:
        """Make the new state the current one, or raise and keep the old one."""
        if status == OK:
            self._side = 1 - self._side
            self._plan = None
            self._version += count
            return
        if status == DAMAGED and made is not None:
            raise ValueError(damaged(made))
        raise NumericalError(failed(status, self._sides[1 - self._side], self.problem))

    def learnt(self) -> dict[str, Floats]:
        """Return what was learnt, by name, as copies: together with problem and algorithm all that a file keeps."""
        with self._lock:
            return self._footing.learnt(*self._memories[self._side])

    def save(self, path: str | Path, *, frame: bool = True) -> None:
        """Write the policy to an .npz file; `bothworlds.load` continues it bit for bit.

        Without ``frame`` the file has what is learnt and what is open, and no features: ``load(path, frame=...)`` takes
        them from a file that was saved with them.
        """
        if Path(path).suffix != ".npz":
            raise ValueError(f"{path}: a policy is saved as .npz")
        with self._lock:
            footing = self._footing
            own = {"format": FORMAT, "name": self.name, "key": self._key, "secret": self._secret}
            told = {"updates": self.updates, "version": self._version, **self._history.header()}
            header = {**own, "footing": footing.fingerprint, **self._ledger.header(), **self._counts.header(), **told}
            learnt = {f"learnt.{name}": part for name, part in self.learnt().items()}
            arrays = {**self._ledger.arrays(), **self._counts.arrays(), **self._history.arrays(), **learnt}
        if frame:
            header, arrays = {**header, **footing.header()}, {**arrays, **footing.arrays()}
        write_arrays(path, header, arrays)

    def restore(
        self,
        *,
        name: str,
        ledger: Ledger,
        learnt: dict[str, Floats],
        secret: str | None = None,
        history: History | None = None,
        updates: int | None = None,
        version: int | None = None,
        counts: Mapping[str, Any] | None = None,
    ) -> None:
        """Put back what a file kept (used by `bothworlds.load`); without counts, counting begins now."""
        with self._lock:
            self.name, self._secret = name, secret or self._secret
            self._holdout = self._footing.holdout_with(self._secret)
            self._begin_life(ledger)
            for part in self._machine.text.memory.learnt:
                if part in learnt:  # what an older version of the rule did not learn yet is as at the start
                    put(self._machine, self._body, self._side, part, learnt[part])
            self._refresh()
            self._history = self._history if history is None else history
            self._believed = 0 if updates is None else self.updates + self._believed - updates
            self._version = self.updates if version is None else version
            since = self.updates if counts is None else counts["since"]
            self._count_with(Counts((len(self._contexts), len(self._arms)), since=since, kept=counts))

    def health(self, *, alpha: float = 0.05) -> Health:
        """Tell how the policy is doing, from what it has counted: decisions and rewards by arm and context.

        Intervals hold at any time, all together with probability 1 - alpha. Decisions that were held out are counted
        apart: what the policy earns more than uniform play is the reading ``gain``.

        >>> from bothworlds import FixedPolicy
        >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
        >>> policy = FixedPolicy([[0.9, 0.1], [0.2, 0.8]]).start(problem, rng=7, holdout=0.2)
        >>> for i in range(1000):
        ...     decision = policy.act(i % 2)
        ...     policy.update(decision, reward=decision.arm == decision.context)
        >>> print(policy.health().gain)
          gain: the policy earns more than uniform play: 0.386, between 0.138 and 0.604 a decision, at any time
        """
        with self._lock:
            pi, holds_out = self.probabilities(), self._footing.holdout > 0.0
            return self._counts.health(self.problem, pi, alpha=alpha, holds_out=holds_out)

    def __repr__(self) -> str:
        return f"Policy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"


def _map(change: Callable[[str, Floats], Floats], record: Any) -> Any:
    """Return a record with every field at an end changed."""
    parts = zip(record._fields, record, strict=True)
    return record._make(_map(change, part) if hasattr(part, "_fields") else change(name, part) for name, part in parts)
