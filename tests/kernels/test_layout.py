"""Memory layouts: fields lie side by side in their order, and are found by name, also in blocks."""

from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known, Machine, flat_known, in_blocks, leaf_values, out_of_blocks
from bothworlds.kernels.entry_points import arrays_of, memory_of, part_of, put
from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.layout import (
    ORDER,
    Layout,
    Sizes,
    carries,
    given,
    learnt,
    leaves_of,
    planned,
    recalled,
    scratch,
)
from support.golden_values import CASES
from support.problems import random_problem

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZES = Sizes(S=11, K=3, d=2, P=5)
each = pytest.mark.parametrize("name", CASES)


class Inner(NamedTuple):
    total: Annotated[Floats, learnt()]
    share: Annotated[Floats, planned(2)]


class State(NamedTuple):
    pi: Annotated[Floats, planned("S", "K")]
    t: Annotated[Floats, learnt()]
    inner: Inner
    theta: Annotated[Floats, learnt("K*d")]
    arms: Annotated[Floats, learnt("K", "d", same_as="theta")]
    y: Annotated[Floats, recalled("S")]


class Work(NamedTuple):
    cube: Annotated[Floats, scratch("d", "d", "P")]
    sums: Annotated[Floats, scratch("d", "d", packed=True)]


class Options(NamedTuple):
    eta: float
    points: Annotated[Floats, given("P", "d")]
    gamma: float


class Carried(NamedTuple):
    direction: Annotated[Floats, carries("d")]
    seed: Annotated[Floats, carries()]
    baseline: Annotated[Floats, carries("K")]


def numbered(count: int) -> Floats:
    return np.arange(float(count))


def machine_of(name: str) -> Machine:
    machine: Machine = CASES[name].machine(random_problem(3, S=11, K=3, d=2))
    return machine


def test_fields_lie_in_the_order_of_their_kinds() -> None:
    memory = Layout(State, Work)
    assert memory.counts(SIZES) == {"core": 1 + 1 + 6 + 2 + 20, "rows": 11 + 33 + 4, "options": 0, "known": 0}
    core, rows = numbered(30), 100.0 + numbered(48)
    state = memory.reader(State, "core", "rows")(core, rows, tuple(SIZES))
    work = memory.reader(Work, "core", "rows")(core, rows, tuple(SIZES))
    assert (state.t.tolist(), state.inner.total.tolist()) == ([0.0], [1.0])
    assert state.theta.tolist() == state.arms.ravel().tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert state.inner.share.tolist() == [8.0, 9.0]
    assert (work.cube.shape, work.cube[0, 0, 0], work.cube[1, 1, 4]) == ((2, 2, 5), 10.0, 29.0)
    assert (state.y[0], state.pi[0, 0], state.pi[10, 2]) == (100.0, 111.0, 143.0)
    assert work.sums.tolist() == [[144.0, 145.0], [146.0, 147.0]]
    assert memory.learnt == ("t", "total", "theta")
    state.arms[1, 0] = -1.0
    assert state.theta[2] == -1.0  # one memory, two shapes


def test_options_and_carried_arrays() -> None:
    outside = Layout(Options, Carried, Known)
    options = outside.reader(Options, "options")(numbered(12), tuple(SIZES))
    assert (options.eta, options.gamma) == (0.0, 11.0)
    assert options.points.tolist() == (1.0 + numbered(10)).reshape(5, 2).tolist()
    carried = outside.reader(Carried, "direction", "baseline")(numbered(3), 7.0 + numbered(3), tuple(SIZES))
    assert [part.tolist() for part in carried] == [[0.0, 1.0], [2.0], [7.0, 8.0, 9.0]]


def test_two_fields_of_one_name_are_refused() -> None:
    class Other(NamedTuple):
        total: Annotated[Floats, scratch()]

    with pytest.raises(ValueError, match=r"two fields of a learner have the same name: .*total, total"):
        Layout(State, Other)


