"""Plan: what a policy would do now, for any number of threads and processes. It decides, and never changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.policy.decision import Decision, decision_of
from bothworlds.policy.feeding import Columns
from bothworlds.policy.footing import Footing, as_section, section
from bothworlds.policy.holdout import Holdout
from bothworlds.policy.identity import Lots, given_id, id_of, parts_of
from bothworlds.problem import Problem
from bothworlds.problem.rows import Context
from bothworlds.problem.storage import PLAN, check_npz, checked_format, read_arrays, undamaged, write_arrays

FORMAT = PLAN


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan:
    """What a policy would do now; made by ``policy.plan()``, or read by `load_plan`. Immutable, and safe in threads.

    A decision is a function of the plan, the policy's secret and the decision's id: the arm is drawn with a keyed hash
    (BLAKE2b) of the id, so that it can be computed again, and a repeated request with the same id is answered alike. An
    id may be given, or is made: then it is one that no other process, thread or plan ever issues. Plans decide and do
    not learn: feedback goes to the policy, wherever it lives, with ``policy.update(decision, reward=...)``.

    Attributes
    ----------
    footing
        What all plans of a policy share: problem, algorithm, and what is computed from them once.
    policy
        Name of the policy whose plan it is.
    version
        Which plan it is: one more with every answer that was learnt, and with every change of the problem.
    secret
        Key of the hash, in hexadecimal. Who knows it can choose ids that get the arm they want.

    >>> from bothworlds import LCTsallisINF
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
    >>> plan = LCTsallisINF().start(problem, rng=7).plan()
    >>> decision = plan.act("always", id="visit 9")
    >>> decision.id, decision.propensity, plan.version, plan.confirms(decision)
    ('visit 9', 0.5, 0, True)
    >>> plan.act("always", id="visit 9").arm == decision.arm
    True
    """

    footing: Footing
    policy: str
    version: int
    secret: str
    _core: Floats
    _rows: Floats

    @property
    def problem(self) -> Problem:
        """The problem it is a plan for."""
        return self.footing.problem

    @cached_property
    def digest(self) -> str:
        """A hash of what is learnt, and of what it stands on: two plans with the same one are the same, bit for bit."""
        return self.footing.digest(self.learnt())

    def learnt(self) -> dict[str, Floats]:
        """Return what the plan was made from, by name, as copies."""
        return self.footing.learnt(self._core, self._rows)

    @cached_property
    def _table(self) -> Floats:
        """pi_t, shape (contexts, arms)."""
        return self.footing.copied("pi", self._core, self._rows)

    @cached_property
    def _common(self) -> Floats:
        """Options and core, one after the other."""
        return np.concatenate([self.footing.options, self._core])

    @cached_property
    def _lots(self) -> Lots:
        return Lots(self.secret)

    @cached_property
    def _holdout(self) -> Holdout | None:
        return self.footing.holdout_with(self.secret)

    def probabilities(self, context: Context | None = None) -> Floats:
        """Return pi(. | context), shape (arms,), or the table of all contexts, shape (contexts, arms).

        Held-out decisions are not drawn from it: they are uniform among the arms offered.
        """
        table = self._table if context is None else self._table[self.problem.context_index(context)]
        return table.copy()

    def chances(self, x: int) -> bytes:
        """Return pi(. | x) of the context with index x as bytes, for those who keep it. Internal."""
        return bytes(self._table[x].tobytes())

    def act(self, context: Context, *, id: str | None = None) -> Decision:
        """Choose an arm for a context, given by name, by index, or as a row (`Problem.from_sample`).

        ``id`` names the event: 1 to 200 characters, not beginning with "@". The same id gets the same random numbers
        from every plan of the policy. Feedback is accepted once for an id, so that it must not stand for two events.
        """
        x = self.problem.context_index(context)
        if id is None:
            return self._decide(x, *self.footing.desk.issue())
        return self._decide(x, given_id(id), 0)

    def again(self, context: Context, id: str) -> Decision:
        """Decide once more for an id that a plan of this policy has decided for, be it given or made.

        For those who kept context and id, and no more: the plan that decided gives the same decision, bit for bit.
        `act` takes no ids that were made.
        """
        return self._decide(self.problem.context_index(context), *parts_of(id))

    def again_all(self, xs: Sequence[int], ids: Sequence[str]) -> Columns:
        """Decide as `again` does for many ids, none held out, in contexts by their indices; as columns. Internal."""
        footing, (length, further), places = self.footing, self.footing.carried, np.array(xs)
        memory = self._common, footing.known, self._rows, *footing.scratch(), footing.sizes
        directions, baselines = np.empty((len(xs), length)), np.empty((len(xs), further))
        arms = np.empty_like(places)
        footing.entries.decide_all(*memory, places, *self._lots.drawn_all(ids), arms, directions, baselines)
        return Columns(places, arms, self._table[places, arms], directions, baselines)

    def holds_out(self, id: str) -> bool:
        """Tell before it is taken whether a decision with an id is held out (``start(..., holdout=...)``).

        That is the same in every context and from every plan of the policy.
        """
        return self._holdout is not None and self._holdout.decided(self.policy, 0, *parts_of(id), 0) is not None

    def confirms(self, decision: Decision) -> bool:
        """Tell whether this plan decides just so for that id: arm, propensity, direction and baseline, bit for bit."""
        if decision.version != self.version or decision.policy != self.policy:
            raise ValueError(
                f"the decision is of version {decision.version} of policy {decision.policy!r}; this plan is version "
                f"{self.version} of {self.policy!r}"
            )
        again = self._decide(self.problem.context_index(decision.context), decision.source, decision.round)
        return again.to_dict() == decision.to_dict()

    def _decide(self, x: int, source: str, number: int) -> Decision:
        footing, problem = self.footing, self.footing.problem
        if self._holdout is not None:
            held = self._holdout.decided(self.policy, x, source, number, self.version)
            if held is not None:
                return held
        length, further = footing.carried
        direction, baseline = np.empty(length), np.empty(further)
        memory = self._common, footing.known, self._rows, *footing.scratch(), footing.sizes
        arm = footing.entries.decide(*memory, x, *self._lots.drawn(id_of(source, number)), direction, baseline)
        carried = direction, baseline if footing.has_baseline else None
        seen = number, x, problem.contexts[x], arm, problem.arms[arm], self._table.item(x, arm)
        return decision_of((*seen, *carried, self.policy, source, self.version, False, footing.mark))

    def save(self, path: str | Path, *, frame: bool = True) -> None:
        """Write the plan to an .npz file, from which any number of processes can decide (`load_plan`).

        Without ``frame`` the file has what is learnt only, a few kilobytes, and is read where the rest is known:
        ``plan.renewed(path)``.
        """
        check_npz(path, "a plan")
        footing = self.footing
        header = {
            "format": FORMAT,
            "policy": self.policy,
            "version": self.version,
            "secret": self.secret,
            "footing": footing.fingerprint,
            "digest": self.digest,
            **(footing.header() if frame else {}),
        }
        arrays = as_section("learnt", self.learnt())
        write_arrays(path, header, {**arrays, **(footing.arrays() if frame else {})})

    def renewed(self, path: str | Path) -> "Plan":
        """Return the plan in a file of the same policy, with or without its frame; this one if it is the same.

        After the policy was given another problem or law of contexts, the next file must have its frame.
        """
        header, arrays = read_arrays(path)
        header = checked_format(header, FORMAT, path)
        with undamaged(path):
            if (header["digest"], header["policy"], header["version"]) == (self.digest, self.policy, self.version):
                return self
            plan = plan_from(self.footing.as_in(header, arrays), header, arrays, path)
        if plan.policy != self.policy:
            raise ValueError(
                f"{path} is a plan of policy {plan.policy!r}, this is one of {self.policy!r}: read it with "
                "bothworlds.load_plan"
            )
        return plan

    def __reduce__(self) -> Any:
        raise TypeError("a plan goes to other processes as a file: plan.save(path), there bothworlds.load_plan(path)")

    def __repr__(self) -> str:
        return f"Plan(version {self.version} of policy {self.policy}, {self.problem})"


def plan_from(footing: Footing, header: dict[str, object], arrays: dict[str, Floats], path: str | Path) -> Plan:
    """Build a plan from what a file says is learnt; refuse one that stands on something else, or is damaged."""
    if header["footing"] != footing.fingerprint:
        raise ValueError(
            f"{path} is a plan for another problem or algorithm, or was made by another version of them. After its "
            "policy was given another problem or law of contexts, a server needs one plan with its frame: "
            "plan.save(path)"
        )
    core, rows = footing.planned(section(arrays, "learnt"))
    plan = Plan(
        footing=footing,
        policy=str(header["policy"]),
        version=int(str(header["version"])),
        secret=str(header["secret"]),
        _core=core,
        _rows=rows,
    )
    if plan.digest != header["digest"]:
        raise ValueError(f"{path} is damaged: what is learnt has digest {plan.digest}, not {header['digest']}")
    return plan
