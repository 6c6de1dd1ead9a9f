"""From an algorithm's kernel text to the calls that a policy makes, and to the one call of a plan.

Numba unpacks a plain array in about 150 ns and a named tuple of arrays in microseconds, so everything a policy has lies
in two arrays, and the records are made inside:

    common   options | core | core                what no context has of its own
    packs    what is known | rows | rows          eight contexts side by side, where the text can take them

There are two memories: an update fills the spare one, which becomes current if all went well. ``side`` is the current.
A plan has one memory, which nobody writes to, and every thread has scratch space of its own. For the same reason the
calls take many plain arguments and no records: plain tuples, too, would add 0.3 microseconds to a decision. Sizes come
as an array, which takes a fifth of a microsecond less than a tuple.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels.arithmetic import alone, contexts, row_of
from bothworlds.kernels.arrays import Floats, Ints, aligned
from bothworlds.kernels.contract import Draw, KernelText, Machine, Play, flat_known, in_blocks
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.jit.fingerprint import foreign_hash
from bothworlds.kernels.jit.prompt import Prompt
from bothworlds.kernels.layout import counter
from bothworlds.kernels.random import ARM, two_uniforms
from bothworlds.kernels.status import DAMAGED, OK

LARGEST = 1e100  # no covariance that can be inverted makes a direction of that size
SURE = 1.0 + 1e-9  # the largest propensity, but for rounding


class Entries(NamedTuple):
    """The calls of policies and plans, interpreted, or each compiled when it is first made."""

    act: Callable[..., int]
    step: Callable[..., int]
    feed: Callable[..., int]
    decide: Callable[..., int]
    decide_all: Callable[..., int]


class Body(NamedTuple):
    """All the numbers of a policy, and its sizes."""

    common: Floats
    packs: Floats
    sizes: Ints


def body_of(machine: Machine, key: int) -> Body:
    """Return the arrays of a policy at its start: both memories as they begin."""
    sizes = machine.block_sizes
    count = machine.text.memory.counts(sizes)
    options, known = machine.flat_options, flat_known(machine.known, wide=machine.text.wide)
    common = aligned(len(options) + 2 * count["core"])
    packs = aligned(len(known) + 2 * count["rows"], *known.shape[1:])
    common[: len(options)], packs[: len(known)] = options, known
    body = Body(common, packs, np.array(sizes))
    for side in (0, 1):
        for name, value in {"t": 1.0, **machine.begin, **machine.seeded(key)}.items():
            put(machine, body, side, name, value)
    return body


def memory_of(machine: Machine, body: Body, side: int) -> tuple[Floats, Floats]:
    """Return core and rows of one of the two memories."""
    count, outside = machine.text.memory.counts(machine.block_sizes), machine.text.outside.counts(machine.block_sizes)
    core, rows = (outside[before] + side * count[array] for before, array in (("options", "core"), ("known", "rows")))
    return body.common[core : core + count["core"]], body.packs[rows : rows + count["rows"]]


def part_of(machine: Machine, body: Body, side: int, name: str) -> Floats:
    """Return a field of the state in one of the two memories, as it lies there."""
    return machine.part(name, *memory_of(machine, body, side), machine.block_sizes)


def put(machine: Machine, body: Body, side: int, name: str, value: Any) -> None:
    """Write a field of the state, given with contexts in its first axis."""
    target = part_of(machine, body, side, name)
    blocked = machine.text.wide and machine.text.memory.leaves[name].array == "rows"
    if blocked and np.ndim(value):
        target[...] = in_blocks(np.asarray(value))
    else:
        target[...] = np.reshape(value, target.shape) if np.ndim(value) else value


def counts_of(text: KernelText) -> Callable[..., Any]:
    """Build the function that counts options, core, what is known and rows."""
    outside, memory = text.outside, text.memory
    return counter(outside.extent("options"), memory.extent("core"), outside.extent("known"), memory.extent("rows"))


def room_of(text: KernelText) -> Callable[..., Any]:
    """Build the function that names all records of a policy, in one of its two memories."""
    known_of, options_of, state_of, work_of = text.known_of, text.options_of, text.state_of, text.work_of
    view, counts = contexts if text.wide else alone, counts_of(text)

    def room(common: Floats, packs: Floats, sizes: Any, side: int) -> Any:
        n, c, k, r = counts(sizes)
        core, rows = row_of(common, n + side * c, c), row_of(view(packs), k + side * r, r)
        known, options = known_of(view(packs), sizes), options_of(common, sizes)
        return known, options, state_of(core, rows, sizes), work_of(core, rows, sizes)

    return kernel(room)


def copy_of(text: KernelText) -> Callable[..., None]:
    """Build the function that copies what the next plan does not compute afresh into the spare memory."""
    view, counts = contexts if text.wide else alone, counts_of(text)
    kept = counter(*(text.memory.extent(array, "learnt", "recalled") for array in ("core", "rows")))

    def copy(common: Floats, packs: Floats, sizes: Any, side: int) -> None:
        n, c, k, r = counts(sizes)
        in_core, in_rows = kept(sizes)
        before, after = n + side * c, n + (1 - side) * c
        for i in range(in_core):
            common[after + i] = common[before + i]
        seen = view(packs)
        before, after = k + side * r, k + (1 - side) * r
        for i in range(in_rows):
            seen[after + i] = seen[before + i]

    return kernel(copy)


@kernel
def are_possible(values: Floats) -> bool:
    """Tell whether numbers of a decision are finite, and not larger than a covariance that can be inverted allows."""
    possible = True
    for i in range(values.shape[0]):
        possible = possible and bool(abs(values[i]) <= LARGEST)
    return possible


class Answered(NamedTuple):
    """A decision that comes back with its loss: what was played, its propensity, and the arrays that it carries."""

    play: Play
    propensity: float
    direction: Floats
    baseline: Floats


def taught_by(text: KernelText) -> Callable[..., bool]:
    """Build the function that learns from one decision, and tells whether it could be one."""
    carried_of, learn, possible = text.carried_of, text.learn, text.possible

    def taught(known: Any, options: Any, state: Any, sizes: Any, one: Answered) -> bool:
        if not (are_possible(one.direction) and are_possible(one.baseline) and 0.0 < one.propensity <= SURE):
            return False
        carried = carried_of(one.direction, one.baseline, sizes)
        if not possible(known, options, one.play, carried, one.propensity):
            return False
        learn(known, options, state, one.play, carried)
        return True

    return kernel(taught)


def acting(text: KernelText) -> Callable[..., int]:
    """Build the call that draws an arm, and fills in direction and baseline."""
    room, choose, carried_of = room_of(text), text.choose, text.carried_of

    def act(
        common: Floats, packs: Floats, whole: Ints, side: int, x: int, key: int, time: int, direction: Floats,
        baseline: Floats,
    ) -> int:  # fmt: skip
        sizes = (whole[0], whole[1], whole[2], whole[3])
        known, options, state, work = room(common, packs, sizes, side)
        draw = Draw(two_uniforms(key, time, ARM, 0), key, time)
        return choose(known, options, state, work, x, draw, carried_of(direction, baseline, sizes))

    return act


def stepping(text: KernelText) -> Callable[..., int]:
    """Build the call that works in the spare memory: copies the current one, adds an observation, computes the plan.

    It begins, feeds and ends, each if asked to.
    """
    room, copy, taught, refresh = room_of(text), copy_of(text), taught_by(text), text.refresh

    def step(
        common: Floats, packs: Floats, whole: Ints, side: int, begins: bool, feeds: bool, ends: bool, x: int, a: int,
        loss: float, propensity: float, direction: Floats, baseline: Floats,
    ) -> int:  # fmt: skip
        sizes = (whole[0], whole[1], whole[2], whole[3])
        if begins:
            copy(common, packs, sizes, side)
        known, options, state, work = room(common, packs, sizes, 1 - side)
        one = Answered(Play(x, a, loss), propensity, direction, baseline)
        if feeds and not taught(known, options, state, sizes, one):
            return DAMAGED
        if ends:
            return refresh(known, options, state, work)
        return OK

    return step


def feeding(text: KernelText) -> Callable[..., int]:
    """Build the call that copies and adds a batch, one after the other as `stepping` would.

    It returns how many were added before one was found damaged.
    """
    room, copy, taught = room_of(text), copy_of(text), taught_by(text)

    def feed(
        common: Floats, packs: Floats, whole: Ints, side: int, losses: Floats, xs: Ints, arms: Ints,
        propensities: Floats, directions: Floats, baselines: Floats,
    ) -> int:  # fmt: skip
        sizes = (whole[0], whole[1], whole[2], whole[3])
        copy(common, packs, sizes, side)
        known, options, state, _ = room(common, packs, sizes, 1 - side)
        for i in range(len(xs)):
            play = Play(xs[i], arms[i], losses[i])
            if not taught(known, options, state, sizes, Answered(play, propensities[i], directions[i], baselines[i])):
                return i
        return len(xs)

    return feed


def deciding(text: KernelText) -> Callable[..., int]:
    """Build the call that draws an arm from a plan: its one memory, and scratch space of the thread."""
    known_of, options_of, state_of, work_of = text.known_of, text.options_of, text.state_of, text.work_of
    choose, carried_of = text.choose, text.carried_of
    view, counts = contexts if text.wide else alone, counts_of(text)

    def decide(
        common: Floats, packs: Floats, rows: Floats, spare: Floats, spare_rows: Floats, whole: Ints, x: int, key: int,
        time: int, direction: Floats, baseline: Floats,
    ) -> int:  # fmt: skip
        sizes = (whole[0], whole[1], whole[2], whole[3])
        n, c, _, r = counts(sizes)
        known, options = known_of(view(packs), sizes), options_of(common, sizes)
        state = state_of(row_of(common, n, c), row_of(view(rows), 0, r), sizes)
        work = work_of(row_of(spare, 0, c), row_of(view(spare_rows), 0, r), sizes)
        draw = Draw(two_uniforms(key, time, ARM, 0), key, time)
        return choose(known, options, state, work, x, draw, carried_of(direction, baseline, sizes))

    return decide


def deciding_all(text: KernelText) -> Callable[..., int]:
    """Build the call that draws many arms from a plan, one after the other as `deciding` would; it returns how many."""
    decide = kernel(deciding(text))

    def decide_all(
        common: Floats, packs: Floats, rows: Floats, spare: Floats, spare_rows: Floats, whole: Ints, xs: Ints,
        keys: Ints, times: Ints, arms: Ints, directions: Floats, baselines: Floats,
    ) -> int:  # fmt: skip
        for i in range(len(xs)):
            x, key, time = int(xs[i]), int(keys[i]), int(times[i])  # the interpreter's integers do not overflow
            arms[i] = decide(common, packs, rows, spare, spare_rows, whole, x, key, time, directions[i], baselines[i])
        return len(xs)

    return decide_all


def interpreted_entries(text: KernelText) -> Entries:
    """Build the entries of an algorithm as plain Python."""
    return Entries(acting(text), stepping(text), feeding(text), deciding(text), deciding_all(text))


@lru_cache(maxsize=64)
def compiled_entries(text: KernelText) -> Entries:
    """Build the entries of an algorithm as machine code; once per process and algorithm."""
    return Entries(*(compiled(entry) for entry in interpreted_entries(text)))


@lru_cache(maxsize=64)
def prompt_entries(text: KernelText) -> Entries:
    """Build the entries of a policy so that the first calls need not wait for machine code.

    A plan needs only a draw, which is compiled soon; and an author's own text is to say at once what is wrong with it.
    """
    plain, made = interpreted_entries(text), compiled_entries(text)
    if foreign_hash(plain.step):
        return made
    prompt = {name: Prompt(getattr(plain, name), getattr(made, name)) for name in ("act", "step", "feed")}
    return made._replace(**prompt)
