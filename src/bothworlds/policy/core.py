"""Policy: an algorithm in progress. Act, update, ask, save."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import Machine
from bothworlds.policy.batches import answer_all
from bothworlds.policy.books import Books
from bothworlds.policy.carrying import beliefs_of, prior_from
from bothworlds.policy.changing import changed, check_change, check_move
from bothworlds.policy.decision import Decision, decision_of
from bothworlds.policy.epochs import Epoch, History
from bothworlds.policy.feeding import Columns, batch_of, loss_from, one_of
from bothworlds.policy.footing import Footing, as_section
from bothworlds.policy.health import Health
from bothworlds.policy.identity import NO_DATA, apart_after_fork, new_name, new_source, secret_of, stream_of
from bothworlds.policy.ledger import Ledger
from bothworlds.policy.mind import Mind
from bothworlds.policy.plan import Plan
from bothworlds.policy.prior import Prior
from bothworlds.problem import Problem, TrafficMix
from bothworlds.problem.feedback import Feedback, checked_losses
from bothworlds.problem.rows import Context, Labelled
from bothworlds.problem.storage import POLICY, check_npz, write_arrays
from bothworlds.problem.traffic import require_mix

FORMAT, ONE_CONTEXT = POLICY, (str, int, np.integer)


class Policy:
    """An algorithm in progress on a problem; made by ``algorithm.start(problem, rng=...)``.

    The clock of the learning rate counts updates, `Decision.round` counts decisions: feedback may be late, out of
    order, in batches, or missing, and every estimate is unbiased given what was known when the decision was taken, as
    long as whether feedback comes does not depend on the outcome.

    Safe in threads: one call at a time works on it, the others wait. To decide in many threads or processes without
    waiting take a `Plan`; a policy has one owner, and a second one makes a ``copy()``. A process that is forked off
    goes on with random numbers and ids of its own.

    >>> from bothworlds import FixedPolicy
    >>> policy = FixedPolicy().start(Problem.from_sample(["day", "night"], arms=["red", "blue"]), rng=7)
    >>> policy.update(policy.act("day"), loss=0.5)
    >>> policy.rounds, policy.updates, policy.probabilities("day").tolist()
    (1, 1, [0.5, 0.5])
    """

    def __init__(self, mind: Mind, books: Books, *, key: int, secret: str | None = None, version: int = 0) -> None:
        """Begin a policy. Internal."""
        self.name, self._books, self._lock = books.name, books, threading.RLock()
        self._key, self._secret, self._version = key, secret or secret_of(key), version
        self._play(mind)
        apart_after_fork(self)

    def _play(self, mind: Mind) -> None:
        """Decide with a mind from now on, on its problem."""
        self._mind, self._footing, self.problem = mind, mind.footing, mind.footing.problem
        self._contexts, self._arms = self.problem.contexts, self.problem.arms
        self._holdout = mind.footing.holdout_with(self._secret)
        self._plan: Plan | None = None

    @property
    def _machine(self) -> Machine:
        return self._footing.machine

    @property
    def algorithm(self) -> object:
        """The algorithm in progress."""
        return self._footing.algorithm

    def set_apart(self) -> None:
        """Go on with ids and random numbers of its own, in a process that was forked off the owner's. Internal."""
        self._lock = threading.RLock()
        self._key = stream_of(self._key, new_source())
        self._books.begin_life(self._books.ledger.next_life(self._key, same_stream=False))

    @property
    def rounds(self) -> int:
        """How many decisions were taken, not counting those with a given id, nor those of plans."""
        return self._books.rounds.last

    @property
    def updates(self) -> int:
        """How many answers were learnt; those of held-out decisions, and of arms that are gone, are not."""
        return self._mind.updates

    @property
    def version(self) -> int:
        """Which plan decides now: one more with every answer that was learnt, and with every change of the problem."""
        return self._version

    @property
    def open_rounds(self) -> int:
        """How many decisions still wait for feedback, not counting those with a given id, nor those of plans."""
        with self._lock:
            return len(self._books.ledger)

    @property
    def digest(self) -> str:
        """A hash of what is learnt and of what it stands on: equal if and only if all bits are."""
        return self.plan().digest

    @property
    def state(self) -> Any:
        """The algorithm's state by name; arrays with an entry per context are copies, (contexts, ...), of its own."""
        return self._mind.plain_state()

    def probabilities(self, context: Context | None = None) -> Floats:
        """Return pi_t(. | context), shape (arms,), or the table of all contexts, shape (contexts, arms)."""
        with self._lock:
            table = self._mind.table()
            return table if context is None else table[self.problem.context_index(context)]

    def plan(self) -> Plan:
        """Return what the policy would do now: immutable, for any number of threads and processes."""
        with self._lock:
            if self._plan is None:
                self._plan = self._mind.plan(policy=self.name, version=self._version, secret=self._secret)
            return self._plan

    def copy(self) -> "Policy":
        """Return a second policy that has learnt the same, with a name, ids and random numbers of its own.

        Nothing is open in it: feedback of what this policy has decided goes to this policy.
        """
        with self._lock:
            key, footing = stream_of(self._key, new_source()), self._footing
            mind = Mind.begun(footing, key)
            mind.begin_with(self.learnt(), updates=self.updates)
            history = History(gone=self._books.history.gone)
            books = Books(new_name(), footing, Ledger.begin(key), history=history, since=self.updates)
            return Policy(mind, books, key=key, version=self.updates)

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
        file of a plan, with its frame. New ``rows`` or ``other`` alone are no new version, and take `load_plan` there.

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
        >>> policy = LCTsallisINF().start(problem, rng=7)
        >>> decision = policy.act("mobile")
        >>> policy.change(Problem.from_sample(["mobile", "desktop"], arms=["blue", "green"], reward_range=(0, 1)))
        >>> policy.update(decision, reward=1)
        >>> policy.problem.arms, policy.probabilities("mobile").tolist()
        (('blue', 'green'), [0.5, 0.5])
        """
        check_change(problem, trust=trust, fresh=fresh)
        seen = self._footing
        new = seen.on(problem)  # a design may take long, and others decide meanwhile
        with self._lock:
            self._move(seen, new, trust=trust, fresh=fresh)

    def _move(self, seen: Footing, new: Footing, *, trust: float = 1.0, fresh: float | None = None) -> None:
        """Go on with a footing that was made from the one seen."""
        check_move(self._footing, seen, new)
        mind, books, began = self._mind, self._books, self._version + 1
        if new.machine is not seen.machine or trust != 1.0:
            mind, history = changed(mind, books.history, new, key=self._key, began=began, trust=trust, fresh=fresh)
            books.move(new, history)
            self._version = began
        elif new is not seen:
            mind.footing, books.problem = new, new.problem
        else:
            return
        self._play(mind)

    def change_probabilities(self, probabilities: Any) -> None:
        """Go on under another law of contexts: `change` to ``problem.with_probabilities(probabilities)``.

        Estimated losses stay what they were, up to rounding; exploration, coordinates and covariance are those of the
        law. Open decisions stay open: each is unbiased under the law of its moment, and is learnt as such. The version
        is one higher. The same law again is no change, but contexts are counted anew from here on.
        """
        self._take_law(self._footing, probabilities)

    def _take_law(self, seen: Footing, probabilities: Any, come: Floats | None = None) -> None:
        """Take a law in place of that of the footing seen; count contexts from now, or from when so many had come."""
        new = seen.on(seen.problem.with_probabilities(probabilities))
        with self._lock:
            self._move(seen, new)
            self._books.counts.begin_law(come)

    def follow(self, mix: TrafficMix) -> TrafficMix:
        """Let a traffic mix observe the contexts that came since the present law was given, and take its law.

        Returns the mix after that; say it every hour, not with every decision: each law is a plan of its own. Contexts
        count when they are decided, those of plans and of given ids when they are answered.

        >>> from bothworlds import LinUCB
        >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"])
        >>> policy, mix = LinUCB().start(problem, rng=7), TrafficMix.estimated(problem.probabilities, strength=10)
        >>> decisions, mix = policy.act(["mobile"] * 80 + ["desktop"] * 10), policy.follow(mix)
        >>> policy.problem.probabilities.tolist(), policy.version
        ([0.85, 0.15], 1)
        """
        with self._lock:
            seen, counts = self._footing, self._books.counts
            mix, come = require_mix(mix).observe(counts.visits()), counts.come()
        self._take_law(seen, mix.probabilities, come)
        return mix

    def listing(self, row: Any) -> Problem | Epoch:
        """Return what ``row.decision`` needs after a `change`: contexts and arms as they were when it was decided."""
        return self._books.listing(row)

    def renumber(self, version: int) -> None:
        """Go on with what is learnt under a higher version: for those who went back to an earlier one. Internal."""
        with self._lock:
            if version <= self._version:
                raise ValueError(f"versions only rise: {version} is not above {self._version}")
            self._version, self._plan = version, None

    def __reduce__(self) -> Any:
        raise TypeError(NO_DATA)

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

        Rows are dictionaries, tuples or rows of a DataFrame, where the problem has them (`Problem.from_sample`);
        several contexts are a list, an array, or a DataFrame of rows (`Problem.context_indices`).

        Without ``id`` the decision counts a round, and is drawn from the policy's stream of random numbers. With it,
        it counts none, and is what ``policy.plan().act(context, id=id)`` decides.
        """
        problem = self.problem
        if isinstance(context, ONE_CONTEXT) and id is None:
            return self._act(problem.context_index(context), problem)
        plan = None if id is None else self.plan()  # which may be of another problem by now
        found = (problem if plan is None else plan.problem).context_indices(context)
        if plan is None:
            return [self._act(x, problem) for x in found] if isinstance(found, list) else self._act(found, problem)
        if isinstance(found, list):
            raise ValueError("an id is that of one decision; give one context with it")
        return plan.act(found, id=id)

    def _act(self, x: int, problem: Problem) -> Decision:
        self._lock.acquire()  # half the time of a with statement, here and in `update`
        try:
            if problem is not self.problem:  # which another thread has changed since the context was found
                x = self.problem.context_index(problem.contexts[x])
            books = self._books
            number = books.rounds.add()
            if self._holdout is not None:
                held = self._holdout.decided(self.name, x, books.life, number, self._version)
                if held is not None:
                    books.counts.held.decided[x][held.arm] += 1
                    return held
            arm, propensity, direction, baseline = self._mind.act(x, self._key, number)
            books.decided[x][arm] += 1
            made = (
                number, x, self._contexts[x], arm, self._arms[arm], propensity, direction, baseline,
                self.name, books.life, self._version, False, books.mark,
            )  # fmt: skip
            return decision_of(made)
        finally:
            self._lock.release()

    def update(
        self, decision: Decision | Sequence[Decision], *, loss: Feedback = None, reward: Feedback = None
    ) -> None:
        """Learn from the loss, or the reward, of one decision or of a batch; the plan is computed once after it.

        Each decision takes feedback once, by its id; that of held-out decisions is counted, and not learnt. No click is
        ``reward=0`` (with ``reward_range=(0, 1)``), not "no update": leaving it out would teach the policy that every
        arm is clicked always. On any error nothing has changed.
        """
        if isinstance(decision, Decision):
            value = loss_from(loss, reward, self.problem.reward_range)
            self._lock.acquire()
            try:
                books = self._books
                now = books.checked(decision)
                if now is not None and not now.holdout:
                    self._mind.learn(now, value)
                    self._plan, self._version = None, self._version + 1
                books.close(decision, now, value)
            finally:
                self._lock.release()
        else:
            given, is_reward = one_of(loss, reward)
            self._update_batch(batch_of(decision, given), given, is_reward=is_reward, once=False)

    def learn(self, decisions: Sequence[Decision] | Columns, *, loss: Feedback = None, reward: Feedback = None) -> None:
        """Learn from a batch as `update` does, where a store sees to it that each decision comes once.

        Nothing is looked up and nothing is noted: a decision that comes twice is learnt twice. What is learnt depends
        on the order of the decisions and on where batches end, in all but the tunings ``paper`` and ``certified``; who
        wants the same bits again keeps both. Decisions of plans may come as columns: all of the present problem, none
        held out.
        """
        given, is_reward = one_of(loss, reward)
        batch = decisions if isinstance(decisions, Columns) else batch_of(decisions, given)
        self._update_batch(batch, given, is_reward=is_reward, once=True)

    def takes(self, decision: Decision) -> bool:
        """Tell whether feedback of a decision would be taken: it is this policy's, not answered and not expired."""
        with self._lock:
            return decision.policy == self.name and not self._books.ledger.refusal(decision)

    def _update_batch(self, batch: list[Decision] | Columns, given: Any, *, is_reward: bool, once: bool) -> None:
        """Check everything, then learn everything, then compute the plan once."""
        if len(given) == 0:
            return
        losses = checked_losses(given, is_reward=is_reward, reward_range=self.problem.reward_range)
        with self._lock:
            count = answer_all(self._mind, self._books, batch, losses, once=once)
            if count:
                self._plan, self._version = None, self._version + count

    def expire(self, *, before: int) -> int:
        """Close all decisions of rounds before the given one that were never answered; return how many.

        Earlier lives of the policy (`bothworlds.load`) are older than this one's first round. Decisions with a given
        id, those of plans and those of processes that were forked off stay as they are.
        """
        with self._lock:
            return self._books.ledger.expire(before=before)

    def learnt(self) -> dict[str, Floats]:
        """Return what was learnt, by name, as copies: together with problem and algorithm all that a file keeps."""
        with self._lock:
            return self._mind.learnt()

    def save(self, path: str | Path, *, frame: bool = True) -> None:
        """Write the policy to an .npz file; `bothworlds.load` continues it bit for bit.

        Without ``frame`` the file has what is learnt and what is open, and no features: ``load(path, frame=...)`` takes
        them from a file that was saved with them.
        """
        check_npz(path, "a policy")
        with self._lock:
            footing = self._footing
            own = {"format": FORMAT, "key": self._key, "secret": self._secret, "footing": footing.fingerprint}
            header = {**own, **self._books.header(), "updates": self.updates, "version": self._version}
            arrays = self._books.arrays() | as_section("learnt", self.learnt())
        if frame:
            header, arrays = {**header, **footing.header()}, {**arrays, **footing.arrays()}
        write_arrays(path, header, arrays)

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
            return self._books.counts.health(self.problem, pi, alpha=alpha, holds_out=holds_out)

    def __repr__(self) -> str:
        return f"Policy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"
