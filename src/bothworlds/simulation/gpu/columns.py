"""How a replication lies in the memory of a GPU: as a column of numbers, and one of whole numbers."""

from itertools import accumulate
from typing import Any, NamedTuple

from bothworlds.kernels.contract import Machine
from bothworlds.kernels.layout import Sizes
from bothworlds.simulation.setting import Setting

TOTALS = ENDS = 3
WHOLE = 3  # the last parts are whole numbers


class Parts(NamedTuple):
    """The parts of a replication: as arrays, as how many numbers they have, or as where in a column they begin.

    The learner's memory; nature's sums and state; the totals; losses, directions and baselines of the decisions that
    wait; nature's c and hurt. Then, in a column of their own, contexts and arms of those decisions, and the queue's
    ends.
    """

    core: Any
    rows: Any
    sums: Any
    state: Any
    totals: Any
    losses: Any
    directions: Any
    baselines: Any
    c: Any
    hurt: Any
    contexts: Any
    arms: Any
    ends: Any


class Extents(NamedTuple):
    """Constants of a kernel: the sizes of the problem, of the queue and of all parts, and nature's rule.

    No part is empty: the compiler knows no arrays of length zero. ``kept`` has how many numbers of core and rows a
    slice needs of the one before; ``planned`` how many of the rows a slice leaves, with the plan. ``rates`` as in
    `Machine`.
    """

    sizes: Sizes
    options: int
    capacity: int
    carried: tuple[int, int]
    kind: int
    noise: int
    counts: Parts
    kept: tuple[int, int]
    planned: int
    rates: str

    @property
    def starts(self) -> Parts:
        """Where each part begins in its column."""
        reals, whole = self.counts[:-WHOLE], self.counts[-WHOLE:]
        return Parts(*accumulate(reals[:-1], initial=0), *accumulate(whole[:-1], initial=0))

    @property
    def saved(self) -> int:
        """Numbers of a column."""
        return sum(self.counts[:-WHOLE])

    @property
    def places(self) -> int:
        """Whole numbers of a column."""
        return sum(self.counts[-WHOLE:])


def extents_of(machine: Machine, setting: Setting) -> Extents:
    """Return the extents of a run."""
    nature, memory, sizes = setting.environment.begin(), machine.text.memory, machine.sizes
    J, capacity = len(nature.c), setting.delay + setting.batch
    direction, baseline = machine.carried
    needed = Parts(
        core=memory.count("core", sizes),
        rows=memory.count("rows", sizes),
        sums=J,
        state=len(nature.state),
        totals=TOTALS,
        losses=capacity,
        directions=capacity * direction,
        baselines=capacity * baseline,
        c=J,
        hurt=J,
        contexts=capacity,
        arms=capacity,
        ends=ENDS,
    )
    return Extents(
        sizes=sizes,
        options=len(machine.flat_options),
        capacity=capacity,
        carried=(direction, baseline),
        kind=nature.kind,
        noise=nature.noise,
        counts=Parts(*(max(1, count) for count in needed)),
        kept=(memory.count("core", sizes, "learnt", "recalled"), memory.count("rows", sizes, "learnt", "recalled")),
        planned=memory.count("rows", sizes, "learnt", "recalled", "planned"),
        rates=machine.rates,
    )
