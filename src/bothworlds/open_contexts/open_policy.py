"""OpenPolicy: an algorithm in progress on an `OpenProblem`. It decides for any visitor, learns, and is saved."""

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.open_contexts.open_choices import Names, Origin, decide_many, decide_one, probabilities_of
from bothworlds.open_contexts.open_counts import OpenCounts
from bothworlds.open_contexts.open_decision import OpenDecision, OpenDecisions
from bothworlds.open_contexts.open_feedback import batch_of, check_decision, rows_of
from bothworlds.open_contexts.open_health import open_health_of
from bothworlds.open_contexts.open_plan import OpenPlan
from bothworlds.open_contexts.rule_contract import OpenRule
from bothworlds.policy.feedback import check_once, check_owner, label_of, reward_or_loss
from bothworlds.policy.feedback_registry import FeedbackRegistry
from bothworlds.policy.health_report import OpenHealth, Restarts
from bothworlds.policy.holdout import checked_share, coin_of
from bothworlds.policy.ids import NOT_COPYABLE, IdIssuer, new_name, new_source, reset_after_fork, secret_of, stream_of
from bothworlds.policy.spec import as_section
from bothworlds.problem.cards import card
from bothworlds.problem.file_format import OPEN_POLICY, check_npz, write_arrays
from bothworlds.problem.open import OpenProblem
from bothworlds.problem.rewards import Feedback, checked_loss, checked_losses
from bothworlds.serialization import to_plain

NOT_YET = {
    "prior": "priors",
    "change": "changes of arms and columns",
    "change_probabilities": "context distributions, as contexts are not listed",
    "follow": "traffic mixes, as contexts are not listed",
    "copy": "copies (save it and load it instead)",
}


