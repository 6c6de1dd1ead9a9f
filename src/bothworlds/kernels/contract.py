"""What an algorithm is to everything that plays it: records, functions on them, and arrays for a problem.

An algorithm declares its options, its state, its scratch space and what its decisions carry (`layout`), and writes

    refresh(known, options, state, work) -> status            compute the plan from what is learnt
    choose(known, options, state, work, x, draw, carried) -> arm     draw an arm, fill in what the decision carries
    learn(known, options, state, play, carried)               add one observation

The state has fields ``t``, one more than the updates so far, and ``pi``, the probabilities of all contexts and arms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from bothworlds.kernels.arithmetic import WIDTH, Number, Place
from bothworlds.kernels.arrays import Bools, Floats, aligned
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import NOTHING, Layout, Nothing, Sizes, fixed, flat, leaves_of
from bothworlds.kernels.random import Two


class Known(NamedTuple):
    """What a kernel knows of the problem and never changes: with an entry per context, or per block of eight.

    Features z, probabilities g, zero or (where an arm is not offered) infinity, and the exploration policy e.
    """

    z: Annotated[Floats, fixed("S", "K", "d")]
    g: Annotated[Floats, fixed("S")]
    blocked: Annotated[Floats, fixed("S", "K")]
    e: Annotated[Floats, fixed("S", "K")]


class Draw(NamedTuple):
    """The randomness of a decision: two uniforms, and key and time for those who need more of it."""

    uniforms: Two
    key: int
    time: int


class Play(NamedTuple):
    """An observation: context, arm and loss."""

    x: Place
    a: Place
    loss: Number


class KernelText(NamedTuple):
    """An algorithm as kernel text; made by `kernel_text`.

    ``wide``: ``refresh`` keeps to `arithmetic`, so that it can work on eight contexts or sixteen replications at once.
    ``together``: ``choose`` and ``learn`` do so too, each replication with its own context and arm. ``static`` has the
    positions of options that choose between branches: a GPU compiles them in.
    """

    memory: Layout
    outside: Layout
    known_of: Callable[..., Known]
    options_of: Callable[..., Any]
    state_of: Callable[..., Any]
    work_of: Callable[..., Any]
    carried_of: Callable[..., Any]
    refresh: Callable[..., int]
    choose: Callable[..., int]
    learn: Callable[..., None]
    possible: Callable[..., bool]
    wide: bool
    together: bool
    static: tuple[int, ...]

    @property
    def has_baseline(self) -> bool:
        """Whether decisions carry a baseline besides their direction."""
        return "baseline" in self.outside.leaves


@kernel
def anything(known: Known, options: Any, play: Play, carried: Any, propensity: float) -> bool:
    """Take every decision for possible: nothing is known of what plans write."""
    return True


def kernel_text(
    refresh: Callable[..., int],
    choose: Callable[..., int],
    learn: Callable[..., None],
    *,
    possible: Callable[..., bool] = anything,
    wide: bool = False,
    together: bool = False,
    static: tuple[str, ...] = (),
) -> KernelText:
    """Put an algorithm together from its functions; their annotations say which records they take.

    ``possible`` tells whether any plan can have made a decision (`kernels.possible`); ``static`` names options.
    """
    options, state, work = (_record(name, refresh) for name in ("options", "state", "work"))
    carried = _record("carried", choose, learn)
    memory, outside = Layout(state, work), Layout(options, carried, Known)
    return KernelText(
        memory=memory,
        outside=outside,
        known_of=outside.reader(Known, "known"),
        options_of=outside.reader(options, "options"),
        state_of=memory.reader(state, "core", "rows"),
        work_of=memory.reader(work, "core", "rows"),
        carried_of=outside.reader(carried, "direction", "baseline"),
        refresh=refresh,
        choose=choose,
        learn=learn,
        possible=possible,
        wide=wide or together,
        together=together,
        static=tuple(outside.leaves[name].place(Sizes(0, 0, 0))[0] for name in static),
    )


def _record(name: str, *functions: Callable[..., Any]) -> type:
    """Return the record that an argument of one of the functions is annotated with, or one without fields."""
    hints: list[Any] = [get_type_hints(function).get(name) for function in functions]
    found: type = next((hint for hint in hints if hasattr(hint, "_fields")), Nothing)
    return found


def known_of(problem: Any, exploration: Floats, coordinates: Floats) -> Known:
    """Return what the kernels know of a problem; features of arms not offered are zero."""
    blocked = np.where(problem.available, 0.0, np.inf)
    return Known(np.array(coordinates), np.array(problem.probabilities), blocked, np.array(exploration))


def even_play(available: Bools) -> Floats:
    """Return the policy that plays all offered arms equally often."""
    return np.asarray(available / available.sum(axis=1, keepdims=True))


def in_blocks(values: Floats) -> Floats:
    """Return an array (contexts, ...) as (blocks, ..., 8): eight contexts side by side, zeros beyond the last."""
    blocks = -(-len(values) // WIDTH)
    padded = np.zeros((blocks * WIDTH, *values.shape[1:]))
    padded[: len(values)] = values
    return np.moveaxis(padded.reshape(blocks, WIDTH, *values.shape[1:]), 1, -1)


def out_of_blocks(values: Floats, n_contexts: int) -> Floats:
    """Return an array (blocks, ..., 8) as (contexts, ...).

    >>> out_of_blocks(in_blocks(np.arange(10.0)), 10).tolist()[-1]
    9.0
    """
    rows = values.transpose(0, -1, *range(1, values.ndim - 1))  # what moveaxis does, in a tenth of its time
    return rows.reshape(-1, *rows.shape[2:])[:n_contexts].copy()


def flat_known(known: Known, *, wide: bool = False) -> Floats:
    """Return what is known as one array of numbers, or of packs of eight contexts."""
    parts = [in_blocks(part).reshape(-1, WIDTH) if wide else part.reshape(-1) for part in known]
    out = aligned(sum(len(part) for part in parts), *parts[0].shape[1:])
    out[...] = np.concatenate(parts)
    return out


class Beliefs(NamedTuple):
    """What a learner can be told before its first round, by the names of fields of its state; declared beside it.

    ``total`` is Theta, the sum of estimates, which n rounds with a mean of theta have brought to n theta. Where not
    all rounds so far are in it ``counted`` has n. Plans follow the sum of ``total`` and ``leant``, where there is one.
    ``gram`` and ``moment`` are those of a ridge regression.
    ``paced(options, rounds, earlier)`` has the fields that rates follow, after that many rounds; ``earlier`` is what a
    policy had learnt before, with its options and the share of its rounds that is still believed, or None. ``kept`` are
    fields that another problem does not change. ``linear``: what decisions carry are vectors in the learner's
    coordinates.
    """

    total: str = ""
    counted: str = ""
    leant: str = ""
    gram: str = ""
    moment: str = ""
    paced: Callable[..., Mapping[str, Any]] | None = None
    kept: tuple[str, ...] = ()
    linear: bool = True


class Earlier(NamedTuple):
    """What a policy had learnt on an earlier problem: its options, what was learnt, and which share is believed."""

    options: Any
    learnt: Mapping[str, Floats]
    share: float


def no_seed(key: Any) -> Mapping[str, Any]:
    """Return what a state needs of its stream, for algorithms whose plans are not drawn: nothing."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An algorithm made ready for a problem: kernel text, and the arrays it works on.

    ``begin`` has what is known of the state before the first round, by name; everything else starts at zero, and ``t``
    at one. ``seeded(key)`` has what depends on the stream of random numbers, for an algorithm whose plans are drawn;
    the key is that of the policy or of the replication, or an array of them, one for each lane. ``frame`` has the
    arrays from which the same machine can be built again. ``policies`` is how many are listed, where there is an entry
    for each. ``beliefs`` says what of the state a prior can fill, None that there is no such thing. ``rates`` names the
    field of the state with eta_t and gamma_t, where pi_t = (1 - gamma_t) q_t + gamma_t e: a simulation records them.
    """

    text: KernelText
    known: Known
    options: Any = NOTHING
    begin: Mapping[str, Any] = field(default_factory=dict)
    seeded: Callable[[Any], Mapping[str, Any]] = no_seed
    frame: Mapping[str, Floats] = field(default_factory=dict)
    policies: int = 0
    beliefs: Beliefs | None = None
    rates: str = ""

    def __post_init__(self) -> None:
        leaf = self.text.memory.leaves.get(self.rates)
        if self.rates and (leaf is None or leaf.part.shape != (2,)):
            raise ValueError(
                f"rates must name a field of the state with two numbers, eta and gamma; got {self.rates!r}"
            )

    @cached_property
    def sizes(self) -> Sizes:
        """How large the problem is."""
        S, K, d = self.known.z.shape
        return Sizes(S, K, d, self.policies)

    @cached_property
    def block_sizes(self) -> Sizes:
        """The same, as a policy sees it: with blocks of eight contexts where the text can take them."""
        S = self.sizes.S
        return self.sizes._replace(S=-(-S // WIDTH) if self.text.wide else S)

    @property
    def flat_options(self) -> Floats:
        """The options as one array."""
        return flat(self.options)

    @property
    def carried(self) -> tuple[int, int]:
        """How many numbers a decision carries as its direction, and as its baseline."""
        outside = self.text.outside
        return outside.count("direction", self.sizes), outside.count("baseline", self.sizes)

    def memory(self, *lanes: int, key: Any = 0) -> tuple[Floats, Floats]:
        """Return the two parts of the memory at the start, core and rows, for one replication or for some lanes."""
        counts = self.text.memory.counts(self.sizes)
        core, rows = (aligned(counts[array], *lanes) for array in ("core", "rows"))
        for name, value in {"t": 1.0, **self.begin}.items():
            part = self.part(name, core, rows, self.sizes)
            part[...] = np.asarray(value).reshape(np.shape(value) + (1,) * len(lanes))
        for name, value in self.seeded(key).items():
            self.part(name, core, rows, self.sizes)[...] = value
        return core, rows

    def part(self, name: str, core: Floats, rows: Floats, sizes: Sizes) -> Floats:
        """Return a field of the state by its name."""
        in_rows = self.text.memory.leaves[name].array == "rows"
        return self.text.memory.part(name, rows if in_rows else core, sizes)


def all_parts(record: Any) -> list[Any]:
    """Return the fields at the ends of a record, in order."""
    return [end for part in record for end in (all_parts(part) if hasattr(part, "_fields") else [part])]


def field_of(record: Any, name: str) -> Any:
    """Return the field of a name at the ends of a record."""
    names = [leaf for leaf, _ in leaves_of(type(record))]
    return all_parts(record)[names.index(name)]