def test_compiled_readers_find_the_same_fields() -> None:
    read = Layout(State, Work).reader(State, "core", "rows")

    def some(core: Floats, rows: Floats, sizes: tuple[int, ...]) -> tuple[float, ...]:
        state = read(core, rows, sizes)
        return state.t[0], state.inner.share[1], state.theta[5], state.arms[2, 1], state.y[10], state.pi[10, 2]

    arguments = numbered(30), numbered(48), tuple(SIZES)
    assert some(*arguments) == compiled(some)(*arguments) == (0.0, 9.0, 7.0, 7.0, 10.0, 43.0)


@each
def test_every_learner_fills_its_memory_without_gaps_or_overlaps(name: str) -> None:
    machine = machine_of(name)
    memory, sizes = machine.kernel.memory, machine.sizes
    arrays = dict(zip(("core", "rows"), machine.memory(), strict=True))
    for array, numbers in arrays.items():
        owners = [leaf for leaf in memory.leaves.values() if leaf.array == array and not leaf.spec.same_as]
        kinds = [ORDER.index(leaf.spec.kind) for leaf in owners]
        assert kinds == sorted(kinds)  # an update copies learnt and recalled fields, so they come first
        numbers[...] = 0.0
        for leaf in owners:
            machine.part(leaf.name, arrays["core"], arrays["rows"], sizes)[...] += 1.0
        assert numbers.tolist() == [1.0] * len(numbers)


@each
def test_flat_options_and_known_arrays_are_read_back(name: str) -> None:
    machine = machine_of(name)
    read = machine.kernel.options_of(machine.flat_options, tuple(machine.sizes))
    assert len(machine.flat_options) == machine.kernel.outside.count("options", machine.sizes)
    for one, two in zip(leaf_values(read), leaf_values(machine.options), strict=True):
        assert np.array_equal(one, two)
    known = machine.kernel.known_of(flat_known(machine.known), tuple(machine.sizes))
    assert all(np.array_equal(one, two) for one, two in zip(known, machine.known, strict=True))
    if machine.kernel.wide:
        blocks = machine.kernel.known_of(flat_known(machine.known, wide=True), tuple(machine.block_sizes))
        for one, two in zip(blocks, machine.known, strict=True):
            assert one.tolist() == in_blocks(two).tolist()


@each
def test_fields_written_to_either_memory_are_read_back(name: str) -> None:
    """Fields with an axis of contexts are stored in blocks of eight if the kernel is wide; no other memory changes."""
    machine = machine_of(name)
    arrays, rng = arrays_of(machine, 5), np.random.default_rng(1)
    for side in (0, 1):
        state = machine.kernel.state_of(*memory_of(machine, arrays, side), arrays.sizes)
        assert state.t.tolist() == [1.0]
        for field, spec in leaves_of(type(state)):
            _, shape = machine.kernel.memory.leaves[field].place(machine.sizes)
            value = rng.normal(size=shape)
            before = [array.copy() for array in memory_of(machine, arrays, 1 - side)]
            put(machine, arrays, side, field, value)
            stored = part_of(machine, arrays, side, field)
            blocked = machine.kernel.wide and spec.in_rows
            assert (out_of_blocks(stored, machine.sizes.S) if blocked else stored).tolist() == value.tolist()
            assert not blocked or stored.tolist() == in_blocks(value).tolist()
            assert all(map(np.array_equal, memory_of(machine, arrays, 1 - side), before))


@each
def test_learnt_fields_are_those_of_files(name: str) -> None:
    policy: Any = CASES[name].start(random_problem(3, S=11, K=3, d=2), rng=1, interpreted=True)
    learnt_fields = policy.learnt()
    fields = dict(leaves_of(type(policy.state)))
    assert set(learnt_fields) == {name for name, spec in fields.items() if spec.kind == "learnt" and not spec.same_as}
    assert "t" in learnt_fields
    assert isinstance(policy, bw.Policy)
