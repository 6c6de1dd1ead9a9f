"""Plan: immutable probabilities of a policy, which decide in any number of threads and processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.policy.decision import Decision, decision_of
from bothworlds.policy.feedback import DecisionBatch
from bothworlds.policy.health_report import Restarts
from bothworlds.policy.holdout import Holdout
from bothworlds.policy.ids import KeyedRandom, given_id, id_of, parts_of
from bothworlds.policy.spec import PolicySpec, as_section, section
from bothworlds.problem import Problem
from bothworlds.problem.cards import card, probability_table
from bothworlds.problem.file_format import PLAN, check_npz, checked_format, read_arrays, undamaged, write_arrays
from bothworlds.problem.rows import Context

FORMAT = PLAN


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan:
    """The current probabilities of a policy, from ``policy.plan()`` or `load_plan`. Immutable and thread-safe.

    A decision is a function of the plan, the policy's secret and the decision's id. The arm is drawn with a keyed hash
    (BLAKE2b) of the id, so that a decision can be computed again, and a repeated request with the same id gets the same
    arm. The caller gives the id, or the plan issues one that no other process, thread or plan ever issues. Plans decide
    and do not learn: feedback goes to the policy, in any process, with ``policy.update(decision, reward=...)``.

    Attributes
    ----------
    spec
        Algorithm, problem and machine, shared by all plans of the policy.
    policy
        Name of the policy.
    version
        Version of the plan: it rises with every decision learned from and every change of the problem.
    secret
        Key of the hash, in hexadecimal. Anyone who knows it can choose ids that get the arm they want.

    >>> from bothworlds import LCTsallisINF
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
    >>> plan = LCTsallisINF().start(problem, rng=7).plan()
    >>> decision = plan.act("always", id="visit 9")
    >>> decision.id, decision.propensity, plan.version, plan.confirms(decision)
    ('visit 9', 0.5, 0, True)
    >>> plan.act("always", id="visit 9").arm == decision.arm
    True
    """

    spec: PolicySpec
    policy: str
    version: int
    secret: str
    _core: Floats
    _rows: Floats

    @property
    def problem(self) -> Problem:
        """The problem of the policy."""
        return self.spec.problem

    @cached_property
    def digest(self) -> str:
        """A hash of spec and learned fields: plans with equal digests are equal bit for bit."""
        return self.spec.digest(self.learnt())

    def learnt(self) -> dict[str, Floats]:
        """Return the learned fields by name, as copies."""
        return self.spec.learnt(self._core, self._rows)

    @cached_property
    def _table(self) -> Floats:
        """pi_t, shape (contexts, arms)."""
        return self.spec.copy_field("pi", self._core, self._rows)

    @cached_property
    def _common(self) -> Floats:
        """Options and core, concatenated."""
        return np.concatenate([self.spec.options, self._core])

    @cached_property
    def _random(self) -> KeyedRandom:
        return KeyedRandom(self.secret)

    @cached_property
    def _holdout(self) -> Holdout | None:
        return self.spec.holdout_with(self.secret)

    @cached_property
    def restarts(self) -> Restarts | None:
        """How often the algorithm restarted because the world had changed; None if it never does."""
        return self.spec.restarts(self.learnt())

    def probabilities(self, context: Context | None = None) -> Floats:
        """Return pi(. | context), shape (arms,), or the table of all contexts, shape (contexts, arms).

        Held-out decisions are not drawn from it: they are uniform over the offered arms.
        """
        table = self._table if context is None else self._table[self.problem.context_index(context)]
        return table.copy()

    @internal
    def probability_bytes(self, x: int) -> bytes:
        """Return pi(. | x) of the context with index x as bytes, to store it."""
        return bytes(self._table[x].tobytes())

    def act(self, context: Context, *, id: str | None = None) -> Decision:
        """Choose an arm for a context, given by name, by index, or as a row (`Problem.from_sample`).

        ``id`` names the event: 1 to 200 characters, not beginning with "@". The same id gets the same random numbers
        from every plan of the policy. Feedback is accepted once for each id, so that two events need different ids.
        """
        x = self.problem.context_index(context)
        if id is None:
            return self._decide(x, *self.spec.id_issuer.issue())
        return self._decide(x, given_id(id), 0)

    def redecide(self, context: Context, id: str) -> Decision:
        """Compute a decision again from context and id, given or issued: the same plan returns the same decision.

        The result is equal bit for bit. `act` does not accept issued ids.
        """
        return self._decide(self.problem.context_index(context), *parts_of(id))

    @internal
    def redecide_batch(self, xs: Sequence[int], ids: Sequence[str]) -> DecisionBatch:
        """Decide as `redecide` for many ids, none of them held out; contexts are indices. Return columns."""
        spec, (direction_length, baseline_length), contexts = self.spec, self.spec.carried, np.array(xs)
        memory = self._common, spec.known, self._rows, *spec.scratch(), spec.sizes
        directions, baselines = np.empty((len(xs), direction_length)), np.empty((len(xs), baseline_length))
        arms = np.empty_like(contexts)
        spec.entries.decide_all(*memory, contexts, *self._random.keys_and_times(ids), arms, directions, baselines)
        return DecisionBatch(contexts, arms, self._table[contexts, arms], directions, baselines)

    def holds_out(self, id: str) -> bool:
        """Return whether decisions with an id are held out (``start(..., holdout=...)``).

        This is the same in every context and for every plan of the policy.
        """
        return self._holdout is not None and self._holdout.decide(self.policy, 0, *parts_of(id), 0) is not None

    def confirms(self, decision: Decision) -> bool:
        """Return whether this plan makes the same decision for the id: arm and all numbers are equal bit for bit."""
        if decision.version != self.version or decision.policy != self.policy:
            raise ValueError(
                f"the decision is of version {decision.version} of policy {decision.policy!r}; this plan is version "
                f"{self.version} of {self.policy!r}"
            )
        again = self._decide(self.problem.context_index(decision.context), decision.source, decision.round)
        return again.to_dict() == decision.to_dict()

    def _decide(self, x: int, source: str, number: int) -> Decision:
        spec, problem = self.spec, self.spec.problem
        if self._holdout is not None:
            held = self._holdout.decide(self.policy, x, source, number, self.version)
            if held is not None:
                return held
        direction_length, baseline_length = spec.carried
        direction, baseline = np.empty(direction_length), np.empty(baseline_length)
        memory = self._common, spec.known, self._rows, *spec.scratch(), spec.sizes
        key_and_time = self._random.key_and_time(id_of(source, number))
        arm = spec.entries.decide(*memory, x, *key_and_time, direction, baseline)
        carried = direction, baseline if spec.has_baseline else None
        choice = number, x, problem.contexts[x], arm, problem.arms[arm], self._table.item(x, arm)
        return decision_of((*choice, *carried, self.policy, source, self.version, False, spec.short_fingerprint))

    def save(self, path: str | Path, *, frame: bool = True) -> None:
        """Write the plan to an .npz file, from which any number of processes can decide (`load_plan`).

        Without ``frame`` the file has only the learned fields, a few kilobytes; read it with ``plan.renewed(path)``.
        """
        check_npz(path, "a plan")
        spec = self.spec
        header = {
            "format": FORMAT,
            "policy": self.policy,
            "version": self.version,
            "secret": self.secret,
            "fingerprint": spec.fingerprint,
            "digest": self.digest,
            **(spec.header() if frame else {}),
        }
        arrays = as_section("learnt", self.learnt())
        write_arrays(path, header, {**arrays, **(spec.arrays() if frame else {})})

    def renewed(self, path: str | Path) -> "Plan":
        """Return the plan in a file of the same policy, with or without frame; this plan if the file has the same one.

        After a change of the policy's problem or context distribution, the next file must have its frame.
        """
        header, arrays = read_arrays(path)
        header = checked_format(header, FORMAT, path)
        with undamaged(path):
            if (header["digest"], header["policy"], header["version"]) == (self.digest, self.policy, self.version):
                return self
            plan = plan_from(self.spec.for_file(header, arrays), header, arrays, path)
        if plan.policy != self.policy:
            raise ValueError(
                f"{path} is a plan of policy {plan.policy!r}, but this is a plan of {self.policy!r}: read it with "
                "bothworlds.load_plan"
            )
        return plan

    def __reduce__(self) -> Any:
        raise TypeError(
            "a plan cannot be pickled: write a file with plan.save(path), read it with bothworlds.load_plan"
        )

    def __repr__(self) -> str:
        return f"Plan(version {self.version} of policy {self.policy}, {self.problem})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the version, and probabilities of the first contexts and arms."""
        problem = self.problem
        facts = {"version": self.version, "policy": self.policy, "problem": repr(problem)}
        return card("Plan", facts) + probability_table(problem.contexts, problem.arms, self._table)


def plan_from(spec: PolicySpec, header: dict[str, object], arrays: dict[str, Floats], path: str | Path) -> Plan:
    """Build a plan from header and arrays of its file; refuse a plan of another spec and a damaged file."""
    if header["fingerprint"] != spec.fingerprint:
        raise ValueError(
            f"{path} is a plan for another problem or algorithm, or was made by another version of them. After a "
            "change of the policy's problem or context distribution, a server needs one plan with its frame: "
            "plan.save(path)"
        )
    core, rows = spec.plan_memory(section(arrays, "learnt"))
    plan = Plan(
        spec=spec,
        policy=str(header["policy"]),
        version=int(str(header["version"])),
        secret=str(header["secret"]),
        _core=core,
        _rows=rows,
    )
    if plan.digest != header["digest"]:
        raise ValueError(f"{path} is damaged: its learned fields have digest {plan.digest}, not {header['digest']}")
    return plan
