"""Compiled entry points of policies and plans, built from an algorithm's kernel.

Numba unpacks a plain array in about 150 ns and a named tuple of arrays in microseconds. So the numbers of a policy lie
in two arrays, and the entry points build the records from them:

    common   options | core | core          without an axis for contexts
    packs    known | rows | rows            per context, in packs of eight if the kernel is ``wide``

A policy has two memories: an update fills the spare one, which becomes current if the update succeeds; ``side`` is the
current one. A plan has one read-only memory, and each thread has its own scratch space. Entry points take many plain
arguments for speed: tuples would add 0.3 microseconds to a decision, and sizes as a tuple instead of an array a fifth
of a microsecond.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats, Ints, aligned
from bothworlds.kernels.arithmetic import contexts, row_of, scalars
from bothworlds.kernels.contract import Draw, Kernel, Machine, Play, flat_known, in_blocks
from bothworlds.kernels.jit.background_compile import BackgroundCompiled
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.jit.source_hash import foreign_hash
from bothworlds.kernels.layout import counter
from bothworlds.kernels.random import ARM, two_uniforms
from bothworlds.kernels.status import DAMAGED, OK

MAX_CARRIED = 1e100  # no invertible covariance gives a direction with larger entries
MAX_PROPENSITY = 1.0 + 1e-9  # one, plus rounding


class EntryPoints(NamedTuple):
    """The entry points of policies and plans: interpreted, or compiled on their first call."""

    act: Callable[..., int]
    step: Callable[..., int]
    feed: Callable[..., int]
    decide: Callable[..., int]
    decide_all: Callable[..., int]


class PolicyArrays(NamedTuple):
    """The two arrays of a policy, and its sizes (S, K, d, P)."""

    common: Floats
    packs: Floats
    sizes: Ints


def arrays_of(machine: Machine, key: int) -> PolicyArrays:
    """Return the initial arrays of a policy; both memories are the same."""
    sizes = machine.block_sizes
    count = machine.kernel.memory.counts(sizes)
    options, known = machine.flat_options, flat_known(machine.known, wide=machine.kernel.wide)
    common = aligned(len(options) + 2 * count["core"])
    packs = aligned(len(known) + 2 * count["rows"], *known.shape[1:])
    common[: len(options)], packs[: len(known)] = options, known
    arrays = PolicyArrays(common, packs, np.array(sizes))
    for side in (0, 1):
        for name, value in {"t": 1.0, **machine.begin, **machine.seeded(key)}.items():
            put(machine, arrays, side, name, value)
    return arrays


def memory_of(machine: Machine, arrays: PolicyArrays, side: int) -> tuple[Floats, Floats]:
    """Return views of core and rows of one of the two memories."""
    count, outside = (
        machine.kernel.memory.counts(machine.block_sizes),
        machine.kernel.outside.counts(machine.block_sizes),
    )
    core, rows = (outside[before] + side * count[array] for before, array in (("options", "core"), ("known", "rows")))
    return arrays.common[core : core + count["core"]], arrays.packs[rows : rows + count["rows"]]


def part_of(machine: Machine, arrays: PolicyArrays, side: int, name: str) -> Floats:
    """Return a view of a field of the state in one of the two memories; in packs if it is stored so."""
    return machine.part(name, *memory_of(machine, arrays, side), machine.block_sizes)


def put(machine: Machine, arrays: PolicyArrays, side: int, name: str, value: Any) -> None:
    """Write a field of the state; the first axis of ``value`` is that of contexts if the field has one."""
    target = part_of(machine, arrays, side, name)
    blocked = machine.kernel.wide and machine.kernel.memory.leaves[name].array == "rows"
    if blocked and np.ndim(value):
        target[...] = in_blocks(np.asarray(value))
    else:
        target[...] = np.reshape(value, target.shape) if np.ndim(value) else value


def counts_of(functions: Kernel) -> Callable[..., Any]:
    """Build the function that returns the lengths of options, core, known and rows."""
    outside, memory = functions.outside, functions.memory
    return counter(outside.extent("options"), memory.extent("core"), outside.extent("known"), memory.extent("rows"))


def build_views(functions: Kernel) -> Callable[..., Any]:
    """Build the function that returns the records of a policy as views of one of its two memories."""
    known_of, options_of, state_of, work_of = (
        functions.known_of,
        functions.options_of,
        functions.state_of,
        functions.work_of,
    )
    view, counts = contexts if functions.wide else scalars, counts_of(functions)

    def views(common: Floats, packs: Floats, sizes: Any, side: int) -> Any:
        n, c, k, r = counts(sizes)
        core, rows = row_of(common, n + side * c, c), row_of(view(packs), k + side * r, r)
        known, options = known_of(view(packs), sizes), options_of(common, sizes)
        return known, options, state_of(core, rows, sizes), work_of(core, rows, sizes)

    return kernel(views)


def copy_of(functions: Kernel) -> Callable[..., None]:
    """Build the function that copies the learnt and recalled fields into the spare memory."""
    view, counts = contexts if functions.wide else scalars, counts_of(functions)
    copied = counter(*(functions.memory.extent(array, "learnt", "recalled") for array in ("core", "rows")))

    def copy(common: Floats, packs: Floats, sizes: Any, side: int) -> None:
        n, c, k, r = counts(sizes)
        in_core, in_rows = copied(sizes)
        before, after = n + side * c, n + (1 - side) * c
        for i in range(in_core):
            common[after + i] = common[before + i]
        rows = view(packs)
        before, after = k + side * r, k + (1 - side) * r
        for i in range(in_rows):
            rows[after + i] = rows[before + i]

    return kernel(copy)


@kernel
def all_in_range(values: Floats) -> bool:
    """Return whether all numbers are finite and at most `MAX_CARRIED` in absolute value."""
    valid = True
    for i in range(values.shape[0]):
        valid = valid and bool(abs(values[i]) <= MAX_CARRIED)
    return valid


class PlayedDecision(NamedTuple):
    """A decision with its loss: the play, its propensity, and the arrays that it carries."""

    play: Play
    propensity: float
    direction: Floats
    baseline: Floats


def build_observe(functions: Kernel) -> Callable[..., bool]:
    """Build the function that checks a decision and learns from it; it returns whether the decision is valid."""
    carried_of, learn, possible = functions.carried_of, functions.learn, functions.possible

    def observe(known: Any, options: Any, state: Any, sizes: Any, decision: PlayedDecision) -> bool:
        play, propensity, direction, baseline = decision
        if not (all_in_range(direction) and all_in_range(baseline) and 0.0 < propensity <= MAX_PROPENSITY):
            return False
        carried = carried_of(direction, baseline, sizes)
        if not possible(known, options, play, carried, propensity):
            return False
        learn(known, options, state, play, carried)
        return True

    return kernel(observe)


def build_act(functions: Kernel) -> Callable[..., int]:
    """Build the entry point that draws an arm and writes its direction and baseline."""
    views, choose, carried_of = build_views(functions), functions.choose, functions.carried_of

    def act(
        common: Floats, packs: Floats, whole: Ints, side: int, x: int, key: int, time: int, direction: Floats,
        baseline: Floats,
    ) -> int:  # fmt: skip
        sizes = (whole[0], whole[1], whole[2], whole[3])
        known, options, state, work = views(common, packs, sizes, side)
        draw = Draw(two_uniforms(key, time, ARM, 0), key, time)
        return choose(known, options, state, work, x, draw, carried_of(direction, baseline, sizes))

    return act


def build_step(functions: Kernel) -> Callable[..., int]:
    """Build the entry point that updates the spare memory: copy the current one, add an observation, compute the plan.

    Each of the three is done if ``begins``, ``feeds`` or ``ends``, respectively.
    """
    views, copy, observe, refresh = (
        build_views(functions),
        copy_of(functions),
        build_observe(functions),
        functions.refresh,
    )

    def step(
        common: Floats, packs: Floats, whole: Ints, side: int, begins: bool, feeds: bool, ends: bool, x: int, a: int,
        loss: float, propensity: float, direction: Floats, baseline: Floats,
    ) -> int:  # fmt: skip
        sizes = (whole[0], whole[1], whole[2], whole[3])
        if begins:
            copy(common, packs, sizes, side)
        known, options, state, work = views(common, packs, sizes, 1 - side)
        decision = PlayedDecision(Play(x, a, loss), propensity, direction, baseline)
        if feeds and not observe(known, options, state, sizes, decision):
            return DAMAGED
        if ends:
            return refresh(known, options, state, work)
        return OK

    return step


def build_feed(functions: Kernel) -> Callable[..., int]:
    """Build the entry point that copies and adds a batch of observations, each as `build_step` does.

    It returns how many were added before the first invalid one, or minus the status of a plan that failed. The plan
    after the last observation is left to `build_step`.
    """
    views, copy, observe = build_views(functions), copy_of(functions), build_observe(functions)
    refresh, row_by_row = functions.refresh, functions.row_by_row

    def feed(
        common: Floats, packs: Floats, whole: Ints, side: int, losses: Floats, xs: Ints, arms: Ints,
        propensities: Floats, directions: Floats, baselines: Floats,
    ) -> int:  # fmt: skip
        sizes = (whole[0], whole[1], whole[2], whole[3])
        copy(common, packs, sizes, side)
        known, options, state, work = views(common, packs, sizes, 1 - side)
        for i in range(len(xs)):
            if row_by_row and i > 0:
                status = refresh(known, options, state, work)
                if status != OK:
                    return -status
            play = Play(xs[i], arms[i], losses[i])
            decision = PlayedDecision(play, propensities[i], directions[i], baselines[i])
            if not observe(known, options, state, sizes, decision):
                return i
        return len(xs)

    return feed


def build_decide(functions: Kernel) -> Callable[..., int]:
    """Build the entry point that draws an arm from a plan, with scratch space of the calling thread."""
    known_of, options_of, state_of, work_of = (
        functions.known_of,
        functions.options_of,
        functions.state_of,
        functions.work_of,
    )
    choose, carried_of = functions.choose, functions.carried_of
    view, counts = contexts if functions.wide else scalars, counts_of(functions)

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


def build_decide_all(functions: Kernel) -> Callable[..., int]:
    """Build the entry point that draws arms for many contexts, each as `build_decide` does; it returns their number."""
    decide = kernel(build_decide(functions))

    def decide_all(
        common: Floats, packs: Floats, rows: Floats, spare: Floats, spare_rows: Floats, whole: Ints, xs: Ints,
        keys: Ints, times: Ints, arms: Ints, directions: Floats, baselines: Floats,
    ) -> int:  # fmt: skip
        for i in range(len(xs)):
            x, key, time = int(xs[i]), int(keys[i]), int(times[i])  # the interpreter's integers do not overflow
            arms[i] = decide(common, packs, rows, spare, spare_rows, whole, x, key, time, directions[i], baselines[i])
        return len(xs)

    return decide_all


def interpreted_entries(functions: Kernel) -> EntryPoints:
    """Return the entry points of an algorithm as plain Python functions."""
    return EntryPoints(
        build_act(functions),
        build_step(functions),
        build_feed(functions),
        build_decide(functions),
        build_decide_all(functions),
    )


@lru_cache(maxsize=64)
def compiled_entries(functions: Kernel) -> EntryPoints:
    """Return the compiled entry points of an algorithm; the same ones for all policies of a process."""
    return EntryPoints(*(compiled(entry) for entry in interpreted_entries(functions)))


@lru_cache(maxsize=64)
def background_entries(functions: Kernel) -> EntryPoints:
    """Return the entry points of a policy: interpreted while a thread compiles them.

    Those of plans compile quickly and are not interpreted. Neither is code from outside the package, so that its
    compile errors appear at once.
    """
    plain, machine_code = interpreted_entries(functions), compiled_entries(functions)
    if foreign_hash(plain.step):
        return machine_code
    names = ("act", "step", "feed")
    background = {name: BackgroundCompiled(getattr(plain, name), getattr(machine_code, name)) for name in names}
    return machine_code._replace(**background)
