"""Compiling takes seconds, and in silence it looks like a program that hangs: a sentence on stderr, when it takes long.

Nothing is said where machine code comes from the disk cache, nor by whoever shows progress of their own.
"""

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from bothworlds.kernels.jit.lean import Kind, entries_only
from bothworlds.kernels.jit.meanwhile import meanwhile

PATIENCE = 1.0  # seconds
_UNTOLD: ContextVar[bool] = ContextVar("untold", default=False)
_NOTICE: ContextVar[Callable[[], None] | None] = ContextVar("notice", default=None)
_spent: list[float] = []  # seconds of each compilation in this process


def untold() -> contextlib.AbstractContextManager[None]:
    """Say nothing of compilation meanwhile: someone else shows what is going on."""
    return meanwhile(_UNTOLD, True)


@contextlib.contextmanager
def told(what: str, *, after: float = PATIENCE) -> Iterator[None]:
    """Say what is being compiled, once it has taken some time."""
    if _UNTOLD.get():
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


def noticed(notice: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Call a function whenever something begins to be compiled meanwhile."""
    return meanwhile(_NOTICE, notice)


def seconds_compiling() -> float:
    """Return how long this process has compiled so far."""
    return sum(_spent)


def tell_of(dispatcher: Any, kind: Kind) -> None:
    """Let numba's dispatcher say that it compiles; it asks its compiler only for what the disk cache does not have."""
    compiler, name = dispatcher._compiler, dispatcher.__name__
    compiler.compile = _telling(compiler.compile, f"{name!r}", kind)


def _telling(compile_: Callable[..., Any], what: str, kind: Kind) -> Callable[..., Any]:
    """Return a compiler that says what it does when it takes long."""

    @functools.wraps(compile_)
    def telling(*arguments: Any) -> Any:
        notice = _NOTICE.get()
        if notice is not None:
            notice()
        began = time.monotonic()
        with told(what), entries_only(kind):
            made = compile_(*arguments)
        _spent.append(time.monotonic() - began)
        return made

    return telling