class OpenPolicy:
    """An algorithm in progress on an `OpenProblem`, from ``algorithm.start(problem, rng=...)``.

    A request is a context, the candidates that came with it or those arms that are offered, and an id. Feedback may be
    late, out of order, in batches, or missing. What was learned depends on the order of feedback alone, not on
    decisions: a context counts when its feedback is learned.

    Thread-safe: calls wait for each other. To decide in many threads or processes without waiting, use a `plan`.

    >>> from bothworlds import LCTsallisINF, OpenProblem
    >>> problem = OpenProblem(context=1, arms=["red", "blue"], reward_range=(0, 1))
    >>> policy = LCTsallisINF().start(problem, rng=7)
    >>> decision = policy.act([0.3])
    >>> policy.update(decision, reward=1)
    >>> policy.rounds, policy.updates, policy.probabilities([0.3], offered=["red"]).tolist()
    (1, 1, [1.0, 0.0])
    """

    @internal
    def __init__(
        self,
        algorithm: object,
        problem: OpenProblem,
        rule: OpenRule,
        *,
        key: int,
        interpreted: bool = False,
        holdout: float = 0.0,
    ) -> None:
        """Start a policy; ``key`` is that of the random stream, ``holdout`` the share of decisions held out."""
        self.algorithm, self.problem, self.name = algorithm, problem, new_name()
        self._share, self._counts = checked_share(holdout), OpenCounts(len(problem.arms or (1,)))
        self._key = key
        self._set_secret(secret_of(key))
        self._learner = rule.learner(problem, key=key, interpreted=interpreted)
        self._arrays, self._version, self._updates = self._learner.plan(), 0, 0
        self._plan: OpenPlan | None = None
        self._issuer, self._lock = IdIssuer(), threading.RLock()
        self._begin_session(FeedbackRegistry.begin(key))
        reset_after_fork(self)

    def _set_secret(self, secret: str) -> None:
        """Hash ids with a secret from now on."""
        self._secret, self._coin = secret, coin_of(self._share, secret)

    def _begin_session(self, registry: FeedbackRegistry) -> None:
        """Issue ids of another session from now on."""
        self._registry, self._rounds = registry, registry.rounds

    @internal
    def reset_in_fork(self) -> None:
        """Switch to new ids and random numbers, in a process that was just forked."""
        self._lock = threading.RLock()
        self._key = stream_of(self._key, new_source())
        self._begin_session(self._registry.next_session(self._key, same_stream=False))

    def __getattr__(self, name: str) -> Any:
        if name in NOT_YET:
            raise AttributeError(f"a policy on an OpenProblem has no {name}: {NOT_YET[name]} need a listed Problem")
        raise AttributeError(f"OpenPolicy has no attribute {name!r}")

    def __reduce__(self) -> Any:
        raise TypeError(NOT_COPYABLE.replace("policy.copy() for a second policy, ", ""))

    @property
    def rounds(self) -> int:
        """Number of decisions, without those with a given id and those of plans."""
        return self._rounds.last

    @property
    def updates(self) -> int:
        """Number of decisions learned from; excludes held-out decisions."""
        return self._updates

    @property
    def version(self) -> int:
        """Version of the current plan: it rises whenever there is a new one, not with every update."""
        return self._version

    @property
    def open_rounds(self) -> int:
        """Number of decisions that wait for feedback, without those with a given id and those of plans."""
        with self._lock:
            return len(self._registry)

    @property
    def digest(self) -> str:
        """A hash of problem and plan: policies with equal digests decide alike, bit for bit."""
        return self.plan().digest

    @cached_property
    @internal
    def fingerprint(self) -> str:
        """A short hash of algorithm and problem."""
        content = json.dumps([to_plain(self.algorithm), self.problem.fingerprint])
        return hashlib.blake2b(content.encode(), digest_size=6).hexdigest()

    def plan(self) -> OpenPlan:
        """Return the current plan: immutable, for any number of threads and processes."""
        with self._lock:
            if self._plan is None:
                self._plan = OpenPlan(
                    problem=self.problem,
                    algorithm=self.algorithm,
                    policy=self.name,
                    version=self._version,
                    secret=self._secret,
                    learner=self._learner,
                    arrays=self._arrays,
                    fingerprint=self.fingerprint,
                    holdout=self._share,
                    _ids=self._issuer,
                )
            return self._plan

    def probabilities(self, context: Any = None, *, candidates: Any = None, offered: Any = None) -> Floats:
        """Return the probabilities of the arms, or of the candidates in the order in which they are given."""
        request, arrays = self.problem.request(context, candidates, offered), self._arrays
        return probabilities_of(self._learner, arrays, request)

    def act(
        self, context: Any = None, *, candidates: Any = None, offered: Any = None, id: str | None = None
    ) -> OpenDecision:
        """Choose an arm for a context, or one of the candidates that came with it. After an error nothing has changed.

        Parameters
        ----------
        context
            A dictionary, a row of a DataFrame, values in the order of the columns, or an array.
        candidates
            Rows of candidates: a DataFrame, a list, an array, or a dictionary of rows by id.
        offered
            The arms or candidates to choose from, by name, or as one truth value for each; by default all.
        id
            Your own name of the event. Without it the decision counts as a round and is drawn from the policy's random
            stream; with it, it is the decision of ``policy.plan().act(..., id=id)``.
        """
        if id is not None:
            return self.plan().act(context, candidates=candidates, offered=offered, id=id)
        request = self.problem.request(context, candidates, offered)
        with self._lock:
            decision = decide_one(self._learner, self._arrays, request, self._names(1), self._origin)
            self._rounds.add()
            self._counts.add(decision)
            return decision

    def act_batch(
        self, contexts: Any = None, *, candidates: Any = None, offered: Any = None, ids: Sequence[str] | None = None
    ) -> OpenDecisions:
        """Decide for many requests at once.

        ``contexts`` is a DataFrame, a list of rows or an array. ``candidates`` and ``offered`` are those of all
        requests, or a list with those of each.

        >>> from bothworlds import LCTsallisINF, OpenProblem
        >>> policy = LCTsallisINF().start(OpenProblem(context=1, arms=["red", "blue"]), rng=7)
        >>> decisions = policy.act_batch([[0.1], [0.9], [0.5]])
        >>> policy.update(decisions, reward=[0, 1, 0])
        >>> len(decisions), decisions.propensities.tolist(), policy.updates
        (3, [0.5, 0.5, 0.5], 3)
        """
        if ids is not None:
            return self.plan().act_batch(contexts, candidates=candidates, offered=offered, ids=ids)
        requests = self.problem.requests(contexts, candidates, offered)
        with self._lock:
            names = self._names(len(requests.names))
            decisions = decide_many(self._learner, self._arrays, requests, names, self._origin)
            for decision in decisions:
                self._rounds.add()
                self._counts.add(decision)
            return OpenDecisions(decisions)

    @property
    def _origin(self) -> Origin:
        return Origin(self.name, self._version, self.fingerprint, self._coin)

    def _names(self, count: int) -> Names:
        """Return the ids of the next rounds."""
        numbers = np.arange(self._rounds.last + 1, self._rounds.last + count + 1)
        return Names([self._registry.session] * count, numbers.tolist(), np.full(count, self._key), numbers)

    def update(
        self, decision: OpenDecision | Sequence[OpenDecision], reward: Feedback = None, *, loss: Feedback = None
    ) -> None:
        """Learn from the rewards or losses of one decision or of a batch, in their order.

        After an error nothing has changed. Each id takes feedback once. Feedback of held-out decisions is counted and
        not learned from. Report a missing click as ``reward=0``: if only
        clicks are reported, the policy learns that every arm is always clicked.
        """
        given, is_reward = reward_or_loss(loss, reward)
        limits = self.problem.reward_range
        if isinstance(decision, OpenDecision):
            batch = [decision]
            losses: Any = [checked_loss(given, is_reward=is_reward, reward_range=limits)]
        else:
            batch = batch_of(decision, given)
            losses = checked_losses(given, is_reward=is_reward, reward_range=limits) if batch else []
        if not batch:
            return
        with self._lock:
            for item in batch:
                self._check(item)
            check_once(batch)
            kept = [i for i, item in enumerate(batch) if not item.holdout]
            if kept and self._learner.learn(rows_of([batch[i] for i in kept], [losses[i] for i in kept])):
                self._arrays, self._plan, self._version = self._learner.plan(), None, self._version + 1
            self._updates += len(kept)
            for item, value in zip(batch, losses, strict=True):
                self._counts.close(item, float(value), counted=self._registry.counted(item))
                self._registry.close(item)

    def _check(self, decision: OpenDecision) -> None:
        """Refuse a decision that is not this policy's, not open, or damaged."""
        check_owner(decision, self.name)
        if refusal := self._registry.refusal(decision):
            raise ValueError(f"{label_of(decision)} {refusal}; each decision takes feedback once")
        if decision.fingerprint != self.fingerprint:
            raise ValueError(f"{label_of(decision)} was made on another problem or by another algorithm")
        check_decision(decision, self.problem, self._arrays.baseline.shape)

    def accepts(self, decision: OpenDecision) -> bool:
        """Return whether a decision takes feedback: it is of this policy, has no feedback yet, and has not expired."""
        with self._lock:
            return decision.policy == self.name and not self._registry.refusal(decision)

    def expire(self, *, before: int) -> int:
        """Close all decisions without feedback from rounds before the given one; return their number."""
        with self._lock:
            return self._registry.expire(before=before)

    def learnt(self) -> Mapping[str, Floats]:
        """Return the learner state by name, as copies."""
        with self._lock:
            return self._learner.arrays()

    @property
    def restarts(self) -> Restarts | None:
        """How often the algorithm restarted because the world had changed; None if it never does."""
        with self._lock:
            return self._learner.restarts()

    def health(self, *, alpha: float = 0.05) -> OpenHealth:
        """Return the health of the policy, from counts of decisions and rewards.

        Intervals hold at any time, all together with probability 1 - alpha. Arms with names have a table; of candidates
        only the policy is compared with the holdout.

        >>> from bothworlds import LinUCB, OpenProblem
        >>> problem = OpenProblem(context=1, arms=["red", "blue"], reward_range=(0, 1))
        >>> policy = LinUCB().start(problem, rng=7, holdout=0.2)
        >>> for i in range(1000):
        ...     decision = policy.act([i % 2])
        ...     policy.update(decision, reward=decision.arm == i % 2)
        >>> policy.health().gain.sentence.split(":")[0]
        'the policy earns more than uniform play'
        """
        with self._lock:
            holds_out = self._share > 0.0
            counts, learner, arrays = self._counts, self._learner, self._arrays
            return open_health_of(self.problem, counts, learner, arrays, alpha=alpha, holds_out=holds_out)

    def save(self, path: str | Path) -> None:
        """Write the policy to an .npz file; `bothworlds.load` continues it bit for bit."""
        check_npz(path, "a policy")
        with self._lock:
            header = {
                "format": OPEN_POLICY,
                "name": self.name,
                "key": self._key,
                "secret": self._secret,
                "version": self._version,
                "updates": self._updates,
                "holdout": self._share,
                "fingerprint": self.fingerprint,
                "problem": self.problem.to_dict(),
                "algorithm": to_plain(self.algorithm),
                **self._registry.header(),
            }
            arrays = {**self._registry.arrays(), **as_section("learnt", self._learner.arrays())}
            arrays["counts"] = self._counts.array()
        write_arrays(path, header, arrays)

    @internal
    def restore(
        self, header: Mapping[str, Any], learnt: Mapping[str, Any], counts: Floats, registry: FeedbackRegistry
    ) -> None:
        """Continue from the parts of a file, in the session of ``registry``."""
        self._counts = OpenCounts(len(self.problem.arms or (1,)), counts)
        self.name = header["name"]
        self._set_secret(header["secret"])
        self._version, self._updates = header["version"], header["updates"]
        self._learner.restore(learnt)
        self._arrays, self._plan = self._learner.plan(), None
        self._begin_session(registry)

    def __repr__(self) -> str:
        return f"OpenPolicy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: problem and counts."""
        facts = {"algorithm": repr(self.algorithm), "problem": repr(self.problem), "rounds": self.rounds}
        return card("Policy", {**facts, "updates": self.updates, "version": self.version})
