"""Spec of a policy and its plans: algorithm, problem and machine (the kernel with its data). Immutable."""

import hashlib
import json
import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bothworlds.arrays import Floats, Ints, aligned
from bothworlds.errors import NumericalError
from bothworlds.kernels.contract import Machine, flat_known, leaf_values, out_of_blocks
from bothworlds.kernels.entry_points import (
    EntryPoints,
    PolicyArrays,
    arrays_of,
    background_entries,
    compiled_entries,
    interpreted_entries,
    memory_of,
    put,
)
from bothworlds.kernels.jit.compile import readable_errors
from bothworlds.kernels.status import OK, sentence
from bothworlds.policy.health_report import Restarts
from bothworlds.policy.holdout import Holdout, checked_share
from bothworlds.policy.ids import IdIssuer
from bothworlds.problem import Problem
from bothworlds.problem.rows import from_header, header_of
from bothworlds.serialization import to_plain

FRAME = "frame"
SHORT = 12  # letters of a fingerprint, 48 bits
SMALL = 20_000  # contexts times arms times dimensions, for which an interpreted update takes half a second


class MachineFactory(Protocol):
    """The part of an algorithm that a spec needs."""

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Prepare the algorithm for a problem; ``frame`` has the arrays of a saved policy, to restore its machine."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PolicySpec:
    """The immutable part of a policy, shared by its plans and their threads; files may leave it out.

    ``holdout`` is the share of decisions that are held out.
    """

    algorithm: MachineFactory
    problem: Problem
    machine: Machine
    interpreted: bool = False
    holdout: float = 0.0
    id_issuer: IdIssuer = field(default_factory=IdIssuer, init=False)
    _thread_local: threading.local = field(default_factory=threading.local, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "holdout", checked_share(self.holdout))

    def for_problem(self, problem: Problem) -> "PolicySpec":
        """Return the spec of the same algorithm on another problem, or with another lookup of its contexts."""
        if problem != self.problem:
            return replace(self, problem=problem, machine=self.algorithm.machine(problem))
        same = (problem.rows, problem.other) == (self.problem.rows, self.problem.other)
        return self if same else replace(self, problem=problem)

    @cached_property
    def entries(self) -> EntryPoints:
        """The entry points of the kernel for policies and plans."""
        if self.interpreted:
            return interpreted_entries(self.machine.kernel)
        small = self.problem.features.size <= SMALL
        return (background_entries if small else compiled_entries)(self.machine.kernel)

    @cached_property
    def sizes(self) -> Ints:
        """The sizes of the problem, as an array for the entry points."""
        return np.array(self.machine.block_sizes)

    @cached_property
    def carried(self) -> tuple[int, int]:
        """The lengths of a decision's direction and baseline."""
        return self.machine.carried

    @cached_property
    def has_baseline(self) -> bool:
        """Whether decisions have a baseline."""
        return self.machine.kernel.has_baseline

    @cached_property
    def options(self) -> Floats:
        """The kernel's options, as one flat array."""
        return self.machine.flat_options

    @cached_property
    def known(self) -> Floats:
        """The kernel's data about the problem, as one flat array."""
        return flat_known(self.machine.known, wide=self.machine.kernel.wide)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the spec: with equal fingerprints, equal learned fields give equal decisions."""
        values = [
            self.problem.fingerprint,
            to_plain(self.algorithm),
            list(self.machine.kernel.memory.leaves),
            self.holdout,
        ]
        return fingerprint_of(values, [*leaf_values(self.machine.known), self.machine.flat_options])

    def for_file(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "PolicySpec":
        """Return the spec in a file with a frame, if it is of the same algorithm on another problem; else this spec."""
        if header.get("fingerprint") == self.fingerprint or "features" not in arrays:
            return self
        if header.get("algorithm") != json.loads(json.dumps(to_plain(self.algorithm))):
            return self
        problem = problem_of(header, arrays)
        return replace(self, problem=problem, machine=self.algorithm.machine(problem, section(arrays, FRAME)))

    def holdout_with(self, secret: str) -> Holdout | None:
        """Return the holdout for a policy's secret; None if no decisions are held out."""
        return Holdout(self.problem, self.holdout, secret, self.short_fingerprint) if self.holdout else None

    @cached_property
    def short_fingerprint(self) -> str:
        """The prefix of the fingerprint that decisions store; it does not depend on ``holdout``."""
        return (replace(self, holdout=0.0) if self.holdout else self).fingerprint[:SHORT]

    def scratch(self) -> tuple[Floats, Floats]:
        """Return scratch memory of this thread, core and rows."""
        try:
            return self._thread_local.scratch  # type: ignore[no-any-return]
        except AttributeError:
            count = self.machine.kernel.memory.counts(self.machine.block_sizes)
            scratch = aligned(count["core"]), aligned(count["rows"], *self.known.shape[1:])
            self._thread_local.scratch = scratch
            return scratch

    def plain(self, name: str, part: Floats) -> Floats:
        """Return a field of the state with contexts on the first axis, without padding."""
        blocked = self.machine.kernel.wide and self.machine.kernel.memory.leaves[name].array == "rows"
        return out_of_blocks(part, self.problem.n_contexts) if blocked else part

    @cached_property
    def _places(self) -> dict[str, tuple[bool, slice, tuple[int, ...]]]:
        """The position of each field in memory: whether it is in ``rows``, its slice, and its shape."""
        memory, sizes, places = self.machine.kernel.memory, self.machine.block_sizes, {}
        for name, leaf in memory.leaves.items():
            start, shape = leaf.place(sizes)
            places[name] = leaf.array == "rows", slice(start, start + math.prod(shape)), shape
        return places

    def copy_field(self, name: str, core: Floats, rows: Floats) -> Floats:
        """Return a copy of a field in memory, with contexts on the first axis."""
        in_rows, place, shape = self._places[name]
        array = rows if in_rows else core
        return self.plain(name, array[place].reshape(*shape, *array.shape[1:])).copy()

    def restarts(self, learnt: Mapping[str, Floats]) -> Restarts | None:
        """Return how often the learner with these fields restarted; None if the algorithm never does."""
        beliefs = self.machine.beliefs
        if beliefs is None or not beliefs.restarts:
            return None
        number, remembered, t = (float(learnt[name][0]) for name in (beliefs.restarts, beliefs.rounds, "t"))
        return Restarts(int(number), remembered, int(t) - 1)

    def learnt(self, core: Floats, rows: Floats) -> dict[str, Floats]:
        """Return the learned fields in memory by name, as copies."""
        return {name: self.copy_field(name, core, rows) for name in self._learned_names}

    @cached_property
    def _learned_names(self) -> tuple[str, ...]:
        return self.machine.kernel.memory.learnt

    @cached_property
    def numbered(self) -> tuple[dict[str, int], dict[str, int]]:
        """The indices of contexts and of arms by name."""
        contexts, arms = (
            {name: i for i, name in enumerate(names)} for names in (self.problem.contexts, self.problem.arms)
        )
        return contexts, arms

    def digest(self, learnt: Mapping[str, Floats]) -> str:
        """Return a hash of spec and learned fields; equal digests mean that all bits are equal."""
        digest = hashlib.blake2b(self.fingerprint.encode(), digest_size=16)
        for name, array in learnt.items():
            digest.update(f"{name}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def _initial_arrays(self) -> PolicyArrays:
        """The arrays of a new policy: two buffers, with the plan before any feedback in the second."""
        body = arrays_of(self.machine, 0)
        with readable_errors(packs=self.machine.kernel.wide):
            self._refresh(body, 0)
        return body

    def _refresh(self, body: PolicyArrays, side: int) -> None:
        direction, baseline = (np.zeros(count) for count in self.machine.carried)
        status = self.entries.step(*body, side, True, False, True, 0, 0, 0.0, 1.0, direction, baseline)
        if status != OK:
            raise NumericalError(f"{sentence(status)}: the learned fields in the file have no plan")

    def plan_memory(self, learnt: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return memory, core and rows, with the plan for learned fields, bit for bit as in a loaded policy."""
        start = self._initial_arrays
        body = PolicyArrays(aligned_copy(start.common), aligned_copy(start.packs), start.sizes)
        for name in self.machine.kernel.memory.learnt:
            put(self.machine, body, 1, name, learnt[name])
        self._refresh(body, 1)
        core, rows = memory_of(self.machine, body, 0)
        return aligned_copy(core), aligned_copy(rows)

    def header(self) -> dict[str, Any]:
        """Return the entries for the header of a file."""
        problem = self.problem
        return {
            "algorithm": to_plain(self.algorithm),
            "contexts": problem.contexts,
            "arms": problem.arms,
            "reward_range": problem.reward_range,
            "lookup": header_of(problem.rows, problem.other),
            "holdout": self.holdout,
        }

    def arrays(self) -> dict[str, Any]:
        """Return the arrays for a file."""
        problem = self.problem
        arrays = {"features": problem.features, "probabilities": problem.probabilities, "available": problem.available}
        return {**arrays, **as_section(FRAME, self.machine.frame)}


def fingerprint_of(values: list[Any], arrays: Iterable[Floats]) -> str:
    """Return a short hash of plain values and arrays."""
    digest = hashlib.blake2b(json.dumps(values, default=str).encode(), digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode() + array.tobytes())
    return digest.hexdigest()


def problem_of(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Problem:
    """Return the problem from header and arrays of a file."""
    return Problem(
        features=arrays["features"],
        probabilities=arrays["probabilities"],
        available=arrays["available"],
        contexts=header["contexts"],
        arms=header["arms"],
        reward_range=header["reward_range"],
        **from_header(header["lookup"]),
    )


def as_section(name: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays as a section of a file, each named ``section.name``."""
    return {f"{name}.{key}": value for key, value in arrays.items()}


def section(arrays: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the arrays of a section of a file, without the name of the section."""
    return {key.split(".", 1)[1]: value for key, value in arrays.items() if key.startswith(f"{name}.")}


def aligned_copy(array: Floats) -> Floats:
    """Return a copy that begins on a cache line, as SIMD packs need."""
    copy = aligned(*array.shape)
    copy[...] = array
    return copy
