"""Memory layout of a replication on a GPU: a column of floats, and one of whole numbers."""

from itertools import accumulate
from typing import Any, NamedTuple

from bothworlds.kernels.contract import Machine
from bothworlds.kernels.layout import Sizes
from bothworlds.simulation.round_loop import TOTALS
from bothworlds.simulation.setting import Setting

ENDS = 3
WHOLE = 3  # the last parts are whole numbers


class Parts(NamedTuple):
    """The parts of a replication: as arrays, as lengths, or as first positions in a column.

    The learner's core and rows; the environment's sums and state; the totals; losses, directions and baselines of
    waiting decisions; the environment's best, c and expected_loss. Then, in a column of whole numbers, contexts and
    arms of waiting decisions, and the ends of the queue.
    """

    core: Any
    rows: Any
    sums: Any
    state: Any
    totals: Any
    losses: Any
    directions: Any
    baselines: Any
    best: Any
    c: Any
    expected_loss: Any
    contexts: Any
    arms: Any
    ends: Any


class Extents(NamedTuple):
    """Constants of a kernel: sizes of the problem, the queue and all parts, and the environment's rule and noise.

    No part is empty, because the compiler does not support arrays of length zero. ``loaded`` has the lengths of core
    and rows that a slice loads, ``saved_rows`` the length of rows that it saves, including the plan. ``rates`` is that
    of `Machine`.
    """

    sizes: Sizes
    options: int
    capacity: int
    carried: tuple[int, int]
    kind: int
    noise: int
    counts: Parts
    loaded: tuple[int, int]
    saved_rows: int
    rates: str

    @property
    def starts(self) -> Parts:
        """First position of each part in its column."""
        reals, whole = self.counts[:-WHOLE], self.counts[-WHOLE:]
        return Parts(*accumulate(reals[:-1], initial=0), *accumulate(whole[:-1], initial=0))

    @property
    def saved(self) -> int:
        """Length of the column of floats."""
        return sum(self.counts[:-WHOLE])

    @property
    def places(self) -> int:
        """Length of the column of whole numbers."""
        return sum(self.counts[-WHOLE:])


def extents_of(machine: Machine, setting: Setting) -> Extents:
    """Return the extents of a run; every part has at least length 1."""
    nature, memory, sizes = setting.environment.begin(), machine.kernel.memory, machine.sizes
    J, capacity = len(nature.c), setting.delay + setting.batch
    direction, baseline = machine.carried
    counts = Parts(
        core=memory.count("core", sizes),
        rows=memory.count("rows", sizes),
        sums=J,
        state=len(nature.state),
        totals=TOTALS,
        losses=capacity,
        directions=capacity * direction,
        baselines=capacity * baseline,
        best=J + 1,
        c=J,
        expected_loss=J,
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
        counts=Parts(*(max(1, count) for count in counts)),
        loaded=(memory.count("core", sizes, "learnt", "recalled"), memory.count("rows", sizes, "learnt", "recalled")),
        saved_rows=memory.count("rows", sizes, "learnt", "recalled", "planned"),
        rates=machine.rates,
    )
