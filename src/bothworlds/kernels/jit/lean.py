"""Machine code for what Python calls, and for nothing else: compiling takes two thirds of the time.

Kernel text is always inlined, so that a piece of it is never called by itself. Numba would still optimise each of the
pieces of an entry, some eighty, make machine code of it and wrap that for C. Here a piece gets as far as LLVM's text,
which is all that whoever inlines it needs; the entry is optimised as a whole. No bit changes: floating-point operations
are never reordered. What numba asks a million times, what a set of flags hashes to, which variables an instruction has
and which signature an operator has for some types, is answered sooner, and nobody is told of every lock. LLVM's search
for cheaper loop counters takes a seventh of all the time and gains nothing; unrolled loops take a sixth, and are left
out where they gain nothing. It reaches into numba; where a version of numba has other insides, everything is compiled
as usual.
"""

import contextlib
import gc
import platform
from collections.abc import Callable, Iterator
from typing import Any, Literal

import llvmlite.binding as llvm
from numba.core import codegen, cpu, event, ir, targetconfig
from numba.core.types import functions

_made: Any = getattr(vars(cpu).get("_dynfunc"), "make_function", None)
TEXT = "bothworlds_text_only"  # mark of a library whose text is inlined elsewhere
Method = Callable[..., Any]
Kind = Literal["call", "run", "lanes"]  # an entry is a call of a policy, or plays one replication, or several at once


def _without_wrapper(plain: Method) -> Method:
    """Wrap for C what is not inlined."""

    def create_cfunc_wrapper(self: Any, library: Any, fndesc: Any, *rest: Any) -> None:
        if not fndesc.inline:
            plain(self, library, fndesc, *rest)

    return create_cfunc_wrapper


