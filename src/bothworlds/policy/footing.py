"""What a policy and its plans stand on and never change: problem, algorithm, kernel text, and what the text knows."""

import hashlib
import json
import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Floats, Ints, aligned
from bothworlds.kernels.contract import Machine, all_parts, flat_known, out_of_blocks
from bothworlds.kernels.entries import (
    Body,
    Entries,
    body_of,
    compiled_entries,
    interpreted_entries,
    memory_of,
    prompt_entries,
    put,
)
from bothworlds.kernels.jit.compile import explained
from bothworlds.kernels.status import OK, sentence
from bothworlds.plain import to_plain
from bothworlds.policy.holdout import Holdout, checked_share
from bothworlds.policy.identity import Desk
from bothworlds.problem import Problem
from bothworlds.problem.rows import from_header, header_of

FRAME = "frame"
MARK = 12  # letters of a fingerprint, 48 bits
SMALL = 20_000  # contexts times arms times dimensions: interpreted, an update takes half a second


class Maker(Protocol):
    """What a footing needs of an algorithm."""

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Footing:
    """Shared by a policy, its plans and their threads. A file can leave it out: what is learnt is far smaller.

    ``holdout`` is the share of decisions that are held out of the policy.
    """

    algorithm: Maker
    problem: Problem
    machine: Machine
    interpreted: bool = False
    holdout: float = 0.0
    desk: Desk = field(default_factory=Desk, init=False)
    _own: threading.local = field(default_factory=threading.local, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "holdout", checked_share(self.holdout))

    def on(self, problem: Problem) -> "Footing":
        """Return the footing of the same algorithm on another problem, or with another way to look up its contexts."""
        if problem != self.problem:
            return replace(self, problem=problem, machine=self.algorithm.machine(problem))
        same = (problem.rows, problem.other) == (self.problem.rows, self.problem.other)
        return self if same else replace(self, problem=problem)

    @cached_property
    def entries(self) -> Entries:
        """The calls of policies and plans."""
        if self.interpreted:
            return interpreted_entries(self.machine.text)
        small = self.problem.features.size <= SMALL
        return (prompt_entries if small else compiled_entries)(self.machine.text)

    @cached_property
    def sizes(self) -> Ints:
        """The sizes of the problem, as the entries want them."""
        return np.array(self.machine.block_sizes)

    @cached_property
    def carried(self) -> tuple[int, int]:
        """How many numbers a decision carries as its direction, and as its baseline."""
        return self.machine.carried

    @cached_property
    def has_baseline(self) -> bool:
        """Whether decisions carry a baseline."""
        return self.machine.text.has_baseline

    @cached_property
    def options(self) -> Floats:
        """What the text is told beside the problem, as it lies in memory."""
        return self.machine.flat_options

    @cached_property
    def known(self) -> Floats:
        """What the text knows of the problem, as it lies in memory."""
        return flat_known(self.machine.known, wide=self.machine.text.wide)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of all of it: who has the same one decides the same with what is learnt."""
        said = [self.problem.fingerprint, to_plain(self.algorithm), list(self.machine.text.memory.leaves)]
        said += [self.holdout] if self.holdout else []  # files of before there was one keep theirs
        return fingerprint_of(said, [*all_parts(self.machine.known), self.machine.flat_options])

    def as_in(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Footing":
        """Return the footing of the same algorithm that a file says, where it has another and is saved with its frame.

        A policy that was given another problem or law stands on another one.
        """
        if header.get("footing") == self.fingerprint or "features" not in arrays:
            return self
        if header.get("algorithm") != json.loads(json.dumps(to_plain(self.algorithm))):
            return self
        problem = problem_of(header, arrays)
        return replace(self, problem=problem, machine=self.algorithm.machine(problem, section(arrays, FRAME)))

    def holdout_with(self, secret: str) -> Holdout | None:
        """Return what decides which decisions are held out, if any are."""
        return Holdout(self.problem, self.holdout, secret, self.mark) if self.holdout else None

    @cached_property
    def mark(self) -> str:
        """What decisions carry of the fingerprint: its beginning, whatever is held out."""
        return (replace(self, holdout=0.0) if self.holdout else self).fingerprint[:MARK]

    def scratch(self) -> tuple[Floats, Floats]:
        """Return scratch space, core and rows, that no other thread has."""
        try:
            return self._own.scratch  # type: ignore[no-any-return]
        except AttributeError:
            count = self.machine.text.memory.counts(self.machine.block_sizes)
            made = aligned(count["core"]), aligned(count["rows"], *self.known.shape[1:])
            self._own.scratch = made
            return made

    def plain(self, name: str, part: Floats) -> Floats:
        """Return a field of the state with contexts in its first axis, and nothing beyond the last context."""
        blocked = self.machine.text.wide and self.machine.text.memory.leaves[name].array == "rows"
        return out_of_blocks(part, self.problem.n_contexts) if blocked else part

    @cached_property
    def _places(self) -> dict[str, tuple[bool, slice, tuple[int, ...]]]:
        """Where the fields of the state lie in a memory: whether in its rows, from where to where, and their shape."""
        memory, sizes, found = self.machine.text.memory, self.machine.block_sizes, {}
        for name, leaf in memory.leaves.items():
            start, shape = leaf.place(sizes)
            found[name] = leaf.array == "rows", slice(start, start + math.prod(shape)), shape
        return found

    def copied(self, name: str, core: Floats, rows: Floats) -> Floats:
        """Return a copy of a field of the state in a memory, with contexts in its first axis."""
        in_rows, place, shape = self._places[name]
        array = rows if in_rows else core
        return self.plain(name, array[place].reshape(*shape, *array.shape[1:])).copy()

    def learnt(self, core: Floats, rows: Floats) -> dict[str, Floats]:
        """Return what is learnt in a memory, by name, as copies."""
        return {name: self.copied(name, core, rows) for name in self._learnt}

    @cached_property
    def _learnt(self) -> tuple[str, ...]:
        return self.machine.text.memory.learnt

    @cached_property
    def numbered(self) -> tuple[dict[str, int], dict[str, int]]:
        """The indices of contexts and of arms, by their names."""
        contexts, arms = (
            {name: i for i, name in enumerate(names)} for names in (self.problem.contexts, self.problem.arms)
        )
        return contexts, arms

    def digest(self, learnt: Mapping[str, Floats]) -> str:
        """Return a hash of what is learnt and of what it stands on: equal if and only if all bits are."""
        digest = hashlib.blake2b(self.fingerprint.encode(), digest_size=16)
        for name, array in learnt.items():
            digest.update(f"{name}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def _beginning(self) -> Body:
        """Both memories with the plan before any feedback in the second, as a policy begins."""
        body = body_of(self.machine, 0)
        with explained(packs=self.machine.text.wide):
            self._refresh(body, 0)
        return body

    def _refresh(self, body: Body, side: int) -> None:
        direction, baseline = (np.zeros(count) for count in self.machine.carried)
        status = self.entries.step(*body, side, True, False, True, 0, 0, 0.0, 1.0, direction, baseline)
        if status != OK:
            raise NumericalError(f"{sentence(status)}: there is no plan for what the file says was learnt")

    def planned(self, learnt: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return the memory, core and rows, with the plan of what is learnt, bit for bit as a loaded policy has it."""
        start = self._beginning
        body = Body(aligned_copy(start.common), aligned_copy(start.packs), start.sizes)
        for name in self.machine.text.memory.learnt:
            put(self.machine, body, 1, name, learnt[name])
        self._refresh(body, 1)
        core, rows = memory_of(self.machine, body, 0)
        return aligned_copy(core), aligned_copy(rows)

    def header(self) -> dict[str, Any]:
        """Return what a file's header says of it."""
        problem = self.problem
        names = {"contexts": problem.contexts, "arms": problem.arms, "reward_range": problem.reward_range}
        held = {"holdout": self.holdout} if self.holdout else {}
        return {
            "algorithm": to_plain(self.algorithm),
            **names,
            "lookup": header_of(problem.rows, problem.other),
            **held,
        }

    def arrays(self) -> dict[str, Any]:
        """Return what a file keeps of it as arrays."""
        problem = self.problem
        parts = {"features": problem.features, "probabilities": problem.probabilities, "available": problem.available}
        return {**parts, **as_section(FRAME, self.machine.frame)}


def fingerprint_of(said: list[Any], arrays: Iterable[Floats]) -> str:
    """Return a short hash of plain values and arrays."""
    digest = hashlib.blake2b(json.dumps(said, default=str).encode(), digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode() + array.tobytes())
    return digest.hexdigest()


def problem_of(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Problem:
    """Return the problem in a file."""
    return Problem(
        features=arrays["features"],
        probabilities=arrays["probabilities"],
        available=arrays["available"],
        contexts=header["contexts"],
        arms=header["arms"],
        reward_range=header["reward_range"],
        **from_header(header.get("lookup", {})),
    )


def as_section(name: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays as a section of a file: each under the section's name and its own."""
    return {f"{name}.{key}": value for key, value in arrays.items()}


def section(arrays: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the arrays whose names begin with a section's, by the rest of their names."""
    return {key.split(".", 1)[1]: value for key, value in arrays.items() if key.startswith(f"{name}.")}


def aligned_copy(array: Floats) -> Floats:
    """Return a copy that begins on a cache line, as packs want it."""
    made = aligned(*array.shape)
    made[...] = array
    return made
