"""A notice on stderr when compiling takes long."""

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from bothworlds.kernels.jit.numba_patches import Kind, entries_only

Value = TypeVar("Value")


@contextlib.contextmanager
def temporarily(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Set a context variable while a block runs.

    >>> loud = ContextVar("loud", default=True)
    >>> with temporarily(loud, False):
    ...     loud.get()
    False
    >>> loud.get()
    True
    """
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


PATIENCE = 1.0  # seconds
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)
_ON_COMPILE: ContextVar[Callable[[], None] | None] = ContextVar("on_compile", default=None)
_seconds: list[float] = []  # of each compilation in this process


def silence_notices() -> contextlib.AbstractContextManager[None]:
    """Print no notices while a block runs, for callers that show progress themselves."""
    return temporarily(_SILENT, True)


@contextlib.contextmanager
def compile_notice(what: str, *, after: float = PATIENCE) -> Iterator[None]:
    """Print on stderr that ``what`` is being compiled, if the block runs longer than ``after`` seconds."""
    if _SILENT.get():
        yield
        return
    sentence = f"bothworlds: compiling {what}, once for this machine; `bothworlds warm` does it beforehand"
    timer = threading.Timer(after, lambda: print(sentence, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def on_compile(notice: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Call a function at the start of every compilation while a block runs."""
    return temporarily(_ON_COMPILE, notice)


def seconds_compiling() -> float:
    """Return how many seconds this process has compiled."""
    return sum(_seconds)


def attach_notice(dispatcher: Any, kind: Kind) -> None:
    """Make numba's dispatcher print a notice when it compiles, which it does only if the disk cache has no code."""
    compiler, name = dispatcher._compiler, dispatcher.__name__
    compiler.compile = _with_notice(compiler.compile, f"{name!r}", kind)


def _with_notice(compile_: Callable[..., Any], what: str, kind: Kind) -> Callable[..., Any]:
    """Return a compile function that calls the `on_compile` hook, prints notices and measures its time."""

    @functools.wraps(compile_)
    def compile_with_notice(*arguments: Any) -> Any:
        hook = _ON_COMPILE.get()
        if hook is not None:
            hook()
        started = time.monotonic()
        with compile_notice(what), entries_only(kind):
            result = compile_(*arguments)
        _seconds.append(time.monotonic() - started)
        return result

    return compile_with_notice
