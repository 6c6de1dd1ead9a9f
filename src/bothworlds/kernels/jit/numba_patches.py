"""Patches of numba that compile machine code for entry points only, in a third of the time.

Kernel functions are always inlined and never called by themselves. Numba would still optimise each of the about eighty
functions of an entry point, generate its machine code and wrap it for C. With the patches, an inlined function is
compiled to LLVM IR only, which is all that inlining needs, and the entry point is optimised as a whole. Results stay
the same bit for bit, because floating-point operations are never reordered. LLVM's loop strength reduction takes a
seventh of the time and gains nothing, so it is off; loop unrolling takes a sixth and is off where it gains nothing. The
garbage collector is paused. Four of numba's methods are replaced while compiling; if a version of numba lacks one of
them, everything is compiled as usual.

The start of `Matched` and its first update, at S, K, d = 10, 5, 5 with nothing compiled, take 42 seconds of CPU time
with all patches, 113 and 117 without (a busy x86 host), and 57 and 63 with the patches against machine code only.
"""

import contextlib
import gc
import platform
from collections.abc import Callable, Iterator
from typing import Any, Literal

import llvmlite.binding as llvm
from numba.core import codegen, cpu

_make_function: Any = getattr(vars(cpu).get("_dynfunc"), "make_function", None)
INLINED = "bothworlds_inlined"  # attribute that marks a library whose functions are inlined elsewhere
Method = Callable[..., Any]
Kind = Literal["call", "run", "lanes"]  # of an entry point: a call of a policy, one replication, or several at once


def _without_wrapper(plain: Method) -> Method:
    """Generate C wrappers only for functions that are not inlined."""

    def create_cfunc_wrapper(self: Any, library: Any, fndesc: Any, *rest: Any) -> None:
        if not fndesc.inline:
            plain(self, library, fndesc, *rest)

    return create_cfunc_wrapper


def _without_code(plain: Method) -> Method:
    """Generate machine code only for functions that are not inlined; others get a placeholder with their name."""

    def get_executable(self: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if not fndesc.inline:
            return plain(self, library, fndesc, env)
        setattr(library, INLINED, True)
        name = fndesc.qualname.split(".")[-1]
        return _make_function(fndesc.lookup_module(), name, "kernel code", 0, env, (library,))

    return get_executable


def _unless_inlined(plain: Method) -> Method:
    """Skip a method for libraries whose functions are inlined."""

    def method(self: Any) -> None:
        if not getattr(self, INLINED, False):
            plain(self)

    return method


def _finalized(plain: Method) -> Method:
    """Finalize a library; if its functions are inlined, without generating machine code."""

    def finalize(self: Any) -> None:
        if not getattr(self, INLINED, False):
            plain(self)
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    return finalize


def _without_unrolling(plain: Method) -> Method:
    """Switch loop unrolling off."""

    def create_pipeline_tuning_options(*arguments: Any, **named: Any) -> Any:
        options = plain(*arguments, **named)
        options.loop_unrolling = False
        return options

    return create_pipeline_tuning_options


@contextlib.contextmanager
def _fewer_loop_passes(kind: Kind) -> Iterator[None]:
    """Switch LLVM's loop strength reduction off, and loop unrolling where it gains nothing.

    Strength reduction: in fully inlined code so many loop counters are live that they are spilled to memory. Without
    it, lanes are up to a quarter faster on one x86 host and up to a fifth on another, and as fast at some sizes; at a
    few sizes they are a twentieth slower. Unrolling, on x86: without it a single replication is a tenth faster, or as
    fast with larger matrices, but calls of policies are up to 6 % slower, and some lanes 10 %.
    """
    name = "create_pipeline_tuning_options"
    rolled = platform.machine() in X86 and kind == "run" and name in vars(llvm)
    with contextlib.ExitStack() as stack:
        if llvm.llvm_version_info >= KNOWN_LLVM:  # older versions might accept an option only once, and keep it
            llvm.set_option("bothworlds", "-disable-lsr=true")
            stack.callback(llvm.set_option, "bothworlds", "-disable-lsr=false")
        if rolled:
            plain = vars(llvm)[name]
            setattr(llvm, name, _without_unrolling(plain))
            stack.callback(setattr, llvm, name, plain)
        yield


KNOWN_LLVM, X86 = (22,), ("x86_64", "AMD64")
REPLACED: dict[str, tuple[Any, Callable[[Method], Method]]] = {
    "create_cfunc_wrapper": (cpu.CPUContext, _without_wrapper),
    "get_executable": (cpu.CPUContext, _without_code),
    "_optimize_final_module": (codegen.CPUCodeLibrary, _unless_inlined),
    "_finalize_final_module": (codegen.CPUCodeLibrary, _finalized),
}
REQUIRED = ("_finalize_dynamic_globals", "_verify_declare_only_symbols")


@contextlib.contextmanager
def entries_only(kind: Kind = "call") -> Iterator[None]:
    """Generate machine code for entry points only while a block runs; the caller holds numba's compiler lock."""
    known = all(name in vars(owner) for name, (owner, _) in REPLACED.items())
    if _make_function is None or not known or not all(hasattr(codegen.CPUCodeLibrary, name) for name in REQUIRED):
        yield
        return
    before = {name: vars(owner)[name] for name, (owner, _) in REPLACED.items()}
    was_enabled = gc.isenabled()
    gc.disable()  # a compiler creates many objects and keeps most of them
    try:
        for name, (owner, patch) in REPLACED.items():
            setattr(owner, name, patch(before[name]))
        with _fewer_loop_passes(kind):
            yield
    finally:
        for name, (owner, _) in REPLACED.items():
            setattr(owner, name, before[name])
        if was_enabled:
            gc.enable()
