"""Interpret the first calls of entry points while a thread compiles them.

Interpreted and compiled calls give the same results, bit for bit. Interpreted calls take thousands of times longer, so
after `INTERPRETED_SECONDS` of them a call waits for the machine code. Forks and the end of the process wait for running
compilations. ``BOTHWORLDS_BACKGROUND_COMPILE=no`` makes every call wait.
"""

import contextlib
import contextvars
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.kernels.jit.compile_notice import temporarily
from bothworlds.kernels.jit.fma import fma_of_arrays, fma_of_floats

SWITCH = "BOTHWORLDS_BACKGROUND_COMPILE"
INTERPRETED_SECONDS = 2.0  # of calls, before one waits for the compiler
_WAIT: contextvars.ContextVar[bool] = contextvars.ContextVar("wait", default=False)
_compilers: set[threading.Thread] = set()


def wait_for_compile() -> contextlib.AbstractContextManager[None]:
    """Make calls wait for machine code while a block runs."""
    return temporarily(_WAIT, True)


class BackgroundCompiled:
    """A function that is interpreted while a thread compiles it; ``compiled`` is numba's dispatcher of it."""

    def __init__(self, plain: Callable[..., int], compiled: Any) -> None:
        self.compiled, self.ready = compiled, False
        self._plain, self._seconds_left = plain, INTERPRETED_SECONDS
        self._lock = threading.Lock()
        self._compiler: threading.Thread | None = None

    def __call__(self, *arguments: Any) -> int:
        """Run the machine code if it is ready, else interpret."""
        if self.ready or self._is_ready(arguments):
            return int(self.compiled(*arguments))
        started = time.perf_counter()
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        before = [array.copy() for array in arrays]
        try:
            with np.errstate(all="ignore"):
                return self._plain(*arguments)
        except (ArithmeticError, ValueError):  # machine code does not raise where Python does: undo, and run it instead
            for array, copy in zip(arrays, before, strict=True):
                array[...] = copy
            return int(self.compiled(*arguments))
        finally:
            self._seconds_left -= time.perf_counter() - started

    def _is_ready(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether to call the dispatcher, which compiles or loads the machine code if no thread did."""
        waits = _WAIT.get() or self._seconds_left <= 0.0 or os.environ.get(SWITCH) == "no"
        with self._lock:
            if self._compiler is None and not waits and not is_on_disk(self.compiled):
                self._compiler = self._start_compiler(arguments)
        if self._compiler is not None:
            self._compiler.join(None if waits else 0.0)
        self.ready = self._compiler is None or not self._compiler.is_alive()
        return self.ready

    def _start_compiler(self, arguments: tuple[Any, ...]) -> threading.Thread:
        """Start a thread that compiles for the types of a call; its errors appear when the machine code is called."""
        for compile_fma in (fma_of_floats, fma_of_arrays):
            compile_fma()  # here, because the interpreter needs them at once
        kinds = tuple(self.compiled.typeof_pyval(argument) for argument in arguments)
        context = contextvars.copy_context()

        def compile_() -> None:
            with contextlib.suppress(BaseException):  # a call compiles again, and raises
                context.run(self.compiled.compile, kinds)
            _compilers.discard(threading.current_thread())

        compiler = threading.Thread(target=compile_, name="bothworlds-compiler")
        _compilers.add(compiler)
        compiler.start()
        return compiler


def is_on_disk(dispatcher: Any) -> bool:
    """Return whether numba's disk cache has an index for a function, as far as its path is known."""
    index = getattr(getattr(dispatcher._cache, "_cache_file", None), "_index_path", None)
    return index is not None and Path(index).exists()


def without_detour(call: Callable[..., int]) -> Callable[..., int]:
    """Return the dispatcher of a `BackgroundCompiled` that is ready; any other function as it is."""
    direct: Callable[..., int] = call.compiled if isinstance(call, BackgroundCompiled) and call.ready else call
    return direct


def compilers() -> tuple[threading.Thread, ...]:
    """Return the threads that compile now."""
    return tuple(_compilers)


def join_compilers() -> None:
    """Wait for running compilations: a forked child that inherits their locks could never compile."""
    for thread in list(_compilers):
        thread.join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=join_compilers)
