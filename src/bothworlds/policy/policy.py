"""Policy: an algorithm in progress on a problem. It decides, learns, reports its health, and is saved to files."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats, Ints
from bothworlds.kernels.contract import Machine
from bothworlds.policy.batch_feedback import learn_batch
from bothworlds.policy.bookkeeping import Bookkeeping
from bothworlds.policy.decision import Decision, decision_of
from bothworlds.policy.feedback import DecisionBatch, batch_of, loss_from, reward_or_loss
from bothworlds.policy.feedback_registry import FeedbackRegistry
from bothworlds.policy.health_report import Health, Restarts
from bothworlds.policy.ids import NOT_COPYABLE, new_name, new_source, reset_after_fork, secret_of, stream_of
from bothworlds.policy.learner_state import LearnerState
from bothworlds.policy.plan import Plan
from bothworlds.policy.prior import Prior
from bothworlds.policy.problem_history import Epoch, History
from bothworlds.policy.spec import MachineFactory, PolicySpec, as_section
from bothworlds.policy.transfer import (
    PreparedChange,
    beliefs_of,
    check_change,
    check_move,
    fields_from_prior,
    prepare_change,
    prior_from,
    transfer_state,
)
from bothworlds.problem import Problem, TrafficMix
from bothworlds.problem.cards import card, probability_table
from bothworlds.problem.file_format import POLICY, check_npz, write_arrays
from bothworlds.problem.rewards import Feedback, checked_losses
from bothworlds.problem.rows import Context, Labelled
from bothworlds.problem.traffic import require_mix

FORMAT, ONE_CONTEXT = POLICY, (str, int, np.integer)


class Policy:
    """An algorithm in progress on a problem, from ``algorithm.start(problem, rng=...)``.

    The clock of the learning rate counts updates, `Decision.round` counts decisions. Feedback may be late, out of
    order, in batches, or missing. Every estimate is unbiased given the history at the decision, as long as the arrival
    of feedback does not depend on the outcome.

    Thread-safe: calls wait for each other. To decide in many threads or processes without waiting, use a `Plan`. A
    policy belongs to one process; use ``copy()`` for a second policy. A forked process continues with its own random
    numbers and ids.

    >>> from bothworlds import FixedPolicy
    >>> policy = FixedPolicy().start(Problem.from_sample(["day", "night"], arms=["red", "blue"]), rng=7)
    >>> policy.update(policy.act("day"), loss=0.5)
    >>> policy.rounds, policy.updates, policy.probabilities("day").tolist()
    (1, 1, [0.5, 0.5])
    """

    @internal
    def __init__(
        self,
        learner_state: LearnerState,
        bookkeeping: Bookkeeping,
        *,
        key: int,
        secret: str | None = None,
        version: int = 0,
    ) -> None:
        """Combine learner state and bookkeeping; ``key`` is that of the random stream."""
        self.name, self._bookkeeping, self._lock = bookkeeping.name, bookkeeping, threading.RLock()
        self._key, self._secret, self._version = key, secret or secret_of(key), version
        self._use(learner_state)
        reset_after_fork(self)

    def _use(self, learner_state: LearnerState) -> None:
        """Make a learner state and its problem the current ones."""
        self._learner_state, self._spec, self.problem = learner_state, learner_state.spec, learner_state.spec.problem
        self._contexts, self._arms = self.problem.contexts, self.problem.arms
        self._holdout = learner_state.spec.holdout_with(self._secret)
        self._plan: Plan | None = None

    @property
    def _machine(self) -> Machine:
        return self._spec.machine

    @property
    def algorithm(self) -> object:
        """The algorithm of the policy."""
        return self._spec.algorithm

    @internal
    def reset_in_fork(self) -> None:
        """Switch to new ids and random numbers, in a process that was just forked."""
        self._lock = threading.RLock()
        self._key = stream_of(self._key, new_source())
        self._bookkeeping.begin_session(self._bookkeeping.registry.next_session(self._key, same_stream=False))

    @property
    def rounds(self) -> int:
        """Number of decisions, without those with a given id and those of plans."""
        return self._bookkeeping.rounds.last

    @property
    def updates(self) -> int:
        """Number of decisions learned from; excludes held-out decisions and removed arms."""
        return self._learner_state.updates

    @property
    def version(self) -> int:
        """Version of the current plan: it rises with every decision learned from and every change of the problem."""
        return self._version

    @property
    def open_rounds(self) -> int:
        """Number of decisions that wait for feedback, without those with a given id and those of plans."""
        with self._lock:
            return len(self._bookkeeping.registry)

    @property
    def digest(self) -> str:
        """A hash of spec and learned fields: policies with equal digests are equal bit for bit."""
        return self.plan().digest

    @property
    def state(self) -> Any:
        """The algorithm's state by name; arrays by context are copies of shape (contexts, ...)."""
        return self._learner_state.plain_state()

    def probabilities(self, context: Context | None = None) -> Floats:
        """Return pi_t(. | context), shape (arms,), or the table of all contexts, shape (contexts, arms)."""
        with self._lock:
            table = self._learner_state.table()
            return table if context is None else table[self.problem.context_index(context)]

    def plan(self) -> Plan:
        """Return the current plan: immutable, for any number of threads and processes."""
        with self._lock:
            if self._plan is None:
                self._plan = self._learner_state.plan(policy=self.name, version=self._version, secret=self._secret)
            return self._plan

    def copy(self) -> "Policy":
        """Return a second policy that has learned the same, with its own name, ids and random numbers.

        It has no open decisions: feedback of this policy's decisions goes to this policy.
        """
        with self._lock:
            key, spec = stream_of(self._key, new_source()), self._spec
            learner_state = LearnerState.initial(spec, key)
            learner_state.set_learned(self.learnt(), updates=self.updates)
            history = History(removed=self._bookkeeping.history.removed)
            bookkeeping = Bookkeeping(
                new_name(), spec, FeedbackRegistry.begin(key), history=history, since=self.updates
            )
            return Policy(learner_state, bookkeeping, key=key, version=self.updates)

    def prior(self) -> Prior:
        """Return what was learned as a prior in the problem's features, for another policy or algorithm."""
        with self._lock:
            beliefs = beliefs_of(self._machine, self.algorithm)
            return prior_from(self._machine, beliefs, self.problem, self.learnt(), self.probabilities())

    def change(self, problem: Problem, *, trust: float = 1.0, fresh: float | None = None) -> None:
        """Continue with another problem: arms and contexts change; name, ids, secret and open decisions stay.

        What was learned is transferred through the features: one linear map, computed here, must relate old and new
        features of all pairs of a context and an arm that both problems have by name. A new arm starts at the loss that
        its features predict. In directions that the shared pairs leave open (such as a separate column) it starts at
        the mean of the others, and it is explored. Open decisions still take feedback; it is learned from if their
        context and arm still exist. A name stands for the same arm forever. The version rises; servers need a new file
        of the plan, with its frame. A change of ``rows`` or ``other`` alone does not raise the version, and servers
        read it with `load_plan`.

        Rates and certificates restart, with what was learned as a prior: docs/explanation/what-is-proved.md says what
        is proved.

        Parameters
        ----------
        problem
            The new problem.
        trust
            The share of the rounds so far (and of the plays in a regression) that still counts: below 1 if the world
            has changed, too.
        fresh
            How far a new arm starts behind the best of the others, in directions that the shared pairs leave open: 1 is
            the mean of the others, 0 the best of them. The default is the mean, but at most one penalty behind the
            best, so that a better new arm is found as fast as if it had been there from the start.

        >>> from bothworlds import LCTsallisINF
        >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
        >>> policy = LCTsallisINF().start(problem, rng=7)
        >>> decision = policy.act("mobile")
        >>> policy.change(Problem.from_sample(["mobile", "desktop"], arms=["blue", "green"], reward_range=(0, 1)))
        >>> policy.update(decision, reward=1)
        >>> policy.problem.arms, policy.probabilities("mobile").tolist()
        (('blue', 'green'), [0.5, 0.5])
        """
        self.change_as_prepared(self.prepare_change(problem, trust=trust, fresh=fresh))

    @internal
    def prepare_change(self, problem: Problem, *, trust: float = 1.0, fresh: float | None = None) -> PreparedChange:
        """Compute what `change` needs and what may take long; other threads decide and learn meanwhile."""
        check_change(problem, trust=trust, fresh=fresh)
        return prepare_change(self._spec, problem, trust=trust, fresh=fresh)

    @internal
    def fits(self, prepared: PreparedChange) -> bool:
        """Return whether a change was prepared from the current problem."""
        return self._spec is prepared.old

    @internal
    def change_as_prepared(self, prepared: PreparedChange) -> None:
        """Make a prepared change; a ValueError if the problem has changed meanwhile."""
        with self._lock:
            self._move(prepared)

    def _move(self, prepared: PreparedChange) -> None:
        """Continue with another spec."""
        old, new = prepared.old, prepared.new
        check_move(self._spec, old)
        learner_state, bookkeeping, began = self._learner_state, self._bookkeeping, self._version + 1
        if prepared.coordinates is not None:
            learner_state, history = transfer_state(
                learner_state, bookkeeping.history, prepared, prepared.coordinates, key=self._key, began=began
            )
            bookkeeping.move(new, history)
            self._version = began
        elif new is not old:
            learner_state.spec, bookkeeping.problem = new, new.problem
        else:
            return
        self._use(learner_state)

    @internal
    def change_holdout(self, share: float) -> None:
        """Hold out another share of the decisions from now on; what was learned stays, and the version rises."""
        with self._lock:
            spec = replace(self._spec, holdout=share)
            self._learner_state.spec = spec
            self._version += 1
            self._use(self._learner_state)

    @internal
    def change_algorithm(self, algorithm: MachineFactory, *, machine: Machine | None = None) -> None:
        """Continue with another algorithm, which takes what was learned as its prior; the version rises.

        Feedback of earlier decisions is not learned from any more: their vectors are those of their algorithm.
        ``machine`` is that of the algorithm for this problem, if it is known already.
        """
        with self._lock:
            old, problem, prior = self._spec, self.problem, self.prior()
            machine = algorithm.machine(problem) if machine is None else machine
            fields = fields_from_prior(machine, beliefs_of(machine, algorithm), problem, prior)
            spec = replace(old, algorithm=algorithm, machine=machine)
            learner_state, began = LearnerState(spec, self._key), self._version + 1
            learner_state.set_learned(fields, updates=self._learner_state.updates)
            history = self._bookkeeping.history.after_new_algorithm(
                problem, carried=old.carried, began=began, fingerprint=old.short_fingerprint
            )
            self._bookkeeping.move(spec, history)
            self._version = began
            self._use(learner_state)

    @property
    @internal
    def closed_fingerprints(self) -> frozenset[str]:
        """Fingerprints of earlier decisions that are not learned from, as another algorithm made them."""
        return frozenset(epoch.fingerprint for epoch in self._bookkeeping.history.epochs if epoch.closed)

    def change_probabilities(self, probabilities: Any) -> None:
        """Replace the context distribution: `change` to ``problem.with_probabilities(probabilities)``.

        Estimated losses stay the same, up to rounding; exploration, coordinates and covariance are those of the new
        distribution. Decisions stay open: each estimate is unbiased under the distribution at its decision. The version
        rises by one, unless the distribution is the same; in both cases the test for drift restarts.
        """
        self._set_distribution(self._spec, probabilities)

    def _set_distribution(self, old: PolicySpec, probabilities: Any, before: Floats | None = None) -> None:
        """Replace the context distribution of a spec and restart its test for drift (`PolicyCounts`)."""
        prepared = prepare_change(old, old.problem.with_probabilities(probabilities))
        with self._lock:
            self._move(prepared)
            self._bookkeeping.counts.restart_drift_test(before)

    def follow(self, mix: TrafficMix) -> TrafficMix:
        """Let a traffic mix observe the contexts since the last change of the distribution; take over its estimate.

        Returns the updated mix. Call it every hour or so, not with every decision: each new distribution needs a new
        plan. Contexts count at the decision; those of plans and of given ids count when feedback arrives.

        >>> from bothworlds import LinUCB
        >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"])
        >>> policy, mix = LinUCB().start(problem, rng=7), TrafficMix.estimated(problem.probabilities, strength=10)
        >>> decisions, mix = policy.act(["mobile"] * 80 + ["desktop"] * 10), policy.follow(mix)
        >>> policy.problem.probabilities.tolist(), policy.version
        ([0.85, 0.15], 1)
        """
        with self._lock:
            spec, counts = self._spec, self._bookkeeping.counts
            mix, observed = require_mix(mix).observe(counts.recent_contexts()), counts.all_contexts()
        self._set_distribution(spec, mix.probabilities, observed)
        return mix

    def listing(self, row: Any) -> Problem | Epoch:
        """Return the contexts and arms at the time of a row of a log; ``row.decision`` needs them after a `change`."""
        return self._bookkeeping.listing(row)

    @internal
    def renumber(self, version: int) -> None:
        """Raise the version without a change, after a rollback to an earlier state."""
        with self._lock:
            if version <= self._version:
                raise ValueError(f"versions must rise: {version} is not above {self._version}")
            self._version, self._plan = version, None

    def __reduce__(self) -> Any:
        raise TypeError(NOT_COPYABLE)

    @overload
    def act(  # type: ignore[overload-overlap]
        self, context: str | int | float | Mapping[str, Any], *, id: str | None = None
    ) -> Decision: ...
    @overload
    def act(self, context: tuple[Any, ...] | Labelled, *, id: str | None = None) -> Any: ...
    @overload
    def act(self, context: Sequence[Context] | Ints) -> list[Decision]: ...
    def act(self, context: Context | Sequence[Context] | Ints, *, id: str | None = None) -> Decision | list[Decision]:
        """Choose an arm for a context, given by name, by index, or as a row; for several contexts, one arm for each.

        Rows are dictionaries, tuples or rows of a DataFrame, if the problem has them (`Problem.from_sample`); several
        contexts are a list, an array, or a DataFrame of rows (`Problem.context_indices`).

        Without ``id``, the decision counts as a round and is drawn from the policy's random stream. With ``id``, it is
        the decision of ``policy.plan().act(context, id=id)`` and does not count as a round.
        """
        problem = self.problem
        if isinstance(context, ONE_CONTEXT) and id is None:
            return self._act(problem.context_index(context), problem)
        plan = None if id is None else self.plan()  # another thread may have changed the problem
        indices = (problem if plan is None else plan.problem).context_indices(context)
        if plan is None:
            return (
                [self._act(x, problem) for x in indices] if isinstance(indices, list) else self._act(indices, problem)
            )
        if isinstance(indices, list):
            raise ValueError("id= takes exactly one context")
        return plan.act(indices, id=id)

    def _act(self, x: int, problem: Problem) -> Decision:
        self._lock.acquire()  # half the time of a with statement, here and in `update`
        try:
            if problem is not self.problem:  # another thread has changed it since the context was looked up
                x = self.problem.context_index(problem.contexts[x])
            bookkeeping = self._bookkeeping
            number = bookkeeping.rounds.add()
            if self._holdout is not None:
                held = self._holdout.decide(self.name, x, bookkeeping.session, number, self._version)
                if held is not None:
                    bookkeeping.counts.held.decided[x][held.arm] += 1
                    return held
            arm, propensity, direction, baseline = self._learner_state.act(x, self._key, number)
            bookkeeping.decided[x][arm] += 1
            fields = (
                number, x, self._contexts[x], arm, self._arms[arm], propensity, direction, baseline,
                self.name, bookkeeping.session, self._version, False, bookkeeping.short_fingerprint,
            )  # fmt: skip
            return decision_of(fields)
        finally:
            self._lock.release()

    def update(
        self, decision: Decision | Sequence[Decision], reward: Feedback = None, *, loss: Feedback = None
    ) -> None:
        """Learn from the rewards or losses of one decision or of a batch, then compute the plan once.

        ``update(decision, 1)`` is ``update(decision, reward=1)``. A batch takes a list or an array with one value for
        each decision, in the same order. Each id takes feedback once. Feedback of held-out decisions is counted and not
        learned from. Report a missing click as ``reward=0`` (with ``reward_range=(0, 1)``): if only clicks are
        reported, the policy learns that every arm is always clicked. After an error nothing has changed.
        """
        if isinstance(decision, Decision):
            value = loss_from(loss, reward, self.problem.reward_range)
            self._lock.acquire()
            try:
                bookkeeping = self._bookkeeping
                resolved = bookkeeping.resolve(decision)
                if resolved is not None and not resolved.holdout:
                    self._learner_state.learn(resolved, value)
                    self._plan, self._version = None, self._version + 1
                bookkeeping.close(decision, resolved, value)
            finally:
                self._lock.release()
        else:
            given, is_reward = reward_or_loss(loss, reward)
            self._update_batch(batch_of(decision, given), given, is_reward=is_reward, once=False)

    def learn(
        self, decisions: Sequence[Decision] | DecisionBatch, reward: Feedback = None, *, loss: Feedback = None
    ) -> None:
        """Learn from a batch as `update` does, if the caller guarantees that each decision comes once.

        Ids are neither checked nor recorded: a decision that comes twice is learned from twice. Except for the tunings
        ``paper`` and ``certified``, the result depends on the order of the decisions and on the limits of batches: keep
        both to reproduce it bit for bit. Decisions of plans may be given as columns, all of the current problem and
        none held out.
        """
        given, is_reward = reward_or_loss(loss, reward)
        batch = decisions if isinstance(decisions, DecisionBatch) else batch_of(decisions, given)
        self._update_batch(batch, given, is_reward=is_reward, once=True)

    def accepts(self, decision: Decision) -> bool:
        """Return whether a decision takes feedback: it is of this policy, has no feedback yet, and has not expired."""
        with self._lock:
            return decision.policy == self.name and not self._bookkeeping.registry.refusal(decision)

    def _update_batch(self, batch: list[Decision] | DecisionBatch, given: Any, *, is_reward: bool, once: bool) -> None:
        """Check all feedback, learn from all of it, then compute the plan once."""
        if len(given) == 0:
            return
        losses = checked_losses(given, is_reward=is_reward, reward_range=self.problem.reward_range)
        with self._lock:
            count = learn_batch(self._learner_state, self._bookkeeping, batch, losses, once=once)
            if count:
                self._plan, self._version = None, self._version + count

    def expire(self, *, before: int) -> int:
        """Close all decisions without feedback from rounds before the given one; return their number.

        This includes earlier sessions of the policy (`bothworlds.load`). Decisions with a given id, of plans, and of
        forked processes are not affected.
        """
        with self._lock:
            return self._bookkeeping.registry.expire(before=before)

    def learnt(self) -> dict[str, Floats]:
        """Return the learned fields by name, as copies."""
        with self._lock:
            return self._learner_state.learnt()

    def save(self, path: str | Path, *, frame: bool = True) -> None:
        """Write the policy to an .npz file; `bothworlds.load` continues it bit for bit.

        Without ``frame`` the file has learned fields and open decisions, but no features: ``load(path, frame=...)``
        takes those from a file that was saved with them.
        """
        check_npz(path, "a policy")
        with self._lock:
            spec = self._spec
            identity = {"format": FORMAT, "key": self._key, "secret": self._secret, "fingerprint": spec.fingerprint}
            header = {**identity, **self._bookkeeping.header(), "updates": self.updates, "version": self._version}
            arrays = self._bookkeeping.arrays() | as_section("learnt", self.learnt())
        if frame:
            header, arrays = {**header, **spec.header()}, {**arrays, **spec.arrays()}
        write_arrays(path, header, arrays)

    @property
    def restarts(self) -> Restarts | None:
        """How often the algorithm restarted because the world had changed; None if it never does."""
        return self._spec.restarts(self.learnt())

    def health(self, *, alpha: float = 0.05) -> Health:
        """Return the health of the policy, from counts of decisions and rewards by arm and context.

        Intervals hold at any time, all together with probability 1 - alpha. Held-out decisions are counted separately:
        the reading ``gain`` is the reward per decision that the policy earns above uniform play. Beside its interval it
        has one for a fixed time, which is shorter, and valid only if you look once, when you had planned to.

        >>> from bothworlds import FixedPolicy
        >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
        >>> policy = FixedPolicy([[0.9, 0.1], [0.2, 0.8]]).start(problem, rng=7, holdout=0.2)
        >>> for i in range(1000):
        ...     decision = policy.act(i % 2)
        ...     policy.update(decision, reward=decision.arm == decision.context)
        >>> policy.health().gain.sentence.split(", ")
        ['the policy earns more than uniform play: +0.386 a decision (+83.4%)', 'between 0.138 and 0.604 at any time',
        'between 0.313 and 0.459 at a fixed time (for a single look)']
        """
        with self._lock:
            pi, holds_out = self.probabilities(), self._spec.holdout > 0.0
            counts, restarts = self._bookkeeping.counts, self.restarts
            return counts.health(self.problem, pi, alpha=alpha, holds_out=holds_out, restarts=restarts)

    def __repr__(self) -> str:
        return f"Policy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: counts, and probabilities of the first contexts and arms."""
        with self._lock:
            problem, table = self.problem, self.probabilities()
            facts = {"algorithm": repr(self.algorithm), "problem": repr(problem), "rounds": self.rounds}
            facts |= {"updates": self.updates, "without feedback": self.open_rounds, "version": self.version}
        return card("Policy", facts) + probability_table(problem.contexts, problem.arms, table)