def _without_code(plain: Method) -> Method:
    """Make machine code of what is not inlined; else only a name, which numba knows the text by."""

    def get_executable(self: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if not fndesc.inline:
            return plain(self, library, fndesc, env)
        setattr(library, TEXT, True)
        name = fndesc.qualname.split(".")[-1]
        return _made(fndesc.lookup_module(), name, "kernel text", 0, env, (library,))

    return get_executable


def _unless_text(plain: Method) -> Method:
    """Do something to libraries, but not to those whose text is inlined."""

    def done(self: Any) -> None:
        if not getattr(self, TEXT, False):
            plain(self)

    return done


def _ended(plain: Method) -> Method:
    """End a library; one whose text is inlined goes to no machine."""

    def finalize(self: Any) -> None:
        if not getattr(self, TEXT, False):
            plain(self)
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    return finalize


def _hashed_by_kind(plain: Method) -> Method:
    """Hash flags once for each kind of them: numba hashes the names of all options, which are the same for all."""
    known: dict[type, int] = {}

    def hashed(self: Any) -> int:
        kind = type(self)
        if kind not in known:
            known[kind] = plain(self)
        return known[kind]

    return hashed


def _equal_as_set(plain: Method) -> Method:
    """Take flags for equal if the same ones were set, before all are looked at."""

    def equal(self: Any, other: Any) -> Any:
        same = self is other or (type(self) is type(other) and self._values == other._values)
        return True if same else plain(self, other)

    return equal


def _listed_sooner(plain: Method) -> Method:
    """List variables, most often of a dictionary of names, places, numbers and variables."""

    def _rec_list_vars(self: Any, value: Any) -> list[Any]:
        if type(value) is not dict:
            found: list[Any] = plain(self, value)
            return found
        out: list[Any] = []
        for part in value.values():
            kind = type(part)
            if kind is ir.Var:
                out.append(part)
            elif kind not in NO_VARIABLES:
                out.extend(plain(self, part))
        return out

    return _rec_list_vars


def _typed_once(plain: Method) -> Method:
    """Look a signature up once for each function and types: numba tries all that might fit, each time it passes by."""
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return plain(self, context, args, kws)
        key = id(self), id(context), tuple(args)
        if key not in known:
            known[key] = plain(self, context, args, kws), self, context  # kept, so that no other has their ids
        return known[key][0]

    return get_call_type


def _untold(plain: Method) -> Method:
    """Tell of events, but not of locks: of these there are thousands in a second."""

    def tell(kind: str, *rest: Any, **named: Any) -> None:
        if kind not in LOCKS:
            plain(kind, *rest, **named)

    return tell


def _without_unrolling(plain: Method) -> Method:
    """Leave loops as many as they are."""

    def create_pipeline_tuning_options(*arguments: Any, **named: Any) -> Any:
        options = plain(*arguments, **named)
        options.loop_unrolling = False
        return options

    return create_pipeline_tuning_options


@contextlib.contextmanager
def _loops_as_written(kind: Kind) -> Iterator[None]:
    """Let LLVM look for no cheaper loop counters, and unroll no loops where nothing was gained by it.

    Counters: so many are live at once in text that is all inlined that they end up in memory. Without the search lanes
    are up to a quarter faster on one x86 and up to a fifth on another, at some sizes as fast; nothing is slower but a
    twentieth at few. Unrolling, on x86: a replication alone is a tenth faster without, and with larger matrices as
    fast; calls of policies are up to 6 % slower then, and some lanes 10 %.
    """
    name = "create_pipeline_tuning_options"
    rolled = platform.machine() in X86 and kind == "run" and name in vars(llvm)
    with contextlib.ExitStack() as stack:
        if llvm.llvm_version_info >= KNOWN_LLVM:  # older ones might take an option once only, and keep it
            llvm.set_option("bothworlds", "-disable-lsr=true")
            stack.callback(llvm.set_option, "bothworlds", "-disable-lsr=false")
        if rolled:
            plain = vars(llvm)[name]
            setattr(llvm, name, _without_unrolling(plain))
            stack.callback(setattr, llvm, name, plain)
        yield


KNOWN_LLVM, X86 = (22,), ("x86_64", "AMD64")
LOCKS = frozenset(["numba:compiler_lock", "numba:llvm_lock"])
NO_VARIABLES = frozenset([ir.Loc, str, int, type(None)])
REPLACED: dict[str, tuple[Any, Callable[[Method], Method]]] = {
    "create_cfunc_wrapper": (cpu.CPUContext, _without_wrapper),
    "get_executable": (cpu.CPUContext, _without_code),
    "_optimize_final_module": (codegen.CPUCodeLibrary, _unless_text),
    "_finalize_final_module": (codegen.CPUCodeLibrary, _ended),
    "__hash__": (targetconfig.TargetConfig, _hashed_by_kind),
    "__eq__": (targetconfig.TargetConfig, _equal_as_set),
    "_rec_list_vars": (ir.Inst, _listed_sooner),
    "get_call_type": (functions.BaseFunction, _typed_once),
    "start_event": (event, _untold),
    "end_event": (event, _untold),
}
USED = ("_finalize_dynamic_globals", "_verify_declare_only_symbols")


@contextlib.contextmanager
def entries_only(kind: Kind = "call") -> Iterator[None]:
    """Make machine code for entries only, as long as this lasts. Whoever compiles holds numba's lock for it."""
    known = all(name in vars(owner) for name, (owner, _) in REPLACED.items())
    if _made is None or not known or not all(hasattr(codegen.CPUCodeLibrary, name) for name in USED):
        yield
        return
    before = {name: vars(owner)[name] for name, (owner, _) in REPLACED.items()}
    collected = gc.isenabled()
    gc.disable()  # a compiler makes many objects, and keeps most
    try:
        for name, (owner, make) in REPLACED.items():
            setattr(owner, name, make(before[name]))
        with _loops_as_written(kind):
            yield
    finally:
        for name, (owner, _) in REPLACED.items():
            setattr(owner, name, before[name])
        if collected:
            gc.enable()
