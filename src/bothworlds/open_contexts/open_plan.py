"""OpenPlan: immutable; decides for any visitor and any candidates, in any number of threads and processes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.open_contexts.open_choices import Names, Origin, decide_many, decide_one, probabilities_of
from bothworlds.open_contexts.open_decision import OpenDecision, OpenDecisions
from bothworlds.open_contexts.rule_contract import OpenLearner, PlanArrays
from bothworlds.policy.holdout import coin_of
from bothworlds.policy.ids import IdIssuer, KeyedRandom, given_id, id_of, parts_of
from bothworlds.policy.spec import as_section, section
from bothworlds.problem.file_format import OPEN_PLAN, check_npz, write_arrays
from bothworlds.problem.open import OpenProblem
from bothworlds.serialization import to_plain


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OpenPlan:
    """What a policy on an `OpenProblem` would do now, from ``policy.plan()`` or `load_plan`. Immutable, thread-safe.

    A decision is a function of the plan, the policy's secret, the decision's id and the request's features: the same id
    gets the same random number, so that a decision can be computed again. Plans decide and do not learn: feedback goes
    to the policy.

    >>> from bothworlds import LCTsallisINF, OpenProblem
    >>> plan = LCTsallisINF().start(OpenProblem(context=2, arms=["red", "blue"]), rng=7).plan()
    >>> decision = plan.act([0.5, 1.0], id="visit 9")
    >>> decision.id, decision.propensity, plan.act([0.5, 1.0], id="visit 9").arm == decision.arm
    ('visit 9', 0.5, True)
    """

    problem: OpenProblem
    algorithm: object
    policy: str
    version: int
    secret: str
    learner: OpenLearner = field()
    arrays: PlanArrays = field()
    fingerprint: str
    holdout: float = 0.0
    _ids: IdIssuer = field(default_factory=IdIssuer)

    @cached_property
    def digest(self) -> str:
        """A hash of problem and numbers: plans with equal digests decide alike, bit for bit."""
        content = hashlib.blake2b(f"{self.fingerprint} {self.holdout!r}".encode(), digest_size=16)
        for array in self.arrays:
            content.update(repr(array.shape).encode() + array.tobytes())
        return content.hexdigest()

    @cached_property
    def _random(self) -> KeyedRandom:
        return KeyedRandom(self.secret)

    @cached_property
    def _origin(self) -> Origin:
        return Origin(self.policy, self.version, self.fingerprint, coin_of(self.holdout, self.secret))

    def probabilities(self, context: Any = None, *, candidates: Any = None, offered: Any = None) -> Floats:
        """Return the probabilities of the arms, or of the candidates in the order in which they are given.

        Held-out decisions are not drawn from them: they are uniform over what is offered.
        """
        request = self.problem.request(context, candidates, offered)
        return probabilities_of(self.learner, self.arrays, request)

    def act(
        self, context: Any = None, *, candidates: Any = None, offered: Any = None, id: str | None = None
    ) -> OpenDecision:
        """Choose an arm or a candidate, as `OpenPolicy.act` does; without an id the plan issues one."""
        source, number = self._ids.issue() if id is None else (given_id(id), 0)
        return self._decide(context, candidates, offered, source, number)

    def redecide(self, id: str, context: Any = None, *, candidates: Any = None, offered: Any = None) -> OpenDecision:
        """Compute a decision again from its id, given or issued, and its request: equal bit for bit."""
        return self._decide(context, candidates, offered, *parts_of(id))

    def _decide(self, context: Any, candidates: Any, offered: Any, source: str, number: int) -> OpenDecision:
        request = self.problem.request(context, candidates, offered)
        key, time = self._random.key_and_time(id_of(source, number))
        names = Names([source], [number], np.array([key]), np.array([time]))
        return decide_one(self.learner, self.arrays, request, names, self._origin)

    def act_batch(
        self, contexts: Any = None, *, candidates: Any = None, offered: Any = None, ids: Sequence[str] | None = None
    ) -> OpenDecisions:
        """Decide for many requests at once, as `OpenPolicy.act_batch` does."""
        requests = self.problem.requests(contexts, candidates, offered)
        if ids is None:
            parts = [self._ids.issue() for _ in requests.names]
        else:
            parts = [(name, 0) for name in checked_ids(ids, len(requests.names))]
        keys, times = self._random.keys_and_times([id_of(*part) for part in parts])
        names = Names([source for source, _ in parts], [number for _, number in parts], keys, times)
        return OpenDecisions(decide_many(self.learner, self.arrays, requests, names, self._origin))

    def save(self, path: str | Path) -> None:
        """Write the plan to an .npz file, from which any number of processes can decide (`load_plan`)."""
        check_npz(path, "a plan")
        header = {
            "format": OPEN_PLAN,
            "policy": self.policy,
            "version": self.version,
            "secret": self.secret,
            "fingerprint": self.fingerprint,
            "holdout": self.holdout,
            "digest": self.digest,
            "problem": self.problem.to_dict(),
            "algorithm": to_plain(self.algorithm),
        }
        write_arrays(path, header, as_section("plan", self.arrays._asdict()))

    def __reduce__(self) -> Any:
        raise TypeError(
            "a plan cannot be pickled: write a file with plan.save(path), read it with bothworlds.load_plan"
        )

    def __repr__(self) -> str:
        return f"OpenPlan(version {self.version} of policy {self.policy}, {self.problem})"


def checked_ids(ids: Any, count: int) -> list[str]:
    """Return given ids, one for each of ``count`` requests, all different."""
    names = [given_id(name) for name in ids] if not isinstance(ids, str) else [ids]
    if len(names) != count:
        raise ValueError(f"{count} requests need as many ids; got {len(names)}")
    if len(set(names)) < len(names):
        raise ValueError("an id is given twice; each request needs its own")
    return names


def plan_arrays(arrays: dict[str, Any], like: PlanArrays) -> PlanArrays:
    """Return the arrays of a plan's file; raise TypeError if they do not fit the problem."""
    found = PlanArrays(**section(arrays, "plan"))
    if [array.shape for array in found] != [array.shape for array in like]:
        raise TypeError("the numbers of the plan do not fit its problem")
    return found
